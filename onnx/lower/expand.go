package lower

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// hasBody reports whether an op can be computed by others.
func hasBody(op *ir.Op) bool { return op.Operator() != nil && op.Operator().Body != nil }

// types returns the operators whose types are known.
func (l *lowering) types() *ir.Operators {
	switch {
	case l.options.Types != nil:
	case l.source != nil:
		l.options.Types = l.source.Operators
	default:
		l.options.Types = ir.Standard()
	}
	return l.options.Types
}

// expanded lowers what an op is made of. Some inputs are left out.
func (c *call) expanded(without ...int) ([]*value, error) {
	s := newScope(nil)
	inputs := make([]*fgraph.Variable, len(c.in))
	for k, x := range c.in {
		if slices.Contains(without, k) {
			x = nil
		}
		v, err := c.standIn(k, x)
		if err != nil {
			return nil, err
		}
		inputs[k], s.values[v] = v, x
	}
	results, applies, err := c.types().Expand(c.op, inputs)
	if err != nil {
		if c.open != nil {
			return nil, fmt.Errorf("%w: %w", ErrSizes, err)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	for _, a := range applies {
		part := &call{lowering: c.lowering, op: a.Op().(*ir.Op), apply: a, scope: s}
		out, err := part.lower()
		if err != nil {
			return nil, fmt.Errorf("its part %s: %w", part.op.Name(), err)
		}
		for k, v := range a.Outputs() {
			if s.values[v] = out[k]; c.open != nil {
				c.open.note(out[k].v, ir.TypeOf(v))
			}
		}
	}
	out := make([]*value, len(results))
	for k, v := range results {
		if v != nil {
			out[k], _ = c.of(v, s)
		}
	}
	return out, nil
}

// parts is expanded, and fails where that returns an error.
func (c *call) parts(without ...int) []*value {
	out, err := c.expanded(without...)
	c.failIf(err != nil, "%w", err)
	return out
}

// standIn returns a variable for an input of the op, with all that is known of it: nothing has been inferred of a node
// alone, and less of sizes that are known now.
func (c *call) standIn(k int, x *value) (*fgraph.Variable, error) {
	if x == nil {
		return ir.Missing(), nil
	}
	if x.v == nil {
		return nil, fmt.Errorf("%w: input %d is no tensor", ErrUnsupported, k)
	}
	// Constants stay such, since what an op is made of may depend on their elements.
	if c.apply != nil && c.apply.Inputs()[k].IsConstant() {
		return c.apply.Inputs()[k], nil
	}
	if a := tensor.ConstantOf(x.v); a != nil {
		t, err := TensorOf("", a, x.elem)
		return ir.Constant(ir.NewValue(t, ""), ""), err
	}
	t := ir.NewType(x.elem, c.dims(x.v)...)
	if c.apply != nil {
		if both, ok := t.Meet(ir.TypeOf(c.apply.Inputs()[k])); ok {
			t = both
		}
	}
	return fgraph.NewInput(t, ""), nil
}

// groupQuery lowers GroupQueryAttention. Nearly always the keys of all items fill the buffer of the past. Then lengths say
// nothing, and new keys are joined to those of the past. A graph for any sizes provides that they do.
func (c *call) groupQuery() []*value {
	length := c.dims(c.x(0))[1]
	past := ir.Known(0)
	if c.has(3) {
		past = c.dims(c.x(3))[2]
	}
	all := c.size(past.Plus(length))
	full := tensor.Map(array.Eq, c.reshape(c.integers(6), nil), all)
	if !past.Is(0) || !c.bool("causal", true) {
		ends := tensor.Add(c.integers(5), tensor.Int(1))
		full = tensor.Mul(full, reduceAll(array.Min, tensor.Map(array.Eq, ends, all)))
	}
	var left []int
	if c.open != nil {
		left = []int{5, 6}
		q := *c.in[0]
		q.v = tensor.Assert(q.v, "GroupQueryAttention: the past has as many entries as its buffer", full)
		c.open.note(q.v, ir.TypeOf(c.apply.Inputs()[0]))
		c.in = append([]*value{&q}, c.in[1:]...)
	} else if a, err := c.valueOf(full); err != nil {
		c.fail("lengths: %w", err)
	} else if a.Float(0) != 0 {
		left = []int{5, 6}
	}
	return c.parts(left...)
}
