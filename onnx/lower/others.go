package lower

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/kernel/elementary"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var others = map[string]func(c *call) []*value{
	// The branch that is not taken need not be computable.
	"If": func(c *call) []*value {
		branch := "else_branch"
		if c.one(0) != 0 {
			branch = "then_branch"
		}
		a := c.attribute(branch)
		if a == nil || a.Graph == nil {
			c.fail("there is no %s", branch)
		}
		if c.depth++; c.depth > maxDepth {
			c.fail("%w: graphs in graphs, %d deep", ErrUnsupported, c.depth)
		}
		defer func() { c.depth-- }()
		scope := make(map[string]*value)
		for name, v := range c.scope {
			scope[name] = v
		}
		for _, t := range a.Graph.Initializers {
			v, err := c.arrayOf(t)
			if err != nil {
				c.fail("initializer %s: %w", t.Name, err)
			}
			scope[t.Name] = &value{tensor.Constant(v), t.DataType}
		}
		before := len(c.faults)
		c.nodes(a.Graph.Nodes, scope, make(map[string]bool))
		if len(c.faults) > before {
			c.err = fmt.Errorf("its %s can't be computed", branch)
		}
		var out []*value
		for _, o := range a.Graph.Outputs {
			out = append(out, scope[o.Name])
		}
		return out
	},
	"HannWindow":     func(c *call) []*value { return c.window(0.5, 0.5, 0) },
	"HammingWindow":  func(c *call) []*value { return c.window(25.0/46, 21.0/46, 0) },
	"BlackmanWindow": func(c *call) []*value { return c.window(0.42, 0.5, 0.08) },
	"LSTM":           (*call).lstm,
	"GRU":            (*call).gru,
	"RNN":            (*call).rnn,
}

// window returns a - b cos(2πi/n) + c cos(4πi/n).
func (c *call) window(a, b, d float64) []*value {
	size := int(c.one(0))
	c.bounded([]int{size})
	n := float64(size)
	if !c.bool("periodic", true) {
		n--
	}
	list := make([]float64, size)
	for i := range list {
		x := 2 * math.Pi * float64(i) / n
		list[i] = a - float64(b*elementary.Cos(x)) + float64(d*elementary.Cos(2*x))
	}
	return c.out(tensor.Constant(array.Of(list, size)), onnx.DataType(c.int("output_datatype", int(onnx.Float))))
}
