package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// maxpoolingComponent is the largest element within windows over a three-dimensional input, of which z changes fastest, then y. The
// output has the same order.
type maxpoolingComponent struct {
	input, pool, step [3]int // x, y, z
}

// Type is "MaxpoolingComponent".
func (c *maxpoolingComponent) Type() string { return "MaxpoolingComponent" }

// InputDim is the size of the input.
func (c *maxpoolingComponent) InputDim() int { return c.input[0] * c.input[1] * c.input[2] }

// OutputDim is the number of windows.
func (c *maxpoolingComponent) OutputDim() int {
	n := c.windows()
	return n[0] * n[1] * n[2]
}

// windows is the number of windows in each direction, 0 where the sizes make no sense.
func (c *maxpoolingComponent) windows() (n [3]int) {
	for d := range n {
		n[d], _ = places(c.input[d], c.pool[d], c.step[d])
	}
	return n
}

// Properties of pooling.
func (c *maxpoolingComponent) Properties() Properties {
	return Simple | BackpropNeedsInput | BackpropNeedsOutput | BackpropAdds
}

// Init knows input-x-dim, pool-x-size, pool-x-step, and the same for y and z.
func (c *maxpoolingComponent) Init(cfg *ConfigLine) error {
	for d, name := range []string{"x", "y", "z"} {
		c.input[d] = cfg.dim("input-" + name + "-dim")
		c.pool[d] = cfg.dim("pool-" + name + "-size")
		c.step[d] = cfg.dim("pool-" + name + "-step")
	}
	if !c.sizesFit() {
		cfg.Fail("the windows do not cover the input exactly, or it is too large")
	}
	return cfg.Err()
}

func (c *maxpoolingComponent) sizesFit() bool {
	return c.OutputDim() > 0 && product(maxDim, c.input[:]...)
}

var poolingTokens = [3][3]string{
	{"<InputXDim>", "<InputYDim>", "<InputZDim>"},
	{"<PoolXSize>", "<PoolYSize>", "<PoolZSize>"},
	{"<PoolXStep>", "<PoolYStep>", "<PoolZStep>"},
}

// Fields of the component.
func (c *maxpoolingComponent) Fields(f *Fields) {
	for k, sizes := range []*[3]int{&c.input, &c.pool, &c.step} {
		for d := range sizes {
			f.Dim(poolingTokens[k][d], &sizes[d])
		}
	}
	f.Check(c.sizesFit(), "the windows do not cover the input exactly, or it is too large")
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
func (c *maxpoolingComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
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
func (c *maxpoolingComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	for i := range outDeriv.Rows {
		x, y := kernel.Row(inValue, i), kernel.Row(outValue, i)
		dx, dy := kernel.Row(inDeriv, i), kernel.Row(outDeriv, i)
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
