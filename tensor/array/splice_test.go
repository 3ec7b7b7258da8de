package array_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestSpliceMatMul: a product of what lies side by side has the bits of that of a copy, for any number
// of columns, with the parts of the matrix prepared or not.
func TestSpliceMatMul(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for trial := range 200 {
		rows, cols := 1+r.IntN(20), 1+r.IntN(40)
		var parts []*array.Array
		var sizes []int
		total := 0
		for range 1 + r.IntN(3) {
			n := 1 + r.IntN(70)
			parts, sizes, total = append(parts, randomArray(r, array.Float32, rows, n)), append(sizes, n), total+n
		}
		b := randomArray(r, array.Float32, total, cols)
		if trial%4 == 0 {
			b = randomArray(r, array.Float32, cols, total).Transpose(1, 0)
		}
		joined := array.New(array.Float32, rows, total)
		at := 0
		for _, p := range parts {
			var dst array.Array
			joined.RangeTo(&dst, array.Range{Step: 1, Count: rows}, array.Range{Start: at, Step: 1, Count: p.Dim(1)})
			array.CopyTo(&dst, p)
			at += p.Dim(1)
		}
		p, args, kinds := randomEpilogue(r, array.Float32, []int{rows, cols})
		e := array.NewEpilogue(p, kinds)
		var ws array.Workspace
		want, got := array.New(array.Float32, rows, cols), array.New(array.Float32, rows, cols)
		if err := ws.BatchMatMul(want, joined, b, nil, e, args); err != nil {
			t.Fatal(err)
		}
		prepared := array.NewFactors(b, sizes, nil)
		if whole := trial%4 > 0; whole && prepared == nil {
			t.Fatalf("%d: parts %v of %d columns are not prepared", trial, sizes, cols)
		}
		for _, prepared := range [][]*array.Factor{nil, prepared} {
			if err := ws.SpliceMatMul(got, parts, b, prepared, e, args); err != nil {
				t.Fatal(err)
			}
			if !array.Equal(got, want) {
				t.Fatalf("%d: %d rows, parts %v, %d columns, %v of %v: %v, not %v", trial, rows, sizes, cols, p, kinds, got, want)
			}
		}
	}
}
