package view

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
)

// Recording returns what was recorded of a run of opt. record is the profile of the run. code is
// nil unless the graph is made of code.
func (r *Recorder) Recording(opt *optdb.Optimizer, record *profile.Record, code *Code) *Recording {
	b := &builder{Recorder: r, describer: &describer{ops: make(map[uint64][]*opText), types: make(map[fgraph.Type]typeText)}}
	b.out = &Recording{Format: Format, Version: Version, Kind: KindExpression, Query: opt.Query().String(), Passes: []passEntry{}}
	b.renumber()
	b.values()
	b.nodes()
	b.out.Start = graphState{b.nodeList(r.start.Nodes), b.valueList(r.start.Inputs), b.valueList(r.start.Outputs)}
	b.steps(record)
	b.out.addDocs(opt.Entries())
	if code != nil {
		b.out.Kind = KindNetwork
		b.commands(code)
	}
	return b.out
}

// A builder makes a Recording. It leaves out the applies that were never in the graph after a
// step: those of rewrites that were undone.
type builder struct {
	*Recorder
	*describer
	out   *Recording
	node  []int32 // by number in the Recorder: the number in the Recording, or -1
	value []int32
}

// numbers returns the numbers of nodes in a Recording, -1 for those that are left out.
func (r *Recorder) numbers() []int32 {
	list, next := make([]int32, len(r.nodes)), int32(0)
	for i := range r.nodes {
		list[i] = -1
		if r.nodes[i].known {
			list[i] = next
			next++
		}
	}
	return list
}

// renumber numbers the nodes that are kept, and their values.
func (b *builder) renumber() {
	b.node, b.value = b.numbers(), make([]int32, len(b.Recorder.values))
	kept := 0
	for i := range b.Recorder.nodes {
		n := &b.Recorder.nodes[i]
		if n.known {
			kept++
			continue
		}
		for k := range n.apply.Outputs() {
			b.value[int(n.out)+k] = -1
		}
	}
	// Values of nodes that are left out have -1 by now, and all others still have 0. The rest are
	// numbered in the order in which they were met.
	next := int32(0)
	for i, v := range b.value {
		if v == 0 {
			b.value[i] = next
			next++
		}
	}
	b.out.Values = make([]valueEntry, next)
	b.out.Nodes = make([]nodeEntry, kept)
}

func (b *builder) nodeList(list []int32) []int32 { return mapped(b.node, list) }

func (b *builder) valueList(list []int32) []int32 { return mapped(b.value, list) }

func mapped(to, list []int32) []int32 {
	if list == nil {
		return nil
	}
	return lists.Map(list, func(n int32) int32 { return to[n] })
}

// values describes inputs and constants.
func (b *builder) values() {
	for i, v := range b.Recorder.values {
		if n := b.value[i]; v.Owner() == nil {
			b.out.Values[n] = b.describer.value(v, -1)
		}
	}
}

// nodes describes nodes and the values that they compute.
func (b *builder) nodes() {
	for i := range b.Recorder.nodes {
		n, k := &b.Recorder.nodes[i], b.node[i]
		if k < 0 {
			continue
		}
		t := b.op(n.apply.Op())
		node := nodeEntry{Op: t.name, Kind: t.kind, Params: t.params, Lines: t.lines, In: b.valueList(b.first[n.in:n.end]), Segment: n.segment, Ops: operations(n.apply), Weights: t.weights}
		if origin := n.apply.Origin(); origin >= 0 {
			at := int32(origin)
			node.Origin = &at
		}
		for j, v := range n.apply.Outputs() {
			out := b.value[int(n.out)+j]
			node.Out = append(node.Out, out)
			b.out.Values[out] = b.describer.value(v, k)
		}
		b.out.Nodes[k] = node
	}
}

// steps adds the passes and the steps.
func (b *builder) steps(record *profile.Record) {
	pass := b.out.addPasses(record)
	for _, s := range b.segments {
		b.out.roots = append(b.out.roots, pass[s.root])
	}
	// The lists of all steps are joined; a step has what lies between the ends of the step before
	// and its own.
	r, from := b.Recorder, changes{}
	for i := range r.steps {
		s := &r.steps[i]
		to := s.ends
		t := Step{Pass: pass[s.record], Rule: s.rule, Time: s.time, All: b.valueList(s.all),
			New: b.nodeList(r.joined[from.joined:to.joined]), Gone: b.nodeList(r.left[from.left:to.left])}
		if s.at >= 0 {
			at := b.node[s.at]
			t.At = &at
		}
		for _, w := range r.rewired[from.rewired:to.rewired] {
			t.Rewired = append(t.Rewired, [3]int32{b.node[w[0]], w[1], b.value[w[2]]})
		}
		for _, o := range r.outputs[from.outputs:to.outputs] {
			t.Outputs = append(t.Outputs, [2]int32{o[0], b.value[o[1]]})
		}
		for _, p := range r.replaced[from.replaced:to.replaced] {
			t.Replaced = append(t.Replaced, [2]int32{b.value[p[0]], b.value[p[1]]})
		}
		b.out.Steps = append(b.out.Steps, t)
		from = to
	}
	b.out.placeSteps()
}
