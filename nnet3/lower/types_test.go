package lower

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest/property"
)

// cellsOf lists the elements of a rectangle.
func cellsOf(r Rect) map[[2]int32]bool {
	set := map[[2]int32]bool{}
	for i := r.R0; i < r.R1; i++ {
		for j := r.C0; j < r.C1; j++ {
			set[[2]int32{i, j}] = true
		}
	}
	return set
}

// TestRect holds the arithmetic of rectangles against sets of elements.
func TestRect(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		a, b := drawRect(t, "a"), drawRect(t, "b")
		x, y := cellsOf(a), cellsOf(b)
		common := 0
		for c := range x {
			if y[c] {
				common++
			}
		}
		if a.area() != int64(len(x)) || a.empty() != (len(x) == 0) || int64(a.Rows())*int64(a.Cols()) != a.area() {
			t.Fatalf("%v: area %d, empty %v, %d elements", a, a.area(), a.empty(), len(x))
		}
		if i := a.intersect(b); len(cellsOf(i)) != common || i.empty() != (common == 0) {
			t.Fatalf("%v and %v: %v, %d elements in common", a, b, i, common)
		}
		if !a.empty() && !b.empty() && a.Overlaps(b) != (common > 0) {
			t.Fatalf("%v overlaps %v: %v, %d elements in common", a, b, a.Overlaps(b), common)
		}
		if !b.empty() && a.Contains(b) != (common == len(y)) {
			t.Fatalf("%v contains %v: %v", a, b, a.Contains(b))
		}
		u := a.union(b)
		for _, set := range []map[[2]int32]bool{x, y} {
			for c := range set {
				if !u.Contains(Rect{c[0], c[0] + 1, c[1], c[1] + 1}) {
					t.Fatalf("the union %v of %v and %v is without %v", u, a, b, c)
				}
			}
		}
		if !a.empty() && !b.empty() && u.area() > 0 && (u.R0 != min(a.R0, b.R0) || u.C1 != max(a.C1, b.C1)) {
			t.Fatalf("the union %v of %v and %v is too large", u, a, b)
		}
		if s := a.Shift(2, -1).Shift(-2, 1); s != a {
			t.Fatalf("%v there and back is %v", a, s)
		}
	})
}

// TestTypes: only the same size, the same component's state and the same component's memo are
// accepted.
func TestTypes(t *testing.T) {
	types := []fgraph.Type{MatrixType{2, 3}, MatrixType{3, 2}, StateType{1}, StateType{2}, MemoType{1}, MemoType{2}}
	texts := []string{"2x3", "3x2", "state(1)", "state(2)", "memo(1)", "memo(2)"}
	for i, a := range types {
		if a.String() != texts[i] {
			t.Errorf("%v is printed as %s", texts[i], a)
		}
		for j, b := range types {
			if a.Accepts(b) != (i == j) {
				t.Errorf("%v accepts %v: %v", a, b, a.Accepts(b))
			}
		}
	}
}
