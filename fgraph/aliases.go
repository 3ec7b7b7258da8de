package fgraph

import "slices"

// aliases records which variables share memory. The views of a graph form a forest, because
// every variable views at most one other. A tree of the forest is a group. Two members of a
// group may share memory, unless their regions of the root are disjoint.
//
// Tables are indexed by the numbers of variables. A variable that is neither a view, nor viewed,
// nor destroyed has no group. The cost of uniting and splitting groups is proportional to the
// smaller part.
type aliases struct {
	of     []alias
	shown  []shown // cached regions, for groups that have any
	groups []group
	free   []int32 // groups
	recs   []destruction
	spare  []int32 // recs
	heads  []int32 // by number of an apply: its first destruction plus 1
	live   int     // destructions
	// versions counts the versions of all groups; no two are equal.
	versions uint32
	expect   int // number of variables in the graph, to allocate once
	work     int // steps of walkers; tests check its growth
}

// alias is the place of a variable in the forest.
type alias struct {
	v          *Variable // owner of the entry, since constants come and go unannounced
	parent     int32     // the variable it views
	child      int32     // the first view of it
	prev, next int32     // its siblings, the other views of parent
	group      int32
	outs       int32 // number of outputs of the graph that it is
}

// shown is the region of the root that a variable shows, valid for one version of its group.
type shown struct {
	region  Region
	whole   bool
	version uint32
}

// group is a tree of views.
type group struct {
	root  int32
	size  int32
	first int32 // first destruction of a member
	parts int32 // members whose region is known
	outs  int32 // outputs of the graph among the members
	// version changes whenever the regions of members may have changed.
	version uint32
}

// destruction says that input i of a, which is v, is overwritten.
type destruction struct {
	a          *Apply
	v          int32
	i          int32
	prev, next int32 // in the group of v
	more       int32 // the next destruction by a
}

// none means no variable, group or destruction.
const none = -1

// at returns the entry of v, which is valid until the next call.
func (al *aliases) at(v *Variable) *alias {
	if n := int(v.id) + 1; n > len(al.of) {
		al.of = slices.Grow(al.of, max(n, al.expect)-len(al.of))
		al.of = al.of[:max(n, cap(al.of))]
	}
	e := &al.of[v.id]
	// Numbers of variables are given again after constants are released, which happens without a
	// callback. The entry belongs to v only if it says so.
	if e.v != v {
		*e = alias{v: v, parent: none, child: none, prev: none, next: none, group: none}
	}
	return e
}

// known returns the entry of v, or nil if v has no group.
func (al *aliases) known(v *Variable) *alias {
	if v.id < 0 || int(v.id) >= len(al.of) {
		return nil
	}
	if e := &al.of[v.id]; e.v == v && e.group != none {
		return e
	}
	return nil
}

// groupOf returns the group of v, which it creates if necessary.
func (al *aliases) groupOf(v *Variable) int32 {
	if i := al.at(v).group; i != none {
		return i
	}
	i := al.newGroup(v.id)
	al.of[v.id].group = i
	al.groups[i].outs = al.of[v.id].outs
	return i
}

func (al *aliases) newGroup(root int32) int32 {
	al.versions++
	fresh := group{root: root, size: 1, first: none, version: al.versions}
	if i := reuse(&al.free); i != none {
		al.groups[i] = fresh
		return i
	}
	al.groups = append(al.groups, fresh)
	return int32(len(al.groups) - 1)
}

// dissolve frees the group of v if v is its only member and not destroyed.
func (al *aliases) dissolve(v int32) {
	i := al.of[v].group
	if gr := &al.groups[i]; gr.size == 1 && gr.first == none {
		al.of[v].group = none
		al.free = append(al.free, i)
	}
}

// view records that o, which views nothing yet, views v. It returns the resulting group, or none
// if v is already a direct or indirect view of o.
func (al *aliases) view(o, v *Variable) int32 {
	into, from := al.groupOf(v), al.groupOf(o)
	if into == from {
		return none
	}
	// The tree hangs below v, so the root is that of v, whichever of the two groups keeps its
	// number.
	root := al.groups[into].root
	// Renumber the smaller group. Each time a variable is renumbered its group has at least
	// doubled, so n unions cost n log n in all.
	if al.groups[into].size < al.groups[from].size {
		into, from = from, into
	}
	gi, gf := &al.groups[into], &al.groups[from]
	for w := al.walk(gf.root); !w.done; w.step(al) {
		al.of[w.at].group = into
	}
	al.relinkRecs(gf.first)
	gi.size += gf.size
	gi.parts += gf.parts
	gi.outs += gf.outs
	gi.root = root
	// Regions are relative to the root, and o has another one now: cached regions of both parts are
	// void.
	al.versions++
	gi.version = al.versions
	if showsRegion(o) {
		gi.parts++
	}
	al.free = append(al.free, from)

	eo, ev := &al.of[o.id], &al.of[v.id]
	eo.parent, eo.prev, eo.next = v.id, none, ev.child
	if ev.child != none {
		al.of[ev.child].prev = o.id
	}
	ev.child = o.id
	return into
}

func showsRegion(o *Variable) bool {
	_, ok := o.owner.op.(RegionViewer)
	return ok
}

// unview undoes view.
func (al *aliases) unview(o *Variable) {
	e := al.known(o)
	if e == nil || e.parent == none {
		return
	}
	parent := e.parent
	if e.prev == none {
		al.of[parent].child = e.next
	} else {
		al.of[e.prev].next = e.next
	}
	if e.next != none {
		al.of[e.next].prev = e.prev
	}
	e.parent, e.prev, e.next = none, none, none

	// Walk both parts until one ends: the smaller one gets a new group.
	// The link is cut, but both parts still carry one group number.
	old := e.group
	oldRoot := al.groups[old].root
	// Two walks in step: their cost is that of the smaller part, whichever that is, and its size is
	// then n.
	cut, rest := al.walk(o.id), al.walk(oldRoot)
	n := int32(0)
	for !cut.done && !rest.done {
		cut.step(al)
		rest.step(al)
		n++
	}
	keep, move := oldRoot, o.id
	if !cut.done {
		keep, move = o.id, oldRoot
	}
	al.groups[old].root = keep
	al.groups[old].size -= n
	fresh := al.newGroup(move)
	parts, outs := int32(0), int32(0)
	for w := al.walk(move); !w.done; w.step(al) {
		e := &al.of[w.at]
		e.group = fresh
		outs += e.outs
		if e.parent != none && showsRegion(e.v) {
			parts++
		}
	}
	al.groups[fresh].size, al.groups[fresh].parts, al.groups[fresh].outs = n, parts, outs
	al.groups[old].parts -= parts
	al.groups[old].outs -= outs
	al.versions++
	al.groups[old].version = al.versions
	if showsRegion(o) {
		al.groups[old].parts--
	}
	// Destructions were listed in one group and are distributed to the two that their variables are
	// in now.
	first := al.groups[old].first
	al.groups[old].first = none
	al.relinkRecs(first)
	al.dissolve(keep)
	al.dissolve(move)
}

// walker visits a tree in preorder.
type walker struct {
	root, at int32
	done     bool
}

func (al *aliases) walk(root int32) walker { return walker{root: root, at: root} }

func (w *walker) step(al *aliases) {
	al.work++
	if c := al.of[w.at].child; c != none {
		w.at = c
		return
	}
	for w.at != w.root {
		if n := al.of[w.at].next; n != none {
			w.at = n
			return
		}
		w.at = al.of[w.at].parent
	}
	w.done = true
}

// region returns the region of the root of its group that v shows. whole is true if v shows all
// of the root, or an unknown part.
func (al *aliases) region(v int32) (r Region, whole bool) {
	gr := &al.groups[al.of[v].group]
	// Where no member shows a part only, which is nearly always, no region is computed or stored.
	if gr.parts == 0 {
		return r, true
	}
	if int(v) >= len(al.shown) {
		al.shown = append(al.shown, make([]shown, len(al.of)-len(al.shown))...)
	}
	s := &al.shown[v]
	if s.version != gr.version {
		s.region, s.whole = al.computeRegion(v)
		s.version = gr.version
	}
	return s.region, s.whole
}

func (al *aliases) computeRegion(v int32) (r Region, whole bool) {
	whole = true
	// From v up to the root: a region of a region is a region, until some view does not tell what
	// it shows, which makes everything above it unknown.
	for e := &al.of[v]; e.parent != none; e = &al.of[e.parent] {
		op, ok := e.v.owner.op.(RegionViewer)
		switch {
		case !ok:
			whole = true
		case whole:
			r, whole = op.ViewRegion(int(e.v.index)), false
		default:
			r = r.within(op.ViewRegion(int(e.v.index)))
		}
	}
	return r, whole
}

// use records n more outputs of the graph that are v. Constants do not matter, because nothing
// may destroy them.
func (al *aliases) use(v *Variable, n int32) {
	if v.IsConstant() {
		return
	}
	e := al.at(v)
	e.outs += n
	if e.group != none {
		al.groups[e.group].outs += n
	}
}

// overlap reports whether two variables of one group may share memory. A variable that shows an
// empty region has no memory.
func (al *aliases) overlap(u, v int32) bool {
	if al.groups[al.of[u].group].parts == 0 {
		return true
	}
	r, whole := al.region(u)
	if u == v {
		return whole || !r.empty()
	}
	s, whole2 := al.region(v)
	switch {
	case whole && whole2:
		return true
	case whole:
		return !s.empty()
	case whole2:
		return !r.empty()
	}
	return r.overlaps(s)
}

// destroy records that a overwrites its input i, which is v.
func (al *aliases) destroy(a *Apply, i int, v *Variable) {
	al.groupOf(v)
	r := reuse(&al.spare)
	if r == none {
		r = int32(len(al.recs))
		al.recs = append(al.recs, destruction{})
	}
	for int(a.id) >= len(al.heads) {
		al.heads = append(al.heads, 0)
	}
	al.recs[r] = destruction{a: a, v: v.id, i: int32(i), more: al.heads[a.id] - 1}
	al.heads[a.id] = r + 1
	al.linkRec(r)
	al.live++
}

// undestroy undoes destroy for input i of a, or for all inputs if i is negative.
func (al *aliases) undestroy(a *Apply, i int) {
	if int(a.id) >= len(al.heads) {
		return
	}
	// The list of a is rebuilt without the entries that go; its order does not matter.
	kept := int32(none)
	for r := al.heads[a.id] - 1; r != none; {
		rec := &al.recs[r]
		next := rec.more
		if i >= 0 && int(rec.i) != i {
			rec.more = kept
			kept = r
		} else {
			al.unlinkRec(r)
			al.live--
			v := rec.v
			*rec = destruction{}
			al.spare = append(al.spare, r)
			al.dissolve(v)
		}
		r = next
	}
	al.heads[a.id] = kept + 1
}

// relinkRecs distributes a list of destructions to the groups of what they destroy.
func (al *aliases) relinkRecs(first int32) {
	for r := first; r != none; {
		next := al.recs[r].next
		al.linkRec(r)
		r = next
	}
}

// linkRec adds r to the list of the group of what it destroys.
func (al *aliases) linkRec(r int32) {
	rec := &al.recs[r]
	gr := &al.groups[al.of[rec.v].group]
	rec.prev, rec.next = none, gr.first
	if gr.first != none {
		al.recs[gr.first].prev = r
	}
	gr.first = r
}

func (al *aliases) unlinkRec(r int32) {
	rec := &al.recs[r]
	if rec.prev == none {
		al.groups[al.of[rec.v].group].first = rec.next
	} else {
		al.recs[rec.prev].next = rec.next
	}
	if rec.next != none {
		al.recs[rec.next].prev = rec.prev
	}
}

// destructionsOf returns the first destruction by a.
func (al *aliases) destructionsOf(a *Apply) int32 {
	if int(a.id) >= len(al.heads) {
		return none
	}
	return al.heads[a.id] - 1
}
