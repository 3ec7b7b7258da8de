package lower

import "slices"

// groupKey is what terms must have in common for one command to do them all: they write rows of one
// value (gather), or read rows of one value (scatter).
type groupKey struct {
	scatter   bool
	value     int32
	col, cols int32
	scale     float32
	add       bool
}

// group is the terms with one key.
type group struct {
	key     groupKey
	members []int // numbers of pending terms, ascending
	kept    []int // members that one command can do
	stale   bool  // members and kept must be updated
}

// grouping divides pending terms among commands, the largest groups first.
type grouping struct {
	*emission
	done   []bool        // by pending term
	keys   [][2]groupKey // by pending term; zero keys for none
	waits  [][]int       // by pending term: earlier ones that write some of what it writes
	groups []group
	byKey  map[groupKey]int32
	byDst  map[int32][]int // by assembled value: its pending terms
}

// groups emits the pending terms that commands can do several at a time. The others stay pending.
func (e *emission) groups() {
	if len(e.pending) < 2 {
		return
	}
	g := &grouping{emission: e, done: make([]bool, len(e.pending)), keys: make([][2]groupKey, len(e.pending)),
		waits: make([][]int, len(e.pending)), byKey: make(map[groupKey]int32), byDst: make(map[int32][]int)}
	// Sums of floating-point numbers depend on the order of the additions, so a term waits for
	// earlier terms that write a common element. Only terms of one value can do so.
	for i, t := range e.pending {
		for _, j := range g.byDst[t.dst] {
			if e.pending[j].meets(&t.Term) {
				g.waits[i] = append(g.waits[i], j)
			}
		}
		g.byDst[t.dst] = append(g.byDst[t.dst], i)
		g.join(i)
	}
	// Greedy: a term is in up to two groups, one by where it writes and one by where it reads, and
	// whichever command takes it shrinks the other. The largest group first saves the most
	// commands. After each, terms that waited may join, and what was a copy may have become an
	// addition.
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

// join puts term i into the groups that it presently belongs to.
func (g *grouping) join(i int) {
	t := g.pending[i]
	f, a, b := g.filledBy(t)
	some, rest := f.present(&t.Term, a, b)
	g.keys[i] = [2]groupKey{}
	// Where some of the rows are written and some are not, neither a copy nor an addition does for
	// all; such a term is moved by itself, after the rest was zeroed.
	if some && rest || !g.inOrder(i, some) {
		return
	}
	g.keys[i][0] = groupKey{value: t.dst, col: t.DstCol, cols: t.NumCols, scale: t.Scale, add: some}
	// There is no scaled copy to many places.
	if some || t.Scale == 1 {
		g.keys[i][1] = groupKey{scatter: true, value: t.src, col: t.SrcCol, cols: t.NumCols, scale: t.Scale, add: some}
	}
	for _, k := range g.keys[i] {
		if k == (groupKey{}) {
			continue
		}
		n := number(g.byKey, k, &g.groups, group{key: k})
		g.groups[n].members = append(g.groups[n].members, i)
		g.groups[n].stale = true
	}
}

// inOrder reports whether term i may be added now. Sums keep their order, except that the first two
// terms may change places.
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

// largest returns the group with the most terms for one command, nil if no command can do two
// terms. Among equals it prefers the one whose first term comes first, and gathering.
func (g *grouping) largest() *group {
	var best *group
	for n := range g.groups {
		q := &g.groups[n]
		if q.stale {
			slices.Sort(q.members)
			// Terms leave a group by a change of their keys, which here takes effect. Doing it
			// lazily keeps a round proportional to the groups that changed.
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

// retire removes terms that are done, and regroups the other terms of the same values.
func (g *grouping) retire(terms []int) {
	var written []int32
	for _, i := range terms {
		g.done[i] = true
		g.leave(i)
		written = append(written, g.pending[i].dst)
	}
	slices.Sort(written)
	for _, n := range slices.Compact(written) {
		for _, i := range g.byDst[n] {
			if !g.done[i] {
				g.leave(i)
				g.join(i)
			}
		}
	}
}

// near returns the rectangle of term t in the value of the key, far the other value and the
// rectangle there.
func (k *groupKey) near(t *term) Rect {
	if k.scatter {
		return t.Src()
	}
	return t.Dst()
}

func (k *groupKey) far(t *term) (int32, Rect) {
	if k.scatter {
		return t.dst, t.Dst()
	}
	return t.src, t.Src()
}

// disjoint returns members of which no two write the same row, or read the same row in a scatter.
func (e *emission) disjoint(k groupKey, members []int) []int {
	lo, hi := e.hull(k, members)
	seen := slices.Grow(e.seen[:0], int(hi-lo))[:hi-lo]
	clear(seen)
	e.seen = seen
	written := writtenRows{e: e, cols: k.cols}
	kept := make([]int, 0, len(members))
	for _, i := range members {
		t := e.pending[i]
		// No term may name a row twice either.
		// A command names one source for each row that it writes, or one destination for each that
		// it reads. So take the term as a whole or not at all: mark its rows up to the first that
		// is taken, and take the marks back if there was one.
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

// row returns the i-th row that the term reads, or that it writes.
func (t *Term) row(i int32, taken bool) int32 {
	if p := t.Pair(i); taken {
		return p.Src
	} else {
		return p.Dst
	}
}

// writtenRows records what the terms of a scatter write, all of them the same number of columns.
type writtenRows struct {
	e      *emission
	cols   int32
	values []int32       // the written values
	parts  []writtenPart // by written value; emission.partOf has the position, from 1
}

// writtenPart is what is written of one value.
type writtenPart struct {
	hull  Rect
	terms []int
	rows  map[int32][]int32 // by row: the first columns of what is written; nil while hulls have been enough
}

// add records what term i writes, unless part of it is written already. It reports whether it did.
func (w *writtenRows) add(i int) bool {
	t := w.e.pending[i]
	d := t.Dst()
	n := w.e.partOf[t.dst]
	if n == 0 {
		w.values, w.parts = append(w.values, t.dst), append(w.parts, writtenPart{hull: d, terms: []int{i}})
		w.e.partOf[t.dst] = int32(len(w.parts))
		return true
	}
	p := &w.parts[n-1]
	// Bounding rectangles tell most terms apart. Lists by row are made for the first value whose
	// terms interleave.
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
	p.hull, p.terms = p.hull.union(d), append(p.terms, i)
	return true
}

// forget resets emission.partOf.
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

// withoutGaps returns the largest subset of the members whose rows have only rows of the same value
// between them: where the value is not live yet, or no longer, the place may belong to another. The
// other ends of the moves must not be between them either.
func (e *emission) withoutGaps(k groupKey, members []int) []int {
	rows := func(i int) Rect { return k.near(e.pending[i]) }
	far := e.farSides(k, members)
	passable := func(gap Rect, event int32) bool {
		place := e.s.place(k.value)
		at := gap.Shift(place.R0, place.C0)
		return e.holds(k.value, gap, event) && !slices.ContainsFunc(far, at.Overlaps)
	}
	// A command's view runs from the first row to the last, including rows between that it doesn't
	// touch. To be a view of this value, all of it must belong to the value at that time. So cut
	// the members where a gap doesn't, and take the longest piece.
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b int) int { return int(rows(a).R0 - rows(b).R0) })
	var best []int
	for first := 0; first < len(order); {
		last, end := first+1, rows(order[first]).R1
		for last < len(order) {
			next := rows(order[last])
			if gap := (Rect{end, next.R0, k.col, k.col + k.cols}); !gap.empty() && !passable(gap, e.pending[order[last]].event) {
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

// farSides lists the positions of the other ends of the members' moves that are in the same matrix.
func (e *emission) farSides(k groupKey, members []int) (list []Rect) {
	for _, i := range members {
		n, r := k.far(e.pending[i])
		if e.s.baseOf(n) == e.s.baseOf(k.value) {
			place := e.s.place(n)
			list = append(list, r.Shift(place.R0, place.C0))
		}
	}
	return list
}

// holds reports whether all of rectangle r of value n is live at the event.
func (e *emission) holds(n int32, r Rect, event int32) bool {
	v := &e.s.values[n]
	for _, c := range v.grid.over(r) {
		// A part of an assembled value begins with its first term.
		begin := v.done
		if len(c.terms) > 0 {
			begin = e.s.terms[c.terms[0]].event
		}
		if begin > event || e.s.endOf(n, c) < 2*event {
			return false
		}
	}
	return true
}

// hull returns the range of rows that the members write, or read in a scatter.
func (e *emission) hull(k groupKey, members []int) (int32, int32) {
	lo, hi := int32(1<<30), int32(0)
	for _, i := range members {
		r := k.near(e.pending[i])
		lo, hi = min(lo, r.R0), max(hi, r.R1)
	}
	return lo, hi
}

// holesFree reports whether a copy may zero the rows between those that it writes: nothing may be
// written there, and the members must cover all rows, whose place may be another value's before.
func (e *emission) holesFree(k groupKey, members []int) bool {
	if len(members) < 2 {
		return false
	}
	// A copy of many rows writes zeros to rows without a source. That is right between rows of a
	// value that nothing has been written to, and wrong where another value still lives.
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
