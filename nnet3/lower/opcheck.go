package lower

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Check returns an error if the op of an apply can't have its inputs or outputs.
func (d *fileDialect) Check(a *fgraph.Apply) error {
	c := &applyCheck{a: a, sizes: d.sizes}
	switch op := a.Op().(type) {
	case Fill:
		c.matrices(0, MatrixType{Rows: op.Rows, Cols: op.Cols})
	case Block:
		c.block(op)
	case *RowRanges:
		c.rowRanges(op)
	case *Assemble:
		c.assemble(op)
	case Propagate:
		c.propagate(op)
	case Backprop:
		c.backprop(op)
	default:
		c.fail("not an op of this dialect")
	}
	return c.err
}

// applyCheck is a check of one apply. The first error stays.
type applyCheck struct {
	a     *fgraph.Apply
	sizes map[*computation.PrecomputedIndexesInfo][2]int
	next  [2]int // the next input and output to look at
	err   error
}

func (c *applyCheck) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", errText, fmt.Sprintf(format, args...))
	}
}

// demand fails unless ok holds.
func (c *applyCheck) demand(ok bool, format string, args ...any) {
	if !ok {
		c.fail(format, args...)
	}
}

// matrices demands n matrices as inputs, and one output.
func (c *applyCheck) matrices(n int, out MatrixType) {
	if len(c.a.Inputs()) != n || len(c.a.Outputs()) != 1 {
		c.fail("the op has %d inputs and one output", n)
		return
	}
	for i, v := range c.a.Inputs() {
		_, ok := v.Type().(MatrixType)
		c.demand(ok, "input %d is not a matrix", i)
	}
	have := c.a.Out().Type()
	c.demand(have == fgraph.Type(out), "the output is %v, not %v", out, have)
}

func (c *applyCheck) block(op Block) {
	c.matrices(1, sizeOf(op.Rect))
	if c.err == nil && !whole(TypeOf(c.a.Inputs()[0])).Contains(op.Rect) {
		c.fail("the input has no such block")
	}
}

func (c *applyCheck) rowRanges(op *RowRanges) {
	c.matrices(1, MatrixType{Rows: int32(len(op.Ranges)), Cols: op.Cols})
	if c.err != nil {
		return
	}
	in := TypeOf(c.a.Inputs()[0])
	c.demand(in.Cols == op.Cols, "the input has %d columns, not %d", in.Cols, op.Cols)
	for _, r := range op.Ranges {
		c.demand(r[1] <= in.Rows, "the input has no rows %d:%d", r[0], r[1])
	}
}

func (c *applyCheck) assemble(op *Assemble) {
	inputs := c.a.Inputs()
	c.matrices(len(inputs), MatrixType{Rows: op.Rows, Cols: op.Cols})
	if c.err != nil {
		return
	}
	used := make([]bool, len(inputs))
	for i := range op.Terms {
		t := &op.Terms[i]
		if int(t.Input) >= len(inputs) {
			c.fail("there is no input %d", t.Input)
			return
		}
		used[t.Input] = true
		c.demand(whole(TypeOf(inputs[t.Input])).Contains(t.Src()), "input %d has no part %v", t.Input, t.Src())
	}
	for i := range used {
		c.demand(used[i], "no term reads input %d", i)
	}
}

// input takes the next input, which must be a matrix if any, and state or memo otherwise.
func (c *applyCheck) input() *fgraph.Variable { return c.take(0, c.a.Inputs(), "input") }

func (c *applyCheck) output() *fgraph.Variable { return c.take(1, c.a.Outputs(), "output") }

func (c *applyCheck) take(side int, list []*fgraph.Variable, what string) *fgraph.Variable {
	i := c.next[side]
	c.next[side]++
	if i >= len(list) {
		c.fail("%s %d is missing", what, i)
		return nil
	}
	return list[i]
}

// matrix demands a matrix with cols columns, -1 for any number. It returns the number of rows.
func (c *applyCheck) matrix(v *fgraph.Variable, what string, cols int) int32 {
	if v == nil {
		return -1
	}
	t, ok := v.Type().(MatrixType)
	c.demand(ok && (cols < 0 || int(t.Cols) == cols), "%s is a %v, not a matrix with %d columns", what, v.Type(), cols)
	return t.Rows
}

// same demands that two variables have the same type.
func (c *applyCheck) same(v, w *fgraph.Variable, what string) {
	if v != nil && w != nil && v.Type() != w.Type() {
		c.fail("%s is a %v, not a %v", what, v.Type(), w.Type())
	}
}

// hasInput reports whether the first input is a matrix.
func (c *applyCheck) hasInput() bool {
	if len(c.a.Inputs()) == 0 {
		return false
	}
	_, ok := c.a.Inputs()[0].Type().(MatrixType)
	return ok
}

func (c *applyCheck) memo(v *fgraph.Variable) {
	if v == nil {
		return
	}
	_, ok := v.Type().(MemoType)
	c.demand(ok, "the memo is a %v", v.Type())
}

// state demands a state that goes in and comes out.
func (c *applyCheck) state() {
	in, out := c.input(), c.output()
	c.same(in, out, "the state")
	if in != nil {
		_, ok := in.Type().(StateType)
		c.demand(ok, "the state is a %v", in.Type())
	}
}

// end demands that nothing is left.
func (c *applyCheck) end() {
	if c.next[0] < len(c.a.Inputs()) || c.next[1] < len(c.a.Outputs()) {
		c.fail("there are %d inputs and %d outputs, not %d and %d", len(c.a.Inputs()), len(c.a.Outputs()), c.next[0], c.next[1])
	}
}

// rows demands that the numbers of rows fit the component and its indexes.
func (c *applyCheck) rows(op Component, pre *computation.PrecomputedIndexesInfo, in, out int32) {
	if size, ok := c.sizes[pre]; ok && (in >= 0 && size[0] != int(in) || size[1] != int(out)) {
		c.fail("the indexes are those of %d and %d rows, not of %d and %d", size[0], size[1], in, out)
	}
	c.demand(!op.has(component.Simple) || in < 0 || in == out, "%s works row by row, but there are %d and %d rows", op.Name, in, out)
}

// inPlace demands that an op that destroys an input has one of the type of its output.
func (c *applyCheck) inPlace(op fgraph.Destroyer) {
	for _, m := range op.DestroyMap() {
		if c.err != nil || m.Input >= len(c.a.Inputs()) || len(c.a.Outputs()) == 0 || c.a.Inputs()[m.Input].Type() != c.a.Out().Type() {
			c.fail("the op can't work in place")
		}
	}
}

func (c *applyCheck) propagate(op Propagate) {
	in := int32(-1)
	if c.hasInput() && (!op.Accumulate || op.InputAdded() > 0) { // a component may ignore its input
		in = c.matrix(c.input(), "the input", op.C.InputDim())
	}
	y := c.output()
	out := c.matrix(y, "the output", op.C.OutputDim())
	if op.Accumulate {
		c.same(c.input(), y, "the addend")
		c.demand(op.has(component.PropagateAdds), "%s does not add", op.Name)
	}
	if op.UsesMemo {
		c.memo(c.output())
	}
	if op.StoreStats {
		c.state()
	}
	c.end()
	c.rows(op.Component, op.Precomputed, in, out)
	c.inPlace(op)
}

func (c *applyCheck) backprop(op Backprop) {
	in := int32(-1)
	if op.hasX {
		in = c.matrix(c.input(), "the input value", op.C.InputDim())
	}
	var y *fgraph.Variable
	if op.HasY {
		y = c.input()
		c.matrix(y, "the output value", op.C.OutputDim())
	}
	dy := c.input()
	out := c.matrix(dy, "the derivative of the output", op.C.OutputDim())
	c.same(y, dy, "the output value")
	if op.UsesMemo {
		c.memo(c.input())
	}
	var dx *fgraph.Variable
	if op.HasDX {
		dx = c.output()
		rows := c.matrix(dx, "the derivative of the input", op.C.InputDim())
		c.demand(in < 0 || in == rows, "the input value has %d rows, and its derivative %d", in, rows)
		in = rows
	}
	if op.Accumulate {
		c.same(c.input(), dx, "the addend")
		c.demand(op.HasDX && op.has(component.BackpropAdds), "%s does not add", op.Name)
	}
	if op.HasState {
		c.state()
	}
	c.end()
	c.rows(op.Component, op.Precomputed, in, out)
	c.inPlace(op)
}
