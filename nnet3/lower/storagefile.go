package lower

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
)

const storageSection = "storage"

// storageOptions are the decisions that concern all matrices.
var storageOptions = [...]struct {
	name string
	flag func(s *Storage) *bool
}{
	{"extend", func(s *Storage) *bool { return &s.Extend }},
	{"assign", func(s *Storage) *bool { return &s.Assign }},
	{"move-sizing", func(s *Storage) *bool { return &s.MoveSizing }},
	{"leave-undefined", func(s *Storage) *bool { return &s.LeaveUndefined }},
}

// GraphSection returns the storage as a section of a graph file: the options; in a line each the
// bases, with the places of their values unless they are 0,0; and, once there are slots, in a line
// each the slots, with the numbers and places of their bases. The schedule follows from the graph.
func (f *storageFeature) GraphSection(id func(*fgraph.Variable) string) (name string, lines []string, err error) {
	s := f.s
	options := "options"
	for _, o := range storageOptions {
		if *o.flag(s) {
			options += " " + o.name
		}
	}
	lines = append(lines, options)
	numbers, n := make([]int, len(s.bases)), 0
	for b := range s.bases {
		if s.bases[b].gone {
			continue
		}
		numbers[b] = n
		n++
		line := []byte("base")
		for _, m := range s.bases[b].members {
			v := &s.values[m]
			line = append(append(line, ' '), id(v.v)...)
			line = appendPlace(line, v.r, v.c)
		}
		lines = append(lines, string(line))
	}
	for k := range s.slots {
		if s.slots[k].bases == nil {
			continue
		}
		line := []byte("slot")
		for _, b := range s.slots[k].bases {
			line = strconv.AppendInt(append(line, ' '), int64(numbers[b]), 10)
			line = appendPlace(line, s.slotRow[b], s.slotCol[b])
		}
		lines = append(lines, string(line))
	}
	return storageSection, lines, nil
}

// appendPlace appends a place, unless it is 0,0.
func appendPlace(line []byte, r, c int32) []byte {
	if r == 0 && c == 0 {
		return line
	}
	return fmt.Appendf(line, "@%d,%d", r, c)
}

// readStorage plans the storage of a graph as the section says. It checks that values don't
// overlap while both live.
func readStorage(g *fgraph.FunctionGraph, section *graphfile.Section, lookup func(string) *fgraph.Variable) error {
	p, ok := ProgramOf(g)
	if _, planned := StorageOf(g); !ok || planned {
		return section.Errorf(0, "%w: a storage belongs to a graph with a program, and there is only one", errText)
	}
	if slices.ContainsFunc(slices.Collect(g.Applies()), destroys) {
		if err := fgraph.WatchDestroyers(g); err != nil { // its orderings decide on the schedule
			return err
		}
	}
	before := g.Commits()
	s, err := planStorage(p)
	if err != nil {
		return err
	}
	if g.Commits() != before {
		return section.Errorf(0, "%w: an output is a part of a value, or is an output twice", errText)
	}
	r := &storageReader{s: s, lookup: lookup, placed: make([]bool, len(s.values))}
	r.unsettle()
	for i, line := range section.Lines {
		if err := r.line(i, line); err != nil {
			return section.Errorf(i, "%w", err)
		}
	}
	if err := r.finish(); err != nil {
		return section.Errorf(len(section.Lines), "%w", err)
	}
	return g.Attach(&storageFeature{s: s})
}

func destroys(a *fgraph.Apply) bool {
	d, ok := a.Op().(fgraph.Destroyer)
	return ok && len(d.DestroyMap()) > 0
}

type storageReader struct {
	s      *Storage
	lookup func(string) *fgraph.Variable
	placed []bool // by value
	slots  []slot
	at     [][][2]int32 // by slot: the places of its bases
}

// unsettle forgets the bases.
func (r *storageReader) unsettle() {
	s := r.s
	for n := range s.values {
		for i := range s.values[n].grid.cells {
			s.values[n].grid.cells[i].nodes = 0
		}
	}
	s.bases, s.forest = nil, boxForest{nodes: make([]boxNode, 1)}
	s.peak = newPeakTree(int(s.numEvents))
}

func (r *storageReader) line(i int, line string) error {
	words := strings.Fields(line)
	switch {
	case i == 0 && words[0] == "options":
		for _, w := range words[1:] {
			known := false
			for _, o := range storageOptions {
				if o.name == w {
					*o.flag(r.s), known = true, true
				}
			}
			if !known {
				return fmt.Errorf("%w: there is no option %q", errText, fileio.Excerpt(w, 0))
			}
		}
		return nil
	case i > 0 && words[0] == "base" && len(words) > 1 && r.slots == nil:
		return r.base(words[1:])
	case i > 0 && words[0] == "slot" && len(words) > 1:
		return r.slot(words[1:])
	}
	return fmt.Errorf("%w: first there are options, then bases, then slots: %q", errText, fileio.Excerpt(line, 0))
}

// parsePlace reads "%3@1,2".
func parsePlace(word string) (what string, row, col int32, err error) {
	what, place, ok := strings.Cut(word, "@")
	if !ok {
		return what, 0, 0, nil
	}
	r, c, _ := strings.Cut(place, ",")
	if row, err = parseInt(r, -maxRows, maxRows); err == nil {
		col, err = parseInt(c, -maxCols, maxCols)
	}
	return what, row, col, err
}

func (r *storageReader) base(words []string) error {
	s := r.s
	var b base
	for _, w := range words {
		id, row, col, err := parsePlace(w)
		if err != nil {
			return err
		}
		v := r.lookup(id)
		if v == nil || v.Graph() != s.prog.Graph || s.valueOf[v.ID()] < 0 || !s.needsPlace(s.valueOf[v.ID()]) {
			return fmt.Errorf("%w: %s is not a value that has a place", errText, fileio.Excerpt(id, 0))
		}
		n := s.valueOf[v.ID()]
		if r.placed[n] {
			return fmt.Errorf("%w: %s has a place already", errText, fileio.Excerpt(id, 0))
		}
		r.placed[n] = true
		s.values[n].base, s.values[n].r, s.values[n].c = int32(len(s.bases)), row, col
		b.members = append(b.members, n)
	}
	s.bases = append(s.bases, b)
	return nil
}

func (r *storageReader) slot(words []string) error {
	var q slot
	var at [][2]int32
	for _, w := range words {
		number, row, col, err := parsePlace(w)
		if err != nil {
			return err
		}
		b, err := parseInt(number, 0, int64(len(r.s.bases))-1)
		if err != nil || row < 0 || col < 0 {
			return fmt.Errorf("%w: not a base and its place in a slot: %q", errText, fileio.Excerpt(w, 0))
		}
		q.bases, at = append(q.bases, b), append(at, [2]int32{row, col})
	}
	r.slots, r.at = append(r.slots, q), append(r.at, at)
	return nil
}

// finish completes the bases and slots.
func (r *storageReader) finish() error {
	s := r.s
	for n := range s.values {
		if !r.placed[n] && s.needsPlace(int32(n)) {
			return fmt.Errorf("%w: %v has no place", errText, s.values[n].v)
		}
	}
	for k := range s.terms {
		t := &s.terms[k]
		t.placed = s.lies(t)
	}
	for k := range s.terms {
		if s.terms[k].placed && !s.canPlace(int32(k)) {
			return fmt.Errorf("%w: a part of %v is already where it would be put, but comes too late", errText, s.values[s.terms[k].dst].v)
		}
	}
	for b := range s.bases {
		if err := s.settle(int32(b)); err != nil {
			return err
		}
		if err := s.checkDemands(&s.bases[b]); err != nil {
			return err
		}
	}
	if r.slots == nil {
		return nil
	}
	return r.finishSlots()
}

// lies reports whether the source of a term lives where the term would put it.
func (s *Storage) lies(t *term) bool {
	if t.constant || !t.Contiguous() {
		return false
	}
	dst, src := &s.values[t.dst], &s.values[t.src]
	return dst.base == src.base && dst.r+t.DstRow == src.r+t.SrcRow && dst.c+t.DstCol == src.c+t.SrcCol
}

// checkDemands returns an error unless a base meets the demands of its members.
func (s *Storage) checkDemands(b *base) error {
	if int64(b.rect.R1)-int64(b.rect.R0) > maxRows || int64(b.rect.C1)-int64(b.rect.C0) > maxCols {
		return fmt.Errorf("%w: the matrix of %v is too large", errText, s.values[b.members[0]].v)
	}
	ok := b.given < 0 || b.first >= s.values[b.given].done
	var exact []int32 // the members whose matrix the caller or another segment owns
	for _, m := range b.members {
		v, place := &s.values[m], s.place(m)
		ok = ok && (!v.exact || place == b.rect) && (!v.span || place.C0 == b.rect.C0 && place.C1 == b.rect.C1)
		if v.exact {
			exact = append(exact, m)
		}
	}
	if !ok || len(exact) > 2 || len(exact) == 2 && !s.comesBack(exact[0], exact[1]) {
		return fmt.Errorf("%w: %v is in a matrix that does not fit it", errText, s.values[b.members[0]].v)
	}
	return nil
}

// finishSlots checks that bases of a slot don't overlap while both are in use.
func (r *storageReader) finishSlots() error {
	s := r.s
	s.slotOf = slices.Repeat([]int32{-1}, len(s.bases))
	s.slotRow, s.slotCol = make([]int32, len(s.bases)), make([]int32, len(s.bases))
	for k := range r.slots {
		q := &r.slots[k]
		var f boxForest
		tree := int32(0)
		q.first, q.last = s.numEvents, 0
		for i, b := range q.bases {
			p, at := &s.bases[b], r.at[k][i]
			if s.slotOf[b] >= 0 {
				return fmt.Errorf("%w: base %d is in two slots", errText, b)
			}
			s.slotOf[b], s.slotRow[b], s.slotCol[b] = int32(k), at[0], at[1]
			place := Rect{at[0], at[0] + p.rect.Rows(), at[1], at[1] + p.rect.Cols()}
			q.rows, q.cols = max(q.rows, place.R1), max(q.cols, place.C1)
			q.first, q.last = min(q.first, p.first), max(q.last, p.last)
			o := occupation{box{place, p.first, p.last}, b}
			if f.clash(tree, &o) != 0 {
				return fmt.Errorf("%w: base %d is placed where another base lives at the same time", errText, b)
			}
			tree = f.insert(tree, f.add(o, cellRef{}))
		}
		if q.rows > maxRows || q.cols > maxCols {
			return fmt.Errorf("%w: slot %d is too large", errText, k)
		}
		if err := s.checkSlot(q); err != nil {
			return err
		}
		s.bookSlot(q, 1)
	}
	if b := slices.Index(s.slotOf, -1); b >= 0 {
		return fmt.Errorf("%w: base %d is in no slot", errText, b)
	}
	for b := range s.bases {
		s.book(int32(b), -1)
	}
	s.slots = r.slots
	return nil
}

// checkSlot sets the demands of the bases of a slot, and returns an error unless it meets them.
func (s *Storage) checkSlot(q *slot) error {
	for _, b := range q.bases {
		p := &s.bases[b]
		var o slot
		s.demands(p, &o)
		all := p.rect.Rows() == q.rows && p.rect.Cols() == q.cols
		switch {
		case o.fixed && !all, p.span && p.rect.Cols() != q.cols, o.given && p.first != q.first, o.taken && p.last != q.last:
			return fmt.Errorf("%w: base %d is in a slot that does not fit it", errText, b)
		}
		q.fixed, q.taken, q.given = q.fixed || o.fixed, q.taken || o.taken, q.given || o.given
		q.carriedIn, q.carriedOut = max(q.carriedIn, o.carriedIn), max(q.carriedOut, o.carriedOut)
	}
	for _, b := range q.bases {
		var o slot
		s.demands(&s.bases[b], &o)
		if q.carriedIn > 0 && o.taken && o.carriedIn == 0 && o.carriedOut != q.carriedIn {
			return fmt.Errorf("%w: base %d leaves in the matrix in which the next iteration of the loop finds its input", errText, b)
		}
	}
	return nil
}
