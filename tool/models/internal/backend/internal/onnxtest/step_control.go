package onnxtest

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// controlSteps are a function, since bodies are made of steps.
func controlSteps() []step {
	return []step{
		{op: "If", since: 7, elems: anything, free: true, make: (*builder).branch},
		{op: "Loop", since: 8, elems: anything, free: true, make: (*builder).loop},
		{op: "Growing", since: 11, elems: anything, free: true, rank: 1, make: (*builder).growing},
		{op: "Scan", since: 9, elems: anything, free: true, rank: 1, make: (*builder).scan},
		{op: "Sequence", since: 11, elems: anything, free: true, rank: 1, make: (*builder).sequence},
		{op: "SequenceMap", since: 17, elems: []onnx.DataType{onnx.Float, onnx.Int64}, free: true, rank: 1, make: (*builder).sequenceMap},
	}
}

// maxDepth bounds graphs in graphs.
const maxDepth = 2

// inside returns a builder of a graph in a node, which sees all values.
func (b *builder) inside() *builder {
	return &builder{Rand: b.Rand, opset: b.opset, sets: b.sets, all: b.all, pool: slices.Clone(b.pool), count: b.count, depth: b.depth + 1, outer: b}
}

// graph returns the graph of a builder with these inputs and outputs. Outputs are results of nodes.
func (b *builder) graph(inputs, outputs []*value, declared bool) *onnx.Graph {
	g := &onnx.Graph{Name: b.name("body")}
	info := func(v *value) *onnx.ValueInfo {
		i := typed(v.name, v.elem, v.shape)
		if (!declared || !v.fixed()) && v.rank() > 0 {
			i.Type.Tensor.Shape = nil
		}
		return i
	}
	for _, v := range inputs {
		g.Inputs = append(g.Inputs, info(v))
	}
	for _, v := range outputs {
		// A value of the graph around can't be an output of this one, but its copy can.
		out := b.node("Identity", []*value{v}, v.elem, v.shape)
		g.Outputs = append(g.Outputs, info(out))
	}
	g.Nodes, g.Initializers = b.nodes, b.initial
	return g
}

// input returns an input of a graph in a node.
func (b *builder) input(elem onnx.DataType, shape [][]int, exact bool) *value {
	v := &value{b.name("x"), elem, shape, exact}
	b.pool = append(b.pool, v)
	return v
}

// like returns a value of the type and shape of x, computed in so many steps of it and others.
func (b *builder) like(x *value) *value {
	v := x
	for range 1 + b.IntN(3) {
		list := steps()
		// The element-wise steps come first in the list. Most of them keep shape and type.
		s := &list[b.IntN(len(elementSteps))]
		if !s.takes(b, v) {
			continue
		}
		if y := s.make(b, s.op, v); y != nil && y.elem == x.elem && sameShapes(y.shape, x.shape) && y.elem != onnx.BFloat16 {
			v = y
		}
	}
	return v
}

func sameShapes(x, y [][]int) bool {
	return slices.EqualFunc(x, y, func(a, b []int) bool { return slices.Equal(a, b) })
}

// condition returns a bool, and what it is in each set.
func (b *builder) condition() (*value, []bool) {
	is := make([]bool, b.sets)
	for k := range is {
		is[k] = b.chance(0.6)
	}
	// A constant is the same in all sets, and in a body the condition is one.
	if b.depth > 0 || b.chance(0.3) {
		for k := range is {
			is[k] = is[0]
		}
	}
	number := func(k int) float64 {
		if is[k] {
			return 1
		}
		return 0
	}
	if b.depth > 0 {
		return b.constant(onnx.Bool, nil, func(int) float64 { return number(0) }), is
	}
	v := b.given(onnx.Bool, b.same(), func(k, _ int) float64 { return number(k) })
	b.pool = b.pool[:len(b.pool)-1]
	return v, is
}

func (b *builder) branch(op string, x *value) *value {
	if b.depth >= maxDepth {
		return nil
	}
	c, _ := b.condition()
	exact := true
	var attributes []*onnx.Attribute
	for _, name := range []string{"then_branch", "else_branch"} {
		in := b.inside()
		y := in.like(x)
		// Either branch may be the one that runs.
		exact = exact && y.exact
		attributes = append(attributes, graph(name, in.graph(nil, []*value{y}, b.chance(0.5))))
	}
	v := b.node(op, []*value{c}, x.elem, x.shape, attributes...)
	v.exact = exact
	return v
}

// loop makes a Loop that carries x and stacks what a round computes.
func (b *builder) loop(op string, x *value) *value {
	if b.depth >= maxDepth {
		return nil
	}
	most := b.each(func(int) []int { return []int{1 + b.IntN(4)} })
	rounds := flat(most)
	in := b.inside()
	i, more, state := in.input(onnx.Int64, b.same(), true), in.input(onnx.Bool, b.same(), true), in.input(x.elem, x.shape, false)
	out := &value{}
	var limit, trips *value
	if b.opset >= 9 && b.chance(0.3) { // until a condition fails, which may be without another end
		limits := b.each(func(int) []int { return []int{b.IntN(4)} })
		for k := range rounds {
			// The condition holds for what comes after a round, so that the round i = limit runs as well.
			rounds[k] = min(rounds[k], limits[k][0]+1)
		}
		limit = b.integerOf(flat(limits))
		less := in.node("Less", []*value{i, limit}, onnx.Bool, b.same())
		out = less
		if b.chance(0.3) {
			for k := range rounds {
				rounds[k] = limits[k][0] + 1
			}
		} else {
			trips = b.scalar(flat(most))
		}
	} else {
		out = more
		trips = b.scalar(flat(most))
	}
	next := in.like(state)
	if next == state {
		next = in.node("Identity", []*value{state}, state.elem, state.shape)
	}
	// A value that does not depend on the round may be there, too.
	for range b.IntN(3) {
		in.step()
	}
	stacked := in.pool[len(in.pool)-1-b.IntN(min(3, len(in.pool)))]
	if stacked.elem == onnx.BFloat16 || isTiny(stacked.elem) {
		stacked = next
	}
	body := in.graph([]*value{i, more, state}, []*value{out, next, stacked}, b.chance(0.5))
	var start *value
	if b.chance(0.5) {
		start = b.constant(onnx.Bool, nil, func(int) float64 { return 1 })
	}
	v := rough(b.node(op, []*value{trips, start, x}, x.elem, x.shape, graph("body", body)))
	b.more(stacked.elem, b.each(func(k int) []int { return append([]int{rounds[k]}, stacked.shape[k]...) }))
	return v
}

// growing makes a Loop whose state gets longer.
func (b *builder) growing(_ string, x *value) *value {
	if b.depth >= maxDepth {
		return nil
	}
	most := b.each(func(int) []int { return []int{b.IntN(4)} })
	in := b.inside()
	i, more, state := in.input(onnx.Int64, b.same(), true), in.input(onnx.Bool, b.same(), true), in.input(x.elem, x.shape, false)
	next := in.node("Concat", []*value{state, x}, x.elem, x.shape, integer("axis", 0))
	// The state has another shape in each round, so none is declared.
	g := in.graph([]*value{i, more, state}, []*value{more, next}, false)
	shape := b.each(func(k int) []int {
		s := slices.Clone(x.shape[k])
		s[0] *= 1 + most[k][0]
		return s
	})
	v := b.node("Loop", []*value{b.scalar(flat(most)), nil, x}, x.elem, shape, graph("body", g))
	v.exact = x.exact
	return v
}

// scan makes a Scan over x.
func (b *builder) scan(op string, x *value) *value {
	axis, number := b.axis(x, b.opset >= 11)
	if b.depth >= maxDepth || slices.ContainsFunc(x.shape, func(s []int) bool { return s[axis] == 0 }) {
		return nil
	}
	row := b.each(func(k int) []int { return slices.Delete(slices.Clone(x.shape[k]), axis, axis+1) })
	start := b.fresh(x.elem, row)
	in := b.inside()
	state, item := in.input(x.elem, row, false), in.input(x.elem, row, x.exact)
	var next *value
	if x.elem == onnx.Bool {
		next = in.node("Xor", []*value{state, item}, x.elem, row)
	} else if s := find("Add"); s.takes(in, item) {
		next = in.node("Add", []*value{state, item}, x.elem, row)
	} else {
		next = in.like(item)
	}
	rough(next)
	made := in.like(next)
	body := in.graph([]*value{state, item}, []*value{next, made}, true)
	to := b.IntN(len(row[0]) + 1)
	attributes := []*onnx.Attribute{graph("body", body), integer("num_scan_inputs", 1), list("scan_input_axes", number), list("scan_input_directions", b.IntN(2)),
		list("scan_output_axes", to), list("scan_output_directions", b.IntN(2))}
	rough(b.node(op, []*value{start, x}, x.elem, row, attributes...))
	return rough(b.more(made.elem, b.each(func(k int) []int { return slices.Insert(slices.Clone(row[k]), to, x.shape[k][axis]) })))
}

// sequence makes a sequence, changes it, and takes something out again.
func (b *builder) sequence(_ string, x *value) *value {
	if b.depth > 0 {
		return nil
	}
	raw := func(op string, attributes []*onnx.Attribute, in ...string) string {
		name := b.name("s")
		b.nodes = append(b.nodes, &onnx.Node{Op: op, Inputs: in, Outputs: []string{name}, Attributes: attributes})
		return name
	}
	list := raw("SequenceConstruct", nil, x.name, x.name)
	n := 2
	if b.chance(0.5) {
		list = raw("SequenceInsert", nil, list, x.name, b.scalarInt(b.IntN(3)).name)
		n++
	}
	if b.chance(0.5) {
		list = raw("SequenceErase", nil, list, b.scalarInt(b.IntN(n)).name)
		n--
	}
	if b.opset >= 16 && b.chance(0.4) {
		list = raw("Optional", nil, list)
		list = raw("OptionalGetElement", nil, list)
	}
	out := &value{b.name("t"), x.elem, x.shape, x.exact}
	switch b.IntN(3) {
	case 0:
		b.nodes = append(b.nodes, &onnx.Node{Op: "SequenceAt", Inputs: []string{list, b.scalarInt(b.IntN(n)).name}, Outputs: []string{out.name}})
	case 1:
		out.shape = b.each(func(k int) []int {
			s := slices.Clone(x.shape[k])
			s[0] *= n
			return s
		})
		b.nodes = append(b.nodes, &onnx.Node{Op: "ConcatFromSequence", Inputs: []string{list}, Outputs: []string{out.name}, Attributes: []*onnx.Attribute{integer("axis", 0)}})
	default:
		out.elem, out.shape, out.exact = onnx.Int64, b.same(), true
		b.nodes = append(b.nodes, &onnx.Node{Op: "SequenceLength", Inputs: []string{list}, Outputs: []string{out.name}})
	}
	b.pool = append(b.pool, out)
	return out
}

// sequenceMap splits x, maps the pieces, and joins them again.
func (b *builder) sequenceMap(op string, x *value) *value {
	if b.depth > 0 || slices.ContainsFunc(x.shape, func(s []int) bool { return s[0] == 0 }) {
		return nil
	}
	pieces, mapped := b.name("s"), b.name("s")
	b.nodes = append(b.nodes, &onnx.Node{Op: "SplitToSequence", Inputs: []string{x.name}, Outputs: []string{pieces}, Attributes: []*onnx.Attribute{integer("axis", 0), integer("keepdims", 1)}})
	in := b.inside()
	item := in.input(x.elem, b.each(func(k int) []int {
		s := slices.Clone(x.shape[k])
		s[0] = 1
		return s
	}), x.exact)
	y := in.like(item)
	if y == item {
		y = in.node("Identity", []*value{item}, item.elem, item.shape)
	}
	body := in.graph([]*value{item}, []*value{y}, true)
	b.nodes = append(b.nodes, &onnx.Node{Op: op, Inputs: []string{pieces}, Outputs: []string{mapped}, Attributes: []*onnx.Attribute{graph("body", body)}})
	out := &value{b.name("t"), x.elem, x.shape, y.exact}
	b.nodes = append(b.nodes, &onnx.Node{Op: "ConcatFromSequence", Inputs: []string{mapped}, Outputs: []string{out.name}, Attributes: []*onnx.Attribute{integer("axis", 0)}})
	b.pool = append(b.pool, out)
	return out
}
