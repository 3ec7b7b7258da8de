package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
)

// TestRelease: what is packed can be unpacked to the bit, and products don't need the matrix.
func TestRelease(t *testing.T) {
	for _, set := range supportedSets() {
		for _, size := range [][2]int{{1, 1}, {3, 200}, {16, 64}, {20, 33}, {21, 31}, {100, 7}, {259, 40}} {
			wide := New(size[0], size[1]+3)
			for i := range wide.Data {
				wide.Data[i] = float32(i%97) - 48
			}
			m := Cols(wide, 1, size[1])
			m.Data[0] = float32(math.Copysign(0, -1))
			m.Data[len(m.Data)-1] = math.Float32frombits(0x7fc00123)
			want := bitsOf(m)
			p := newWeights(set, m, false)
			x, before, after := New(2, size[1]), New(2, size[0]), New(2, size[0])
			for i := range x.Data {
				x.Data[i] = float32(i%7) - 3
			}
			p.Mul(x, Epilogue{}, before)
			if got := p.Release(); got != (set != blasSet) {
				t.Errorf("%v: released %v", set, got)
			}
			if !slices.Equal(bitsOf(p.Matrix()), want) {
				t.Errorf("%v, %v: other bits", set, size)
			}
			if set != blasSet {
				clear(wide.Data)
			}
			p.Mul(x, Epilogue{}, after)
			if !slices.Equal(bitsOf(before), bitsOf(after)) {
				t.Errorf("%v, %v: another product", set, size)
			}
		}
	}
	if newWeights(bestSet, New(2, 3), true).Release() {
		t.Error("a transpose is released")
	}
	empty := newWeights(bestSet, Matrix{}, false)
	if empty.Release(); empty.Matrix().Rows != 0 {
		t.Error("an empty matrix has rows")
	}
}

// bitsOf returns the bits of the elements of m.
func bitsOf(m Matrix) (b []uint32) {
	for i := range m.Rows {
		for _, v := range Row(m, i) {
			b = append(b, math.Float32bits(v))
		}
	}
	return b
}

// Panels of a transpose hold its columns, and packing accesses nothing else. AVX-512 packs as AVX2
// does, so its panels are tested without it, too.
func TestPackTransposed(t *testing.T) {
	r := newRand()
	sets := ownSets()
	if slices.Contains(sets, avx2Set) {
		sets = append(sets, avx512Set)
	}
	for _, set := range sets {
		for _, rows := range []int{1, 5, 8, 19} {
			for _, cols := range []int{0, 1, 8, 15, 16, 40, 64, 67, 80, 88, 140, 208} {
				w := guarded(t, r, rows, cols, rows%3*16, false)
				panels := guardedFloats(t, rows*set.padded(cols))
				packTransposed(set, panels, w, 0, w.Rows)
				for j := 0; j < cols; j += set.panelCols() {
					n := min(set.panelCols(), cols-j)
					width := set.padded(n)
					want := New(rows, width)
					for l := range rows {
						copy(Row(want, l), Row(w, l)[j:j+n])
					}
					got := Matrix{Data: panels[j*rows:], Rows: rows, Cols: width, Stride: width}
					equalBits(t, fmt.Sprintf("%v, %d×%d, from column %d", set, rows, cols, j), got, want)
				}
			}
		}
	}
}

// TestSetWindows: weights are packed as the transpose with the channels last is, also by several threads and into
// memory that was used before, and are unpacked to it.
func TestSetWindows(t *testing.T) {
	defer func(s kernelSet) { bestSet = s }(bestSet)
	defer divide.Always.Store(divide.Always.Swap(true))
	r := newRand()
	for _, bestSet = range ownSets() {
		used := newWeights(bestSet, random(r, 150, 70, 0), false)
		for _, window := range []int{1, 2, 9, 49} {
			for _, channels := range []int{1, 3, 8, 21} {
				for _, out := range []int{1, 15, 16, 20, 64, 67, 136} {
					what := fmt.Sprintf("%v, %d×%d×%d", bestSet, out, channels, window)
					w := guarded(t, r, out, channels*window, window%3, false)
					turned := windowsLast(w, window)
					want := newWeights(setFor(out, true), turned, true)
					for _, p := range []*Weights{new(Weights), used} {
						p.SetWindows(NewThreads(2), w, window)
						if !slices.Equal(bitsOfFloats(p.panels), bitsOfFloats(want.panels)) || len(p.lanes) > 0 {
							t.Fatalf("%s: other panels", what)
						}
						if !slices.Equal(bitsOf(p.Matrix()), bitsOf(turned)) {
							t.Fatalf("%s: unpacked to another matrix", what)
						}
					}
				}
			}
		}
	}
}

func bitsOfFloats(v []float32) []uint32 {
	return bitsOf(Matrix{Rows: 1, Cols: len(v), Stride: len(v), Data: v})
}

func BenchmarkSetWindows(b *testing.B) {
	r := newRand()
	for _, s := range [][3]int{{64, 3, 49}, {2048, 512, 1}, {512, 512, 9}} {
		w := random(r, s[0], s[1]*s[2], 0)
		p := new(Weights)
		b.Run(fmt.Sprintf("%dx%dx%d", s[0], s[1], s[2]), func(b *testing.B) {
			b.SetBytes(int64(4 * len(w.Data)))
			for b.Loop() {
				p.SetWindows(nil, w, s[2])
			}
		})
	}
}

// TestPackOnce: panels that are filled some rows at a time are those that are filled at once, and reading tells of all rows
// when they may be overwritten.
func TestPackOnce(t *testing.T) {
	m := random(newRand(), 100, 40003, 0)
	for _, set := range ownSets() {
		for _, tall := range []bool{false, true} {
			for _, threads := range []*Threads{nil, NewThreads(3)} {
				want, w := newWeights(set, m, tall), Clone(m)
				var p Weights
				next, calls := 0, 0
				p.become(set, threads, w, tall, func(first, n int) {
					if first != next {
						t.Fatalf("rows from %d on, not %d", first, next)
					}
					clear(Rows(w, first, n).Data)
					next, calls = first+n, calls+1
				})
				if next != m.Rows || calls < 2 {
					t.Errorf("%v: %d calls tell of %d rows", set, calls, next)
				}
				if !slices.Equal(p.panels, want.panels) {
					t.Errorf("%v, tall %t: other panels", set, tall)
				}
			}
		}
	}
}

func BenchmarkPackTransposed(b *testing.B) {
	r := newRand()
	for _, set := range ownSets() {
		for _, s := range [][2]int{{160, 1536}, {512, 160}, {512, 1536}, {1024, 4096}} {
			b.Run(fmt.Sprintf("%v/%dx%d", set, s[0], s[1]), func(b *testing.B) {
				w := random(r, s[0], s[1], 0)
				panels := alignedFloats(s[0] * set.padded(s[1]))
				b.SetBytes(int64(4 * s[0] * s[1]))
				for b.Loop() {
					packTransposed(set, panels, w, 0, w.Rows)
				}
			})
		}
	}
}
