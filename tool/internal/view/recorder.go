package view

import (
	"context"
	"slices"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// A Recorder watches what an optimizer does. It is for one run on one goroutine, of one graph or,
// for a network of several segments, of several in a row. It keeps every apply that ever was in a
// graph, so that [Recorder.Recording] can describe it later, and looks at nothing else meanwhile.
type Recorder struct {
	nodes    []node
	inputs   []int32 // of nodes: what they read as of the last step
	first    []int32 // of nodes: what they read at first
	leaves   map[*fgraph.Variable]int32
	values   []*fgraph.Variable
	gone     map[*fgraph.Apply]int32 // the numbers of applies that have left their graph
	start    graphState
	steps    []step
	segments []*segment
	// The lists of all steps.
	joined, left []int32
	rewired      [][3]int32
	outputs      [][2]int32
	replaced     [][2]int32
	again        bool // a run is repeated: it need not have a profile
	// Where to stop, if stop is not nil: after limit steps, in that segment or after it.
	limit int
	last  int32
	stop  func()
}

// A node is an apply with its number.
type node struct {
	apply   *fgraph.Apply
	out     int32 // its first value
	in, end int32 // of Recorder.inputs and Recorder.first
	segment int32
	live    bool // as of the last step
	known   bool // it was live after some step
}

// A step is a Step, whose lists are parts of those of the Recorder: what follows the ends of the
// step before.
type step struct {
	record *profile.Record // of its pass
	rule   string
	time   time.Duration
	at     int32 // -1 for none
	ends   changes
	all    []int32
}

// changes are lengths of the lists of a Recorder.
type changes struct{ joined, left, rewired, outputs, replaced int32 }

// A segment records one graph.
type segment struct {
	r       *Recorder
	g       *fgraph.FunctionGraph
	rec     *profile.Recorder
	root    *profile.Record // of the run over the graph
	index   int32
	number  []int32 // of nodes, by the number of the apply in the graph
	outputs []int32 // as of the last step
	offset  int     // number of outputs of the segments before
	// What callbacks have named since the last step, with repetitions.
	touched []int32  // nodes that joined or left
	rewired []client // inputs that changed
	ends    bool     // outputs changed
	inputs  []int32  // values: the inputs of the graph
	emitted []command
}

type client struct {
	node  *fgraph.Apply
	index int32
}

// NewRecorder returns a recorder.
func NewRecorder() *Recorder {
	return &Recorder{leaves: make(map[*fgraph.Variable]int32), gone: make(map[*fgraph.Apply]int32)}
}

// stopAt makes the recorder call stop after a number of steps, once it has reached a segment,
// and forbids further changes.
func (r *Recorder) stopAt(steps int, segment int32, stop func()) {
	r.again, r.limit, r.last, r.stop = true, steps, segment, stop
}

// stopIfDone calls stop if the recorder has reached that point.
func (r *Recorder) stopIfDone() {
	if r.stop != nil && len(r.steps) >= r.limit && len(r.segments) > int(r.last) {
		r.stop()
	}
}

// Watch returns a context in which every run of an optimizer that has a profile.Recorder is
// recorded.
func (r *Recorder) Watch(ctx context.Context) context.Context {
	opts := rewrite.OptionsFrom(ctx)
	opts.Observe, opts.Steps = r.observe, true
	// After the last step that is wanted, nothing may change any more: the run goes on until it
	// notices that its context has ended, and the graph has to be that of the step.
	if r.stop != nil {
		opts.Allow = func(fgraph.Reason) bool { return len(r.steps) < r.limit }
	}
	return rewrite.WithOptions(ctx, opts)
}

// observe begins to record a graph.
func (r *Recorder) observe(g *fgraph.FunctionGraph, rec *profile.Recorder) (end func(), err error) {
	switch {
	case rec == nil && !r.again:
		return func() {}, nil
	case rec == nil:
		rec = profile.New("", "")
	}
	s := &segment{r: r, g: g, rec: rec, root: rec.Current(), index: int32(len(r.segments)), offset: len(r.start.Outputs)}
	if err := g.Attach(s); err != nil {
		return nil, err
	}
	r.segments = append(r.segments, s)
	if e, ok := fgraph.FeatureOf[Emitter](g); ok {
		e.OnEmit(func(line int, values []*fgraph.Variable) { s.emitted = append(s.emitted, command{line, values}) })
	}
	r.stopIfDone()
	return func() { g.Detach(s) }, nil
}

// OnAttach records the graph as it is.
func (s *segment) OnAttach(g *fgraph.FunctionGraph) error {
	r := s.r
	r.grow(g)
	for _, v := range g.Inputs() {
		s.inputs = append(s.inputs, s.value(v))
	}
	r.start.Inputs = append(r.start.Inputs, s.inputs...)
	for a := range g.Ordered() {
		n := s.add(a)
		r.start.Nodes = append(r.start.Nodes, n)
		s.join(n)
	}
	for _, v := range g.Outputs() {
		s.outputs = append(s.outputs, s.value(v))
	}
	r.start.Outputs = append(r.start.Outputs, s.outputs...)
	return nil
}

// grow makes room for a graph, and for as much again that passes add.
func (r *Recorder) grow(g *fgraph.FunctionGraph) {
	// A recorder runs inside of every replacement. Room for all that a typical run adds is made
	// once, so that none of its appends copies a list.
	n := 0
	for a := range g.Applies() {
		n += len(a.Inputs())
	}
	r.nodes = slices.Grow(r.nodes, 2*g.NumApplies())
	r.values = slices.Grow(r.values, 2*g.NumVariableIDs())
	r.inputs, r.first = slices.Grow(r.inputs, 2*n), slices.Grow(r.first, 2*n)
	r.steps = slices.Grow(r.steps, g.NumApplies())
	r.joined, r.left = slices.Grow(r.joined, g.NumApplies()), slices.Grow(r.left, g.NumApplies())
}

// add gives an apply that joins the graph its number.
func (s *segment) add(a *fgraph.Apply) int32 {
	r := s.r
	// An apply that was removed may come back, when a rewrite is undone or a rule puts together
	// what it took apart. It keeps its number, so that the page shows one node and not two. Applies
	// have numbers of their own only while they are in a graph; the map is for those that have left
	// it.
	n, again := r.gone[a]
	if !again {
		n = int32(len(r.nodes))
		r.nodes = append(r.nodes, node{apply: a, out: int32(len(r.values)), segment: s.index})
		r.values = append(r.values, a.Outputs()...)
	}
	for len(s.number) <= a.ID() {
		s.number = append(s.number, 0)
	}
	s.number[a.ID()] = n
	return n
}

// join records the inputs of a node that is live for the first time.
func (s *segment) join(n int32) {
	r := s.r
	// Two copies are kept: inputs changes with every step and is compared with the graph; first is
	// what the node read when it appeared, which the recording shows.
	at := int32(len(r.inputs))
	for _, v := range r.nodes[n].apply.Inputs() {
		r.inputs = append(r.inputs, s.value(v))
	}
	r.first = append(r.first, r.inputs[at:]...)
	p := &r.nodes[n]
	p.in, p.end, p.live, p.known = at, int32(len(r.inputs)), true, true
}

// value returns the number of a value, or -1 for one that never was in the graph.
func (s *segment) value(v *fgraph.Variable) int32 {
	r := s.r
	if a := v.Owner(); a != nil {
		if n := s.node(a); n >= 0 {
			return r.nodes[n].out + int32(v.Index())
		}
		return -1
	}
	n, known := r.leaves[v]
	if !known {
		n = int32(len(r.values))
		r.values = append(r.values, v)
		r.leaves[v] = n
	}
	return n
}

// past returns the number of a value that is or was in the graph after some step, or else -1.
func (s *segment) past(v *fgraph.Variable) int32 {
	if a := v.Owner(); a != nil {
		if n := s.node(a); n < 0 || !s.r.nodes[n].known {
			return -1
		}
	}
	return s.value(v)
}

// node returns the number of an apply, or -1 for one that never was in the graph.
func (s *segment) node(a *fgraph.Apply) int32 {
	if a.Graph() == s.g {
		return s.number[a.ID()]
	}
	if n, known := s.r.gone[a]; known {
		return n
	}
	return -1
}

// OnImport notes an apply that joins.
func (s *segment) OnImport(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	s.touched = append(s.touched, s.add(a))
}

// OnPrune notes an apply that leaves.
func (s *segment) OnPrune(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	n := s.number[a.ID()]
	s.r.gone[a] = n
	// Only numbers are noted here, since the change may still be refused and undone.
	s.touched = append(s.touched, n)
}

// OnChangeInput notes a changed input or output.
func (s *segment) OnChangeInput(_ *fgraph.FunctionGraph, a *fgraph.Apply, i int, _, _ *fgraph.Variable, _ fgraph.Reason) {
	if a == nil {
		s.ends = true
		return
	}
	s.rewired = append(s.rewired, client{a, int32(i)})
}

// OnCommit makes a step of the difference from the last one.
func (s *segment) OnCommit(_ *fgraph.FunctionGraph, pairs []fgraph.Replacement, why fgraph.Reason) {
	r := s.r
	before := r.ends()
	t := step{record: s.rec.Current(), rule: why.Rule, time: s.rec.Elapsed(), at: -1}
	// A step is the difference between two valid graphs, and not the list of callbacks in between:
	// a refused replacement, or an apply that joins and leaves again, is no step. Nodes come first,
	// because a node that comes back has its inputs compared with what it last read, and outputs
	// last, because they may be values of new nodes.
	s.nodes()
	s.wires()
	s.ports(&t)
	s.touched, s.rewired, s.ends = s.touched[:0], s.rewired[:0], false
	// Everything was undone, or replaced by what it was.
	if r.ends() == before && t.all == nil {
		return
	}
	for _, p := range pairs {
		old, now := s.past(p.Old), s.past(p.New)
		if old < 0 || now < 0 {
			continue
		}
		if a := p.Old.Owner(); a != nil && t.at < 0 {
			t.at = s.node(a)
		}
		r.replaced = append(r.replaced, [2]int32{old, now})
	}
	t.ends = r.ends()
	r.steps = append(r.steps, t)
	r.stopIfDone()
}

// ends returns the lengths of the lists.
func (r *Recorder) ends() changes {
	return changes{int32(len(r.joined)), int32(len(r.left)), int32(len(r.rewired)), int32(len(r.outputs)), int32(len(r.replaced))}
}

// nodes records the nodes that have joined and left since the last step.
func (s *segment) nodes() {
	r := s.r
	for _, n := range s.touched {
		p := &r.nodes[n]
		live := p.apply.Graph() == s.g
		switch {
		case live == p.live:
		case !live:
			p.live = false
			r.left = append(r.left, n)
		case !p.known:
			s.join(n)
			r.joined = append(r.joined, n)
		default:
			p.live = true
			r.joined = append(r.joined, n)
			for i := range p.apply.Inputs() {
				s.rewired = append(s.rewired, client{p.apply, int32(i)})
			}
		}
	}
}

// wires records the inputs of nodes that have changed since the last step.
func (s *segment) wires() {
	for _, c := range s.rewired {
		if c.node.Graph() != s.g {
			continue
		}
		n := s.number[c.node.ID()]
		have := &s.r.inputs[s.r.nodes[n].in+c.index]
		if now := s.value(c.node.Inputs()[c.index]); now != *have {
			*have = now
			s.r.rewired = append(s.r.rewired, [3]int32{n, c.index, now})
		}
	}
}

// ports records the outputs that have changed since the last step.
func (s *segment) ports(t *step) {
	if !s.ends {
		return
	}
	outputs := s.g.Outputs()
	if len(outputs) != len(s.outputs) {
		s.outputs = s.outputs[:0]
		for _, v := range outputs {
			s.outputs = append(s.outputs, s.value(v))
		}
		for _, o := range s.r.segments { // the outputs of all segments, among them s
			t.all = append(t.all, o.outputs...)
		}
		return
	}
	for i, v := range outputs {
		if now := s.value(v); now != s.outputs[i] {
			s.outputs[i] = now
			s.r.outputs = append(s.r.outputs, [2]int32{int32(s.offset + i), now})
		}
	}
}

// live returns the nodes that are in the graph now, inputs before clients.
func (s *segment) live() []int32 {
	list := make([]int32, 0, s.g.NumApplies())
	for a := range s.g.Ordered() {
		list = append(list, s.number[a.ID()])
	}
	return list
}
