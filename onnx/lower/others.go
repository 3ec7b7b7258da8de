package lower

import (
	"math"

	"github.com/nnopt/nnopt/kernel/elementary"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var others = map[string]func(c *call) []*value{
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
