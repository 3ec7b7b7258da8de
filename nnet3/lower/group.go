package lower

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// groupKey says what terms have in common that one command can carry out together: either they make rows of one value
// (gather), or they take rows of one value (scatter).
type groupKey struct {
	scatter   bool
	value     int32
	col, cols int32
	scale     float32
	add       bool
}

// group is the terms that have a key in common.
type group struct {
	key     groupKey
	members []int // numbers of pending terms, ascending
	kept    []int // those that can be one command
	stale   bool  // members and kept have to be found anew
}

// grouping divides the pending terms among commands, the largest groups first.
type grouping struct {
	*emission
	done   []bool        // by pending term
	keys   [][2]groupKey // by pending term; the zero key where there is none
	waits  [][]int       // by pending term: those before it that write some of what it writes
	groups []group
	byKey  map[groupKey]int
	byLin  map[int32][]int // by assembled value: its pending terms
}

// groups emits the pending terms that can be carried out several at a time, and leaves the others pending.
func (e *emission) groups() {
	if len(e.pending) < 2 {
		return
	}
	g := &grouping{emission: e, done: make([]bool, len(e.pending)), keys: make([][2]groupKey, len(e.pending)),
		waits: make([][]int, len(e.pending)),
		byKey: make(map[groupKey]int), byLin: make(map[int32][]int)}
	for i, t := range e.pending {
		for _, j := range g.byLin[t.lin] {
			if e.pending[j].meets(&t.Term) {
				g.waits[i] = append(g.waits[i], j)
			}
		}
		g.byLin[t.lin] = append(g.byLin[t.lin], i)
		g.join(i)
	}
	for best := g.largest(); best != nil; best = g.largest() {
		if best.key.scatter {
			e.scatter(best.key, best.kept)
		} else {
			e.gather(best.key, best.kept)
		}
		g.retire(best.kept)
	}
	left := e.pending[:0]
	for i, t := range e.pending {
		if !g.done[i] {
			left = append(left, t)
		}
	}
	e.pending = left
}

// join puts term i into the groups that it belongs to as things are.
func (g *grouping) join(i int) {
	t := g.pending[i]
	some, none := g.present(t)
	g.keys[i] = [2]groupKey{}
	if some && none || !g.inOrder(i, some) {
		return
	}
	g.keys[i][0] = groupKey{value: t.lin, col: t.DstCol, cols: t.NumCols, scale: t.Scale, add: some}
	if some || t.Scale == 1 {
		g.keys[i][1] = groupKey{scatter: true, value: t.src, col: t.SrcCol, cols: t.NumCols, scale: t.Scale, add: some}
	}
	for _, k := range g.keys[i] {
		if k == (groupKey{}) {
			continue
		}
		n, ok := g.byKey[k]
		if !ok {
			n = len(g.groups)
			g.byKey[k] = n
			g.groups = append(g.groups, group{key: k})
		}
		g.groups[n].members = append(g.groups[n].members, i)
		g.groups[n].stale = true
	}
}

// inOrder reports whether term i may be added now. Sums keep their order, except that the first two terms may be exchanged.
func (g *grouping) inOrder(i int, some bool) bool {
	waits := 0
	for _, j := range g.waits[i] {
		if !g.done[j] {
			waits++
		}
	}
	return waits == 0 || waits == 1 && !some
}

// leave makes the groups of term i stale.
func (g *grouping) leave(i int) {
	for _, k := range g.keys[i] {
		if n, ok := g.byKey[k]; ok {
			g.groups[n].stale = true
		}
	}
	g.keys[i] = [2]groupKey{}
}

// largest is the group of which one command can carry out most terms: of several the one whose first term comes first, and of
// two groups of that term the one that gathers. It is nil where no command can carry out two.
func (g *grouping) largest() *group {
	var best *group
	for n := range g.groups {
		q := &g.groups[n]
		if q.stale {
			slices.Sort(q.members)
			q.members = slices.DeleteFunc(slices.Compact(q.members), func(i int) bool { return g.keys[i][0] != q.key && g.keys[i][1] != q.key })
			q.kept, q.stale = nil, false
			if len(q.members) > 1 {
				q.kept = g.disjoint(q.key, q.members)
			}
		}
		if len(q.kept) > 1 && (best == nil || len(q.kept) > len(best.kept) || len(q.kept) == len(best.kept) && q.before(best)) {
			best = q
		}
	}
	return best
}

func (q *group) before(p *group) bool {
	if q.members[0] != p.members[0] {
		return q.members[0] < p.members[0]
	}
	return !q.key.scatter && p.key.scatter
}

// retire removes terms that are done, and looks again at the others of the values that they were a part of.
func (g *grouping) retire(terms []int) {
	var lins []int32
	for _, i := range terms {
		g.done[i] = true
		g.leave(i)
		lins = append(lins, g.pending[i].lin)
	}
	slices.Sort(lins)
	for _, n := range slices.Compact(lins) {
		for _, i := range g.byLin[n] {
			if !g.done[i] {
				g.leave(i)
				g.join(i)
			}
		}
	}
}

// present tells whether some and whether none of the rows of the term hold something already.
func (e *emission) present(t *term) (some, none bool) {
	f := e.filledOf(t.lin)
	a, b := f.span(t.DstCol, t.DstCol+t.NumCols)
	return f.present(&t.Term, a, b)
}

// disjoint is the part of the members that can be one command: no two write, or for a scatter read, the same row.
func (e *emission) disjoint(k groupKey, members []int) []int {
	lo, hi := e.hull(k, members)
	seen := slices.Grow(e.seen[:0], int(hi-lo))[:hi-lo]
	clear(seen)
	e.seen = seen
	written := writtenRows{e: e, cols: k.cols}
	kept := make([]int, 0, len(members))
	for _, i := range members {
		t := e.pending[i]
		// The same term must not name a row twice either.
		n := int32(0)
		for ; n < t.NumRows; n++ {
			row := t.row(n, k.scatter) - lo
			if seen[row] {
				break
			}
			seen[row] = true
		}
		if n == t.NumRows && (!k.scatter || written.add(i)) {
			kept = append(kept, i)
			continue
		}
		for n--; n >= 0; n-- {
			seen[t.row(n, k.scatter)-lo] = false
		}
	}
	written.forget()
	if !k.scatter && !k.add && !e.holesFree(k, kept) {
		return nil
	}
	return e.withoutGaps(k, kept)
}

// row is row i that the term takes, or that it writes.
func (t *Term) row(i int32, taken bool) int32 {
	if p := t.Pair(i); taken {
		return p.Src
	} else {
		return p.Dst
	}
}

// writtenRows knows what the terms of a scatter write, all of them as many columns.
type writtenRows struct {
	e      *emission
	cols   int32
	values []int32       // the values that are written
	parts  []writtenPart // of each of them; emission.partOf knows which, from 1
}

// writtenPart is what is written of one value.
type writtenPart struct {
	hull  Rect
	terms []int
	rows  map[int32][]int32 // by row: the first columns of what is written; nil as long as only the hull has been looked at
}

// add adds what term i writes, unless something of it is written already. It reports whether it did.
func (w *writtenRows) add(i int) bool {
	t := w.e.pending[i]
	d := t.Dst()
	n := w.e.partOf[t.lin]
	if n == 0 {
		w.values, w.parts = append(w.values, t.lin), append(w.parts, writtenPart{hull: d, terms: []int{i}})
		w.e.partOf[t.lin] = int32(len(w.parts))
		return true
	}
	p := &w.parts[n-1]
	if p.rows == nil && p.hull.Overlaps(d) {
		p.rows = make(map[int32][]int32)
		for _, o := range p.terms {
			w.note(p, w.e.pending[o])
		}
	}
	if p.rows != nil {
		overlaps := func(col int32) bool { return max(col-t.DstCol, t.DstCol-col) < w.cols }
		for j := range t.NumRows {
			if slices.ContainsFunc(p.rows[t.Pair(j).Dst], overlaps) {
				return false
			}
		}
		w.note(p, t)
	}
	p.hull, p.terms = p.hull.Union(d), append(p.terms, i)
	return true
}

// forget makes room for another list.
func (w *writtenRows) forget() {
	for _, n := range w.values {
		w.e.partOf[n] = 0
	}
}

func (w *writtenRows) note(p *writtenPart, t *term) {
	for j := range t.NumRows {
		row := t.Pair(j).Dst
		p.rows[row] = append(p.rows[row], t.DstCol)
	}
}

// withoutGaps is the largest part of the members between whose rows there is nothing but rows of the same value: where the
// value is not there yet, or not any more, the place may be another's. What the command moves, or where to, must not lie between
// them either.
func (e *emission) withoutGaps(k groupKey, members []int) []int {
	rows := func(i int) Rect {
		if k.scatter {
			return e.pending[i].Src()
		}
		return e.pending[i].Dst()
	}
	near := e.farSides(k, members)
	passable := func(gap Rect, event int32) bool {
		place := e.s.place(k.value)
		at := gap.Shift(place.R0, place.C0)
		return e.holds(k.value, gap, event) && !slices.ContainsFunc(near, at.Overlaps)
	}
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b int) int { return int(rows(a).R0 - rows(b).R0) })
	var best []int
	for first := 0; first < len(order); {
		last, end := first+1, rows(order[first]).R1
		for last < len(order) {
			next := rows(order[last])
			if gap := (Rect{end, next.R0, k.col, k.col + k.cols}); !gap.Empty() && !passable(gap, e.pending[order[last]].event) {
				break
			}
			end = max(end, next.R1)
			last++
		}
		if last-first > len(best) {
			best = order[first:last]
		}
		first = last
	}
	slices.Sort(best)
	return best
}

// farSides lists the places at the other ends of the members' moves, as far as they are in the same matrix.
func (e *emission) farSides(k groupKey, members []int) (list []Rect) {
	for _, i := range members {
		t := e.pending[i]
		n, r := t.src, t.Src()
		if k.scatter {
			n, r = t.lin, t.Dst()
		}
		if e.s.baseOf(n) == e.s.baseOf(k.value) {
			place := e.s.place(n)
			list = append(list, r.Shift(place.R0, place.C0))
		}
	}
	return list
}

// holds reports whether all of the rectangle of value n is the value's at the event.
func (e *emission) holds(n int32, r Rect, event int32) bool {
	v := &e.s.values[n]
	i0, i1, j0, j1 := v.grid.within(r)
	for i := i0; i < i1; i++ {
		for j := j0; j < j1; j++ {
			c := &v.grid.cells[v.grid.at(i, j)]
			begin := v.done
			if len(c.terms) > 0 {
				begin = e.s.terms[c.terms[0]].event
			}
			if begin > event || e.s.endOf(n, c) < 2*event {
				return false
			}
		}
	}
	return true
}

// hull is the range of rows that the members write or, for a scatter, read.
func (e *emission) hull(k groupKey, members []int) (int32, int32) {
	lo, hi := int32(1<<30), int32(0)
	for _, i := range members {
		r := e.pending[i].Dst()
		if k.scatter {
			r = e.pending[i].Src()
		}
		lo, hi = min(lo, r.R0), max(hi, r.R1)
	}
	return lo, hi
}

// holesFree reports whether nothing is written yet between the rows that a copy writes, so that the copy may set it to zero.
// It also must not come before the first contribution to those rows, because until then their place may hold something else.
func (e *emission) holesFree(k groupKey, members []int) bool {
	if len(members) < 2 {
		return false
	}
	f := e.filledOf(k.value)
	a, b := f.span(k.col, k.col+k.cols)
	lo, hi := e.hull(k, members)
	if !f.untouched(lo, hi, a, b) {
		return false
	}
	written := make([]bool, hi-lo)
	for _, i := range members {
		t := e.pending[i]
		d := t.Dst()
		for r := d.R0; r < d.R1; r++ {
			written[r-lo] = true
		}
	}
	return !slices.Contains(written, false)
}

// gather emits rows of one value that come from several places. Rows between those that are written are set to zero by a
// copy; an addition leaves them alone, but counts as reading them.
func (e *emission) gather(k groupKey, members []int) {
	f := e.filledOf(k.value)
	a, b := f.span(k.col, k.col+k.cols)
	lo, hi := e.hull(k, members)
	typ := computation.CopyRowsMulti
	if k.add {
		typ = computation.AddRowsMulti
		e.zeroRows(k.value, f, a, b, lo, hi)
	}
	pairs := make([]computation.Pair, hi-lo)
	for i := range pairs {
		pairs[i] = computation.Pair{-1, -1}
	}
	for _, i := range members {
		t := e.pending[i]
		src := t.Src()
		sub := e.view(t.src, src)
		for j := range t.NumRows {
			p := t.Pair(j)
			pairs[p.Dst-lo] = computation.Pair{sub, p.Src - src.R0}
		}
	}
	out := e.view(k.value, Rect{lo, hi, k.col, k.col + k.cols})
	e.emit(computation.Command{Type: typ, Alpha: k.scale, Arg1: out, Arg2: e.pairList(pairs)})
	f.setRows(lo, hi, a, b)
}

// scatter emits rows of one value that go to several places.
func (e *emission) scatter(k groupKey, members []int) {
	lo, hi := e.hull(k, members)
	typ := computation.CopyToRowsMulti
	if k.add {
		typ = computation.AddToRowsMulti
	}
	pairs := make([]computation.Pair, hi-lo)
	for i := range pairs {
		pairs[i] = computation.Pair{-1, -1}
	}
	for _, i := range members {
		t := e.pending[i]
		if k.add {
			f := e.filledOf(t.lin)
			a, b := f.span(t.DstCol, t.DstCol+t.NumCols)
			d := t.Dst()
			e.zeroRows(t.lin, f, a, b, d.R0, d.R1)
		}
		e.targets(t, k.add, lo, pairs)
	}
	for _, i := range members {
		t := e.pending[i]
		f := e.filledOf(t.lin)
		a, b := f.span(t.DstCol, t.DstCol+t.NumCols)
		f.setTerm(&t.Term, a, b)
	}
	in := e.view(k.value, Rect{lo, hi, k.col, k.col + k.cols})
	e.emit(computation.Command{Type: typ, Alpha: k.scale, Arg1: in, Arg2: e.pairList(pairs)})
}

// targets notes in pairs where the rows of the term go, the first of the pairs being that of row lo of its source. A copy to some rows
// of a view keeps the others, which therefore must hold something: where it leaves rows out, each run of rows gets a view of its own.
func (e *emission) targets(t *term, add bool, lo int32, pairs []computation.Pair) {
	dst := t.Dst()
	whole := add || t.NumRows == dst.R1-dst.R0
	for j := int32(0); j < t.NumRows; {
		run := dst
		end := t.NumRows
		if !whole {
			end = j + 1
			for end < t.NumRows && t.Pair(end).Dst == t.Pair(end-1).Dst+1 {
				end++
			}
			run.R0, run.R1 = t.Pair(j).Dst, t.Pair(end-1).Dst+1
		}
		for sub := e.view(t.lin, run); j < end; j++ {
			p := t.Pair(j)
			pairs[p.Src-lo] = computation.Pair{sub, p.Dst - run.R0}
		}
	}
}
