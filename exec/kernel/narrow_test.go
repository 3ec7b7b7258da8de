package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Every kernel computes the bits of its twin, and reads and writes nothing else.
func TestDotLanes(t *testing.T) {
	for _, set := range ownSets() {
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, 1))
			blocks, groups, wild := 1+r.IntN(5), 1+r.IntN(4), r.IntN(3) == 0
			k := blocks * sumLanes
			x, dst := guarded(t, r, 1, k, 0, wild), guarded(t, r, 1, groups*narrowGroup, 0, false)
			var tail *float32
			if r.IntN(2) == 0 {
				tail = &guarded(t, r, 1, sumLanes, 0, wild).Data[0]
				k += sumLanes
			}
			w := guarded(t, r, groups*narrowGroup, k, 0, wild)
			set.dotLanes(&x.Data[0], tail, &w.Data[0], uintptr(4*w.Stride), blocks, groups, &dst.Data[0])
			want := Clone(dst)
			dotLanesGo(&x.Data[0], tail, &w.Data[0], uintptr(4*w.Stride), blocks, groups, &want.Data[0])
			equalBits(t, fmt.Sprintf("%s, seed %d", set, seed), dst, want)
		}
	}
}

// A narrow product has sums in lanes, whatever the rows, the strides, the epilogue and the kernels; those that go on with each other's
// sums are chains.
func TestNarrow(t *testing.T) {
	r := newRand()
	for _, set := range ownSets() {
		for _, n := range []int{1, 3, 4, 15, 16, 23, 24, 25} {
			for _, k := range []int{31, 32, 40, 64, 333, 9000} {
				rows := min(150, 1+60000/k) // what is compared with is slow
				x, w := random(r, rows, k, 3), random(r, n, k, 2)
				p := newWeights(set, w, false)
				if got := p.isNarrow(); got != ((n <= 20 || n <= 24 && k < 80) && k >= 32 && n*k <= 8192) {
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
