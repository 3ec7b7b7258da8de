package array

import (
	"math/rand/v2"
	"testing"
)

// TestSpliceMatMul: a product of what lies side by side has the bits of that of a copy, for any number
// of columns, with the parts of the matrix prepared or not.
func TestSpliceMatMul(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for trial := range 200 {
		rows, cols := 1+r.IntN(20), 1+r.IntN(40)
		var parts []*Array
		var sizes []int
		total := 0
		for range 1 + r.IntN(3) {
			n := 1 + r.IntN(70)
			parts, sizes, total = append(parts, randomArray(r, Float32, rows, n)), append(sizes, n), total+n
		}
		b := randomArray(r, Float32, total, cols)
		if trial%4 == 0 {
			b = randomArray(r, Float32, cols, total).Transpose(1, 0)
		}
		joined := New(Float32, rows, total)
		at := 0
		for _, p := range parts {
			dst := *joined
			dst.offset, dst.shape[1] = at, p.shape[1]
			CopyTo(&dst, p)
			at += p.shape[1]
		}
		p, args, kinds := randomEpilogue(r, Float32, []int{rows, cols})
		e := NewEpilogue(p, kinds)
		var ws Workspace
		want, got := New(Float32, rows, cols), New(Float32, rows, cols)
		if err := ws.BatchMatMul(want, joined, b, nil, e, args); err != nil {
			t.Fatal(err)
		}
		prepared := NewFactors(b, sizes, nil)
		if whole := trial%4 > 0; whole && prepared == nil {
			t.Fatalf("%d: parts %v of %d columns are not prepared", trial, sizes, cols)
		}
		for _, prepared := range [][]*Factor{nil, prepared} {
			if err := ws.SpliceMatMul(got, parts, b, prepared, e, args); err != nil {
				t.Fatal(err)
			}
			if !Equal(got, want) {
				t.Fatalf("%d: %d rows, parts %v, %d columns, %v of %v: %v, not %v", trial, rows, sizes, cols, p, kinds, got, want)
			}
		}
	}
}
