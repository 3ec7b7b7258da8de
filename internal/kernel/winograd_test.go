package kernel

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// TestWinograd: combinations of the input and of weights, multiplied and combined, are the sums of
// windows, for integers, which only those of 4 outputs round.
func TestWinograd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 4} {
		in, out := Winograd2In, Winograd2Out
		if n == 4 {
			in, out = Winograd4In, Winograd4Out
		}
		var d, u, y [6]float32
		w := [3]float64{24 * float64(r.IntN(9)-4), 24 * float64(r.IntN(9)-4), 24 * float64(r.IntN(9)-4)}
		x := d
		for i := range x {
			x[i] = float32(r.IntN(9) - 4)
		}
		in.Combine(Lines{d[:], 1, 0}, Lines{x[:], 1, 0}, 1, 1)
		for i, f := range WinogradWeights(n, w[0], w[1], w[2]) {
			u[i] = d[i] * float32(f)
		}
		out.Combine(Lines{y[:], 1, 0}, Lines{u[:], 1, 0}, 1, 1)
		for i := range n {
			if want := float32(w[0])*x[i] + float32(w[1])*x[i+1] + float32(w[2])*x[i+2]; math.Abs(float64(y[i]-want)) > float64(n/4)*1e-4*24 {
				t.Errorf("output %d of %d is %v, want %v", i, n, y[i], want)
			}
		}
	}
}

// TestCombine compares the sets of kernels, next to unmapped memory.
func TestCombine(t *testing.T) {
	defer func(old kernelSet) { bestSet = old }(bestSet)
	r := rand.New(rand.NewPCG(3, 4))
	for way := Winograd2In; way <= Winograd4Out; way++ {
		in, out := way.sizes()
		for _, n := range []int{1, 15, 16, 17, 31, 32, 50} {
			for _, pieces := range []int{1, 3} {
				src := Lines{guarded(t, r, 1, 2*n*pieces+(in-1)*(n+1)-n, 0, false).Data, n + 1, 2 * n}
				dst := Lines{nil, 3 * pieces * n, n + 2}
				var want []float32
				bestSet = goSet
				for _, set := range ownSets() {
					bestSet = set
					dst.Data = guarded(t, r, 1, (out-1)*dst.Line+(pieces-1)*dst.Next+n, 0, false).Data
					clear(dst.Data)
					way.Combine(dst, src, pieces, n)
					if want == nil {
						want = append(want, dst.Data...)
					}
					for i, v := range dst.Data {
						if !sameBits(want[i], v) {
							t.Fatalf("%v, way %d, %d pieces of %d: element %d is %v, want %v", set, way, pieces, n, i, v, want[i])
						}
					}
				}
			}
		}
		for _, wrong := range []Lines{{make([]float32, 30), 8, 0}, {make([]float32, 1000), -1, 0}, {make([]float32, 1000), 1, 1 << 62}} {
			mustPanic(t, fmt.Sprint("way ", way, ", distances ", wrong.Line, wrong.Next), func() {
				way.Combine(Lines{make([]float32, 1000), 16, 16}, wrong, 2, 9)
			})
		}
	}
}

// TestWinogradBound computes the bounds of errors that winograd.go names, from the combinations themselves.
func TestWinogradBound(t *testing.T) {
	for n, c := range map[int]struct{ sum, more, input, limit float64 }{2: {0.309, 5, 2, 8.1}, 4: {2.91, 11, 8, 23.1}} {
		in, out := Winograd2In, Winograd2Out
		if n == 4 {
			in, out = Winograd4In, Winograd4Out
		}
		points := n + 2
		b, g, a := make([][]float64, points), make([][]float64, points), make([][]float64, n)
		for j := range points {
			var one, y [6]float32
			one[j] = 1
			in.Combine(Lines{y[:], 1, 0}, Lines{one[:], 1, 0}, 1, 1)
			for k := range points {
				b[k] = append(b[k], float64(y[k]))
			}
			out.Combine(Lines{y[:], 1, 0}, Lines{one[:], 1, 0}, 1, 1)
			for i := range n {
				a[i] = append(a[i], math.Abs(float64(y[i])))
			}
		}
		for _, w := range [][6]float64{WinogradWeights(n, 1, 0, 0), WinogradWeights(n, 0, 1, 0), WinogradWeights(n, 0, 0, 1)} {
			for k := range points {
				g[k] = append(g[k], w[k])
			}
		}
		// Points 0 and infinity are alone, and others are pairs: of an even and an odd part, which have no element in
		// common, and so are as large as their norms at the same time.
		var groups []winogradGroup
		for k := 0; k < points; k++ {
			x, w := norm(b[k], nil, 0), norm(g[k], nil, 0)
			one := winogradGroup{k, []float64{x}, []float64{w}}
			if k > 0 && k < points-1 {
				one.x = []float64{norm(b[k], b[k+1], 1), norm(b[k], b[k+1], -1)}
				one.w = []float64{norm(g[k], g[k+1], 1), norm(g[k], g[k+1], -1)}
				if math.Abs(one.x[0]+one.x[1]-x) > 1e-6 || math.Abs(one.w[0]+one.w[1]-w) > 1e-6 {
					t.Fatalf("points %d and %d of %d are no pair", k, k+1, n)
				}
				for i := range n {
					if a[i][k] != a[i][k+1] {
						t.Fatalf("output %d has %v and %v of points %d and %d", i, a[i][k], a[i][k+1], k, k+1)
					}
				}
				k++
			}
			groups = append(groups, one)
		}
		for i := range n {
			for j := range n {
				together, apart := 0.0, 0.0
				for _, k := range groups {
					for _, l := range groups {
						p, q := k.with(l)
						together += a[i][k.at] * a[j][l.at] * p
						apart += a[i][k.at] * a[j][l.at] * q
					}
				}
				// Sums of 9 products, each of 9·C roundings.
				if together > 81*c.sum || c.more*together+c.input*apart > 81*c.sum*c.limit {
					t.Errorf("output (%d, %d) of %d: %v and %v", i, j, n, together/81, (c.more*together+c.input*apart)/81/c.sum)
				}
			}
		}
	}
}

// norm returns the sum of the magnitudes of (v ± u)/2, or of v.
func norm(v, u []float64, sign float64) float64 {
	sum := 0.0
	for i, x := range v {
		if u != nil {
			x = (x + sign*u[i]) / 2
		}
		sum += math.Abs(x)
	}
	return sum
}

// A winogradGroup is a point, or a pair of them, with the norms of the parts of inputs and weights.
type winogradGroup struct {
	at   int
	x, w []float64
}

// with returns bounds for points of g in one dimension and of h in the other: of the sum of all |v·u|, and of the
// sum of |u| times the largest |v|.
func (g winogradGroup) with(h winogradGroup) (together, apart float64) {
	// Values at points are sums of products of parts, with signs of a Hadamard matrix.
	var x, w []float64
	largest := 0.0
	for i, p := range g.x {
		for j, q := range h.x {
			x, w = append(x, p*q), append(w, g.w[i]*h.w[j])
			largest += p * q
		}
	}
	sign := func(p, part int) float64 { return 1 - 2*float64(bits.OnesCount(uint(p&part))&1) } // of a part, at a point
	for signs := range 1 << len(x) {                                                           // of the products at points
		total := 0.0
		for part, v := range w {
			sum := 0.0
			for p := range w {
				sum += sign(p, part) * (1 - 2*float64(signs>>p&1))
			}
			total += math.Abs(sum) * v
		}
		apart = max(apart, total*largest)
		for those := range 1 << len(x) { // of the parts of the input
			total := 0.0
			for j, v := range w {
				sum := 0.0
				for i, u := range x {
					for p := range w {
						sum += u * (1 - 2*float64(those>>i&1)) * sign(p, i) * (1 - 2*float64(signs>>p&1)) * sign(p, j)
					}
				}
				total += math.Abs(sum) * v
			}
			together = max(together, total)
		}
	}
	return together, apart
}
