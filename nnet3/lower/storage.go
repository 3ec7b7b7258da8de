package lower

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
)

// errPlanned is the error for a change of a graph whose storage is planned.
var errPlanned = fmt.Errorf("lower: the storage of this graph is planned, so it can't change any more: %w", fgraph.ErrInconsistent)

// valueKind says where a matrix value comes from.
type valueKind uint8

const (
	computed  valueKind = iota // an op
	assembled                  // the terms of an Assemble
	accepted                   // the caller
	constant                   // a Fill
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
	r, c int32 // its position there
	grid grid
	// The op may overwrite rectangle overRect of value over, -1 for none, with this one. Values
	// overBy may overwrite this one.
	over     int32
	overRect Rect
	overBy   []int32

	exact  bool // its base must have its size, because the caller owns the matrix
	span   bool // it must span the width of its base
	leaves bool // the caller takes it, so its memory is never free again

	carriedIn, carriedOut int32 // the matrix that another segment hands over or takes over, or 0
}

// read is a use of a rectangle of a value by a step; term is the term that reads, or -1.
type read struct {
	rect        Rect
	step        int32
	event, term int32
	beside      bool // by an op that may overwrite another operand before it is done with this one
}

// term is a term of an assembled value.
type term struct {
	Term
	dst      int32 // the value it is a part of
	src      int32 // the value it reads
	step     int32
	event    int32
	constant bool // the source is a constant, and Scale its value
	placed   bool // the source lives where the term would put it, so there is nothing to move, at most to scale
}

// item is one thing to emit.
type item struct {
	event int32
	kind  stepKind
	n     int32
}

// base is a matrix under construction: values at fixed offsets from each other. They may overlap if
// they live one after the other, or if one shows a part of another.
type base struct {
	members     []int32
	gone        bool  // it is part of another base now
	rect        Rect  // the bounding rectangle of its members
	first, last int32 // the events between which it is in use
	tree        int32 // what its members occupy: the root of a tree of the forest
	weight      int32 // what it costs to visit all its members
	exact       int32 // a member that must be all of it, because the caller owns the matrix; -1 for none
	given       int32 // the member that the caller hands in; -1 for none
	span        bool  // a member must span its width, and does
	stamp       int32 // of its last merge
	mark        int32 // the last epoch that visited it
}

// Storage holds where and when each matrix value of a program lives. PlanStorage makes it; from
// then on the graph of the program can't change. At first every value has a matrix of its own. The
// methods refine that, and none raises the peak of the bytes in use. Emit reads the result.
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
	// slotRow and slotCol are, by base, its position in its slot.
	slotRow, slotCol []int32
	peak             *peakTree

	forest boxForest
	trial  trial
	epoch  int32 // of the merge that is tried
	failed map[failedMerge]witness
	open   transaction
	kept   int // how many merges were kept
	// Scratch.
	occs, others       []occupation
	aliases            []aliased
	dirty              []cellRef
	rowEdges, colEdges []int32
	marked             []baseMark

	stamp    int32            // of the last merge
	refusals map[int]*refusal // by the first of the terms

	// Extend permits a matrix to be larger than each of its values, so that values that are not
	// parts of each other can share it.
	Extend bool
	// Assign copies to where nothing is written, instead of adding to zeros.
	Assign bool
	// MoveSizing allocates right before the first use and frees right after the last.
	MoveSizing bool
	// LeaveUndefined leaves new matrices undefined, instead of zeroing them.
	LeaveUndefined bool
}

// PlanStorage schedules the program and gives every value a matrix of its own. It attaches the
// storage to the program's graph, which from then on refuses changes with errPlanned.
func PlanStorage(p *Program) (*Storage, error) {
	s, err := planStorage(p)
	if err != nil {
		return nil, err
	}
	if err := p.Graph.Attach(&storageFeature{s: s}); err != nil {
		return nil, err
	}
	return s, nil
}

// planStorage is PlanStorage without attaching the storage.
func planStorage(p *Program) (*Storage, error) {
	// Outputs that can't leave as they are get copies first, because the schedule fixes the set of
	// values.
	if err := separateOutputs(p); err != nil {
		return nil, err
	}
	s := &Storage{prog: p, trial: noTrial, failed: make(map[failedMerge]witness)}
	if err := s.schedule(); err != nil {
		return nil, err
	}
	s.constraints()
	s.overs()
	// One base per value is the plan with the most memory and no sharing. It is correct by itself;
	// everything later merges bases and never raises the peak, so passes may be left out or stop at
	// any point.
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
		// All cells are made before the first base is settled: what a cell occupies depends on
		// other values, such as those that may overwrite it.
		s.makeCells(int32(n))
	}
	for b := range s.bases {
		if err := s.settle(int32(b)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func sortBy(ns []int32, key func(int32) int64) {
	slices.SortFunc(ns, func(a, b int32) int { return cmp.Compare(key(a), key(b)) })
}

// StorageOf returns the storage planned for the graph, if any.
func StorageOf(g *fgraph.FunctionGraph) (*Storage, bool) {
	f, ok := fgraph.FeatureOf[*storageFeature](g)
	if !ok {
		return nil, false
	}
	return f.s, true
}

// storageFeature ties a storage to its graph, and vetoes every change of the graph.
type storageFeature struct {
	s       *Storage
	changed map[fgraph.Client]*fgraph.Variable // by changed operand: its value in the plan
}

// OnAttach refuses a second storage for the same graph.
func (f *storageFeature) OnAttach(g *fgraph.FunctionGraph) error {
	if _, ok := StorageOf(g); ok {
		return fgraph.ErrAlreadyAttached
	}
	return nil
}

// OnChangeInput records a change, which Validate then vetoes. An undone change, such as a vetoed
// one, does not count.
func (f *storageFeature) OnChangeInput(_ *fgraph.FunctionGraph, a *fgraph.Apply, i int, old, now *fgraph.Variable, _ fgraph.Reason) {
	at := fgraph.Client{Apply: a, Index: i}
	if planned, ok := f.changed[at]; ok && planned == now {
		delete(f.changed, at)
	} else if !ok {
		if f.changed == nil {
			f.changed = make(map[fgraph.Client]*fgraph.Variable)
		}
		f.changed[at] = old
	}
}

// Validate vetoes every change.
func (f *storageFeature) Validate(*fgraph.FunctionGraph) error {
	if len(f.changed) > 0 {
		return errPlanned
	}
	return nil
}

// Peak returns the largest number of bytes in use at any time.
func (s *Storage) Peak() int64 { return s.peak.max() }

// needsPlace reports whether value n is ever in memory, unlike constants without readers.
func (s *Storage) needsPlace(n int32) bool {
	v := &s.values[n]
	return v.kind != constant || len(v.reads) > 0
}

// constraints records what the caller and the components demand.
func (s *Storage) constraints() {
	for i, v := range s.prog.Graph.Inputs() {
		if port := s.prog.Inputs[i]; port.IsMatrix() {
			in := &s.values[s.valueOf[v.ID()]]
			if in.exact = true; port.seam() {
				in.carriedIn = port.Carried
			}
		}
	}
	for i, v := range s.prog.Graph.Outputs() {
		if port := s.prog.Outputs[i]; port.IsMatrix() {
			root, _ := Resolve(v)
			o := &s.values[s.valueOf[root.ID()]]
			if o.exact, o.leaves = true, true; port.seam() {
				o.carriedOut = port.Carried
			}
		}
	}
	for _, a := range s.applies {
		switch op := a.Op().(type) {
		case Propagate:
			s.span(a.Inputs(), op.has(component.InputContiguous))
			s.span(a.Outputs(), op.has(component.OutputContiguous))
		case Backprop:
			// The values of a Backprop at the input side of the component are x and dx, those at
			// the output side y and dy.
			x := 0
			if op.hasX {
				x = 1
			}
			s.span(a.Inputs()[:x], op.has(component.InputContiguous))
			s.span(a.Inputs()[x:], op.has(component.OutputContiguous))
			s.span(a.Outputs(), op.has(component.InputContiguous))
		}
	}
}

// span makes matrices span the width of their bases if that is demanded.
func (s *Storage) span(vs []*fgraph.Variable, demanded bool) {
	for _, v := range vs {
		if _, ok := v.Type().(MatrixType); ok && demanded {
			root, _ := Resolve(v)
			s.values[s.valueOf[root.ID()]].span = true
		}
	}
}

// overs records which values may overwrite which others.
func (s *Storage) overs() {
	for n := range s.values {
		v := &s.values[n]
		v.over = -1
		if v.kind != computed || v.v.Owner() == nil {
			continue
		}
		a := v.v.Owner()
		if k := destroyed(a, v.v.Index()); k >= 0 {
			// The op destroys a rectangle of the value that its input is a view of. Whether it
			// really works in place is decided when the two values get the same place.
			root, r := Resolve(a.Inputs()[k])
			v.over, v.overRect = s.valueOf[root.ID()], r
			in := &s.values[v.over]
			in.overBy = append(in.overBy, int32(n))
		}
	}
}

// settle completes base n, whose members have their places: its size and life, what it demands, and
// what its members occupy. It returns an error if two of them overlap while both live.
func (s *Storage) settle(n int32) error {
	b := &s.bases[n]
	b.exact, b.given = -1, -1
	for i, m := range b.members {
		v := &s.values[m]
		place := s.place(m)
		if i == 0 {
			b.rect, b.first, b.last = place, v.done, v.done
		}
		b.rect = b.rect.union(place)
		b.weight += int32(1 + len(v.grid.cells) + len(v.reads) + int(v.terms[1]-v.terms[0]))
		b.span = b.span || v.span
		if v.exact {
			b.exact = max(b.exact, m)
		}
		if v.kind == accepted {
			b.given = max(b.given, m)
		}
		for i := range v.grid.cells {
			c := &v.grid.cells[i]
			s.occs = s.appendOccupations(s.occs[:0], m, int32(i))
			for k := range s.occs {
				if s.forest.clash(b.tree, &s.occs[k]) != 0 {
					return fmt.Errorf("%w: %v is placed where another value lives at the same time", errText, v.v)
				}
				node := s.forest.add(s.occs[k], cellRef{m, int32(i)})
				s.forest.nodes[node].next, c.nodes = c.nodes, node
				b.tree = s.forest.insert(b.tree, node)
			}
		}
	}
	if b.tree != 0 {
		// Occupations count time in half events, so that a write in place of a read can come
		// between two of them.
		all := &s.forest.nodes[b.tree].all
		b.first, b.last = all.t0>>1, all.t1>>1
	}
	s.book(n, 1)
	return nil
}

// book adds (sign 1) or removes (sign -1) the base's bytes during its life.
func (s *Storage) book(b int32, sign int64) {
	p := &s.bases[b]
	s.peak.add(p.first, p.last, sign*4*p.rect.area())
}
