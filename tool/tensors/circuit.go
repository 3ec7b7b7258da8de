package tensors

import (
	"context"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/interp"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
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
	program     interp.Program
	steps       []step
	leftSteps   int         // the first steps compute the left side
	precision   array.DType // the least exact type in which the left side computes
	ws          array.Workspace
}

type step struct {
	interp.Step
	kind opKind
}

// rounds reports whether a step converts floats to a less exact type.
func (s step) rounds() bool {
	e, ok := s.Apply.Op().(tensor.Elemwise)
	if !ok || e.Op != array.Cast || !e.To.IsFloat() {
		return false
	}
	from := tensor.TypeOf(s.Apply.Inputs()[0]).DType()
	return from.IsFloat() && epsilon(from) < epsilon(e.To)
}

// newCircuit compiles both sides of a rewrite.
func newCircuit(ctx context.Context, inputs, left, right []*fgraph.Variable) (*circuit, error) {
	c := &circuit{ctx: ctx, inputs: inputs}
	// The right side shares the slots of what the left one computes: a variable that both use has
	// one value, and one perturbation. Otherwise the noise of a shared part would count as a
	// difference of the sides.
	c.program.Slots(inputs)
	add := func(vars []*fgraph.Variable) error {
		c.program.Append(vars, nil)
		for _, s := range c.program.Steps[len(c.steps):] {
			var err error
			if s.Kernel, err = tensor.Compile(s.Apply); err != nil {
				return fmt.Errorf("rulecheck: %v: %w", s.Apply, err)
			}
			c.steps = append(c.steps, step{s, kindOf(s.Apply.Op().(tensor.Op), s.Apply)})
			c.program.Keep(s.Apply.Outputs()...) // to be looked at
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
	c.left, c.right = c.program.Slots(left), c.program.Slots(right)
	c.precision = tensor.TypeOf(left[0]).DType().Float()
	// If the rule drops a conversion to a smaller type, its right side is more exact than the left
	// one. To perturb the conversion would hide every difference that the rule makes.
	if !slices.ContainsFunc(c.steps[c.leftSteps:], step.rounds) {
		for i := range c.leftSteps { // a conversion that the right side drops is not an error
			c.steps[i].kind.exact = c.steps[i].kind.exact || c.steps[i].rounds()
		}
	}
	for _, s := range c.steps[:c.leftSteps] {
		if d := outType(s.Apply); !s.kind.exact && d.IsFloat() && epsilon(d) > epsilon(c.precision) {
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

// run computes both sides, with noise unless that is nil.
func (c *circuit) run(args []*array.Array, noise *noise) trace {
	state := c.program.Start(args...)
	t := trace{values: state.Values}
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
		if err := state.Run(ws, i, s.Kernel); err != nil {
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

// maxReach bounds the sizes for which slices are checked.
const maxReach = 1 << 12

// reach returns the largest constant bound of a slice.
func (c *circuit) reach() (n int) {
	for _, s := range c.steps {
		op, ok := s.Apply.Op().(interface {
			Indexes(*fgraph.Apply) []tensor.Index
		})
		if !ok {
			continue
		}
		for _, i := range op.Indexes(s.Apply) {
			for _, v := range []*variable{i.Start, i.Stop} {
				if v == nil || !v.IsConstant() {
					continue
				}
				if x := tensor.ConstantOf(v).Float(0); x > float64(n) && x <= maxReach {
					n = int(x)
				}
			}
		}
	}
	return n
}
