package lower

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// filled records which elements of an assembled value are written, by row and band of columns.
type filled struct {
	rows  int32
	bands []int32 // the edges of the bands, ascending
	mask  []bool  // [band][row]
	some  bool    // whether anything is written
}

// filledBy returns the record of the value of term t, and the bands [a, b) that the term writes.
func (e *emission) filledBy(t *term) (f *filled, a, b int) {
	f = e.filledOf(t.dst)
	a, b = f.span(t.DstCol, t.DstCol+t.NumCols)
	return f, a, b
}

func (e *emission) filledOf(n int32) *filled {
	if e.filled[n] != nil {
		return e.filled[n]
	}
	v := &e.s.values[n]
	f := &filled{rows: v.rows, bands: append(make([]int32, 0, 8), 0, v.cols)}
	for k := v.terms[0]; k < v.terms[1]; k++ {
		t := &e.s.terms[k]
		if n := len(f.bands); f.bands[n-2] != t.DstCol || f.bands[n-1] != t.DstCol+t.NumCols {
			f.bands = append(f.bands, t.DstCol, t.DstCol+t.NumCols)
		}
	}
	slices.Sort(f.bands)
	f.bands = slices.Compact(f.bands)
	f.mask = make([]bool, (len(f.bands)-1)*int(f.rows))
	e.filled[n] = f
	e.left[n] = v.terms[1] - v.terms[0]
	return f
}

// span returns the range of bands that form columns [c0, c1).
func (f *filled) span(c0, c1 int32) (int, int) {
	a, _ := slices.BinarySearch(f.bands, c0)
	b, _ := slices.BinarySearch(f.bands, c1)
	return a, b
}

// band returns the mask of rows [lo, hi) in band j.
func (f *filled) band(j int, lo, hi int32) []bool {
	return f.mask[j*int(f.rows)+int(lo) : j*int(f.rows)+int(hi)]
}

// setRows records that bands [a, b) of rows [lo, hi) are written.
func (f *filled) setRows(lo, hi int32, a, b int) {
	f.some = true
	for j := a; j < b; j++ {
		band := f.band(j, lo, hi)
		for i := range band {
			band[i] = true
		}
	}
}

// setTerm records that the rows of the term are written in bands [a, b).
func (f *filled) setTerm(t *Term, a, b int) {
	if t.Rows == nil {
		f.setRows(t.DstRow, t.DstRow+t.NumRows, a, b)
		return
	}
	f.some = true
	for j := a; j < b; j++ {
		band := f.band(j, 0, f.rows)
		for _, p := range t.Rows {
			band[p.Dst] = true
		}
	}
}

// untouched reports whether no element of rows [lo, hi) in bands [a, b) is written.
func (f *filled) untouched(lo, hi int32, a, b int) bool {
	for j := a; j < b && f.some; j++ {
		if slices.Contains(f.band(j, lo, hi), true) {
			return false
		}
	}
	return true
}

// present reports whether some of the term's rows in bands [a, b) are written, and some are not.
func (f *filled) present(t *Term, a, b int) (some, rest bool) {
	if !f.some {
		return false, true
	}
	for j := a; j < b; j++ {
		if t.Rows == nil {
			band := f.band(j, t.DstRow, t.DstRow+t.NumRows)
			some, rest = some || slices.Contains(band, true), rest || slices.Contains(band, false)
			continue
		}
		band := f.band(j, 0, f.rows)
		for _, p := range t.Rows {
			some, rest = some || band[p.Dst], rest || !band[p.Dst]
		}
	}
	return some, rest
}

// batch emits the terms of one event, the first of which is item i: first the placed ones, which
// are only recorded or scaled in place, then constants, which no command can add, then the others.
func (e *emission) batch(i int32) {
	s := e.s
	j := i
	for int(j) < len(s.items) && s.items[j].kind == stepTerm && s.items[j].event == s.items[i].event {
		j++
	}
	e.pending = e.pending[:0]
	for k := i; k < j; k++ {
		// Placed terms come first, since their data is there already: whatever is
		// added must find it recorded as written.
		if t := &s.terms[s.items[k].n]; t.placed {
			e.placedTerm(t)
		} else if !t.constant {
			e.pending = append(e.pending, t)
		}
	}
	for k := i; k < j; k++ {
		// Constants are set before anything is added to them.
		if t := &s.terms[s.items[k].n]; t.constant {
			e.term(t)
		}
	}
	// As compiled, everything is added to zeros.
	if !s.Assign {
		for _, t := range e.pending {
			e.zeroTerm(t)
		}
	}
	e.groups()
	for _, t := range e.pending {
		e.term(t)
	}
	for k := i; k < j; k++ {
		t := &s.terms[s.items[k].n]
		// What no term wrote must be zero for the readers. Not earlier: until the last term is
		// emitted, another one may still write there, and the zeros would be in vain.
		if e.left[t.dst]--; e.left[t.dst] == 0 {
			e.zeroRest(t.dst)
		}
	}
}

func (e *emission) placedTerm(t *term) {
	f, a, b := e.filledBy(t)
	d := t.Dst()
	f.setRows(d.R0, d.R1, a, b)
	if t.Scale != 1 {
		v := e.view(t.dst, d)
		e.emit(computation.MatrixCopy, t.Scale, v, v)
	}
}

// term emits one term: a copy if nothing is written there, else an addition after zeroing the rest.
func (e *emission) term(t *term) {
	f, a, b := e.filledBy(t)
	some, _ := f.present(&t.Term, a, b)
	if some {
		e.zeroTerm(t)
	}
	switch {
	case t.constant:
		if some {
			e.err = fmt.Errorf("lower: a constant would have to be added to value %d", t.dst)
			return
		}
		e.constantTerm(t)
	case t.Contiguous():
		typ := computation.MatrixCopy
		if some {
			typ = computation.MatrixAdd
		}
		e.emit(typ, t.Scale, e.view(t.dst, t.Dst()), e.view(t.src, t.Src()))
	case some && e.crosses(t):
		// The command may not read and write views that overlap. Its view would span rows between
		// those that it needs, so go block by block.
		for lo := int32(0); lo < t.NumRows; {
			hi := t.run(lo)
			u := t.Run(lo, hi)
			e.emit(computation.MatrixAdd, t.Scale, e.view(t.dst, u.Dst()), e.view(t.src, u.Src()))
			lo = hi
		}
	case some:
		e.rows(t, computation.AddRows)
	default:
		e.copyRows(t, f, a, b)
	}
	f.setTerm(&t.Term, a, b)
}

// crosses reports whether a term reads rows between those that it writes, in one matrix.
func (e *emission) crosses(t *term) bool {
	if e.s.baseOf(t.src) != e.s.baseOf(t.dst) {
		return false
	}
	from, to := e.s.place(t.src), e.s.place(t.dst)
	return t.Src().Shift(from.R0, from.C0).Overlaps(t.Dst().Shift(to.R0, to.C0))
}

// rows emits a command for all rows from the first to the last that the term writes.
func (e *emission) rows(t *term, typ computation.CommandType) {
	d, src := t.Dst(), t.Src()
	idx := slices.Repeat([]int32{-1}, int(d.Rows()))
	for i := range t.NumRows {
		p := t.Pair(i)
		idx[p.Dst-d.R0] = p.Src - src.R0
	}
	e.emit(typ, t.Scale, e.view(t.dst, d), e.view(t.src, src), e.indexList(idx))
}

// copyRows copies rows to where nothing is written. One command does it if the rows between are not
// written either: they become zero, as they must be until something is added. Otherwise every run
// of consecutive rows is copied by itself.
func (e *emission) copyRows(t *term, f *filled, a, b int) {
	d := t.Dst()
	if f.untouched(d.R0, d.R1, a, b) {
		e.rows(t, computation.CopyRows)
		f.setRows(d.R0, d.R1, a, b)
		return
	}
	for lo := int32(0); lo < t.NumRows; {
		hi := t.dstRun(lo)
		u := *t
		u.Term, _ = t.part(lo, hi, t.DstCol, t.DstCol+t.NumCols)
		e.rows(&u, computation.CopyRows)
		lo = hi
	}
}

// constantTerm sets the term's rows to a constant.
func (e *emission) constantTerm(t *term) {
	for lo := int32(0); lo < t.NumRows; {
		hi := t.dstRun(lo)
		r := Rect{t.Pair(lo).Dst, t.Pair(hi-1).Dst + 1, t.DstCol, t.DstCol + t.NumCols}
		e.setConst(e.view(t.dst, r), t.Scale)
		lo = hi
	}
}

// zeroRest zeroes what no term of the value wrote.
func (e *emission) zeroRest(n int32) {
	f := e.filledOf(n)
	e.zeroRows(n, f, 0, len(f.bands)-1, 0, f.rows)
	e.filled[n] = nil
}

// zeroTerm zeroes what is not written in the term's rectangle: adding reads the rows between, too.
func (e *emission) zeroTerm(t *term) {
	f, a, b := e.filledBy(t)
	d := t.Dst()
	e.zeroRows(t.dst, f, a, b, d.R0, d.R1)
}

// zeroRows zeroes what is not written in bands [a, b) of rows [lo, hi), in few rectangles.
func (e *emission) zeroRows(n int32, f *filled, a, b int, lo, hi int32) {
	// Sweep over the bands from left to right. A gap that continues one of the previous band, with
	// the same rows, extends its rectangle; the others are complete. Many small views would be as
	// many commands.
	var open []Rect // rectangles that end at the present band's left edge
	for j := a; j < b; j++ {
		var now []Rect
		mask := f.mask[j*int(f.rows) : (j+1)*int(f.rows)]
		next := 0 // the first of open that may go on; both lists are in order of rows
		for r := lo; r < hi; r++ {
			if mask[r] {
				continue
			}
			r0 := r
			for r < hi && !mask[r] {
				mask[r] = true
				r++
			}
			f.some = true
			rect := Rect{r0, r, f.bands[j], f.bands[j+1]}
			for next < len(open) && open[next].R0 < r0 {
				next++
			}
			if next < len(open) && open[next].R0 == r0 && open[next].R1 == r {
				rect.C0 = open[next].C0
				open[next] = Rect{} // goes on
			}
			now = append(now, rect)
		}
		e.zero(n, open)
		open = now
	}
	e.zero(n, open)
}

func (e *emission) zero(n int32, rects []Rect) {
	for _, r := range rects {
		if !r.empty() {
			e.setConst(e.view(n, r), 0)
		}
	}
}
