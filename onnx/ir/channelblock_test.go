package ir_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
)

// blocks returns the weights of filters in blocks of channels. Filters differ by a factor.
func blocks(filters, channels, block int64, factor func(filter int64) float32) *onnx.Tensor {
	t := &onnx.Tensor{Dims: []int64{filters, channels, 3, 3}, DataType: onnx.Float}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range filters * channels * 9 {
		filter := i/(channels*9*block)*block + i%block
		t.Floats = append(t.Floats, factor(filter)*float32(rng.NormFloat64()))
	}
	return t
}

// TestChannelBlock: the size of blocks is found in a whole model, and is not written.
func TestChannelBlock(t *testing.T) {
	differing := func(filter int64) float32 { return float32(1 + filter*7%5) }
	alike := func(int64) float32 { return 1 }
	nine := func(filter int64) float32 { return float32(max(0, min(1, 9-filter))) }
	for _, c := range []struct {
		what    string
		weights []*onnx.Tensor
		want    int64
	}{
		{"filters of narrow blocks", []*onnx.Tensor{blocks(32, 32, 8, differing)}, 8},
		{"filters of wide blocks", []*onnx.Tensor{blocks(32, 32, 16, differing)}, 16},
		{"filters that fill up narrow blocks", []*onnx.Tensor{blocks(16, 32, 8, nine)}, 8},
		{"filters that fill up wide blocks", []*onnx.Tensor{blocks(16, 32, 16, nine)}, 16},
		{"filters that say nothing", []*onnx.Tensor{blocks(32, 32, 8, alike)}, 16},
		{"filters of one channel", []*onnx.Tensor{blocks(16, 1, 8, nine)}, 8},
		{"no weights at all", []*onnx.Tensor{blocks(32, 32, 8, func(int64) float32 { return 0 })}, 16},
		{"another size", []*onnx.Tensor{blocks(32, 32, 16, alike), blocks(24, 32, 8, alike)}, 8},
		{"less than a wide block of channels", []*onnx.Tensor{blocks(32, 32, 8, differing), blocks(16, 12, 16, alike)}, 16},
	} {
		g := &onnx.Graph{Inputs: []*onnx.ValueInfo{info("x", 1, 32, 5, 5)}}
		x := "x"
		for i, w := range c.weights {
			w.Name = string(rune('a' + i))
			g.Initializers = append(g.Initializers, w)
			n := node("Conv", x+" "+w.Name, "y"+w.Name)
			n.Domain = "com.microsoft.nchwc"
			g.Nodes, x = append(g.Nodes, n), n.Outputs[0]
		}
		g.Outputs = []*onnx.ValueInfo{{Name: x, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}}
		m := model(13, g)
		m.Opsets = append(m.Opsets, &onnx.Opset{Domain: "com.microsoft.nchwc", Version: 1})
		in := imported(t, m)
		for a := range in.Applies() {
			if op := a.Op().(*ir.Op); op.Int("channel_block", 0) != c.want {
				t.Errorf("%s: %v, want blocks of %d", c.what, op, c.want)
			}
		}
		for _, n := range exported(t, in).Graph.Nodes {
			if len(n.Attributes) > 0 {
				t.Errorf("%s: the attribute %s is written", c.what, n.Attributes[0].Name)
			}
		}
	}
}
