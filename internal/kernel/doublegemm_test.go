package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// strided returns a matrix of random numbers in a random layout: plain, transposed, with gaps, or
// reversed.
func strided(rng *rand.Rand, rows, cols, layout int) Strided {
	m := Strided{Rows: rows, Cols: cols, Row: cols, Col: 1, Data: make([]float64, 2*rows*cols+1)}
	switch layout {
	case 1:
		m.Row, m.Col = 1, rows
	case 2:
		m.Row, m.Col = 2*cols, 2
	case 3:
		m.Row, m.Col, m.First = -cols, 1, (rows-1)*cols
	}
	for i := range m.Data {
		m.Data[i] = rng.NormFloat64()
	}
	return m
}

func (m Strided) at(i, j int) float64 { return m.Data[m.First+i*m.Row+j*m.Col] }

// TestDGemm compares bits with sums in the same order, for every set of kernels, with and without
// NaN.
func TestDGemm(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, shape := range [][3]int{{1, 1, 1}, {3, 5, 7}, {8, 24, 192}, {9, 25, 193}, {100, 30, 20}, {17, 481, 5}, {97, 13, 400}, {4, 12, 0}} {
		for layout := range 4 {
			m, n, k := shape[0], shape[1], shape[2]
			a, b := strided(rng, m, k, layout), strided(rng, k, n, (layout+1)%4)
			stride := n + layout
			old := make([]float64, m*stride)
			for i := range old {
				old[i] = rng.NormFloat64()
			}
			if layout == 2 && k > 0 {
				a.Data[a.First] = math.NaN()
			}
			want := append([]float64{}, old...)
			for i := range m {
				for j := range n {
					for k0 := 0; k0 < k; k0 += dDepth {
						sum := 0.0
						for x := k0; x < min(k, k0+dDepth); x++ {
							sum = math.FMA(a.at(i, x), b.at(x, j), sum)
						}
						want[i*stride+j] = math.FMA(sum, -0.5, want[i*stride+j])
					}
				}
			}
			for _, set := range supportedSets() {
				c, saved := append([]float64{}, old...), bestSet
				bestSet = set
				(*Threads)(nil).DGemm(-0.5, a, b, c, stride)
				bestSet = saved
				for i := range c {
					if math.Float64bits(c[i]) != math.Float64bits(want[i]) && !(c[i] != c[i] && want[i] != want[i]) {
						t.Fatalf("%v, layout %d, %v: element %d is %v, want %v", shape, layout, set, i, c[i], want[i])
					}
				}
			}
		}
	}
}

func BenchmarkDGemm(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, shape := range [][3]int{{128, 1024, 784}, {128, 1024, 1024}, {1024, 1024, 128}, {1024, 1024, 1024}} {
		b.Run(fmt.Sprintf("%dx%dx%d", shape[0], shape[1], shape[2]), func(b *testing.B) {
			m, n, k := shape[0], shape[1], shape[2]
			x, y, c := strided(rng, m, k, 0), strided(rng, k, n, 0), make([]float64, m*n)
			for range b.N {
				(*Threads)(nil).DGemm(1, x, y, c, n)
			}
			b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}
