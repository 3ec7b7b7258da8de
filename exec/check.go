package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// unwritten fills an output that a component declares to overwrite: a NaN that no component
// computes.
var unwritten = math.Float32frombits(0x7fc0dead)

// check runs a component and verifies what it declares: that it writes all of its output, doesn't
// read it unless it says so, and changes nothing else in its matrices.
func (c *Computer) check(in *instruction, run func(*instruction) error) error {
	comp, adds := c.p.components[in.component], component.PropagateAdds
	if in.typ != computation.Propagate {
		adds = component.BackpropAdds
	}
	dst := &c.p.views[in.dst]
	var operands [4]int32 // different matrices
	matrices, was := operands[:0], c.was[:0]
	overwrites := in.dst != 0 && !comp.Properties().Has(adds)
	for _, s := range []int32{in.src, in.x, in.y, in.dst} {
		v := &c.p.views[s]
		if s == 0 || c.buffers[v.matrix] == nil {
			continue
		}
		if !slices.Contains(matrices, v.matrix) {
			matrices, was = append(matrices, v.matrix), append(was, c.buffers[v.matrix]...)
		}
		// The output can be filled before the run only if the component reads nothing there: an operand in the
		// same place would be lost.
		overwrites = overwrites && (s == in.dst && s != in.src || v.matrix != dst.matrix || !v.overlaps(dst))
	}
	c.was = was
	if overwrites {
		kernel.Fill(c.view(in.dst), unwritten)
	}
	if err := run(in); err != nil {
		return err
	}
	for _, m := range matrices {
		now, out := c.buffers[m], dst
		if in.dst == 0 || m != dst.matrix {
			out = new(view)
		}
		if i := out.changedOutside(now, was[:len(now)]); i >= 0 {
			return fmt.Errorf("%w: %s, a %s, overwrites element %d of m%d, which is not part of its output", fgraph.ErrDeclaration,
				c.componentName(in), comp.Type(), i, m)
		}
		was = was[len(now):]
	}
	if !overwrites {
		return nil
	}
	out := c.view(in.dst)
	for r := range out.Rows {
		for k, x := range kernel.Row(out, r) {
			if math.Float32bits(x) == math.Float32bits(unwritten) {
				return fmt.Errorf("%w: %s, a %s, reads row %d, column %d of its output, or leaves it unwritten, although it declares to overwrite it", fgraph.ErrDeclaration,
					c.componentName(in), comp.Type(), r, k)
			}
		}
	}
	return nil
}

// componentName returns the name of the component that in runs.
func (c *Computer) componentName(in *instruction) string {
	return c.p.info().Components[in.component].Name
}

// changedOutside returns the first element of a matrix outside of the view whose bits are no longer what they were, or -1.
func (v *view) changedOutside(now, was []float32) int {
	from := 0
	for r := range v.rows {
		row := v.start + r*v.stride
		if i := firstChange(now[from:row], was[from:row]); i >= 0 {
			return from + i
		}
		from = row + v.cols
	}
	if i := firstChange(now[from:], was[from:]); i >= 0 {
		return from + i
	}
	return -1
}

// firstChange returns the first element whose bits are no longer what they were, or -1.
func firstChange(now, was []float32) int {
	for i, x := range now {
		if math.Float32bits(x) != math.Float32bits(was[i]) {
			return i
		}
	}
	return -1
}

// overlaps reports whether two views of one matrix have an element in common.
func (v *view) overlaps(w *view) bool {
	top, left := v.start/v.stride, v.start%v.stride
	otherTop, otherLeft := w.start/w.stride, w.start%w.stride
	return top < otherTop+w.rows && otherTop < top+v.rows && left < otherLeft+w.cols && otherLeft < left+v.cols
}
