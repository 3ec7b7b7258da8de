package ir

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// A functionCall is a node of the model in whose place are the nodes of a function. Export writes it again if
// nothing has changed in it.
type functionCall struct {
	outer       *functionCall // in whose function the node is, nil for none
	first, last int           // the origins of the node itself and, before last, of all that it became
	graph       int           // that the node is in
	inputs      []ref
	unread      []bool // inputs that nothing in the function names
	outputs     []ref  // nil if the node can't be written again
	inline      bool   // it is not to be written again, because of its function or one that this calls
	overloaded  bool   // its function is one of several with the same name
	short       bool   // its function has more inputs than the node
}

// mainGraph is the number of the main graph of a model.
const mainGraph = 1

// A ref is a value as it was imported: a result of the apply of an origin, or a leaf. Applies don't
// tell what their inputs were, since passes change them in place.
type ref struct {
	origin, index int32 // without a leaf
	leaf          *fgraph.Variable
}

func refsOf(list []*fgraph.Variable) []ref {
	refs := make([]ref, len(list))
	for i, v := range list {
		switch {
		case v == nil:
			refs[i].origin = -1
		case v.Owner() != nil:
			refs[i] = ref{origin: int32(v.Owner().Origin()), index: int32(v.Index())}
		default:
			refs[i].leaf = v
		}
	}
	return refs
}

// An inFunction is what is known of a node of a function, or of one that calls a function.
type inFunction struct {
	is     *functionCall    // the node, if it calls a function
	in     *functionCall    // in whose function the node is, nil for none
	opsets map[string]int64 // that the node is written for
	graph  int              // that the node is in: that of the call, or a body
	inputs []ref
	live   bool // some output of the graph depends on it
}

// inFunction returns what is known of the node that an apply comes from if it is of a function, or nil.
func (s *Source) inFunction(a *fgraph.Apply) *inFunction {
	if old := s.origin(a); old != nil {
		return old.function
	}
	return nil
}

// maxRounds bounds how often calls are chosen anew because those chosen depend on each other.
const maxRounds = 16

// withCalls returns a copy of a graph of the model, the main one or a body, in which calls of functions that nothing changed are
// applies again, or the graph itself if it has none. What is outside sees only their results, so an
// apply is where its call is needed.
//
// In a model that is raised to a version, only functions for that version are called: ONNX Runtime takes
// the nodes of all functions for those of the model's version.
func (s *Source) withCalls(g *fgraph.FunctionGraph, main bool, raised int64) (*fgraph.FunctionGraph, error) {
	if !s.calls {
		return g, nil
	}
	c := &contraction{Source: s, graph: g, main: main, raised: raised, of: make(map[int]*fgraph.Apply), known: make(map[*functionCall]*group)}
	calls := c.candidates()
	applies, err := g.Toposort()
	if err != nil {
		return nil, err
	}
	for range maxRounds {
		groups := c.choose(calls)
		if len(groups) == 0 {
			break
		}
		order, cyclic := c.order(applies)
		if len(cyclic) == 0 {
			return c.contracted(order)
		}
		// Each group is closed, yet two may need results of each other. They stay nodes, and the choice
		// is made anew, since calls within them may now be written.
		for _, gr := range cyclic {
			c.known[gr.call] = nil
		}
	}
	return g, nil
}

// A contraction puts calls in the place of what they became in a graph.
type contraction struct {
	*Source
	graph  *fgraph.FunctionGraph
	main   bool                     // it is the main graph
	root   map[*fgraph.Apply]bool   // those in no branch, nil before that is asked
	raised int64                    // the version that functions must be for, 0 for any
	of     map[int]*fgraph.Apply    // by origin, nil for several
	known  map[*functionCall]*group // nil for calls that are not written again
	groups map[*fgraph.Apply]*group
}

// A group are the applies that a call became, and its inputs and outputs in the graph.
type group struct {
	call    *functionCall
	applies []*fgraph.Apply
	inputs  []*fgraph.Variable
	outputs []*fgraph.Variable // nil for what nothing computes or reads
}

// candidates returns the calls of which something is left in the graph, those around others first.
func (c *contraction) candidates() []*functionCall {
	var calls []*functionCall
	seen := make(map[*functionCall]bool)
	for a := range c.graph.Applies() {
		if a.Origin() < 0 {
			continue
		}
		// A pass has copied the apply together with its origin. Neither copy is what the call became,
		// so the call is not written again.
		if _, several := c.of[a.Origin()]; several {
			c.of[a.Origin()] = nil
			continue
		}
		c.of[a.Origin()] = a
		f := c.inFunction(a)
		if f == nil {
			continue
		}
		// A body is a graph of its own; the call of a function around it is not in it.
		for k := f.in; k != nil && k.graph == f.graph && !seen[k]; k = k.outer {
			seen[k] = true
			calls = append(calls, k)
		}
	}
	// A call has a smaller origin than those in its function, so the outermost are tried first.
	slices.SortFunc(calls, func(a, b *functionCall) int { return cmp.Compare(a.first, b.first) })
	return calls
}

// choose returns the groups of calls that have not changed, without those in others.
func (c *contraction) choose(calls []*functionCall) []*group {
	var groups []*group
	c.groups = make(map[*fgraph.Apply]*group)
	end := 0
	for _, k := range calls {
		// It is within a call that has been chosen.
		if k.first < end {
			continue
		}
		gr, known := c.known[k]
		if !known {
			gr = c.group(k)
			c.known[k] = gr
		}
		if gr == nil {
			continue
		}
		end = k.last
		groups = append(groups, gr)
		for _, a := range gr.applies {
			c.groups[a] = gr
		}
	}
	return groups
}

// group returns what a call became, or nil if that is not all in the graph as it was.
func (c *contraction) group(k *functionCall) *group {
	if k.outputs == nil {
		return nil
	}
	gr := &group{call: k, inputs: make([]*fgraph.Variable, len(k.inputs)), outputs: make([]*fgraph.Variable, len(k.outputs))}
	// One value may be several inputs of a call. The first stands for it.
	position := make(map[ref]int)
	for i, r := range k.inputs {
		if _, ok := position[r]; !ok {
			position[r] = i
		}
	}
	for origin := k.first + 1; origin < k.last; origin++ {
		f := c.nodes[origin].function
		if f != nil && c.raised != 0 && f.opsets[""] != c.raised {
			return nil
		}
		// What no output of its graph needs never was in the graph, and its lack is no change.
		if f == nil || !f.live || f.graph != k.graph {
			continue
		}
		a := c.of[origin]
		if a == nil || !c.unchanged(a) || !c.wired(a, f, gr, position) {
			return nil
		}
		gr.applies = append(gr.applies, a)
	}
	if len(gr.applies) == 0 || !c.complete(gr, position) || !c.closed(gr) || !c.typed(gr) {
		return nil
	}
	return gr
}

// has reports whether an apply is in the group of a call.
func (c *contraction) has(k *functionCall, a *fgraph.Apply) bool {
	return a != nil && k.first < a.Origin() && a.Origin() < k.last && c.of[a.Origin()] == a && c.nodes[a.Origin()].function.graph == k.graph
}

// wired reports whether the inputs of an apply are what they were. What was an input of the call may be
// another value now, the same for all that read it.
func (c *contraction) wired(a *fgraph.Apply, f *inFunction, gr *group, position map[ref]int) bool {
	if len(f.inputs) != len(a.Inputs()) {
		return false
	}
	for i, r := range f.inputs {
		v := a.Inputs()[i]
		k, isInput := position[r]
		switch {
		case isInput:
			if gr.inputs[k] == nil {
				gr.inputs[k] = v
			}
			// All readers must agree on the new value, and the call must not compute it itself.
			if u := gr.inputs[k]; u != v && !EqualConstants(u, v) || c.has(gr.call, v.Owner()) {
				return false
			}
		case r.leaf != nil:
			if !EqualConstants(r.leaf, v) {
				return false
			}
		case v.Owner() == nil || v.Owner() != c.of[int(r.origin)] || v.Index() != int(r.index):
			return false
		}
	}
	return true
}

// complete finds the inputs of a call that nothing in the group reads. They must still be there. One that
// the function never reads may be any value: it becomes another input, since one that is left out has no
// type.
func (c *contraction) complete(gr *group, position map[ref]int) bool {
	var other *fgraph.Variable
	for i, r := range gr.call.inputs {
		if gr.inputs[i] == nil {
			gr.inputs[i] = gr.inputs[position[r]] // the same value twice
		}
		if gr.inputs[i] == nil {
			gr.inputs[i] = c.present(r)
		}
		v := gr.inputs[i]
		if v == nil && !gr.call.unread[i] || v != nil && c.has(gr.call, v.Owner()) {
			return false
		}
		if other == nil && v != nil && !IsOmitted(v) {
			other = v
		}
	}
	for i, v := range gr.inputs {
		if v == nil {
			gr.inputs[i] = cmp.Or(other, Missing())
		}
	}
	return true
}

// typed reports whether ONNX's checker, version 1.12, can find types for a call. It can't where the call
// has fewer inputs than the function nor, in the main graph, where an input is left out, which then has no
// type. So one is left out there only if the model itself did that in this place: other calls may have come
// there from functions, branches and bodies.
func (c *contraction) typed(gr *group) bool {
	k := gr.call
	own := k.outer == nil && !k.overloaded
	if k.short && !own {
		return false
	}
	own = own && k.graph == mainGraph && c.nodes[k.first].branch == nil
	for i, v := range gr.inputs {
		if IsOmitted(v) && !(own && !k.given(i)) {
			return !c.main || !c.outsideBranches(gr)
		}
	}
	return true
}

// given reports whether the node of a call has an input i.
func (k *functionCall) given(i int) bool {
	leaf := k.inputs[i].leaf
	return k.inputs[i].origin >= 0 && (leaf == nil || !IsOmitted(leaf))
}

// outsideBranches reports whether a call would be in no branch of an If.
func (c *contraction) outsideBranches(gr *group) bool {
	if c.root == nil {
		c.root = make(map[*fgraph.Apply]bool)
		if r, err := Regions(c.graph); err == nil {
			for _, a := range r.Applies {
				c.root[a] = true
			}
		}
	}
	return slices.ContainsFunc(gr.applies, func(a *fgraph.Apply) bool { return c.root[a] })
}

// present returns a value of the model in the graph, or nil if it is not there or may have changed. A
// copy of a graph has inputs of the same names.
func (c *contraction) present(r ref) *fgraph.Variable {
	switch {
	case r.leaf == nil:
		if a := c.of[int(r.origin)]; a != nil && c.unchanged(a) {
			return a.Outputs()[r.index]
		}
	case r.leaf.IsConstant():
		return r.leaf
	default:
		if i := slices.IndexFunc(c.graph.Inputs(), func(v *fgraph.Variable) bool { return v.Name() == r.leaf.Name() }); i >= 0 {
			return c.graph.Inputs()[i]
		}
	}
	return nil
}

// closed finds the outputs of a call, and reports whether nothing outside reads other values.
func (c *contraction) closed(gr *group) bool {
	visible := make(map[*fgraph.Variable]bool)
	for i, r := range gr.call.outputs {
		if a := c.of[int(r.origin)]; r.leaf == nil && c.has(gr.call, a) {
			gr.outputs[i] = a.Outputs()[r.index]
			visible[gr.outputs[i]] = true
		}
	}
	for _, a := range gr.applies {
		for _, v := range a.Outputs() {
			if !visible[v] && slices.ContainsFunc(v.Clients(), func(u fgraph.Client) bool { return !c.has(gr.call, u.Apply) }) {
				return false
			}
		}
	}
	return true
}

// head returns what stands for an apply where groups are one: the first of its group, or itself.
func (c *contraction) head(a *fgraph.Apply) *fgraph.Apply {
	if gr := c.groups[a]; gr != nil {
		return gr.applies[0]
	}
	return a
}

// inputsOf returns what an apply, or the group that it is the head of, reads.
func (c *contraction) inputsOf(a *fgraph.Apply) []*fgraph.Variable {
	if gr := c.groups[a]; gr != nil {
		return gr.inputs
	}
	return a.Inputs()
}

// order sorts applies and groups, as little as that needs, and returns their heads. If groups depend on
// themselves, it returns some of those instead.
func (c *contraction) order(applies []*fgraph.Apply) (order []*fgraph.Apply, cyclic []*group) {
	heads := lists.Map(applies, c.head)
	needs := func(head *fgraph.Apply) (list []*fgraph.Apply) {
		for _, v := range c.inputsOf(head) {
			if v.Owner() != nil {
				list = append(list, c.head(v.Owner()))
			}
		}
		return list
	}
	order = onnx.DepthFirst(heads, needs, func(path []*fgraph.Apply) {
		for _, a := range path {
			if gr := c.groups[a]; gr != nil {
				cyclic = append(cyclic, gr)
			}
		}
	})
	return order, cyclic
}

// contracted returns the graph of applies and groups in an order.
func (c *contraction) contracted(order []*fgraph.Apply) (*fgraph.FunctionGraph, error) {
	// All of the graph is copied: what is written is another one, and that of the caller stays.
	now := make(copied)
	inputs := make([]*fgraph.Variable, len(c.graph.Inputs()))
	for i, v := range c.graph.Inputs() {
		inputs[i] = fgraph.NewInput(v.Type(), v.Name())
		now[v] = inputs[i]
	}
	applies := make([]*fgraph.Apply, len(order))
	for i, a := range order {
		op, origin, outputs := a.Op(), a.Origin(), a.Outputs()
		gr := c.groups[a]
		if gr != nil {
			op, origin, outputs = c.callOp(gr), gr.call.first, gr.outputs
		}
		types := make([]fgraph.Type, len(outputs))
		for k, v := range outputs {
			if types[k] = (Type{}); v != nil {
				types[k] = v.Type()
			}
		}
		b := fgraph.NewApply(op, now.of(c.inputsOf(a)), types...)
		b.SetOrigin(origin)
		for k, v := range outputs {
			switch {
			case v == nil:
				// Nothing reads this output any more, but the node must still list it under its name.
				b.Outputs()[k].SetName(c.nodes[origin].node.Outputs[k])
			case now[v] == nil:
				// Two outputs of a function may be one value: readers then take the first.
				b.Outputs()[k].SetName(v.Name())
				now[v] = b.Outputs()[k]
			}
		}
		applies[i] = b
	}
	return fgraph.NewInOrder(inputs, now.of(c.graph.Outputs()), applies, c.For())
}

// callOp returns the op of a call. It has the effects of what the call became.
func (c *contraction) callOp(gr *group) *Op {
	op := *c.nodes[gr.call.first].op
	op.effect = slices.ContainsFunc(gr.applies, func(a *fgraph.Apply) bool { return a.Op().(*Op).Unmergeable() })
	return &op
}
