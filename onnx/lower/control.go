package lower

import (
	"errors"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The operators that hold graphs. A loop of few rounds, or one whose rounds have values of different types, is
// unrolled: its condition is computed where it depends on values, and the graph of the model with it. Others
// are ops, see roundsOp.
var control = map[string]func(c *call) []*value{
	"If":          (*call).branch,
	"Loop":        (*call).loop,
	"Scan":        (*call).scan,
	"SequenceMap": (*call).sequenceMap,
}

// A body is a body of the node, with the values that it captures.
type body struct {
	*call
	*ir.Body
	root     *ir.Region
	captured []*value
}

// body returns a body of the node.
func (c *call) body(name string) *body {
	rest := c.captured
	for _, b := range c.op.Bodies {
		n := b.Captures()
		if b.Name == name {
			root, err := c.regions(b.Graph)
			c.failIf(err != nil, "its %s: %w", name, err)
			return &body{c, b, root, rest[:n]}
		}
		rest = rest[n:]
	}
	c.fail("there is no %s", name)
	return nil
}

// maxKept bounds the bytes of values that are kept in a loop that is unrolled: each round may ask for one that goes on
// from that of the round before.
const maxKept = 1 << 30

// keep makes the interpreter keep so many bytes of values, until what it returns is called.
func (l *lowering) keep(bytes int64) (end func()) {
	outer := l.values.KeepAll
	l.values.KeepAll = bytes
	return func() { l.values.KeepAll = outer }
}

// maxUnrolled bounds the applies that loops make of their bodies.
const maxUnrolled = 1 << 15

// run lowers the body once more.
func (b *body) run(inputs ...*value) []*value {
	if b.unrolled += b.Graph.NumApplies() + 1; b.unrolled > maxUnrolled {
		b.fail("%w: loops of more than %d nodes", ErrUnsupported, maxUnrolled)
	}
	b.failIf(len(inputs) > b.Params, "its %s has %d inputs, not %d", b.Name, b.Params, len(inputs))
	// Without the values around: what the body needs of them is among its inputs.
	s := newScope(nil)
	for i, v := range b.Graph.Inputs() {
		switch {
		case i < len(inputs):
			s.values[v] = inputs[i]
		case i >= b.Params:
			s.values[v] = b.captured[i-b.Params]
		}
	}
	return b.within("its "+b.Name, b.root, s, b.Graph.Outputs())
}

// within lowers a branch or a body, and returns its results.
func (c *call) within(what string, r *ir.Region, s *scope, results []*fgraph.Variable) []*value {
	if c.depth++; c.depth > maxDepth {
		c.fail("%w: graphs in graphs, %d deep", ErrUnsupported, c.depth)
	}
	defer func() { c.depth-- }()
	before := len(c.faults)
	c.lowering.region(r, s)
	// The nodes within have said what is wrong. This one fails with them.
	c.failIf(len(c.faults) > before, "%s can't be computed", what)
	out := make([]*value, len(results))
	for i, v := range results {
		if out[i], _ = c.of(v, s); out[i] == nil {
			c.fail("output %d of %s is missing", i, what)
		}
	}
	return out
}

// loop lowers Loop: at most so many times, as long as a condition is true, with values that are carried
// and others that are stacked.
func (c *call) loop() []*value {
	b := c.body("body")
	state := slices.Clone(c.in[min(2, len(c.in)):])
	if len(b.Graph.Outputs()) < 1+len(state) {
		c.fail("its body has %d outputs for %d values", len(b.Graph.Outputs()), len(state))
	}
	whole := looped{round: b.run, nothing: b.nothing, nodes: b.Graph.NumApplies() + 1, stacked: len(b.Graph.Outputs()) - 1 - len(state), carried: state, number: true, steps: -1, more: tensor.Constant(array.Scalar(true))}
	if c.has(0) {
		// A negative number is no round in ONNX, but no limit for the op.
		whole.most = c.reshape(tensor.Maximum(c.integers(0), number(0, c.integers(0))), nil)
	}
	if c.has(1) {
		whole.more = c.reshape(truth(c.x(1)), nil)
	}
	return c.looping(whole)
}

// looping lowers a loop: as an op, or unrolled if it is short.
func (c *call) looping(p looped) []*value {
	if !c.few(p) {
		// A loop that can't be an op is unrolled all the same, as far as maxUnrolled lets it.
		out, err := c.asOp(p)
		switch {
		case err == nil:
			return out
		case p.open && c.open != nil:
			c.fail("%w: %w", ErrSizes, err)
		}
	}
	most, more := int64(p.steps), true
	if p.number && c.has(0) {
		most = max(c.array(0).Int(0), 0)
	}
	if p.number && c.has(1) {
		more = c.one(1) != 0
	}
	c.checkSteps(p.steps)
	defer c.keep(maxKept)()
	state := slices.Clone(p.carried)
	first := 0 // of the results of a round that are carried
	if p.number {
		first = 1
	}
	stacks := make([][]*value, p.stacked)
	for i := int64(0); more && i != most; i++ {
		out := p.round(c.roundOf(p, i, state)...)
		state = out[first : first+len(state)]
		for k, v := range out[first+len(state):] {
			stacks[k] = append(stacks[k], v)
		}
		if p.number {
			// Asking makes the graph depend on the condition: another number of rounds is another graph.
			more = (&call{lowering: c.lowering, in: out[:1]}).one(0) != 0
		}
	}
	out := slices.Clone(state)
	for k, list := range stacks {
		if len(list) > 0 {
			out = append(out, c.stack(list))
		} else {
			out = append(out, p.nothing(first+len(state)+k, func() []*value { return p.round(c.roundOf(p, 0, state)...) }))
		}
	}
	return out
}

// roundOf returns the inputs of a body in a round.
func (c *call) roundOf(p looped, i int64, state []*value) (in []*value) {
	if p.number {
		in = append(in, &value{v: tensor.Constant(array.Scalar(i)), elem: onnx.Int64}, &value{v: tensor.Constant(array.Scalar(true)), elem: onnx.Bool})
	}
	in = append(in, state...)
	for _, x := range p.items {
		item := &value{elem: x.elem}
		if p.steps > 0 {
			item.v = tensor.Subtensor(x.v, tensor.At(tensor.Int(int(i))))
		} else {
			// Nothing is scanned without rounds, so a round that only tells shapes gets zeros.
			zeros, err := NewArray(x.elem, c.shape(x.v)[1:]...)
			c.failIf(err != nil, "%w", err)
			item.v = tensor.Constant(zeros)
		}
		in = append(in, item)
	}
	return in
}

// few reports whether a loop is unrolled: if constants say how many rounds there are at most, and these have few
// nodes.
func (c *call) few(p looped) bool {
	if p.steps >= 0 {
		return p.steps*p.nodes <= shortLoop
	}
	if p.most == nil || !c.has(0) {
		return false
	}
	most := tensor.ConstantOf(c.x(0))
	// The number is asked for alone first, since the product could overflow.
	return most != nil && most.Len() == 1 && most.Int(0) <= shortLoop && int(most.Int(0))*p.nodes <= shortLoop
}

// stack stacks what rounds made.
func (c *call) stack(list []*value) *value {
	return &value{v: tensor.Stack(0, (&call{lowering: c.lowering, in: list}).xs()...), elem: list[0].elem}
}

// nothing returns the stack of an output of a loop without rounds. What a round would make, which round lowers, says more than
// the type that the model declares, but a body may be one that can't run once.
func (b *body) nothing(output int, round func() []*value) *value {
	out := b.Graph.Outputs()[output]
	elem, shape := ir.TypeOf(out).Elem(), []int(nil)
	dims, known := ir.TypeOf(out).Numbers()
	for _, n := range dims {
		shape = append(shape, int(min(n, maxMade+1)))
	}
	if !known {
		err := b.tentatively(func() {
			v := round()[output]
			elem, shape = v.elem, b.shape(v.v)
		})
		b.failIf(err != nil, "%w: there are no iterations, and the shape of %v is not known", ErrUnsupported, out)
	}
	if shape = append([]int{0}, shape...); len(shape) > array.MaxDims || slices.Max(shape) > maxMade {
		b.fail("%w: there are no iterations, and %v has the shape %v", ErrUnsupported, out, shape[1:])
	}
	a, err := NewArray(elem, shape...)
	b.failIf(err != nil, "%v: %w", out, err)
	return &value{v: tensor.Constant(a), elem: elem}
}

// scan lowers Scan, a loop over elements of tensors. In opset 8 that is for each item of a batch.
func (c *call) scan() []*value {
	n := c.int("num_scan_inputs", 0)
	if c.opset >= 9 {
		return c.scanOver(c.in, n)
	}
	c.failIf(c.has(0), "%w: lengths of sequences", ErrUnsupported)
	in := c.in[min(1, len(c.in)):]
	c.failIf(len(in) == 0, "there are no inputs")
	var list [][]*value
	c.checkSteps(c.batch(in))
	for i := range c.batch(in) {
		item := func(v *value) *value { return &value{v: tensor.Subtensor(v.v, tensor.At(tensor.Int(i))), elem: v.elem} }
		list = append(list, c.scanOver(lists.Map(in, item), n))
	}
	c.failIf(len(list) == 0, "%w: no items", ErrUnsupported)
	out := make([]*value, len(list[0]))
	for k := range out {
		vars := lists.Map(list, func(item []*value) variable { return item[k].v })
		out[k] = &value{v: tensor.Stack(0, vars...), elem: list[0][k].elem}
	}
	return out
}

// batch returns the size of the first dimension, which all have.
func (c *call) batch(in []*value) int {
	n := -1
	for k := range in {
		shape := c.shape((&call{lowering: c.lowering, in: in}).x(k))
		c.failIf(len(shape) == 0 || n >= 0 && shape[0] != n, "an input of shape %v", shape)
		n = shape[0]
	}
	return n
}

func (c *call) checkSteps(n int) {
	c.failIf(n > maxSteps, "%w: %d steps", ErrUnsupported, n)
}

// scanOver goes along the last n inputs; those before them are carried.
func (c *call) scanOver(in []*value, n int) []*value {
	b := c.body("body")
	states := len(in) - n
	c.failIf(n < 1 || states < 0 || len(b.Graph.Outputs()) < states, "%d scanned of %d inputs", n, len(in))
	inputs := &call{lowering: c.lowering, in: in}
	axes, steps := make([]int, n), -1
	for k := range n {
		shape := c.shape(inputs.x(states + k))
		axes[k] = c.axis(at(c.list("scan_input_axes"), k, 0), len(shape))
		if steps >= 0 && shape[axes[k]] != steps {
			c.fail("an input with %d steps beside one with %d", shape[axes[k]], steps)
		}
		steps = shape[axes[k]]
	}
	back := c.list("scan_input_directions")
	if c.opset < 9 {
		back = c.list("directions")
	}
	whole := looped{round: b.run, nothing: b.nothing, nodes: b.Graph.NumApplies() + 1, stacked: len(b.Graph.Outputs()) - states, carried: in[:states], steps: steps, most: tensor.Int(steps), more: tensor.Constant(array.Scalar(true))}
	for k := range n {
		x := tensor.MoveAxes(inputs.x(states+k), []int{axes[k]}, []int{0})
		if at(back, k, 0) != 0 {
			x = tensor.Flip(x, 0)
		}
		whole.items = append(whole.items, &value{v: x, elem: in[states+k].elem})
	}
	out := c.looping(whole)
	// Rounds know neither directions nor axes: items went to the front before, and stacks go back here.
	for k, v := range out[states:] {
		if at(c.list("scan_output_directions"), k, 0) != 0 {
			v.v = tensor.Flip(v.v, 0)
		}
		v.v = tensor.MoveAxes(v.v, []int{0}, []int{c.axis(at(c.list("scan_output_axes"), k, 0), ndim(v.v))})
	}
	return out
}

// branch lowers If. A condition that is computed from integers, such as a rate or a size, decides once: the graph
// is that of one branch and depends on the condition, and the other branch need not be computable. A condition
// that is computed from floats is another one for each input. Then the graph has both branches, and a run
// computes the one that is taken, if their results are tensors of the same types.
func (c *call) branch() []*value {
	c.failIf(c.apply == nil, "an If without a graph")
	if c.wavers(c.x(0)) {
		if out := c.bothBranches(); out != nil {
			return out
		}
	}
	// Also where sizes are open: a condition of sizes is nearly always the same for all of them.
	condition, err := c.demand(c.x(0))
	switch {
	case err != nil:
		c.fail("its condition: %w", err)
	case condition.Len() != 1:
		c.fail("a condition of %d elements", condition.Len())
	case condition.Float(0) != 0:
		return c.taken(0)
	}
	return c.taken(1)
}

// taken lowers a branch, and returns its results.
func (c *call) taken(branch int) []*value {
	n := c.op.Outputs
	name := [2]string{"its then_branch", "its else_branch"}[branch]
	return c.within(name, c.region.Branch(c.apply, branch), newScope(c.scope), c.apply.Inputs()[1+branch*n:][:n])
}

// wavers reports whether a variable depends on floats, or on values of a round of a loop.
func (c *call) wavers(v variable) bool {
	todo, seen := []variable{v}, make(map[variable]bool)
	for len(todo) > 0 {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		// A leaf that is no input is what a loop gives to a round. Sizes don't count: they are the same
		// whatever the elements are.
		switch a := v.Owner(); {
		case seen[v] || tensor.ConstantOf(v) != nil:
		case a == nil && (tensor.TypeOf(v).DType().IsFloat() || !slices.Contains(c.inputs, v)):
			return true
		case a != nil && !sizeOnly(a.Op()):
			todo = append(todo, a.Inputs()...)
		}
		seen[v] = true
	}
	return false
}

// sizeOnly reports whether an op looks at sizes and not at elements.
func sizeOnly(op fgraph.Op) bool {
	switch op.(type) {
	case tensor.ShapeOp, tensor.ShapeIOp:
		return true
	}
	return false
}

// bothBranches returns the results of an If whose branches are both in the graph, or nil if that can't be: if one
// of them can't be computed, asks for a value, or has a result of another type. What can't be once is not tried
// again, since it may be in a branch of another If that can't be, and so on.
func (c *call) bothBranches() (out []*value) {
	if c.decided[c.apply] {
		return nil
	}
	err := c.tentatively(func() {
		condition, demands := c.x(0), len(c.demands)
		if slices.Contains(tensor.TypeOf(condition).Shape(), tensor.Unknown) || product(c.shape(condition)) != 1 {
			c.fail("a condition that is no bool")
		}
		sides := [2][]*value{c.taken(0), c.taken(1)}
		// The value would have to hold also in runs that don't take the branch, where computing it may fail.
		c.failIf(len(c.demands) > demands, "a branch asks for values")
		c.failIf(len(sides[0]) != len(sides[1]), "its branches have %d and %d outputs", len(sides[0]), len(sides[1]))
		var vars [2][]variable
		for i, x := range sides[0] {
			y := sides[1][i]
			if x.v == nil || y.v == nil || x.elem != y.elem || tensor.TypeOf(x.v) != tensor.TypeOf(y.v) {
				c.fail("output %d has not the same type in both branches", i)
			}
			vars[0], vars[1] = append(vars[0], x.v), append(vars[1], y.v)
		}
		if len(vars[0]) > 0 {
			for i, v := range tensor.IfElse(c.reshape(truth(condition), nil), vars[0], vars[1]) {
				out = append(out, &value{v: v, elem: sides[0][i].elem})
			}
		}
	})
	if err != nil {
		c.decided[c.apply] = true
		return nil
	}
	return out
}

// tentatively calls a function that lowers something. If that can't be, all that came of it is forgotten: faults,
// what the graph would have depended on, and which sizes were promised because of it.
func (c *call) tentatively(lower func()) error {
	faults, demands, sized := len(c.faults), len(c.demands), len(c.sized)
	c.attempts++
	err := c.attempt(lower)
	if c.attempts--; err == nil && len(c.faults) == faults {
		return nil
	}
	err = errors.Join(err, errors.Join(c.faults[faults:]...))
	// Backwards, since a value may have got sizes more than once.
	for _, s := range slices.Backward(c.sized[sized:]) {
		s.of.v = s.before
	}
	// Or nobody would note the demand when it is asked for again.
	for _, d := range c.demands[demands:] {
		delete(c.demanded, d.Variable)
	}
	c.faults, c.demands, c.sized = c.faults[:faults], c.demands[:demands], c.sized[:sized]
	return err
}
