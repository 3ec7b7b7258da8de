package compile

import (
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// terms is a flattened descriptor. Its leaves are the rows that it adds up, part after part. The
// dependencies of a vertex are in the order of the leaves.
type terms struct {
	leaves []leaf
	parts  []part
	ops    []op // the tree of the sums, arguments first; nil if every leaf is needed
}

// part is a part of a descriptor, an argument of Append.
type part struct {
	first, last int32 // its leaves
	cols        int
	constant    float32
	fixed       bool  // the constant does not depend on what is computable
	ops         int32 // the first of its functions in terms.ops
	root        int32 // the last of them
}

// leaf leads from an index to a row of a node. A plain leaf, as most are, shifts the index; forward
// knows the way of the others.
type leaf struct {
	forward *descriptor.Forward
	plain   bool
	node    int32
	shift   index.Index
	scale   float32 // the factor of the row, if scaled
	scaled  bool    // the factor does not depend on the index, as only with a Switch
}

// op is a function of the sums of a descriptor.
type op struct {
	kind  descriptor.SumKind
	leaf  int32   // of Simple
	value float32 // of Const
	args  []int32
}

// scratch is memory for the evaluation of ops.
type scratch struct {
	status []status
	needed []bool
}

// newTerms flattens a descriptor.
func newTerms(d *descriptor.Descriptor, nodeDim func(int) int) (*terms, error) {
	t := &terms{parts: make([]part, len(d.Parts))}
	all := true
	for i := range d.Parts {
		sum := &d.Parts[i]
		p := &t.parts[i]
		p.first, p.ops = int32(len(t.leaves)), int32(len(t.ops))
		p.root = t.add(sum, &all)
		p.last = int32(len(t.leaves))
		p.constant, p.fixed = sum.Constant()
		var err error
		if p.cols, err = sum.Columns(nodeDim); err != nil {
			return nil, err
		}
	}
	if all {
		t.ops = nil
	}
	return t, nil
}

// add appends the leaves and functions of a sum. It clears all if some leaves are optional.
func (t *terms) add(s *descriptor.Sum, all *bool) int32 {
	o := op{kind: s.Kind, value: s.Value}
	if s.Kind == descriptor.Simple {
		o.leaf = int32(len(t.leaves))
		t.leaves = append(t.leaves, newLeaf(&s.Forward))
	}
	for i := range s.Args {
		o.args = append(o.args, t.add(&s.Args[i], all))
	}
	if s.Kind == descriptor.Failover || s.Kind == descriptor.IfDefined {
		*all = false
	}
	t.ops = append(t.ops, o)
	return int32(len(t.ops) - 1)
}

func newLeaf(f *descriptor.Forward) leaf {
	l := leaf{forward: f}
	switch {
	case f.Kind == descriptor.Node:
		l.plain, l.node = true, f.Node
	case f.Kind == descriptor.Offset && f.Src[0].Kind == descriptor.Node:
		l.plain, l.node, l.shift = true, f.Src[0].Node, f.Shift
	}
	// If all ways end in the same factor, the leaf can be moved without examining single rows.
	first := true
	l.targets(func(f *descriptor.Forward) {
		l.scaled = first || l.scaled && f.Scale == l.scale
		l.scale, first = f.Scale, false
	})
	return l
}

// targets calls yield for every node that the leaf may lead to.
func (l *leaf) targets(yield func(*descriptor.Forward)) {
	stack := []*descriptor.Forward{l.forward}
	for len(stack) > 0 {
		f := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if f.Kind == descriptor.Node {
			yield(f)
		}
		for i := range f.Src {
			stack = append(stack, &f.Src[i])
		}
	}
}

// nodes appends to dst the nodes that the leaf may lead to.
func (l *leaf) nodes(dst []int32) []int32 {
	if l.plain {
		return append(dst, l.node)
	}
	l.targets(func(f *descriptor.Forward) { dst = append(dst, f.Node) })
	return dst
}

// resolve returns the row that a leaf takes for the output at an index.
func (t *terms) resolve(l *leaf, at index.Index) (node int32, ix index.Index) {
	if l.plain {
		return l.node, at.Add(l.shift)
	}
	term := l.forward.At(at)
	return term.Cindex.Node, term.Cindex.Index
}

// scaleAt returns the factor of the leaf for the output at an index.
func (l *leaf) scaleAt(at index.Index) float32 {
	if l.scaled {
		return l.scale
	}
	return l.forward.At(at).Scale
}

// evaluate determines which functions are computable. A leaf without a dependency is not.
func (t *terms) evaluate(g *graph, deps []int32, s *scratch) {
	s.status = s.status[:0]
	for i := range t.ops {
		o := &t.ops[i]
		// Statuses are ordered, so an Add takes the least of its arguments and a Failover the
		// greatest. A constant and an IfDefined are always computable.
		value := computable
		switch o.kind {
		case descriptor.Simple:
			value = notComputable
			if d := deps[o.leaf]; d >= 0 {
				value = g.vertices[d].status
			}
		case descriptor.Add:
			for _, a := range o.args {
				value = min(value, s.status[a])
			}
		case descriptor.Failover:
			value = max(s.status[o.args[0]], s.status[o.args[1]])
		}
		s.status = append(s.status, value)
	}
}

// judge returns the status of a row with these dependencies.
func (t *terms) judge(g *graph, deps []int32, s *scratch) status {
	t.evaluate(g, deps, s)
	value := computable
	for i := range t.parts {
		value = min(value, s.status[t.parts[i].root])
	}
	return value
}

// evaluateRoots evaluates, and marks the function at the root of each part as needed.
func (t *terms) evaluateRoots(g *graph, deps []int32, s *scratch) {
	t.evaluate(g, deps, s)
	s.needed = append(s.needed[:0], make([]bool, len(t.ops))...)
	for i := range t.parts {
		s.needed[t.parts[i].root] = true
	}
}

// choose marks the functions that make up the value: the first computable argument of a Failover,
// the argument of an IfDefined if it is computable. The row must be computable.
func (t *terms) choose(g *graph, deps []int32, s *scratch) {
	t.evaluateRoots(g, deps, s)
	// Arguments come before their functions, so going backward a function's own need is settled
	// when it passes it on.
	for i := len(t.ops) - 1; i >= 0; i-- {
		o := &t.ops[i]
		if !s.needed[i] {
			continue
		}
		switch o.kind {
		case descriptor.Add:
			for _, a := range o.args {
				s.needed[a] = true
			}
		case descriptor.Failover:
			if s.status[o.args[0]] == computable {
				s.needed[o.args[0]] = true
			} else {
				s.needed[o.args[1]] = true
			}
		case descriptor.IfDefined:
			s.needed[o.args[0]] = s.status[o.args[0]] == computable
		}
	}
}

// prune drops the dependencies that the value does not include.
func (t *terms) prune(g *graph, deps []int32, s *scratch) {
	t.choose(g, deps, s)
	for i := range t.ops {
		if t.ops[i].kind == descriptor.Simple && !s.needed[i] {
			deps[t.ops[i].leaf] = none
		}
	}
}

// constantAt returns the constant of part p of a row with these dependencies, which are pruned.
func (t *terms) constantAt(p *part, g *graph, deps []int32, s *scratch) float32 {
	if p.fixed {
		return p.constant
	}
	t.choose(g, deps, s)
	sum := float32(0)
	for i := p.ops; i <= p.root; i++ {
		if s.needed[i] && t.ops[i].kind == descriptor.Const {
			sum += t.ops[i].value
		}
	}
	return sum
}
