package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// Every kernel computes the bits of its Go twin, and accesses no other memory.
func TestDotLanes(t *testing.T) {
	for _, set := range ownSets() {
		for seed := range uint64(400) {
			r := rand.New(rand.NewPCG(seed, 1))
			blocks, tail, cols := 1+r.IntN(5), r.IntN(sumLanes), narrowGroup*(1+r.IntN(4))
			rows, wild := 1+r.IntN(set.laneRows()), r.IntN(3) == 0
			x := guarded(t, r, rows, blocks*sumLanes+tail, r.IntN(3), wild)
			w := guarded(t, r, cols, (blocks+1)*sumLanes, 0, wild)
			if seed%10 == 0 { // sums are negative zeros
				Fill(x, -1e-40)
				Fill(w, 1e-40)
			}
			for j := range cols {
				clear(Row(w, j)[x.Cols:])
			}
			dst := guarded(t, r, rows, cols, r.IntN(3), false)
			a := laneTile{
				rows: rows, cols: cols, x: &x.Data[0], xRow: uintptr(4 * x.Stride), w: &w.Data[0], wRow: uintptr(4 * w.Stride),
				blocks: blocks, tail: tail, mask: 1<<tail - 1, dst: &dst.Data[0], dstRow: uintptr(4 * dst.Stride),
			}
			b, want := a, Clone(dst)
			b.dst, b.dstRow = &want.Data[0], uintptr(4*want.Stride)
			set.dotLanes(&a)
			dotLanesGo(&b)
			equalBits(t, fmt.Sprintf("%s, seed %d, %d rows", set, seed, rows), dst, want)
		}
	}
}

// No part of a product that is not narrow is narrow. So its sums can be divided.
func TestNarrowParts(t *testing.T) {
	for n := range 70 {
		for k := range 2000 {
			if isNarrow(n, k) && !isNarrow(n, k+1) {
				t.Fatalf("%d columns: sums of %d are in lanes, of %d not", n, k, k+1)
			}
		}
	}
}

// A narrow product has sums in lanes for all numbers of rows, strides, epilogues and kernels. Terms
// that continue each other's sums are chains.
func TestNarrow(t *testing.T) {
	r := newRand()
	for _, set := range ownSets() {
		for _, n := range []int{1, 3, 4, 15, 16, 23, 24, 25} {
			for _, k := range []int{31, 32, 40, 64, 333, 9000}[:longtest.Of(5, 6)] {
				rows := min(150, 1+60000/k) // the reference is slow
				x, w := random(r, rows, k, 3), random(r, n, k, 2)
				p := newWeights(set, w, false)
				if got := p.isNarrow(); got != (n <= 20 && k >= 32) {
					t.Fatalf("%d columns, sums of %d: narrow is %t", n, k, got)
				}
				y := random(r, rows, n, 1)
				mulSet(set, []Segment{{X: x, W: p}}, Epilogue{}, y)
				gapsIntact(t, y)
				for i := range rows {
					for j, v := range Row(y, i) {
						want := dotChain(Row(x, i), Row(w, j))
						if p.isNarrow() {
							want = dotInLanes(Row(x, i), Row(w, j), false)
						}
						if v != want {
							t.Fatalf("%s, %d columns, sums of %d: element (%d, %d) is %v, want %v", set, n, k, i, j, v, want)
						}
					}
				}
				for m := 1; m <= rows; m += 1 + m/3 {
					some := New(m, n)
					first := r.IntN(rows + 1 - m)
					mulWith(set, Rows(x, first, m), w, Epilogue{}, some)
					equalBits(t, fmt.Sprintf("%s: %d rows, not prepared", set, m), some, Rows(y, first, m))
				}
				same := Rows(x, 3, 1)
				same.Rows, same.Stride = 7, 0
				all := New(7, n)
				mulSet(set, []Segment{{X: same, W: p}}, Epilogue{}, all)
				for i := range 7 {
					equalBits(t, "rows that are one", Rows(all, i, 1), Rows(y, 3, 1))
				}
				chained := New(rows, n)
				mulSet(set, []Segment{{X: x, W: p}, {X: x, W: p, Continue: true}}, Epilogue{}, chained)
				equalBits(t, "continued", chained, chains([]Segment{{X: x, W: p}, {X: x, W: p, Continue: true}}, Epilogue{}, chained))
			}
		}
	}
}
