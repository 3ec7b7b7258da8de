package kernel

import (
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/longtest"
)

// divided makes threads divide whatever can be divided until the test ends.
func divided(t testing.TB) {
	divide.Always.Store(true)
	t.Cleanup(func() { divide.Always.Store(false) })
}

// teams are the numbers of threads that tests compare with one.
var teams = []int{2, 3, 5, 8}

func init() {
	if raceDetector {
		teams = teams[1:2] // it takes long
	}
}

// eachTeam calls f with threads of each number that tests compare with one.
func eachTeam(f func(size int, t *Threads)) {
	for _, n := range teams {
		f(n, NewThreads(n))
	}
}

// TestSharedProducts: products have the same bits for any number of threads.
func TestSharedProducts(t *testing.T) {
	divided(t)
	for _, set := range supportedSets() {
		t.Run(set.String(), func(t *testing.T) {
			r := newRand()
			for n, s := range []struct{ m, n, k int }{
				{1, 1, 1}, {1, 700, 33}, {2, 100, 0}, {7, 64, 70}, {13, 65, 129}, {6, 129, 5}, {50, 20, 64}, {100, 3, 40}, {40, 300, 1100}, {31, 1030, 20},
				{9, 200, 3000}, {200, 17, 20_000},
			} {
				if set <= goSet && s.m*s.n*s.k > 1<<20 {
					continue
				}
				for terms := 1; terms <= 3; terms++ {
					if !longtest.Enabled() && terms != 1+n%3 {
						continue
					}
					segs := make([]Segment, terms)
					for i := range segs {
						k := s.k + 3*i
						segs[i] = Segment{X: random(r, s.m, k, i), W: newWeights(set, random(r, s.n, k, i), false), Continue: (n+i)%4 == 3}
					}
					ep := Epilogue{Accumulate: n%3 == 0, ReLU: n%4 == 1, BiasFirst: n%2 == 0, LastReLU: n%5 == 2}
					if n%3 != 1 {
						ep.Bias = random(r, 1, s.n, 0).Data
					}
					if n%4 != 2 {
						ep.Scale, ep.Offset = random(r, 1, s.n, 0).Data, random(r, 1, s.n, 0).Data
					}
					y := random(r, s.m, s.n, 2)
					alone := func() Matrix { m := y; m.Data = append([]float32(nil), y.Data...); return m }
					compute := func(threads *Threads, y Matrix) {
						ep := ep
						ep.Threads = threads
						if n%3 == 2 {
							ep.Alpha, ep.Residual = 0.66, y
						}
						ws := getWorkspace()
						defer ws.put()
						multiply(set, ws, segs, &ep, 1, y)
					}
					want := alone()
					compute(nil, want)
					eachTeam(func(size int, threads *Threads) {
						got := alone()
						compute(threads, got)
						gapsIntact(t, got)
						equalBits(t, fmt.Sprintf("%d×%d×%d, %d terms, %d threads", s.m, s.n, s.k, terms, size), got, want)
					})
				}
			}
		})
	}
}

// TestGrids: shares cover each column of each tile once, and are as large as they should be.
func TestGrids(t *testing.T) {
	const set = avx512Set // any will do
	for _, c := range []struct {
		threads, parts, rows, cols, steps int
		want                              grid
	}{
		{2, 6, 54, 1024, 128, grid{1, 2}}, {2, 6, 54, 180, 200, grid{1, 2}}, {2, 2, 1, 10, 100, grid{1, 1}}, {2, 6, 12, 64, 1000, grid{1, 2}},
		{16, 48, 180, 1024, 1024, grid{16, 3}}, {3, 9, 1, 570, 1000, grid{9, 1}}, {2, 6, 200, 96, 1000, grid{1, 2}}, {2, 2, 5, 192, 1000, grid{2, 1}},
		{2, 6, 528, 768, 192, grid{1, 2}}, {2, 6, 66, 768, 192, grid{1, 2}}, {2, 12, 68, 160, 3072, grid{1, 2}}, {2, 12, 54, 1536, 320, grid{2, 1}},
		{2, 6, 8, 4096, 512, grid{4, 1}},
	} {
		g := set.divideAmong(c.threads, c.parts, c.rows, c.cols, c.steps)
		if g != c.want {
			t.Errorf("%+v: %v", c, g)
		}
		tiles := (c.rows + maxTileRows - 1) / maxTileRows
		covered := make([]int, c.cols*tiles)
		for i := range g.count() {
			s := g.share(i, set.panelCols(), c.cols, tiles)
			for tile := s.first; tile < s.last; tile++ {
				for j := s.j; j < s.end; j++ {
					covered[tile*c.cols+j]++
				}
			}
		}
		for i, n := range covered {
			if n != 1 {
				t.Fatalf("%+v: column %d of tile %d is computed %d times", c, i%c.cols, i/c.cols, n)
			}
		}
	}
	for panels := 1; panels < 30; panels++ {
		for shares := 1; shares <= panels; shares++ {
			for lacks := range 4 {
				g, most := grid{shares, 1}, 0
				for i := range shares {
					s := g.share(i, set.panelCols(), panels*set.panelCols()-lacks*set.lanes(), 1)
					most = max(most, (s.end-s.j)/set.lanes())
				}
				if got := widest(shares, panels, 4, lacks); got != most {
					t.Errorf("%d shares of %d panels that lack %d vectors: %d, want %d", shares, panels, lacks, got, most)
				}
			}
		}
	}
}

// BenchmarkShares are products of one thread and of two.
func BenchmarkShares(b *testing.B) {
	for _, s := range []struct{ m, n, k int }{{50, 1024, 128}, {50, 128, 1024}, {150, 1536, 160}, {400, 1024, 1024}, {1, 1024, 1024}, {8, 512, 512}, {50, 160, 320}, {10, 128, 128}, {1, 256, 256}} {
		r := newRand()
		x, w, y := random(r, s.m, s.k, 0), NewWeights(random(r, s.n, s.k, 0)), New(s.m, s.n)
		for _, n := range []int{1, 2} {
			b.Run(fmt.Sprintf("%dx%dx%d/%d", s.m, s.n, s.k, n), func(b *testing.B) {
				ep := Epilogue{Threads: NewThreads(n)}
				for range b.N {
					w.Mul(x, ep, y)
				}
				b.ReportMetric(float64(2*s.m*s.n*s.k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}

// TestSharedFactors: products of factors that are not packed have the same bits for any number of threads.
func TestSharedFactors(t *testing.T) {
	divided(t)
	for _, set := range supportedSets() {
		t.Run(set.String(), func(t *testing.T) {
			r := newRand()
			for n, s := range []struct{ m, n, k int }{
				{1, 1, 1}, {3, 70, 65}, {70, 3, 100}, {100, 130, 64}, {130, 100, 200}, {257, 65, 1100}, {40, 150, 1100}, {600, 450, 70}, {5, 20, 17_000},
			} {
				if set <= goSet && s.m*s.n*s.k > 1<<21 {
					continue
				}
				for tall := range 4 {
					f := factors{aTall: tall&1 != 0, bTall: tall&2 != 0}
					shaped := func(rows, cols int, tall bool) Matrix {
						if tall {
							rows, cols = cols, rows
						}
						return random(r, rows, cols, n%3)
					}
					f.a, f.b = shaped(s.m, s.k, f.aTall), shaped(s.n, s.k, f.bTall)
					for i, beta := range []float32{0, 1, 0.3} {
						if !longtest.Enabled() && i != (n+tall)%3 {
							continue
						}
						c := random(r, s.m, s.n, 1)
						want := c
						want.Data = append([]float32(nil), c.Data...)
						f.threads = nil
						f.inChains(set, 0.7, beta, want)
						eachTeam(func(size int, threads *Threads) {
							got := c
							got.Data = append([]float32(nil), c.Data...)
							f.threads = threads
							f.inChains(set, 0.7, beta, got)
							gapsIntact(t, got)
							equalBits(t, fmt.Sprintf("%d×%d×%d, tall %d, beta %g, %d threads", s.m, s.n, s.k, tall, beta, size), got, want)
						})
					}
				}
			}
		})
	}
}

// TestSharedMatrices: the methods of Threads compute the bits of the functions.
func TestSharedMatrices(t *testing.T) {
	divided(t)
	for _, s := range []struct{ rows, cols int }{{0, 3}, {3, 0}, {1, 1}, {1, 100}, {7, 16}, {100, 64}, {70, 33}, {9, 160}} {
		r := newRand()
		x, z := random(r, s.rows, s.cols, 1), random(r, s.rows, s.cols, 2)
		u, v, w := random(r, 1, s.cols, 0).Data, random(r, 1, s.cols, 0).Data, random(r, 1, s.cols, 0).Data
		indexes, ranges := make([]int32, s.rows), make([][2]int32, s.rows)
		for i := range indexes {
			indexes[i] = int32(r.IntN(s.rows+1)) - 1
			a, b := int32(r.IntN(s.rows)), int32(r.IntN(s.rows))
			ranges[i] = [2]int32{min(a, b), max(a, b)}
		}
		for name, f := range map[string]func(t *Threads, y Matrix, col []float32, sums []float64){
			"Fill":             func(t *Threads, y Matrix, _ []float32, _ []float64) { t.Fill(y, 3) },
			"Scale":            func(t *Threads, y Matrix, _ []float32, _ []float64) { t.Scale(y, 3) },
			"Copy":             func(t *Threads, y Matrix, _ []float32, _ []float64) { t.Copy(y, x) },
			"CopyScaled":       func(t *Threads, y Matrix, _ []float32, _ []float64) { t.CopyScaled(y, 0.3, x) },
			"Add":              func(t *Threads, y Matrix, _ []float32, _ []float64) { t.Add(y, 0.3, x) },
			"MapRows":          func(t *Threads, y Matrix, _ []float32, _ []float64) { t.MapRows(y, x, TanhVec) },
			"MapRows2":         func(t *Threads, y Matrix, _ []float32, _ []float64) { t.MapRows2(y, x, z, MulVec) },
			"CopyRows":         func(t *Threads, y Matrix, _ []float32, _ []float64) { t.CopyRows(y, x, indexes) },
			"AddRows":          func(t *Threads, y Matrix, _ []float32, _ []float64) { t.AddRows(y, 0.3, x, indexes) },
			"AddRowRanges":     func(t *Threads, y Matrix, _ []float32, _ []float64) { t.AddRowRanges(y, 0.3, x, ranges) },
			"ScaleCols":        func(t *Threads, y Matrix, _ []float32, _ []float64) { t.ScaleCols(y, x, u) },
			"ScaleOffset":      func(t *Threads, y Matrix, _ []float32, _ []float64) { t.ScaleOffset(y, x, u, v) },
			"Standardize":      func(t *Threads, y Matrix, _ []float32, _ []float64) { t.Standardize(y, x, u, v) },
			"StandardizeDeriv": func(t *Threads, y Matrix, _ []float32, _ []float64) { t.StandardizeDeriv(y, x, z, u, v, w) },
			"LogSoftmax":       func(t *Threads, y Matrix, _ []float32, _ []float64) { t.LogSoftmax(y, x) },
			"LogSoftmaxDeriv":  func(t *Threads, y Matrix, _ []float32, _ []float64) { t.LogSoftmaxDeriv(y, x, z) },
			"SoftmaxDeriv":     func(t *Threads, y Matrix, _ []float32, _ []float64) { t.SoftmaxDeriv(y, x, z) },
			"AddColSquares":    func(t *Threads, _ Matrix, _ []float32, sums []float64) { t.AddColSquares(sums, x) },
			"AddColSums":       func(t *Threads, _ Matrix, col []float32, _ []float64) { t.AddColSums(col, 0.3, x) },
			"AddColMoments":    func(t *Threads, _ Matrix, col []float32, sums []float64) { t.AddColMoments(col, 0.3, sums, x, z) },
			"ReLUSigns": func(t *Threads, y Matrix, _ []float32, sums []float64) {
				var signs Signs
				t.ReLUSigns(y, x, &signs, y.Rows/3, y.Rows/2)
				t.ReLUSignsDeriv(Rows(y, y.Rows/3, y.Rows/2), Rows(z, 0, y.Rows/2), &signs, sums)
			},
		} {
			run := func(threads *Threads) (Matrix, Matrix, []float64) {
				y := z
				y.Data = append([]float32(nil), z.Data...)
				col, sums := append([]float32(nil), u...), make([]float64, s.cols)
				f(threads, y, col, sums)
				return y, Matrix{Rows: 1, Cols: s.cols, Stride: s.cols, Data: col}, sums
			}
			want, wantCol, wantSums := run(nil)
			eachTeam(func(size int, threads *Threads) {
				got, col, sums := run(threads)
				gapsIntact(t, got)
				what := fmt.Sprintf("%s of %d×%d with %d threads", name, s.rows, s.cols, size)
				equalBits(t, what, got, want)
				equalBits(t, what, col, wantCol)
				for j, v := range sums {
					if v != wantSums[j] {
						t.Errorf("%s: sum %d is %v, not %v", what, j, v, wantSums[j])
					}
				}
			})
		}
	}
}

// TestSharedQuantized: quantized rows and products have the same bits for any number of threads.
func TestSharedQuantized(t *testing.T) {
	divided(t)
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		r := newRand()
		for n, s := range []struct{ m, n, k, group int }{{1, 1, 1, 1}, {3, 100, 40, 40}, {30, 17, 70, 32}, {100, 130, 300, 150}, {60, 49, 64, 16}, {900, 20, 400, 400}} {
			x, w := random(r, s.m, s.k, n%2), random(r, s.n, s.group, 0)
			if n%2 == 1 {
				Row(x, s.m/2)[s.k/2] = nan
			}
			bias, y := random(r, 1, s.n, 0).Data, random(r, s.m, s.n, 1)
			q := quantized(t, set, p, w)
			compute := func(threads *Threads) (Matrix, *QuantizedRows) {
				rows, got := new(QuantizedRows), y
				got.Data = append([]float32(nil), y.Data...)
				rows.quantize(set, threads, p, s.group, x)
				segs := []QuantizedSegment{{Rows: rows, Step: 1, W: q}, {Rows: rows, Step: 1, W: q}}
				MulQuantized(segs[:1+n%2], Epilogue{Bias: bias, ReLU: n%3 == 0, Accumulate: n%2 == 0, Threads: threads}, got)
				return got, rows
			}
			want, alone := compute(nil)
			eachTeam(func(size int, threads *Threads) {
				got, rows := compute(threads)
				gapsIntact(t, got)
				equalBits(t, fmt.Sprintf("%d×%d×%d, %d threads", s.m, s.n, s.k, size), got, want)
				if rows.Marked() != alone.Marked() {
					t.Errorf("%d threads: %d rows are marked, not %d", size, rows.Marked(), alone.Marked())
				}
			})
		}
	})
}
