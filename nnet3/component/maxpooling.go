package component

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/kernel"
)

// maxpoolingComponent is the largest element in each of the windows over a three-dimensional input.
// In input and output, z changes fastest, then y.
type maxpoolingComponent struct {
	input, pool, step [3]int // x, y, z
}

func (c *maxpoolingComponent) Type() string  { return "MaxpoolingComponent" }
func (c *maxpoolingComponent) InputDim() int { return c.input[0] * c.input[1] * c.input[2] }
func (c *maxpoolingComponent) OutputDim() int {
	n := c.windows()
	return n[0] * n[1] * n[2]
}

// windows returns the number of windows in each direction, 0 for sizes that make no sense.
func (c *maxpoolingComponent) windows() (n [3]int) {
	for d := range n {
		n[d], _ = places(c.input[d], c.pool[d], c.step[d])
	}
	return n
}

func (c *maxpoolingComponent) Properties() Properties {
	return Simple | BackpropNeedsInput | BackpropNeedsOutput | BackpropAdds
}

// Init reads input-x-dim, pool-x-size, pool-x-step, and the same for y and z.
func (c *maxpoolingComponent) Init(cfg *ConfigLine) {
	for d, name := range []string{"x", "y", "z"} {
		c.input[d] = cfg.dim("input-" + name + "-dim")
		c.pool[d] = cfg.dim("pool-" + name + "-size")
		c.step[d] = cfg.dim("pool-" + name + "-step")
	}
	cfg.check(c.problem())
}

func (c *maxpoolingComponent) problem() string {
	if c.OutputDim() > 0 && atMost(maxDim, c.input[:]...) {
		return ""
	}
	return "the windows do not cover the input exactly, or it is too large"
}

func (c *maxpoolingComponent) Fields(f *Fields) {
	for _, part := range []struct {
		token string
		sizes *[3]int
	}{{"<Input%cDim>", &c.input}, {"<Pool%cSize>", &c.pool}, {"<Pool%cStep>", &c.step}} {
		for d := range part.sizes {
			f.Dim(fmt.Sprintf(part.token, "XYZ"[d]), &part.sizes[d])
		}
	}
	f.check(c.problem())
}

// eachWindow calls f with the number of each window and the column of its first element.
func (c *maxpoolingComponent) eachWindow(f func(window, first int)) {
	n, window := c.windows(), 0
	for x := range n[0] {
		for y := range n[1] {
			for z := range n[2] {
				f(window, (x*c.step[0]*c.input[1]+y*c.step[1])*c.input[2]+z*c.step[2])
				window++
			}
		}
	}
}

// Propagate computes the maxima.
func (c *maxpoolingComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	for i := range in.Rows {
		x, y := kernel.Row(in, i), kernel.Row(out, i)
		c.eachWindow(func(window, first int) {
			most := x[first]
			for a := range c.pool[0] {
				for b := range c.pool[1] {
					at := first + (a*c.input[1]+b)*c.input[2]
					for _, v := range x[at : at+c.pool[2]] {
						most = max(most, v)
					}
				}
			}
			y[window] = most
		})
	}
	return nil, nil
}

// Backprop adds the derivative of a maximum to that of each element that is equal to it.
func (c *maxpoolingComponent) Backprop(w *Workspace, pass BackwardPass) error {
	for i := range pass.OutDeriv.Rows {
		x, y := kernel.Row(pass.InValue, i), kernel.Row(pass.OutValue, i)
		dx, dy := kernel.Row(pass.InDeriv, i), kernel.Row(pass.OutDeriv, i)
		c.eachWindow(func(window, first int) {
			for a := range c.pool[0] {
				for b := range c.pool[1] {
					at := first + (a*c.input[1]+b)*c.input[2]
					for k := at; k < at+c.pool[2]; k++ {
						if x[k] == y[window] {
							dx[k] += dy[window]
						}
					}
				}
			}
		})
	}
	return nil
}
