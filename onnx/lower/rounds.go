package lower

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/interp"
)

// A loop that is not unrolled is an op that holds a graph. The graph is optimized like any other. What does
// not depend on the round is no part of it: that is computed in front of the loop, and given to all rounds.

// roundsOp runs a graph for each round. Its inputs are the largest number of rounds, an int64 that is negative
// if there is none; whether there is a first round; the values that are carried; tensors whose elements along
// the first dimension are those of the rounds; and what is the same in all rounds. Its results are the carried
// values, and what rounds stack. It is equal to no other op.
type roundsOp struct{ *rounds }

type rounds struct {
	// The graph is of the number of the round, then carried, scanned and fixed values. It computes whether
	// there is another round, unless all has it that there are as many as there may be; carried values; and what is
	// stacked.
	body                             *fgraph.FunctionGraph
	carried, scanned, fixed, stacked int
	types                            []tensor.Type
	all                              bool
}

// String returns for example Rounds{9 applies}.
func (op roundsOp) String() string {
	return fmt.Sprintf("Rounds{%d applies}", op.body.NumApplies())
}

// Infer returns the types that the lowering has found.
func (op roundsOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if n := 2 + op.carried + op.scanned + op.fixed; len(in) != n {
		return nil, fmt.Errorf("%v needs %d arguments, not %d", op, n, len(in))
	}
	return lists.Map(op.types, func(t tensor.Type) fgraph.Type { return t }), nil
}

// TakesHalves reports that the body is given half floats as they are.
func (op roundsOp) TakesHalves() bool { return true }

// maxRounds bounds the rounds of a loop whose end only a run knows.
const maxRounds = 1 << 20

// Body returns the graph of a round.
func (op roundsOp) Body() *fgraph.FunctionGraph { return op.body }

// Compile returns a kernel that interprets the body.
func (op roundsOp) Compile(a *fgraph.Apply) (tensor.Kernel, error) {
	return op.CompileBody(a, func() tensor.BodyRunner { return &interp.Body{Graph: op.body} })
}

// CompileBody returns the kernel.
func (op roundsOp) CompileBody(_ *fgraph.Apply, newRunner func() tensor.BodyRunner) (tensor.Kernel, error) {
	runners := &sync.Pool{New: func() any { return op.newRunner(newRunner()) }}
	return func(ws *array.Workspace, in, out []*array.Array) error {
		r := runners.Get().(*roundsRunner)
		defer runners.Put(r)
		return r.run(ws, in, out)
	}, nil
}

// A roundsRunner runs a loop. What differs from round to round is copied to where the body has read it before, since small
// rounds take longer to look at their arguments than to copy them, unless that is large.
type roundsRunner struct {
	roundsOp
	body   tensor.BodyRunner
	number *array.Array
	kept   []*array.Array // what is carried, then items
}

func (op roundsOp) newRunner(body tensor.BodyRunner) *roundsRunner {
	return &roundsRunner{roundsOp: op, body: body, number: array.Scalar(int64(0)), kept: make([]*array.Array, op.carried+op.scanned)}
}

// copiedBytes bounds what is copied for each argument.
const copiedBytes = 1 << 14

// keep returns memory for an array that later calls have, too, nil if it would be large or there are no elements.
func (r *roundsRunner) keep(k int, dtype array.DType, shape []int) *array.Array {
	if a := r.kept[k]; a != nil && a.DType() == dtype && slices.Equal(a.Shape(), shape) {
		return a
	}
	if n := array.Unmade(dtype, shape...).Bytes(); n == 0 || n > copiedBytes || dtype == array.String {
		return nil
	}
	r.kept[k] = array.New(dtype, shape...)
	return r.kept[k]
}

// A stack is what rounds stack, where only the end says how many there are.
type stack struct {
	list  []*array.Array // of the rounds
	bytes int64          // in it
}

// roundCost is what a round takes besides its graph, in picoseconds: 1 µs (Zen 5, 2026-11-28).
const roundCost = 1e6

func (r *roundsRunner) run(ws *array.Workspace, in, out []*array.Array) error {
	most, more := in[0].Int(0), in[1].Int(0) != 0
	args := slices.Clone(in[1:])
	args[0] = r.number
	carried, items := args[1:][:r.carried], args[1+r.carried:][:r.scanned]
	for i, a := range carried {
		if err := ws.New(out[i], a.DType(), a.Shape()...); err != nil {
			return err
		}
		if carried[i] = r.keep(i, a.DType(), a.Shape()); carried[i] == nil {
			carried[i] = out[i]
		}
		array.CopyTo(carried[i], a)
	}
	scanned, views := in[2+r.carried:][:r.scanned], make([]array.Array, r.scanned)
	same := true // the arguments of all rounds have the same headers
	for i, a := range scanned {
		if items[i] = r.keep(r.carried+i, a.DType(), a.Shape()[1:]); items[i] == nil {
			items[i], same = &views[i], false
		}
	}
	stacks := make([]stack, r.stacked)
	ctx := ws.Context
	if ctx == nil {
		ctx = context.Background()
	}
	work, cost := tensor.WorkOf(ctx), 0.0
	if work != nil {
		cost = roundCost + tensor.GraphCost(r.roundsOp.body)
	}
	// Without a limit most is negative, and n never meets it.
	n := int64(0)
	for ; more && n != most; n++ {
		if n == maxRounds {
			return fmt.Errorf("%w: a loop of more than %d rounds", ErrUnsupported, maxRounds)
		}
		if err := work.Spend(cost); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		r.number.SetInt(0, n)
		for i, a := range scanned {
			if items[i] == &views[i] {
				a.RangeTo(items[i], array.Range{Start: int(n), Drop: true})
			} else {
				array.RowTo(items[i], a, int(n))
			}
		}
		values, err := r.round(ws, args, n > 0 && same)
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if !r.all {
			more, values = values[0].Int(0) != 0, values[1:]
		}
		for i, a := range values[r.carried:] {
			if err := r.push(ws, &stacks[i], a, out[r.carried+i], int(n), int(most)); err != nil {
				return err
			}
		}
		for i, a := range values[:r.carried] {
			array.CopyTo(carried[i], a)
		}
	}
	for i, a := range carried {
		if a != out[i] {
			array.CopyTo(out[i], a)
		}
	}
	return r.join(ws, stacks, out[r.carried:], int(n))
}

// round runs the body, perhaps for the same headers as in the round before.
func (r *roundsRunner) round(ws *array.Workspace, args []*array.Array, same bool) ([]*array.Array, error) {
	if same {
		return r.body.Again(ws)
	}
	return r.body.Run(ws, args...)
}

// push adds what round n made to a stack: a copy, since the next round uses the memory again. out is the result.
func (op roundsOp) push(ws *array.Workspace, s *stack, a, out *array.Array, n, most int) error {
	if !op.all {
		if s.bytes += int64(a.Bytes()); s.bytes > maxKept {
			return fmt.Errorf("%w: a loop that stacks more than %d bytes", ErrUnsupported, maxKept)
		}
		s.list = append(s.list, a.Clone())
		return nil
	}
	if n == 0 {
		if err := ws.New(out, a.DType(), append([]int{most}, a.Shape()...)...); err != nil {
			return err
		}
	}
	array.ToRow(out, n, a)
	return nil
}

// join joins what the rounds made, unless that is in its place.
func (op roundsOp) join(ws *array.Workspace, stacks []stack, out []*array.Array, rounds int) error {
	for i, s := range stacks {
		if op.all && rounds > 0 {
			continue
		}
		t := op.types[op.carried+i]
		shape := t.Shape()
		shape[0] = len(s.list)
		if slices.Contains(shape, tensor.Unknown) {
			return fmt.Errorf("%w: no rounds of what has the type %v", ErrUnsupported, t)
		}
		if err := ws.New(out[i], t.DType(), shape...); err != nil {
			return err
		}
		for n, a := range s.list {
			array.ToRow(out[i], n, a)
		}
	}
	return nil
}

// A looped is a loop before it is unrolled or made an op.
type looped struct {
	round          func(in ...*value) []*value // lowers a round
	nodes, stacked int                         // that it has, and how many of its results are stacked
	// nothing returns such a result of no rounds.
	nothing        func(output int, round func() []*value) *value
	open           bool     // sizes may be open: those of what is carried don't change
	most, more     variable // the rounds at most, nil if there is no such number, and whether there is a first one
	carried, items []*value // along the first dimension
	number         bool     // the body begins with the number of the round and a condition, and makes a condition
	steps          int      // how many rounds there are, -1 if only a run knows
}

// shortLoop bounds the nodes of all rounds of a loop that is unrolled although it could be an op: the
// rounds are then optimized together.
const shortLoop = 256

// asOp returns the results of a loop as those of an op. It fails if a loop can't be an op: if a round changes
// the type of what is carried, or asks for a value that may differ in another round.
func (c *call) asOp(p looped) (out []*value, err error) {
	err = c.tentatively(func() { out = c.rounds(p) })
	return out, err
}

func (c *call) rounds(p looped) []*value {
	defer c.keep(0)() // values that are asked for in the body are the same in all rounds
	given, args := c.roundInputs(p)
	made := p.round(args...)
	var outputs []variable
	if p.number {
		more := made[0]
		c.failIf(more.v == nil || ndim(more.v) > 1 || product(c.shape(more.v)) != 1, "a condition that is no bool")
		outputs, made = append(outputs, truth(more.v)), made[1:]
	}
	op := &rounds{all: !p.number, carried: len(p.carried), scanned: len(p.items), stacked: len(made) - len(p.carried)}
	var results []*value
	for i, v := range made {
		op.types = append(op.types, c.loopResult(p, i, v, given))
		outputs = append(outputs, v.v)
		results = append(results, &value{elem: v.elem})
	}
	fixed := invariants(given, outputs)
	op.fixed = len(fixed)
	var err error
	if op.body, err = tensor.NewGraph(slices.Concat(given, fixed), outputs); err != nil {
		c.fail("its body: %w", err)
	}
	most := p.most
	if most == nil {
		most = tensor.Constant(array.Scalar(int64(-1)))
	}
	in := []variable{most, p.more}
	for _, v := range slices.Concat(p.carried, p.items) {
		in = append(in, v.v)
	}
	for i, v := range tensor.MustApply(roundsOp{op}, append(in, fixed...)...).Owner().Outputs() {
		results[i].v = v
	}
	return results
}

// roundInputs returns the variables that differ from round to round: its number, what is carried, and an item
// of each input that is scanned. args are the arguments of the body.
func (c *call) roundInputs(p looped) (given []variable, args []*value) {
	number := fgraph.NewInput(tensor.NewType(array.Int64), "round")
	given = []variable{number}
	if p.number {
		args = append(args, &value{v: number, elem: onnx.Int64}, &value{v: tensor.Constant(array.Scalar(true)), elem: onnx.Bool})
	}
	shapeOf := c.shape
	if p.open {
		shapeOf = func(v variable) []int { return tensor.TypeOf(v).Shape() }
	}
	input := func(v *value, shape []int) {
		if v == nil || v.v == nil || !p.open && slices.Contains(shape, tensor.Unknown) {
			c.fail("it carries what is no tensor of a known shape")
		}
		in := fgraph.NewInput(tensor.NewType(tensor.TypeOf(v.v).DType(), shape...), fmt.Sprint("given ", len(given)))
		given, args = append(given, in), append(args, &value{v: in, elem: v.elem})
	}
	for _, v := range p.carried {
		c.failIf(v == nil || v.v == nil, "it carries what is no tensor")
		input(v, shapeOf(v.v))
	}
	for _, v := range p.items {
		input(v, shapeOf(v.v)[1:])
	}
	return given, args
}

// loopResult returns the type of result i of a loop, which a round makes as v: what is carried keeps its type,
// and anything else is stacked.
func (c *call) loopResult(p looped, i int, v *value, given []variable) tensor.Type {
	c.failIf(v.v == nil, "output %d of the body is no tensor", i)
	t := tensor.TypeOf(v.v)
	shape := t.Shape()
	switch carried := len(p.carried); {
	case !p.open && slices.Contains(shape, tensor.Unknown):
		c.fail("output %d of the body has a size that depends on values", i)
	case i < carried && (v.elem != p.carried[i].elem || !slices.Equal(shape, tensor.TypeOf(given[1+i]).Shape())):
		c.fail("a round changes the type of what is carried")
	case i >= carried:
		rows := tensor.Unknown
		if p.steps >= 0 {
			rows = p.steps
		}
		if shape = append([]int{rows}, shape...); len(shape) > array.MaxDims {
			c.fail("%w: %d dimensions", ErrUnsupported, len(shape))
		}
	}
	return tensor.NewType(t.DType(), shape...)
}

// invariants returns what outputs depend on that does not depend on the given variables: not constants, and
// of an expression only its result.
func invariants(given, outputs []variable) []variable {
	depends := make(map[variable]bool)
	for _, v := range given {
		depends[v] = true
	}
	var applies []*fgraph.Apply
	seen := make(map[*fgraph.Apply]bool)
	// Operands come first, so all is known of the inputs of an apply when it is met.
	fgraph.Walk(outputs, func(v variable) bool { return v.Owner() == nil || seen[v.Owner()] }, func(a *fgraph.Apply) {
		seen[a] = true
		applies = append(applies, a)
		if slices.ContainsFunc(a.Inputs(), func(v variable) bool { return depends[v] }) {
			for _, v := range a.Outputs() {
				depends[v] = true
			}
		}
	})
	var fixed []variable
	found := make(map[variable]bool)
	add := func(v variable) {
		if !depends[v] && !found[v] && tensor.ConstantOf(v) == nil {
			found[v] = true
			fixed = append(fixed, v)
		}
	}
	for _, a := range applies {
		// All outputs of an apply depend on the round if one does.
		if depends[a.Outputs()[0]] {
			for _, v := range a.Inputs() {
				add(v)
			}
		}
	}
	for _, v := range outputs {
		add(v)
	}
	return fixed
}
