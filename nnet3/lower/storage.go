package lower

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
)

// ErrPlanned is what a graph whose storage is planned answers to a change.
var ErrPlanned = fmt.Errorf("lower: the storage of this graph is planned, so it can't change any more: %w", fgraph.ErrInconsistent)

// valueKind says how a matrix value comes to be.
type valueKind uint8

const (
	computed  valueKind = iota // an op makes it
	assembled                  // the terms of an Assemble make it
	accepted                   // the caller hands it in
	constant                   // one number all over
)

// value is a matrix value that needs a place.
type value struct {
	v          *fgraph.Variable
	rows, cols int32
	kind       valueKind
	step       int32
	done       int32 // the event after which it is complete
	terms      [2]int32
	reads      []read

	base int32 // the base it lives in
	r, c int32 // its place there
	grid grid
	// over is the value that the op may destroy to make this one there, in the rectangle overRect of it; -1 for none. overBy
	// lists the values that may be made over this one.
	over     int32
	overRect Rect
	overBy   []int32

	exact  bool // its base must have its size: the caller owns the matrix
	span   bool // it must span the width of its base
	leaves bool // the caller takes it, so its place is never free again

	carriedIn, carriedOut int32 // the matrix that another segment hands over or takes over, or 0
}

// read is one use of a rectangle of a value, by a step; term is the number of the term that it is, or -1.
type read struct {
	rect        Rect
	step        int32
	event, term int32
	beside      bool // by an op that may write over another operand, and may do so before it is done with this one
}

// term is a term of an assembled value, and whether the plan made it unnecessary.
type term struct {
	Term
	lin      int32 // the value it is a part of
	src      int32 // the value it takes from
	step     int32
	event    int32
	constant bool // the source is a constant: Scale is what is filled in
	// placed is true where the source lies in the very place where the term would put it, so that there is nothing to move,
	// or only to scale.
	placed bool
}

// item is one thing to emit.
type item struct {
	event int32
	kind  stepKind
	n     int32
}

// base is a matrix in the making: values at fixed offsets, some of them in the same place one after the other or as parts of
// each other.
type base struct {
	members     []int32
	gone        bool  // it is a part of another base now
	rect        Rect  // the smallest that holds all members
	first, last int32 // the events between which it is in use
	tree        int32 // what its members occupy: the root of a tree of the forest
	weight      int32 // what it costs to look at all its members
	exact       int32 // a member that must be all of it, because the caller owns the matrix; -1 for none
	given       int32 // the member that the caller hands in; -1 for none
	span        bool  // a member must span its width, and does
	stamp       int32 // of the merge that made it what it is
	mark        int32 // the last epoch that looked at it
}

// Storage says where each matrix value of a program lives, and when. It is a feature of the program's graph: once it is
// attached, the graph can't change. At first every value has a matrix of its own; the storage passes refine that, and none
// raises the peak of the bytes in use. Emit reads it.
type Storage struct {
	prog      *Program
	applies   []*fgraph.Apply
	valueOf   []int32 // by variable id; -1 for Blocks, states and memos
	values    []value
	terms     []term
	items     []item
	numEvents int32

	bases  []base
	slots  []slot
	slotOf []int32 // by base; nil before slots are made
	// slotRow and slotCol are, by base, its place in its slot.
	slotRow, slotCol []int32
	peak             *peakTree

	forest boxForest
	trial  trial
	epoch  int32 // of the merge that is tried
	failed map[failedMerge]witness
	open   Transaction
	kept   int // how many merges were kept
	// What merges need for a while.
	occs, others []occupation
	aliases      []aliased
	dirty        []cellRef

	rowEdges, colEdges []int32 // scratch

	stamp    int32            // of the last merge
	refusals map[int]*refusal // by the first of the terms
	marked   []baseMark

	// changed holds what was there when the plan was made, for every place of the graph where something else is now.
	changed map[fgraph.Client]*fgraph.Variable

	// Extend permits a matrix to be larger than any of the values it began with, so that values which are not parts of each
	// other can share it.
	Extend bool
	// Assign copies to where nothing was written before, instead of adding to zeros.
	Assign bool
	// MoveSizing allocates right before the first use and frees right after the last, instead of at both ends.
	MoveSizing bool
	// LeaveUndefined leaves what is written before it is read as it was allocated, instead of setting it to zero.
	LeaveUndefined bool
}

// OnAttach refuses a second plan for the same graph.
func (s *Storage) OnAttach(g *fgraph.FunctionGraph) error {
	if _, ok := fgraph.FeatureOf[*Storage](g); ok {
		return fgraph.ErrAlreadyAttached
	}
	return nil
}

// OnChangeInput notes that somebody changes the graph, which Validate then vetoes. A change that is undone, as one that was vetoed
// is, is none: the plan is right again.
func (s *Storage) OnChangeInput(_ *fgraph.FunctionGraph, a *fgraph.Apply, i int, old, now *fgraph.Variable, _ fgraph.Reason) {
	at := fgraph.Client{Apply: a, Index: i}
	planned, ok := s.changed[at]
	switch {
	case ok && planned == now:
		delete(s.changed, at)
	case !ok && s.changed == nil:
		s.changed = map[fgraph.Client]*fgraph.Variable{at: old}
	case !ok:
		s.changed[at] = old
	}
}

// Validate vetoes every change.
func (s *Storage) Validate(*fgraph.FunctionGraph) error {
	if len(s.changed) > 0 {
		return ErrPlanned
	}
	return nil
}

// PlanStorage orders the steps of the program and gives every value a matrix of its own. The plan is attached to the
// program's graph as a feature, which from then on refuses to change.
func PlanStorage(p *Program) (*Storage, error) {
	if err := separateOutputs(p); err != nil {
		return nil, err
	}
	s := &Storage{prog: p, trial: noTrial, failed: make(map[failedMerge]witness)}
	if err := s.schedule(); err != nil {
		return nil, err
	}
	s.constraints()
	s.overs()
	s.peak = newPeakTree(int(s.numEvents))
	s.bases = make([]base, 0, len(s.values))
	s.forest.nodes = make([]boxNode, 1, 1+2*len(s.values)+len(s.terms))
	members := make([]int32, len(s.values))
	for n := range s.values {
		v := &s.values[n]
		v.base = -1
		if !s.needsPlace(int32(n)) {
			continue
		}
		v.base = int32(len(s.bases))
		s.bases = append(s.bases, base{members: append(members[n:n:n+1], int32(n))})
		s.makeCells(int32(n))
	}
	for n := range s.values {
		if s.values[n].base >= 0 {
			s.settle(int32(n))
		}
	}
	if err := p.Graph.Attach(s); err != nil {
		return nil, err
	}
	return s, nil
}

func sortBy(ns []int32, key func(int32) int64) {
	slices.SortFunc(ns, func(a, b int32) int { return cmp.Compare(key(a), key(b)) })
}

// StorageOf is the storage planned for the graph, if it is.
func StorageOf(g *fgraph.FunctionGraph) (*Storage, bool) { return fgraph.FeatureOf[*Storage](g) }

// Peak is the largest number of bytes in use at any time.
func (s *Storage) Peak() int64 { return s.peak.max() }

// needsPlace reports whether value n is ever in memory. A constant that is only set where it is wanted has no reads.
func (s *Storage) needsPlace(n int32) bool {
	v := &s.values[n]
	return v.kind != constant || len(v.reads) > 0
}

// constraints notes what the caller and the components demand of places.
func (s *Storage) constraints() {
	for i, v := range s.prog.Graph.Inputs() {
		if port := s.prog.Inputs[i]; port.IsMatrix() {
			in := &s.values[s.valueOf[v.ID()]]
			in.exact, in.carriedIn = true, port.Carried
		}
	}
	for i, v := range s.prog.Graph.Outputs() {
		if port := s.prog.Outputs[i]; port.IsMatrix() {
			root, _ := Resolve(v)
			o := &s.values[s.valueOf[root.ID()]]
			o.exact, o.leaves, o.carriedOut = true, true, port.Carried
		}
	}
	for _, a := range s.applies {
		switch op := a.Op().(type) {
		case Propagate:
			s.spans(a.Inputs(), op.has(component.InputContiguous))
			s.spans(a.Outputs(), op.has(component.OutputContiguous))
		case Backprop:
			for i, v := range a.Inputs() {
				in := op.HasX && i == 0
				s.spans([]*fgraph.Variable{v}, op.has(component.InputContiguous) && in || op.has(component.OutputContiguous) && !in)
			}
			s.spans(a.Outputs(), op.has(component.InputContiguous))
		}
	}
}

func (s *Storage) spans(vs []*fgraph.Variable, demanded bool) {
	if !demanded {
		return
	}
	for _, v := range vs {
		if _, ok := v.Type().(MatrixType); ok {
			root, _ := Resolve(v)
			s.values[s.valueOf[root.ID()]].span = true
		}
	}
}

// overs notes which values may be made over which others.
func (s *Storage) overs() {
	for n := range s.values {
		v := &s.values[n]
		v.over = -1
		if v.kind != computed || v.v.Owner() == nil {
			continue
		}
		a := v.v.Owner()
		if k := destroyed(a, v.v.Index()); k >= 0 {
			root, r := Resolve(a.Inputs()[k])
			v.over, v.overRect = s.valueOf[root.ID()], r
			in := &s.values[v.over]
			in.overBy = append(in.overBy, int32(n))
		}
	}
}

// settle makes value n the only one in its base.
func (s *Storage) settle(n int32) {
	v := &s.values[n]
	b := &s.bases[v.base]
	b.rect = Rect{0, v.rows, 0, v.cols}
	b.first, b.last = v.done, v.done
	b.weight = int32(1 + len(v.grid.cells) + len(v.reads) + int(v.terms[1]-v.terms[0]))
	b.exact, b.given, b.span = -1, -1, v.span
	if v.exact {
		b.exact = n
	}
	if v.kind == accepted {
		b.given = n
	}
	for i := range v.grid.cells {
		c := &v.grid.cells[i]
		s.occs = s.appendOccupations(s.occs[:0], n, int32(i))
		for _, o := range s.occs {
			k := s.forest.add(o, cellRef{n, int32(i)})
			s.forest.nodes[k].next, c.nodes = c.nodes, k
			b.tree = s.forest.insert(b.tree, k)
		}
	}
	if b.tree != 0 {
		all := &s.forest.nodes[b.tree].all
		b.first, b.last = all.t0>>1, all.t1>>1
	}
	s.book(v.base, 1)
}

// book adds (sign 1) or removes (sign -1) the base's bytes over its life.
func (s *Storage) book(b int32, sign int64) {
	p := &s.bases[b]
	s.peak.add(p.first, p.last, sign*4*p.rect.Area())
}
