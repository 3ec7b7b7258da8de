package noise

import (
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/index"
)

// cycleContext is how far before and after the first time a component may read.
const cycleContext = 64

// nearby reports whether a component may read an index.
func nearby(x index.Index) bool { return x.T >= -cycleContext && x.T <= cycleContext }

// A cyclicCall runs a component for the rows of an Estimate.
type cyclicCall struct {
	c     component.Component
	pre   component.Precomputed
	times []int // the rows that the component computes, unless it computes all
	rows  []int // the row of each input row, unless they are the times
	read  kernel.Matrix
	pool  Pool
}

// newCyclicCall returns nil for a component that can't be run.
func newCyclicCall(c component.Component) *cyclicCall {
	call := &cyclicCall{c: c}
	if Draws(c) {
		return nil
	}
	n, ok := c.(component.NonSimple)
	if c.Properties().Has(component.Simple) || !ok {
		return call
	}
	var in, out []index.Index
	seen := map[index.Index]bool{}
	for i := range 2 * cycleRows {
		at := index.Index{N: int32(i / cycleTimes), T: int32(i % cycleTimes)}
		var used []index.Index
		if !n.IsComputable(at, nearby, &used) {
			continue
		}
		out, call.times = append(out, at), append(call.times, i)
		for _, x := range used {
			if !seen[x] {
				seen[x] = true
				in, call.rows = append(in, x), append(call.rows, int(at.N)*cycleTimes+cyclic(x.T))
			}
		}
	}
	var err error
	if len(out) == 0 {
		return nil
	}
	if call.pre, err = n.PrecomputeIndexes(in, out, false); err != nil {
		return nil
	}
	return call
}

// input returns the rows that the component reads.
func (call *cyclicCall) input(in kernel.Matrix) kernel.Matrix {
	if call.rows == nil {
		return in
	}
	if call.read.Rows == 0 {
		call.read = call.pool.take(len(call.rows), in.Cols)
	}
	for i, r := range call.rows {
		copy(kernel.Row(call.read, i), kernel.Row(in, r))
	}
	return call.read
}

// release gives the memory of the input back.
func (call *cyclicCall) release() {
	if call.read.Rows > 0 {
		call.pool.give(call.read)
	}
}

// run computes out. For a time that the component does not compute it takes the row of one that it
// computes. It reports false if the component fails.
func (call *cyclicCall) run(ws *component.Workspace, in, out kernel.Matrix) bool {
	if call.times == nil {
		_, err := component.Propagate(call.c, ws, component.ForwardPass{Pre: call.pre, DropMemo: true}, in, out)
		return err == nil
	}
	y := call.pool.take(len(call.times), out.Cols)
	defer call.pool.give(y)
	if _, err := component.Propagate(call.c, ws, component.ForwardPass{Pre: call.pre, DropMemo: true}, call.input(in), y); err != nil {
		return false
	}
	row := 0
	for t := range out.Rows {
		for row+1 < len(call.times) && call.times[row+1] <= t {
			row++
		}
		copy(kernel.Row(out, t), kernel.Row(y, row))
	}
	return true
}

// Draws reports whether a component draws random numbers.
func Draws(c component.Component) bool {
	t, ok := c.(component.TestModer)
	return c.Properties().Has(component.Random) && !(ok && t.TestMode())
}
