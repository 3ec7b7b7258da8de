package lower

import (
	"github.com/nnopt/nnopt/internal/lists"
	"slices"
)

// A RowPair sends row Src of an input to row Dst of a result.
type RowPair struct{ Dst, Src int32 }

// A Term puts some rows and consecutive columns of an input, scaled, at a position of the result.
type Term struct {
	Input          int32 // which input of the Assemble
	Scale          float32
	DstRow, SrcRow int32 // the first pair of rows
	NumRows        int32
	DstCol, SrcCol int32
	NumCols        int32
	// Rows lists the pairs of rows by ascending Dst. It is nil if both sides are consecutive.
	Rows []RowPair
	// At is the command that the term comes from. It guides the schedule; equality ignores it.
	At int32
}

// Dst returns the bounding rectangle of what the term writes.
func (t *Term) Dst() Rect { return Rect{t.DstRow, t.lastDst() + 1, t.DstCol, t.DstCol + t.NumCols} }

// Src returns the bounding rectangle of what the term reads.
func (t *Term) Src() Rect {
	r := Rect{t.SrcRow, t.SrcRow + t.NumRows, t.SrcCol, t.SrcCol + t.NumCols}
	if t.Rows != nil {
		r.R0, r.R1 = t.Rows[0].Src, t.Rows[0].Src+1
		for _, p := range t.Rows {
			r.R0, r.R1 = min(r.R0, p.Src), max(r.R1, p.Src+1)
		}
	}
	return r
}

// Contiguous reports whether the term moves one rectangle of rows in order.
func (t *Term) Contiguous() bool { return t.Rows == nil }

func (t *Term) lastDst() int32 {
	if t.Rows != nil {
		return t.Rows[len(t.Rows)-1].Dst
	}
	return t.DstRow + t.NumRows - 1
}

// Pair returns the i-th pair of rows.
func (t *Term) Pair(i int32) RowPair {
	if t.Rows != nil {
		return t.Rows[i]
	}
	return RowPair{t.DstRow + i, t.SrcRow + i}
}

// setRows sets the pairs of rows, which must be sorted by Dst.
func (t *Term) setRows(rows []RowPair) {
	t.Rows, t.NumRows = rows, int32(len(rows))
	if len(rows) > 0 {
		t.DstRow, t.SrcRow = rows[0].Dst, rows[0].Src
	}
}

// rowRange returns the range [lo, hi) of pairs whose Dst is in [r0, r1).
func (t *Term) rowRange(r0, r1 int32) (int32, int32) {
	if t.Rows == nil {
		lo := min(max(r0-t.DstRow, 0), t.NumRows)
		return lo, max(lo, min(r1-t.DstRow, t.NumRows))
	}
	lo := searchDst(t.Rows, r0)
	// Reading a recurrence row by row makes this the common case, where a second search would
	// double the cost.
	if r1 == r0+1 { // terms name most rows at most once
		hi := lo
		for int(hi) < len(t.Rows) && t.Rows[hi].Dst == r0 {
			hi++
		}
		return lo, hi
	}
	return lo, max(lo, searchDst(t.Rows, r1))
}

// searchDst returns the number of pairs with Dst < r.
func searchDst(rows []RowPair, r int32) int32 {
	lo, hi := 0, len(rows)
	for lo < hi {
		mid := (lo + hi) / 2
		if rows[mid].Dst < r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return int32(lo)
}

// part restricts the term to the pairs [lo, hi) and to the columns [c0, c1) of the result. It
// reports whether anything is left.
func (t *Term) part(lo, hi, c0, c1 int32) (Term, bool) {
	c0, c1 = max(c0, t.DstCol), min(c1, t.DstCol+t.NumCols)
	if lo >= hi || c0 >= c1 {
		return Term{}, false
	}
	u := *t
	u.SrcCol += c0 - t.DstCol
	u.DstCol, u.NumCols = c0, c1-c0
	if t.Rows != nil {
		u.setRows(t.Rows[lo:hi])
	} else {
		u.DstRow, u.SrcRow, u.NumRows = t.DstRow+lo, t.SrcRow+lo, hi-lo
	}
	return u, true
}

// clip restricts the term to rectangle r of the result.
func (t *Term) clip(r Rect) (Term, bool) {
	lo, hi := t.rowRange(r.R0, r.R1)
	return t.part(lo, hi, r.C0, r.C1)
}

// appendOutside appends the parts of the term outside r.
func (t *Term) appendOutside(dst []Term, r Rect) []Term {
	lo, hi := t.rowRange(r.R0, r.R1)
	c0, c1 := t.DstCol, t.DstCol+t.NumCols
	if lo >= hi || c1 <= r.C0 || r.C1 <= c0 {
		return append(dst, *t)
	}
	// What is above, left, right and below, in the order of rows, so that the parts cover the rest
	// once.
	for _, p := range [4][4]int32{{0, lo, c0, c1}, {lo, hi, c0, r.C0}, {lo, hi, r.C1, c1}, {hi, t.NumRows, c0, c1}} {
		if u, ok := t.part(p[0], p[1], p[2], p[3]); ok {
			dst = append(dst, u)
		}
	}
	return dst
}

// shift moves what the term writes.
func (t *Term) shift(dr, dc int32) {
	t.DstRow += dr
	t.DstCol += dc
	t.shiftRows(dr, 0)
}

// ShiftSrc moves what the term reads.
func (t *Term) ShiftSrc(dr, dc int32) {
	t.SrcRow += dr
	t.SrcCol += dc
	t.shiftRows(0, dr)
}

// shiftRows moves the pairs that are listed, in a list of its own.
func (t *Term) shiftRows(dst, src int32) {
	if t.Rows == nil || dst == 0 && src == 0 {
		return
	}
	// Terms share lists of rows, as parts of one list do, so a list never changes.
	rows := lists.Map(t.Rows, func(p RowPair) RowPair { return RowPair{p.Dst + dst, p.Src + src} })
	t.Rows = rows
}

// Through composes the term with a term of its input: it returns the part of t that reads what
// inner writes, as a term that reads inner's input. ok is false if there is none.
func (t *Term) Through(inner *Term) (through Term, ok bool) {
	c0, c1 := max(t.SrcCol, inner.DstCol), min(t.SrcCol+t.NumCols, inner.DstCol+inner.NumCols)
	if c0 >= c1 {
		return Term{}, false
	}
	u := *t
	u.Input = inner.Input
	u.Scale *= inner.Scale
	u.DstCol = t.DstCol + c0 - t.SrcCol
	u.SrcCol = inner.SrcCol + c0 - inner.DstCol
	u.NumCols = c1 - c0
	// Two blocks make a block. This keeps chains of copies in a form that can be placed, and spares
	// the lists.
	if t.Rows == nil && inner.Rows == nil {
		r0, r1 := max(t.SrcRow, inner.DstRow), min(t.SrcRow+t.NumRows, inner.DstRow+inner.NumRows)
		if r0 >= r1 {
			return Term{}, false
		}
		u.DstRow = t.DstRow + r0 - t.SrcRow
		u.SrcRow = inner.SrcRow + r0 - inner.DstRow
		u.NumRows = r1 - r0
		return u, true
	}
	rows := t.rowsThrough(inner)
	if len(rows) == 0 {
		return Term{}, false
	}
	u.setRows(rows)
	return u, true
}

// rowsThrough pairs the rows of t that inner makes with the rows that inner takes for them.
func (t *Term) rowsThrough(inner *Term) []RowPair {
	if t.Rows == nil {
		lo, hi := inner.rowRange(t.SrcRow, t.SrcRow+t.NumRows)
		rows := slices.Clone(inner.Rows[lo:hi])
		for i := range rows {
			rows[i].Dst += t.DstRow - t.SrcRow
		}
		return rows
	}
	var rows []RowPair
	for i, p := range t.Rows {
		// inner may write a row several times; each time makes an addend of its own.
		lo, hi := inner.rowRange(p.Src, p.Src+1)
		for j := lo; j < hi; j++ {
			if rows == nil {
				rows = make([]RowPair, 0, len(t.Rows)-i)
			}
			rows = append(rows, RowPair{p.Dst, inner.Pair(j).Src})
		}
	}
	return rows
}

// FirstRun returns how many pairs at the beginning of the term are consecutive on both sides.
func (t *Term) FirstRun() int32 { return t.run(0) }

// run returns the end of the pairs from lo on that are consecutive on both sides.
func (t *Term) run(lo int32) int32 {
	if t.Rows == nil {
		return t.NumRows
	}
	for lo++; lo < t.NumRows; lo++ {
		if t.Rows[lo].Dst != t.Rows[lo-1].Dst+1 || t.Rows[lo].Src != t.Rows[lo-1].Src+1 {
			break
		}
	}
	return lo
}

// HasTwoRuns reports whether the rows of the term form two blocks.
func (t *Term) HasTwoRuns() bool {
	cut := t.run(0)
	return cut < t.NumRows && t.run(cut) == t.NumRows
}

// dstRun returns the end of the pairs from lo on whose Dst are consecutive.
func (t *Term) dstRun(lo int32) int32 {
	if t.Rows == nil {
		return t.NumRows
	}
	for lo++; lo < t.NumRows && t.Rows[lo].Dst == t.Rows[lo-1].Dst+1; lo++ {
	}
	return lo
}

// Run returns the part with the pairs [lo, hi), which must be consecutive on both sides.
func (t *Term) Run(lo, hi int32) Term {
	u := *t
	p := t.Pair(lo)
	u.DstRow, u.SrcRow, u.NumRows, u.Rows = p.Dst, p.Src, hi-lo, nil
	return u
}

// Join extends t by u if both are contiguous and adjacent on both sides. It reports whether it did.
func (t *Term) Join(u *Term) bool {
	if t.Input != u.Input || t.Scale != u.Scale || !t.Contiguous() || !u.Contiguous() {
		return false
	}
	dr, dc := u.DstRow-t.DstRow, u.DstCol-t.DstCol
	if u.SrcRow-t.SrcRow != dr || u.SrcCol-t.SrcCol != dc {
		return false
	}
	switch {
	case dr == t.NumRows && dc == 0 && u.NumCols == t.NumCols:
		t.NumRows += u.NumRows
	case dc == t.NumCols && dr == 0 && u.NumRows == t.NumRows:
		t.NumCols += u.NumCols
	default:
		return false
	}
	t.At = max(t.At, u.At)
	return true
}

func sortTerms(terms []Term) {
	slices.SortStableFunc(terms, func(a, b Term) int { return compareTerms(&a, &b) })
}

// compareTerms orders terms by position, then by what they read. Equal Assembles list them alike.
func compareTerms(a, b *Term) int {
	for _, d := range [...]int32{
		a.DstRow - b.DstRow, a.DstCol - b.DstCol, a.NumRows - b.NumRows, a.NumCols - b.NumCols,
		a.SrcRow - b.SrcRow, a.SrcCol - b.SrcCol,
	} {
		if d != 0 {
			return int(d)
		}
	}
	switch {
	case a.Scale < b.Scale:
		return -1
	case a.Scale > b.Scale:
		return 1
	}
	return int(a.At - b.At)
}

func equalTerms(a, b *Term) bool {
	return a.Input == b.Input && a.Scale == b.Scale && a.DstRow == b.DstRow && a.SrcRow == b.SrcRow && a.NumRows == b.NumRows &&
		a.DstCol == b.DstCol && a.SrcCol == b.SrcCol && a.NumCols == b.NumCols && (a.Rows == nil) == (b.Rows == nil) &&
		slices.Equal(a.Rows, b.Rows)
}

// meets reports whether two terms write a common element.
func (t *Term) meets(u *Term) bool {
	a, b := t.Dst(), u.Dst()
	if !a.Overlaps(b) {
		return false
	}
	// Bounding rectangles of blocks are exact. Columns are consecutive in any case, so only rows
	// are left to compare, both in ascending order.
	if t.Rows == nil && u.Rows == nil {
		return true
	}
	for i, j := int32(0), int32(0); i < t.NumRows && j < u.NumRows; {
		switch p, q := t.Pair(i).Dst, u.Pair(j).Dst; {
		case p < q:
			i++
		case q < p:
			j++
		default:
			return true
		}
	}
	return false
}
