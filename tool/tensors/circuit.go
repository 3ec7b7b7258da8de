package tensors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/rulecheck"
)

// An instance is an expression that a rule replaces, prepared to be computed.
type instance struct {
	*rulecheck.Instance
	circuit *circuit
}

// compile prepares both sides.
func compile(ctx context.Context, in *rulecheck.Instance) (*instance, error) {
	c, err := newCircuit(ctx, in.Graph.Inputs(), in.Left, in.Right)
	return &instance{in, c}, err
}

// A circuit computes the two sides of a rewrite, apply by apply, and keeps every value.
type circuit struct {
	ctx         context.Context // a run ends with it
	inputs      []*fgraph.Variable
	left, right []int // slots of what is compared
	steps       []step
	leftSteps   int // the first steps compute the left side
	consts      []constant
	slots       int
	precision   array.DType // the least exact type in which the left side computes
	ws          array.Workspace
}

type constant struct {
	slot  int
	value *array.Array
}

type step struct {
	apply   *fgraph.Apply
	kernel  tensor.Kernel
	in, out []int
	kind    opKind
}

// rounds reports whether a step converts floats to a less exact type.
func (s step) rounds() bool {
	e, ok := s.apply.Op().(tensor.Elemwise)
	if !ok || e.Op != array.Cast || !e.To.IsFloat() {
		return false
	}
	from := tensor.TypeOf(s.apply.Inputs()[0]).DType()
	return from.IsFloat() && epsilon(from) < epsilon(e.To)
}

// newCircuit compiles both sides of a rewrite.
func newCircuit(ctx context.Context, inputs, left, right []*fgraph.Variable) (*circuit, error) {
	c := &circuit{ctx: ctx, inputs: inputs}
	slot := make(map[*fgraph.Variable]int)
	place := func(v *fgraph.Variable) int {
		if _, ok := slot[v]; !ok {
			slot[v] = c.slots
			c.slots++
			if a := tensor.ConstantOf(v); a != nil {
				c.consts = append(c.consts, constant{slot[v], a})
			}
		}
		return slot[v]
	}
	places := func(vars []*fgraph.Variable) []int {
		list := make([]int, len(vars))
		for i, v := range vars {
			list[i] = place(v)
		}
		return list
	}
	computed := func(v *fgraph.Variable) bool {
		if v.Owner() == nil {
			return false
		}
		_, ok := slot[v.Owner().Out()]
		return ok
	}
	// The right side shares the slots of what the left one computes: a variable that both use has
	// one value, and one perturbation. Otherwise the noise of a shared part would count as a
	// difference of the sides.
	places(inputs)
	add := func(vars []*fgraph.Variable) error {
		for _, a := range rulecheck.Order(vars, computed) {
			op, ok := a.Op().(tensor.Op)
			if !ok {
				return fmt.Errorf("rulecheck: %v can't be computed", a.Op())
			}
			k, err := tensor.Compile(a)
			if err != nil {
				return fmt.Errorf("rulecheck: %v: %w", a, err)
			}
			c.steps = append(c.steps, step{a, k, places(a.Inputs()), places(a.Outputs()), kindOf(op, a)})
		}
		return nil
	}
	if err := add(left); err != nil {
		return nil, err
	}
	c.leftSteps = len(c.steps)
	if err := add(right); err != nil {
		return nil, err
	}
	c.left, c.right = places(left), places(right)
	c.precision = tensor.TypeOf(left[0]).DType().Float()
	// If the rule drops a conversion to a smaller type, its right side is more exact than the left
	// one. To perturb the conversion would hide every difference that the rule makes.
	if !slices.ContainsFunc(c.steps[c.leftSteps:], step.rounds) {
		for i := range c.leftSteps { // a conversion that the right side drops is not an error
			c.steps[i].kind.exact = c.steps[i].kind.exact || c.steps[i].rounds()
		}
	}
	for _, s := range c.steps[:c.leftSteps] {
		if d := outType(s.apply); !s.kind.exact && d.IsFloat() && epsilon(d) > epsilon(c.precision) {
			c.precision = d
		}
	}
	return c, nil
}

func outType(a *fgraph.Apply) array.DType { return tensor.TypeOf(a.Out()).DType() }

// A trace holds the values of a run by slot.
type trace struct {
	values    []*array.Array
	leftError error
	err       error // of the right side
}

// maxBytes bounds the memory of the left side of a run.
const maxBytes = 1 << 20

var errPanic = errors.New("panic")

// recovered is deferred to make an error of a panic, which wraps as.
func recovered(err *error, as error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", as, p)
	}
}

// run computes both sides, with noise unless that is nil.
func (c *circuit) run(args []*array.Array, noise *noise) trace {
	t := trace{values: make([]*array.Array, c.slots)}
	copy(t.values, args)
	for _, k := range c.consts {
		t.values[k.slot] = k.value
	}
	ws := &c.ws
	ws.Reset()
	ws.MaxBytes = maxBytes
	for i := range c.steps {
		// A run that is canceled looks like one whose left side fails: there is nothing to compare.
		// So the loops that repeat runs, to classify a difference or to shrink an example, soon
		// have no reason to continue, and need no check of their own.
		if t.leftError = c.ctx.Err(); t.leftError != nil {
			return t
		}
		s := &c.steps[i]
		if i == c.leftSteps {
			ws.MaxBytes += 16 * maxBytes // where the left side just fits, the right one has to
		}
		if err := s.run(ws, t.values); err != nil {
			if i < c.leftSteps {
				t.leftError = err
			} else {
				t.err = err
			}
			return t
		}
		// Each step is perturbed by itself, and the steps after it compute with the perturbed
		// values: errors grow on the way through the expression as they do in a computation.
		if noise != nil && !s.kind.exact {
			least := 0.0
			if i >= c.leftSteps {
				least = epsilon(c.precision)
			}
			s.disturb(t.values, noise, least)
		}
	}
	return t
}

// run computes an apply.
func (s *step) run(ws *array.Workspace, values []*array.Array) (err error) {
	defer recovered(&err, errPanic)
	in, out := make([]*array.Array, len(s.in)), make([]*array.Array, len(s.out))
	for i, k := range s.in {
		in[i] = values[k]
	}
	if d, ok := s.apply.Op().(fgraph.Destroyer); ok {
		for _, alias := range d.DestroyMap() {
			// The other side still needs what an op in place destroys.
			in[alias.Input] = in[alias.Input].Clone()
		}
	}
	for i, k := range s.out {
		out[i] = new(array.Array)
		values[k] = out[i]
	}
	return s.kernel(ws, in, out)
}

func (s *step) inputs(values []*array.Array) []*array.Array {
	list := make([]*array.Array, len(s.in))
	for i, k := range s.in {
		list[i] = values[k]
	}
	return list
}
