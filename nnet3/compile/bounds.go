package compile

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// span is a range of times including both ends. It is empty if last is before first.
type span struct{ first, last int64 }

var (
	always = span{math.MinInt64 / 4, math.MaxInt64 / 4}
	never  = span{1, 0}
)

func (s span) has(t int32) bool { return s.first <= int64(t) && int64(t) <= s.last }

func (s span) isEmpty() bool { return s.last < s.first }

// and returns the times in both spans.
func (s span) and(o span) span { return span{max(s.first, o.first), min(s.last, o.last)} }

// or returns the smallest span that contains both spans.
func (s span) or(o span) span {
	switch {
	case s.isEmpty():
		return o
	case o.isEmpty():
		return s
	}
	return span{min(s.first, o.first), max(s.last, o.last)}
}

// later returns the span moved by d and then widened at its end.
func (s span) later(d, widened int64) span {
	if s.isEmpty() {
		return s
	}
	if s.first > always.first {
		s.first += d
	}
	if s.last < always.last {
		s.last += d + widened
	}
	return s
}

// bounds has for each node the times outside of which none of its rows can be computed. Rows far
// from all inputs, as in a window that is much wider than the input, can then be settled without a
// look at their dependencies.
type bounds struct {
	net   *network
	given []span // by node, the times that the caller supplies
	spans []span
	looks int // how many functions of descriptors were looked at

	ops    []span // scratch
	places []pathFunction
}

func newBounds(net *network) bounds {
	return bounds{net: net, given: slices.Repeat([]span{never}, len(net.nodes)), spans: make([]span, len(net.nodes))}
}

// add adds the inputs of a request.
func (b *bounds) add(req *computation.Request) {
	for i := range req.Inputs {
		s := &b.given[b.net.nn.NodeIndex(req.Inputs[i].Name)]
		for _, ix := range req.Inputs[i].Indexes {
			*s = s.or(span{int64(ix.T), int64(ix.T)})
		}
	}
	b.find()
}

// find computes the spans from given.
func (b *bounds) find() {
	// Epochs are in the order of dependencies, so one pass is enough outside of recurrences.
	for i := range b.net.epochs {
		if ep := &b.net.epochs[i]; ep.recurrent {
			b.solve(ep.nodes)
		} else {
			b.update(ep.nodes)
		}
	}
}

// Sweeps over a recurrent epoch.
const (
	patientSweeps = 4  // then a side that still moves is taken to move forever
	maxSweeps     = 16 // then solve gives up
)

// solve finds bounds for nodes that depend on each other. All computation starts from given rows,
// so the tightest bounds grow from nothing until they no longer change. A side that recurrence
// keeps moving becomes unlimited. If that takes too many sweeps, the spans start from any time.
func (b *bounds) solve(nodes []int32) {
	for _, i := range nodes {
		b.spans[i] = never
	}
	for sweep, grows := 0, true; grows; sweep++ {
		if sweep == maxSweeps {
			for _, i := range nodes {
				b.spans[i] = always
			}
			b.update(nodes)
			break
		}
		grows = false
		for _, i := range nodes {
			was := b.spans[i]
			is := was.or(b.ofNode(i))
			if is == was {
				continue
			}
			grows = true
			// Each turn of a recurrence moves a bound by its offset, so without widening the sweeps
			// would count through all times. What has stopped after a few turns is finite; what has
			// not will not, or so it is assumed. That errs on the side of larger bounds, which cost
			// time and not correctness: bounds only ever say where rows can't be computed.
			if sweep >= patientSweeps && !was.isEmpty() {
				is = is.widened(was)
			}
			b.spans[i] = is
		}
	}
	b.update(nodes) // tighten widened spans where other dependencies bound them
}

// widened returns the span without limit on the sides where it is larger than another.
func (s span) widened(from span) span {
	if s.first < from.first {
		s.first = always.first
	}
	if s.last > from.last {
		s.last = always.last
	}
	return s
}

// update computes the spans of nodes from those of their dependencies.
func (b *bounds) update(nodes []int32) {
	for _, i := range nodes {
		b.spans[i] = b.ofNode(i)
	}
}

// ofNode returns the bounds of a node.
func (b *bounds) ofNode(i int32) span {
	n := &b.net.nodes[i]
	s := always // a general component may make anything of its inputs
	switch n.kind {
	case inputNode:
		s = never
	case rangeNode:
		s = b.spans[n.source]
	case outputNode, hiddenNode, simpleNode:
		s = b.ofTerms(n.terms)
	}
	return s.or(b.given[i])
}

// ofTerms returns the bounds of a descriptor.
func (b *bounds) ofTerms(t *terms) span {
	s := always
	if t.ops == nil {
		for i := range t.leaves {
			s = s.and(b.ofLeaf(&t.leaves[i]))
		}
		return s
	}
	b.ops = b.ops[:0]
	for i := range t.ops {
		o := &t.ops[i]
		// A constant is there at all times, and an IfDefined is computable without its argument.
		v := always // of a constant or an IfDefined
		switch o.kind {
		case descriptor.Simple:
			v = b.ofLeaf(&t.leaves[o.leaf])
		case descriptor.Add:
			for _, a := range o.args {
				v = v.and(b.ops[a])
			}
		case descriptor.Failover:
			v = b.ops[o.args[0]].or(b.ops[o.args[1]])
		}
		b.ops = append(b.ops, v)
	}
	for i := range t.parts {
		s = s.and(b.ops[t.parts[i].root])
	}
	return s
}

// pathFunction is a function on the way from a leaf to its nodes.
type pathFunction struct {
	forward *descriptor.Forward
	outer   int32 // the number of the function around it, none for the leaf itself
}

// ofLeaf returns the times of the output at which the leaf leads to a row within its node's bounds.
func (b *bounds) ofLeaf(l *leaf) span {
	b.looks++
	if l.plain {
		return b.spans[l.node].later(-int64(l.shift.T), 0)
	}
	all := never
	b.places = append(b.places[:0], pathFunction{l.forward, none})
	for i := 0; i < len(b.places); i++ {
		f := b.places[i].forward
		if f.Kind == descriptor.Node {
			all = all.or(b.before(b.spans[f.Node], b.places[i].outer))
		}
		for k := range f.Src {
			b.places = append(b.places, pathFunction{&f.Src[k], int32(i)})
		}
	}
	return all
}

// before returns the times that the functions from places[at] outward lead into a span of a node.
func (b *bounds) before(s span, at int32) span {
	for ; at >= 0; at = b.places[at].outer {
		b.looks++
		switch f := b.places[at].forward; f.Kind {
		case descriptor.Offset:
			s = s.later(-int64(f.Shift.T), 0)
		case descriptor.Round:
			s = s.later(0, int64(f.Modulus)-1)
		case descriptor.ReplaceT:
			if !s.has(f.Value) {
				return never
			}
			s = always
		}
	}
	return s
}
