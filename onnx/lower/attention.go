package lower

import (
	"slices"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The operators of transformers.
var attention = map[string]func(c *call) []*value{
	"TensorScatter":                 (*call).cacheUpdate,
	"LinearAttention":               (*call).linearAttention,
	"ai.onnx.preview.FlexAttention": (*call).flexAttention,
}

// cacheUpdate writes an update to a cache, behind so many entries for each item of the batch.
func (c *call) cacheUpdate() []*value {
	x, y := c.shape(c.x(0)), c.shape(c.x(1))
	axis := c.axis(c.int("axis", -2), len(x))
	mode := c.oneOf("mode", "linear", "linear", "circular")
	same := slices.Clone(y)
	if len(y) == len(x) {
		same[axis] = x[axis]
	}
	if axis == 0 || !slices.Equal(same, x) || y[axis] > x[axis] {
		c.fail("an update of shape %v for %v along %d, mode %q", y, x, axis, mode)
	}
	at := asDim(arange(y[axis]), axis, len(x))
	if c.has(2) {
		c.failIf(!slices.Equal(c.shape(c.x(2)), x[:1]), "%v places for %d items", c.shape(c.x(2)), x[0])
		at = tensor.Add(at, asDim(c.integers(2), 0, len(x)))
	}
	if mode == "circular" {
		at = tensor.Map(array.Mod, at, number(float64(max(x[axis], 1)), at))
	}
	return c.like(tensor.ScatterElements(c.x(0), tensor.Alloc(at, sizes(y)...), c.x(1), axis, false))
}
