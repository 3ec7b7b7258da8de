package exec

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// run executes commands from the program counter on. The counter moves past a command when the
// command is done. So it names a command that fails, and a cancelled run can continue.
func (c *Computer) run(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e := c.p.commandError(c.pc, fmt.Errorf("%w: %v", ErrPanic, r))
			e.Stack = debug.Stack()
			c.err, err = e, e
		}
	}()
	done := ctx.Done()
	observed := c.opts.Trace != nil || c.opts.Timing != nil
	c.threads.Measure(observed)
	for c.pc < len(c.p.instrs) {
		if done != nil {
			select {
			case <-done:
				return context.Cause(ctx)
			default:
			}
		}
		in := &c.p.instrs[c.pc]
		if observed {
			err = c.observe(in)
		} else {
			err = c.execute(in)
		}
		if err != nil {
			c.err = c.p.commandError(c.pc, err)
			return c.err
		}
		// The counter moves before a jump is taken, and after the command has succeeded. A marker
		// ends the call with the counter behind it, where the next call continues.
		c.pc++
		switch in.typ {
		case computation.NoOperationMarker:
			return nil
		case computation.GotoLabel:
			c.pc = int(in.target)
		}
	}
	return nil
}

// observe executes an instruction, and times and traces it.
func (c *Computer) observe(in *instruction) error {
	written := in.written()
	var before float64
	if c.opts.Trace != nil && written != 0 {
		before = rms(c.view(written))
	}
	helped, waited := c.threads.Measured()
	start := time.Now()
	err := c.execute(in)
	took := time.Since(start)
	if t := c.opts.Timing; t != nil {
		t.add(c.pc, took)
		h, w := c.threads.Measured()
		t.helped[c.pc] += h - helped
		t.waited[c.pc] += w - waited
	}
	if c.opts.Trace == nil {
		return err
	}
	text := c.p.commandError(c.pc, nil).Text
	if written == 0 || err != nil {
		fmt.Fprintf(c.opts.Trace, "c%d  %s  [%v]\n", c.pc, text, took)
	} else {
		fmt.Fprintf(c.opts.Trace, "c%d  %s  [rms %.4g -> %.4g, %v]\n", c.pc, text, before, rms(c.view(written)), took)
	}
	return err
}

// written returns the view that the instruction writes, or 0 if it writes none or several.
func (in *instruction) written() int32 {
	switch in.typ {
	case computation.SetConst, computation.Propagate, computation.Backprop, computation.BackpropNoModelUpdate,
		computation.MatrixCopy, computation.MatrixAdd, computation.CopyRows, computation.AddRows,
		computation.CopyRowsMulti, computation.AddRowsMulti, computation.AddRowRanges:
		return in.dst
	}
	return 0
}

// rms returns the root mean square of the elements.
func rms(m kernel.Matrix) float64 {
	return math.Sqrt(kernel.MatrixDot(m, m) / float64(max(m.Rows*m.Cols, 1)))
}

// execute executes an instruction. It doesn't move the program counter.
func (c *Computer) execute(in *instruction) error {
	switch in.typ {
	case computation.AllocMatrix:
		c.allocate(c.p.views[in.dst].matrix, in)
	case computation.DeallocMatrix:
		c.free(c.p.views[in.dst].matrix)
	case computation.SwapMatrix:
		a, b := c.p.views[in.dst].matrix, c.p.views[in.src].matrix
		c.buffers[a], c.buffers[b] = c.buffers[b], c.buffers[a]
	case computation.SetConst:
		c.threads.Fill(c.view(in.dst), in.alpha)
	case computation.Propagate:
		if c.opts.Check {
			return c.check(in, c.propagate)
		}
		return c.propagate(in)
	case computation.Backprop, computation.BackpropNoModelUpdate:
		if c.opts.Check {
			return c.check(in, c.backprop)
		}
		return c.backprop(in)
	case computation.MatrixCopy:
		switch {
		case in.dst == in.src:
			c.threads.Scale(c.view(in.dst), in.alpha)
		case in.alpha == 1:
			c.threads.Copy(c.view(in.dst), c.view(in.src))
		default:
			c.threads.CopyScaled(c.view(in.dst), in.alpha, c.view(in.src))
		}
	case computation.MatrixAdd:
		c.threads.Add(c.view(in.dst), in.alpha, c.view(in.src))
	case computation.CopyRows:
		dst := c.view(in.dst)
		c.threads.CopyRows(dst, c.view(in.src), in.rows)
		if in.alpha != 1 {
			c.threads.Scale(dst, in.alpha)
		}
	case computation.AddRows:
		c.threads.AddRows(c.view(in.dst), in.alpha, c.view(in.src), in.rows)
	case computation.AddRowRanges:
		c.threads.AddRowRanges(c.view(in.dst), in.alpha, c.view(in.src), in.ranges)
	case computation.CopyRowsMulti, computation.AddRowsMulti, computation.CopyToRowsMulti, computation.AddToRowsMulti:
		c.multi(in)
	case computation.AcceptInput:
		return c.accept(in)
	case computation.ProvideOutput:
		c.provided[in.port] = in.dst
	}
	// Compression saves memory of GPUs. Without it values stay exact. The other commands do
	// nothing.
	return nil
}

// allocate gives a matrix memory. It may have some already: the outputs are not freed of the last
// pass of a loop.
func (c *Computer) allocate(matrix int32, in *instruction) {
	c.free(matrix)
	c.reserve(matrix, in)
	if c.opts.Poison {
		nan := float32(math.NaN())
		for i := range c.buffers[matrix] {
			c.buffers[matrix][i] = nan
		}
	}
}

// free releases the memory of a matrix. It is then no longer an output.
func (c *Computer) free(matrix int32) {
	if c.buffers[matrix] == nil {
		return
	}
	c.release(matrix)
	for i, s := range c.provided {
		if s != 0 && c.p.views[s].matrix == matrix {
			c.provided[i] = 0
		}
	}
}

// accept makes a pending input its matrix.
func (c *Computer) accept(in *instruction) error {
	from := c.pending[in.port]
	if from.Data == nil {
		return fmt.Errorf("%w: no matrix was passed for %q (AcceptInput)", ErrIO, c.p.ports[in.port].name)
	}
	matrix := c.p.views[in.dst].matrix
	c.free(matrix)
	// A lent input becomes the buffer itself, without a copy. It may be longer than the matrix;
	// without the limit of its capacity, a view beyond the end would read the caller's memory
	// instead of panicking.
	if c.lent[in.port] {
		n := c.p.sizes[matrix]
		c.buffers[matrix] = from.Data[:n:n]
	} else {
		c.reserve(matrix, in)
		c.threads.Copy(c.view(in.dst), from)
	}
	c.pending[in.port] = kernel.Matrix{}
	return nil
}

func (c *Computer) propagate(in *instruction) error {
	x, y := c.view(in.src), c.view(in.dst)
	pass := component.ForwardPass{Pre: in.pre, DropMemo: in.memo == 0, Next: in.next}
	pass.Rows, pass.FirstRow = c.quantizedRows(in)
	memo, err := component.Propagate(in.propagator, &c.scratch, pass, x, y)
	if err != nil {
		return err
	}
	if in.memo != 0 {
		c.memos[in.memo] = memo
	}
	if in.stats && c.stats[in.component] != nil {
		if in.src == in.dst {
			// The component ran in place.
			x = kernel.Matrix{} // overwritten
		}
		c.stats[in.component].StoreStats(x, y, memo)
	}
	return nil
}

func (c *Computer) backprop(in *instruction) error {
	var memo component.Memo
	if in.memo != 0 {
		// Backprop frees the memo to the workspace. If it stayed here, a second run of the loop
		// could give the same memory to two owners.
		memo, c.memos[in.memo] = c.memos[in.memo], nil
	}
	var update component.Component
	if in.typ == computation.Backprop {
		update = c.update[in.component]
	}
	return component.Backprop(in.backprop, &c.scratch, component.BackwardPass{
		Pre: in.pre, InValue: c.view(in.x), OutValue: c.view(in.y), Memo: memo,
		OutDeriv: c.view(in.src), ToUpdate: update, InDeriv: c.view(in.dst),
	})
}

// multi executes the four commands that move rows between a view and places in any matrices.
func (c *Computer) multi(in *instruction) {
	near := c.view(in.dst)
	parts := 1
	// Rows that are written in several places may be the same ones, in an order that matters.
	if in.typ == computation.CopyRowsMulti || in.typ == computation.AddRowsMulti {
		parts = min(c.threads.Parts(time.Duration(near.Rows*near.Cols)*time.Nanosecond/movedPerNanosecond), near.Rows)
	}
	own := c.p.views[in.dst].matrix
	if parts > 1 && !slices.ContainsFunc(in.places, func(p rowPlace) bool { return p.matrix == own }) {
		c.moves = rowMoves{c, in, parts}
		c.threads.Do(parts, &c.moves)
	} else {
		c.multiRows(in, 0, near.Rows)
	}
	if in.typ == computation.CopyRowsMulti && in.alpha != 1 {
		c.threads.Scale(near, in.alpha)
	}
}

// movedPerNanosecond is how many elements of rows one thread moves in a nanosecond.
const movedPerNanosecond = 5

// rowMoves are the rows of a command, some of which are moved at a time.
type rowMoves struct {
	c     *Computer
	in    *instruction
	parts int
}

// Part moves some rows.
func (m *rowMoves) Part(i int) {
	n := len(m.in.places)
	m.c.multiRows(m.in, i*n/m.parts, (i+1)*n/m.parts)
}

// multiRows moves some rows.
func (c *Computer) multiRows(in *instruction, first, next int) {
	near := c.view(in.dst)
	for i := first; i < next; i++ {
		p, row := in.places[i], kernel.Row(near, i)
		if p.matrix < 0 {
			if in.typ == computation.CopyRowsMulti {
				clear(row)
			}
			continue
		}
		far := c.buffers[p.matrix][p.start : p.start+len(row)]
		switch in.typ {
		case computation.CopyRowsMulti:
			copy(row, far)
		case computation.AddRowsMulti:
			kernel.AddVec(row, in.alpha, far)
		case computation.CopyToRowsMulti:
			copy(far, row)
		case computation.AddToRowsMulti:
			kernel.AddVec(far, in.alpha, row)
		}
	}
}
