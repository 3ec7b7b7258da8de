package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// propagateInPlace lets components overwrite their input where they can and nothing reads it later,
// and lets components that accumulate do so in the memory of the sum. The destroy handler vetoes
// what would destroy a value that is still needed.
func propagateInPlace() rewrite.GraphRewriter {
	return inPlace("propagate_in_place", "a forward run overwrites its input, or what it adds to, where nothing reads that later",
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			if op.InPlace || !op.Accumulate && op.C.Properties()&component.PropagateInPlace == 0 {
				return c.Miss("%s can't run in place, or does already", op.Name)
			}
			if reader := laterReader(a, max(op.InputAdded(), 0)); reader != nil {
				return c.Miss("%v reads the input later", reader.Op())
			}
			op.InPlace = true
			return replaceOp(a, op)
		})
}

// backpropInPlace lets components write the input derivative over the output derivative where they
// can.
func backpropInPlace() rewrite.GraphRewriter {
	return inPlace("backprop_in_place", "a backward run overwrites the derivative it is given, or what it adds to, where nothing reads that later",
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Backprop) rewrite.Result {
			if op.InPlace || !op.HasDX || !op.Accumulate && op.C.Properties()&component.BackpropInPlace == 0 {
				return c.Miss("%s can't run in place, or does already", op.Name)
			}
			k := op.InputDeriv()
			if op.Accumulate {
				k = op.InputAdded()
			}
			if reader := laterReader(a, k); reader != nil {
				return c.Miss("%v reads the derivative later", reader.Op())
			}
			op.InPlace = true
			return replaceOp(a, op)
		})
}

// inPlace makes a pass of one rule that destroys an input.
func inPlace[O fgraph.Op](name, doc string, fn func(c *rewrite.Context, a *fgraph.Apply, op O) rewrite.Result) rewrite.GraphRewriter {
	rule := ruleFor(name, doc, 0, fn)
	rule.Destroys = true
	return rewrite.In2Out(name, rule)
}

// laterReader returns an apply that came after a in the original order and reads a part of input k
// of a, or nil. The destroy handler would let it run before a instead, but values live shorter in
// the original order.
func laterReader(a *fgraph.Apply, k int) *fgraph.Apply {
	root, r := lower.Resolve(a.Inputs()[k])
	later := func(c fgraph.Client) bool { return c.Apply != a && c.Apply.Origin() > a.Origin() }
	// The op would overwrite a rectangle of a value. Readers of other rectangles don't mind, so
	// that the steps of a recurrence can each overwrite their part.
	for c := range readers(root) {
		b, ok := c.Apply.Op().(lower.Block)
		if !ok {
			if later(c) {
				return c.Apply
			}
			continue
		}
		if !b.Rect.Overlaps(r) {
			continue
		}
		for c := range readers(c.Apply.Out()) {
			if later(c) {
				return c.Apply
			}
		}
	}
	return nil
}
