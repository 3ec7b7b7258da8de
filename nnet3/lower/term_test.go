package lower

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
)

// element says that an element of a result takes from an element of the input.
type element struct{ dstRow, dstCol, srcRow, srcCol int32 }

// elements lists what a term moves, one by one and in order, which is the meaning of a term.
func elements(terms ...Term) []element {
	var list []element
	for _, t := range terms {
		for i := range t.NumRows {
			p := RowPair{t.DstRow + i, t.SrcRow + i}
			if t.Rows != nil {
				p = t.Rows[i]
			}
			for c := range t.NumCols {
				list = append(list, element{p.Dst, t.DstCol + c, p.Src, t.SrcCol + c})
			}
		}
	}
	slices.SortFunc(list, func(a, b element) int {
		return slices.Compare([]int32{a.dstRow, a.dstCol, a.srcRow, a.srcCol}, []int32{b.dstRow, b.dstCol, b.srcRow, b.srcCol})
	})
	return list
}

// drawTerm draws a term within 12 rows and 8 columns on both sides, with at least one element.
func drawTerm(t *rapid.T, name string) Term {
	num := func(lo, hi int32) int32 { return rapid.Int32Range(lo, hi).Draw(t, name) }
	u := Term{Input: num(0, 1), Scale: float32(num(1, 2)), NumCols: num(1, 4), At: num(0, 9)}
	u.DstCol, u.SrcCol = num(0, 8-u.NumCols), num(0, 8-u.NumCols)
	if rapid.Bool().Draw(t, name) {
		u.NumRows = num(1, 6)
		u.DstRow, u.SrcRow = num(0, 12-u.NumRows), num(0, 12-u.NumRows)
		return u
	}
	var rows []RowPair
	for dst := range int32(12) {
		if num(0, 2) == 0 || dst == 11 && rows == nil {
			src := num(0, 11)
			if len(rows) > 0 && rapid.Bool().Draw(t, name) {
				src = min(rows[len(rows)-1].Src+1, 11) // there are to be runs
			}
			rows = append(rows, RowPair{dst, src})
		}
	}
	u.setRows(rows)
	return u
}

func drawRect(t *rapid.T, name string) Rect {
	num := func(lo, hi int32) int32 { return rapid.Int32Range(lo, hi).Draw(t, name) }
	r := Rect{R0: num(0, 12), C0: num(0, 8)}
	r.R1, r.C1 = num(r.R0, 12), num(r.C0, 8)
	return r
}

func (e element) in(r Rect) bool {
	return r.R0 <= e.dstRow && e.dstRow < r.R1 && r.C0 <= e.dstCol && e.dstCol < r.C1
}

// TestTermClip: what clip and appendOutside give is what lies inside and outside of the rectangle.
func TestTermClip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		u, r := drawTerm(t, "term"), drawRect(t, "rect")
		before := elements(u)
		var inside, outside []element
		for _, e := range before {
			if e.in(r) {
				inside = append(inside, e)
			} else {
				outside = append(outside, e)
			}
		}
		got, ok := u.clip(r)
		if ok != (inside != nil) {
			t.Fatalf("clip says %v, %d elements are inside", ok, len(inside))
		}
		if ok {
			equal(t, "inside", inside, elements(got))
		}
		equal(t, "outside", outside, elements(u.appendOutside(nil, r)...))
		equal(t, "the term itself", before, elements(u))
	})
}

func equal(t *rapid.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(element{})); diff != "" {
		t.Fatalf("%s: %s", what, diff)
	}
}

// TestTermShift: both sides move, and rows that another term shares stay where they are.
func TestTermShift(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		u := drawTerm(t, "term")
		num := func(name string) int32 { return rapid.Int32Range(-5, 5).Draw(t, name) }
		dr, dc, sr, sc := num("dr"), num("dc"), num("sr"), num("sc")
		want := elements(u)
		for i := range want {
			e := &want[i]
			*e = element{e.dstRow + dr, e.dstCol + dc, e.srcRow + sr, e.srcCol + sc}
		}
		moved := u
		moved.shift(dr, dc)
		moved.ShiftSrc(sr, sc)
		equal(t, "moved", want, elements(moved))
		if u.Rows != nil && (dr != 0 || sr != 0) && &u.Rows[0] == &moved.Rows[0] {
			t.Fatal("the rows are shared")
		}
		if d, s := moved.Dst(), moved.Src(); d != hullOf(want, func(e element) (int32, int32) { return e.dstRow, e.dstCol }) ||
			s != hullOf(want, func(e element) (int32, int32) { return e.srcRow, e.srcCol }) {
			t.Fatalf("Dst %v, Src %v of %v", d, s, want)
		}
	})
}

func hullOf(list []element, at func(element) (int32, int32)) Rect {
	r, c := at(list[0])
	hull := Rect{r, r + 1, c, c + 1}
	for _, e := range list {
		r, c := at(e)
		hull = hull.union(Rect{r, r + 1, c, c + 1})
	}
	return hull
}

// TestTermThrough: to take from a value that a term is a part of is to take from what that term
// takes.
func TestTermThrough(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		outer, inner := drawTerm(t, "outer"), drawTerm(t, "inner")
		var want []element
		for _, a := range elements(outer) {
			for _, b := range elements(inner) {
				if a.srcRow == b.dstRow && a.srcCol == b.dstCol {
					want = append(want, element{a.dstRow, a.dstCol, b.srcRow, b.srcCol})
				}
			}
		}
		got, ok := outer.Through(&inner)
		if ok != (want != nil) {
			t.Fatalf("Through says %v, %d elements meet", ok, len(want))
		}
		if !ok {
			return
		}
		equal(t, "elements", want, elements(got))
		if got.Input != inner.Input || got.Scale != outer.Scale*inner.Scale || got.At != outer.At {
			t.Fatalf("input %d, scale %g, at %d", got.Input, got.Scale, got.At)
		}
		for i := 1; i < len(got.Rows); i++ {
			if got.Rows[i].Dst < got.Rows[i-1].Dst {
				t.Fatalf("the rows are not in order: %v", got.Rows)
			}
		}
	})
}

// TestTermRuns: the runs of a term are as few blocks as make it up, and Run gives each.
func TestTermRuns(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		u := drawTerm(t, "term")
		runs := 1
		for i := range max(u.NumRows-1, 0) {
			if a, b := u.Pair(i), u.Pair(i+1); b.Dst != a.Dst+1 || b.Src != a.Src+1 {
				runs++
			}
		}
		if countRuns(&u) != runs {
			t.Fatalf("%d runs, want %d of %v", countRuns(&u), runs, u.Rows)
		}
		var blocks []Term
		for lo := int32(0); lo < u.NumRows; {
			hi := u.run(lo)
			blocks = append(blocks, u.Run(lo, hi))
			lo = hi
		}
		if countRuns(&u) != len(blocks) || u.FirstRun() != blocks[0].NumRows {
			t.Fatalf("%d blocks, the first of %d rows; countRuns says %d, FirstRun %d", len(blocks), blocks[0].NumRows, countRuns(&u), u.FirstRun())
		}
		for i := range blocks {
			if !blocks[i].Contiguous() {
				t.Fatalf("a run is no block: %v", blocks[i])
			}
		}
		equal(t, "elements", elements(u), elements(blocks...))
	})
}

// TestTermJoin: Join makes one block of two or changes nothing, and it does so wherever two blocks
// make up one.
func TestTermJoin(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		u := drawTerm(t, "term")
		v := drawTerm(t, "other")
		if whole := u; u.Contiguous() && rapid.Bool().Draw(t, "halves") {
			// Two halves of a block.
			cut := rapid.Int32Range(0, 5).Draw(t, "cut")
			if rapid.Bool().Draw(t, "rows") {
				u, _ = whole.part(0, cut, 0, 8)
				v, _ = whole.part(cut, whole.NumRows, 0, 8)
			} else {
				u, _ = whole.part(0, whole.NumRows, 0, whole.DstCol+cut)
				v, _ = whole.part(0, whole.NumRows, whole.DstCol+cut, 8)
			}
			if u.NumRows == 0 || v.NumRows == 0 || v.NumCols <= 0 || u.NumCols <= 0 {
				t.Skip("no two halves")
			}
			got := u
			if !got.Join(&v) {
				t.Fatalf("halves are not joined: %v and %v", u, v)
			}
			equal(t, "elements", elements(whole), elements(got))
			return
		}
		got := u
		if got.Join(&v) {
			equal(t, "elements", elements(u, v), elements(got))
			if got.At != max(u.At, v.At) || u.Input != v.Input || u.Scale != v.Scale {
				t.Fatalf("%v joined with %v is %v", u, v, got)
			}
		} else {
			equal(t, "what is not joined", elements(u), elements(got))
		}
	})
}

// TestTermOrder: compareTerms is an order, and terms that are equal compare as equal wherever they
// come from.
func TestTermOrder(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		list := []Term{drawTerm(t, "a"), drawTerm(t, "b"), drawTerm(t, "c")}
		for i := range list {
			for j := range list {
				if a, b := compareTerms(&list[i], &list[j]), compareTerms(&list[j], &list[i]); (a < 0) != (b > 0) || (a == 0) != (b == 0) {
					t.Fatalf("%d and %d for %v and %v", a, b, list[i], list[j])
				}
				if equalTerms(&list[i], &list[j]) != (i == j) && cmp.Diff(elements(list[i]), elements(list[j]), cmp.AllowUnexported(element{})) != "" {
					t.Fatalf("%v and %v are equal", list[i], list[j])
				}
			}
		}
		sorted := slices.Clone(list)
		sortTerms(sorted)
		for i := 1; i < len(sorted); i++ {
			if compareTerms(&sorted[i-1], &sorted[i]) > 0 {
				t.Fatalf("not in order: %v", sorted)
			}
		}
	})
}

// countRuns returns the number of blocks that the rows of the term form.
func countRuns(t *Term) int {
	n := 0
	for lo := int32(0); lo < t.NumRows; n++ {
		lo = t.run(lo)
	}
	return n
}
