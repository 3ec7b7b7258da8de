package expr

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
)

// elements holds the functions that select and change elements as the operators of ONNX of these
// names do.
var elements = map[string]function{
	"gather_elements": func(c *call) *fgraph.Variable {
		c.count(3)
		return tensor.GatherElements(c.tensor(0, "x"), c.tensor(1, "indices"), c.integer(2, "axis", 0))
	},
	"gather_nd": func(c *call) *fgraph.Variable {
		c.count(2)
		return tensor.GatherND(c.tensor(0, "x"), c.tensor(1, "indices"))
	},
	"scatter_elements": func(c *call) *fgraph.Variable {
		c.count(4)
		x, index, y := c.scatter()
		return tensor.ScatterElements(x, index, y, c.integer(3, "axis", 0), c.adds())
	},
	"scatter_nd": func(c *call) *fgraph.Variable {
		c.count(3)
		x, index, y := c.scatter()
		return tensor.ScatterND(x, index, y, c.adds())
	},
}

func (c *call) scatter() (x, index, y *fgraph.Variable) {
	return c.tensor(0, "x"), c.tensor(1, "indices"), c.tensor(2, "updates")
}

// adds returns whether values are added, and not set.
func (c *call) adds() bool {
	switch reduction := c.text(-1, "reduction", "none"); reduction {
	case "add":
		return true
	case "none":
	default:
		fail(c.name, "there is no reduction %q; there are none and add", reduction)
	}
	return false
}

// topK returns values and positions.
func topK(c *call) value {
	c.count(3)
	values, places := tensor.TopK(c.tensor(0, "x"), c.need(1, "k").size(c.name), c.axis(2, -1), c.flag(-1, "largest", true))
	return results([]*fgraph.Variable{values, places})
}
