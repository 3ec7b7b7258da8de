package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/nnopt/nnopt/internal/longtest"
)

// ownSets are the sets of kernels of this package that the processor can execute.
func ownSets() []kernelSet {
	return slices.DeleteFunc(supportedSets(), func(s kernelSet) bool { return s == blasSet })
}

// equalBits fails unless got has the bits of want. All NaN are alike.
func equalBits(t *testing.T, what string, got, want Matrix) {
	t.Helper()
	for i := range want.Rows {
		for j, w := range Row(want, i) {
			if g := Row(got, i)[j]; !sameBits(g, w) {
				t.Fatalf("%s: element (%d, %d) is %v, want %v", what, i, j, g, w)
			}
		}
	}
}

// wantedTile computes a tile, one element after the other.
func wantedTile(t *tile, lanes int) {
	cols := t.vecs * lanes
	stored := cols - lanes + t.tail
	for panel := range t.panels {
		w := elem(t.w, uintptr(panel)*(uintptr(t.k)*t.wStep+t.wSkip))
		for i := range t.rows {
			for j := range stored {
				c := uintptr(panel*cols+j) * 4
				sum := t.begun(uintptr(i), c)
				for l := range t.k {
					var x *float32
					if t.runs == nil {
						x = elem(t.x, uintptr(i)*t.xRow+uintptr(l)*t.xStep)
					} else {
						x = elem(unsafe.Slice(t.runs, t.k/t.run)[l/t.run][i], t.move+uintptr(l%t.run)*4)
					}
					sum = fma32(*x, *elem(w, uintptr(l)*t.wStep+uintptr(j)*4), sum)
				}
				*elem(t.y, uintptr(i)*t.yRow+c) = t.finish(sum, uintptr(i), c)
			}
		}
	}
}

// guarded returns a matrix of normal numbers, with unmapped memory after its last element if the
// system supports that. If wild, some elements are NaN, infinite, or large or small enough to
// overflow or underflow.
func guarded(t *testing.T, r *rand.Rand, rows, cols, gap int, wild bool) Matrix {
	m := Matrix{Rows: rows, Cols: cols, Stride: cols + gap}
	m.Data = guardedFloats(t, max(0, (rows-1)*m.Stride+cols))
	for i := range m.Data {
		m.Data[i] = nan
	}
	for i := range rows {
		for j := range cols {
			v := float32(r.NormFloat64())
			if wild && r.IntN(50) == 0 {
				v = []float32{nan, inf, -inf, 0, 3e38, -3e38, 1e-40}[r.IntN(7)]
			}
			m.Data[i*m.Stride+j] = v
		}
	}
	return m
}

// Every kernel computes the bits of its Go twin for any argument, and accesses no other memory.
func TestTiles(t *testing.T) {
	for _, set := range ownSets() {
		if set == goSet {
			continue
		}
		for rows := 1; rows <= maxTileRows; rows++ {
			for vecs := 1; vecs <= set.panelCols()/set.lanes(); vecs++ {
				t.Run(fmt.Sprintf("%s/%dx%d", set, rows, vecs), func(t *testing.T) {
					for flags := 0; flags < 1<<6; flags += longtest.Of(5, 1) {
						checkTile(t, set, rows, vecs, uint(flags))
					}
				})
			}
		}
	}
}

func checkTile(t *testing.T, set kernelSet, rows, vecs int, flags uint) {
	r := rand.New(rand.NewPCG(uint64(flags), uint64(rows<<8|vecs)))
	lanes := set.lanes()
	k, panels, tail := r.IntN(12), 1, 1+r.IntN(lanes)
	if r.IntN(2) == 0 {
		panels, tail = 1+r.IntN(3), lanes
	}
	cols := panels*vecs*lanes - lanes + tail
	wild := r.IntN(3) == 0
	skip := r.IntN(2) * 32
	x := guarded(t, r, rows, k, 1+r.IntN(3), wild)
	w := guarded(t, r, panels, k*vecs*lanes, skip, wild)
	p, q, res := guarded(t, r, rows, cols, r.IntN(3), wild), guarded(t, r, rows, cols, r.IntN(3), wild), guarded(t, r, rows, cols, r.IntN(3), wild)
	bias, scale, offset := guarded(t, r, 1, cols, 0, wild), guarded(t, r, 1, cols, 0, wild), guarded(t, r, 1, cols, 0, wild)
	y := guarded(t, r, rows, cols, r.IntN(3), false)
	first := func(m Matrix) *float32 {
		if len(m.Data) == 0 {
			return nil
		}
		return &m.Data[0]
	}
	a := tile{
		rows: rows, vecs: vecs, panels: panels, k: k, flags: flags, tail: tail, mask: 1<<tail - 1,
		x: first(x), xRow: uintptr(4 * x.Stride), xStep: 4, w: first(w), wStep: uintptr(4 * vecs * lanes), wSkip: uintptr(4 * skip),
		q: first(q), qRow: uintptr(4 * q.Stride), r: first(res), rRow: uintptr(4 * res.Stride), y: first(y), yRow: uintptr(4 * y.Stride),
		bias: first(bias), scale: first(scale), offset: first(offset), mul: float32(r.NormFloat64()), alpha: float32(r.NormFloat64()),
	}
	if r.IntN(2) == 0 {
		a.p, a.pRow = first(p), uintptr(4*p.Stride)
	}
	if rows > 1 && k > 0 && r.IntN(3) == 0 {
		xt := guarded(t, r, k, rows, r.IntN(3), wild)
		a.x, a.xRow, a.xStep = first(xt), 4, uintptr(4*xt.Stride)
	}
	if k > 0 && r.IntN(2) == 0 {
		useRuns(t, r, &a, wild)
	} else if k > 0 && r.IntN(3) == 0 { // a panel is a stripe of a matrix
		wt := guarded(t, r, k, panels*vecs*lanes, r.IntN(3), wild)
		a.w, a.wStep = first(wt), uintptr(4*wt.Stride)
		a.wSkip = uintptr(4*vecs*lanes) - uintptr(k)*a.wStep
	}
	want := slices.Clone(y.Data)
	b := a
	b.y = &want[0]
	set.tile(&a)
	wantedTile(&b, lanes)
	for i, v := range want {
		if !sameBits(v, y.Data[i]) {
			t.Fatalf("flags %06b, k %d, %d panels, tail %d: element (%d, %d) is %v, want %v", flags, k, panels, tail, i/y.Stride, i%y.Stride, y.Data[i], v)
		}
	}
}

// useRuns makes the rows of x of a tile runs, in any order.
func useRuns(t *testing.T, r *rand.Rand, a *tile, wild bool) {
	a.run = 1 + r.IntN(a.k)
	for a.k%a.run > 0 {
		a.run++
	}
	n, moved := a.k/a.run, r.IntN(3)
	pieces := guarded(t, r, n*a.rows+moved, a.run, r.IntN(3), wild)
	list, order := make([]runs, n), r.Perm(n*a.rows)
	for i, at := range order {
		list[i/a.rows][i%a.rows] = &pieces.Data[at*pieces.Stride]
	}
	a.x, a.move = nil, uintptr(4*moved*pieces.Stride)
	a.runs, a.runsEnd = &list[0], uintptr(unsafe.Pointer(&list[0]))+uintptr(n)*unsafe.Sizeof(list[0])
}

// elem returns element (j, l) of W.
func (p *Weights) elem(j, l int) float32 {
	if p.tall {
		j, l = l, j
	}
	return Row(p.w, j)[l]
}

// chains computes y = mul·Σ x·Wᵀ and what ep adds, element by element.
func chains(segs []Segment, ep Epilogue, y Matrix) Matrix {
	out := Clone(y)
	for i := range y.Rows {
		for j := range y.Cols {
			var v, sum float32
			first := true
			if segs[0].Continue {
				v = Row(y, i)[j]
			}
			for s := range segs {
				last := s == len(segs)-1
				if segs[s].W.isNarrow() && !segs[s].Continue && (last || !segs[s+1].Continue) {
					v = dotInLanes(segs[s].X.Data[i*segs[s].X.Stride:], Row(segs[s].W.w, j), false)
				} else {
					for l := range segs[s].k() {
						v = fma32(*segs[s].at(i, l), segs[s].W.elem(j, l), v)
					}
				}
				if !last && segs[s+1].Continue {
					continue
				}
				switch {
				case !first:
					v += sum
				case ep.Accumulate && !segs[0].Continue:
					v += Row(y, i)[j]
				}
				if ep.Bias != nil && (ep.BiasFirst && first || !ep.BiasFirst && last) {
					v += ep.Bias[j]
				}
				first, sum, v = false, v, 0
			}
			if ep.ReLU && sum < 0 {
				sum = 0
			}
			if ep.Scale != nil {
				sum = float32(sum*ep.Scale[j]) + ep.Offset[j]
			}
			if ep.Alpha != 0 {
				sum += float32(ep.Alpha * Row(ep.Residual, i)[j])
			}
			if ep.LastReLU && sum < 0 {
				sum = 0
			}
			Row(out, i)[j] = sum
		}
	}
	return out
}

// mulSet is MulSegments with the given kernels.
func mulSet(set kernelSet, segs []Segment, ep Epilogue, y Matrix) {
	ws := getWorkspace()
	defer ws.put()
	checkProduct(segs, &ep, y)
	multiply(set, ws, segs, &ep, 1, y)
}

// For all sizes, strides and kernels, an element is one chain over k, and the steps of an epilogue
// are in order. Unfinished sums are never stored in y, which the epilogue reads.
func TestMulSegments(t *testing.T) {
	r := newRand()
	for _, set := range ownSets() {
		for _, c := range []struct {
			m, n int
			k    []int
		}{
			{1, 1, []int{1}}, {2, 3, []int{0}}, {7, 65, []int{13}}, {13, 200, []int{33}}, {12, 64, []int{5, 3}}, {25, 150, []int{7, 0, 9}},
			{1, 3000, []int{3}}, {8, 1100, []int{2, 5}}, {98, 17, []int{3100}}, {7, 17, []int{12500, 700}}, {5, 16, []int{4, 1, 1, 7}},
			{9, 40, []int{3, 5, 2}}, {9, 12, []int{48}}, {110, 16, []int{33, 40}}, {7, 5, []int{50, 3, 70, 2}}, {7, 20, []int{3, 0, 2}}, {7, 33, []int{3, 4000, 2}}, {14, 30, []int{3}},
		} {
			y := random(r, c.m, c.n, 1)
			bias, scale, offset := random(r, 1, c.n, 0).Data, random(r, 1, c.n, 0).Data, random(r, 1, c.n, 0).Data
			var segs []Segment
			for i, k := range c.k {
				x := random(r, c.m, k, 3)
				if i == 1 {
					x = random(r, 1, k, 0) // all rows are the same
					x.Rows, x.Stride = c.m, 0
				}
				w := newWeights(set, random(r, c.n, k, 2), false)
				if r.IntN(3) == 0 {
					w = newWeights(set, random(r, k, c.n, 2), true)
				}
				segs = append(segs, Segment{X: x, W: w})
			}
			goesOn := r.IntN(1 << len(segs))
			for i := range segs {
				segs[i].Continue = goesOn>>i&1 != 0
			}
			for bits := range 64 {
				few := c.m*c.n*slices.Max(c.k) > 100000
				if bits != 8 && bits != 63 && (few || !longtest.Enabled() && bits%3 != c.n%3) {
					continue
				}
				ep := Epilogue{Accumulate: bits&1 != 0, ReLU: bits&2 != 0, BiasFirst: bits&4 != 0, LastReLU: bits&32 != 0}
				if bits&(4|8) != 0 {
					ep.Bias = bias
				}
				if bits&8 != 0 {
					ep.Scale, ep.Offset = scale, offset
				}
				got := random(r, c.m, c.n, 1)
				Copy(got, y)
				if bits&16 != 0 {
					ep.Alpha, ep.Residual = 0.66, got
				}
				want := chains(segs, ep, got)
				mulSet(set, segs, ep, got)
				gapsIntact(t, got)
				equalBits(t, fmt.Sprintf("%s %d×%d×%d, epilogue %05b, continued %b", set, c.m, c.n, c.k, bits, goesOn), got, want)
			}
		}
	}
}

// A row has the same bits alone and among others, at any address.
func TestMulRowByRow(t *testing.T) {
	r := newRand()
	const n, k = 100, 37
	x, w := random(r, 150, k, 2), random(r, n, k, 0)
	for _, set := range ownSets() {
		p := newWeights(set, w, false)
		all := New(150, n)
		mulSet(set, []Segment{{X: x, W: p}}, Epilogue{}, all)
		equalBits(t, set.String(), all, chains([]Segment{{X: x, W: p}}, Epilogue{}, all))
		for m := 1; m <= 150; m += 1 + m/8 {
			first := r.IntN(151 - m)
			y := random(r, m, n, m%5)
			y.Data = append(make([]float32, m%16), y.Data...)[m%16:]
			mulSet(set, []Segment{{X: Rows(x, first, m), W: p}}, Epilogue{}, y)
			equalBits(t, fmt.Sprintf("%s: %d rows", set, m), y, Rows(all, first, m))
			mulWith(set, Rows(x, first, m), w, Epilogue{}, y)
			equalBits(t, fmt.Sprintf("%s: %d rows, not prepared", set, m), y, Rows(all, first, m))
		}
	}
}

func TestMulRefuses(t *testing.T) {
	x, w, y := New(3, 4), New(5, 4), New(3, 5)
	for name, f := range map[string]func(){
		"x of another width":    func() { Mul(New(3, 5), w, Epilogue{}, y) },
		"x of another height":   func() { Mul(New(2, 4), w, Epilogue{}, y) },
		"y of another width":    func() { Mul(x, w, Epilogue{}, New(3, 4)) },
		"a short bias":          func() { Mul(x, w, Epilogue{Bias: make([]float32, 4)}, y) },
		"a scale by itself":     func() { Mul(x, w, Epilogue{Scale: make([]float32, 5)}, y) },
		"no residual":           func() { Mul(x, w, Epilogue{Alpha: 1}, y) },
		"rows that overlap":     func() { Mul(x, w, Epilogue{}, Matrix{Rows: 3, Cols: 5, Stride: 4, Data: make([]float32, 100)}) },
		"too little data":       func() { Mul(Matrix{Rows: 3, Cols: 4, Stride: 4, Data: make([]float32, 11)}, w, Epilogue{}, y) },
		"weights without data":  func() { NewWeights(Matrix{Rows: 5, Cols: 4, Stride: 4}) },
		"a sum without a term":  func() { MulSegments(nil, Epilogue{}, y) },
		"a factor without data": func() { Mul(x, Matrix{Rows: 5, Cols: 4, Stride: 4}, Epilogue{}, y) },
	} {
		mustPanic(t, name, f)
	}
}

// raceDetector reports whether the race detector is on. Pools then drop values at random.
var raceDetector bool

func TestMulAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector is on")
	}
	r := newRand()
	x, w, y, bias := random(r, 20, 300, 0), random(r, 70, 300, 0), New(20, 70), make([]float32, 70)
	p := NewWeights(w)
	segs, next := []Segment{{X: x, W: p}, {X: x, W: p}}, []*Weights{p, p, p}
	dw := New(70, 300)
	for name, f := range map[string]func(){
		"Weights.Mul": func() { p.Mul(x, Epilogue{Bias: bias, Alpha: 1, Residual: y}, y) },
		"MulSegments": func() { MulSegments(segs, Epilogue{Bias: bias, Next: next}, y) },
		"Mul":         func() { Mul(x, w, Epilogue{}, y) },
		"MulNN":       func() { MulNN(1, y, w, 1, x) },
		"MulTN":       func() { (*Threads)(nil).MulTN(0.5, y, x, 2, dw) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkMul(b *testing.B) {
	r := newRand()
	for _, set := range ownSets() {
		if set == goSet {
			continue
		}
		for _, d := range [][3]int{
			{150, 1536, 160}, {150, 160, 1536}, {64, 512, 512}, {70, 6008, 256}, {206, 768, 96}, {206, 96, 768},
			{1, 4096, 512}, {3, 4096, 256}, {8, 4096, 512}, {24, 4096, 256}, {1024, 1024, 1024},
		} {
			m, n, k := d[0], d[1], d[2]
			b.Run(fmt.Sprintf("%s/%dx%dx%d", set, m, n, k), func(b *testing.B) {
				x, w, y := random(r, m, k, 0), newWeights(set, random(r, n, k, 0), false), random(r, m, n, 0)
				segs := []Segment{{X: x, W: w}}
				b.ReportAllocs()
				best := time.Hour
				for b.Loop() {
					start := time.Now()
					mulSet(set, segs, Epilogue{}, y)
					best = min(best, time.Since(start))
				}
				flop := 2 * float64(m) * float64(n) * float64(k)
				b.ReportMetric(flop*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				b.ReportMetric(flop/float64(best.Nanoseconds()), "best-GFLOP/s")
			})
		}
	}
}

// BenchmarkPeak measures the multipliers: the highest tile, which reads the same vectors in every
// step, and so from the first-level cache.
func BenchmarkPeak(b *testing.B) {
	const steps = 1 << 14
	for _, set := range ownSets() {
		if set == goSet {
			continue
		}
		b.Run(set.String(), func(b *testing.B) {
			cols := set.panelCols()
			x, w, y := New(maxTileRows, 1), New(1, cols), New(maxTileRows, cols)
			t := tile{
				rows: maxTileRows, vecs: cols / set.lanes(), panels: 1, k: steps, tail: set.lanes(), mask: 1<<set.lanes() - 1,
				x: &x.Data[0], xRow: 4, w: &w.Data[0], y: &y.Data[0], yRow: uintptr(4 * cols),
				ahead: uintptr(unsafe.Pointer(&w.Data[0])),
			}
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				set.tile(&t)
				best = min(best, time.Since(start))
			}
			b.ReportMetric(2*maxTileRows*steps*float64(cols)/float64(best.Nanoseconds()), "best-GFLOP/s")
		})
	}
}

// BenchmarkEpilogue compares the costs of an epilogue and of separate steps.
func BenchmarkEpilogue(b *testing.B) {
	r := newRand()
	for _, d := range [][3]int{{206, 768, 96}, {150, 1536, 160}, {64, 512, 512}} {
		m, n, k := d[0], d[1], d[2]
		x, w, y := random(r, m, k, 0), NewWeights(random(r, n, k, 0)), random(r, m, n, 0)
		bias, scale, offset := random(r, 1, n, 0).Data, random(r, 1, n, 0).Data, random(r, 1, n, 0).Data
		residual := random(r, m, n, 0)
		most := Epilogue{Bias: bias, ReLU: true, Scale: scale, Offset: offset}
		all := most
		all.Alpha, all.Residual = 0.66, residual
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"none", func() { w.Mul(x, Epilogue{}, y) }},
			{"bias-relu-scale", func() { w.Mul(x, most, y) }},
			{"bias-relu-scale-residual", func() { w.Mul(x, all, y) }},
			{"passes", func() {
				w.Mul(x, Epilogue{}, y)
				AddRow(y, 1, bias)
				MapRows(y, y, ReLUVec)
				scaleOffset(y, y, scale, offset)
				Add(y, 0.66, residual)
			}},
		} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", m, n, k, c.name), func(b *testing.B) {
				best := time.Hour
				for b.Loop() {
					start := time.Now()
					c.f()
					best = min(best, time.Since(start))
				}
				b.ReportMetric(float64(best.Nanoseconds()), "best-ns/op")
			})
		}
	}
}
