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

// inBlocks returns a model of convolutions with weights in blocks of channels, one after another, and after that of one
// that reads the input plainly what makes plain channels of the result, unless their number is 0.
func inBlocks(weights []*onnx.Tensor, plain int64) *onnx.Model {
	g := &onnx.Graph{Inputs: []*onnx.ValueInfo{info("x", 1, 32, 5, 5)}}
	x := "x"
	add := func(op, inputs string, attributes ...*onnx.Attribute) {
		x = "y" + string(rune('a'+len(g.Nodes)))
		n := node(op, inputs, x)
		n.Domain, n.Attributes = "com.microsoft.nchwc", attributes
		g.Nodes = append(g.Nodes, n)
	}
	for i, w := range weights {
		w.Name = string(rune('a' + i))
		g.Initializers = append(g.Initializers, w)
		add("Conv", x+" "+w.Name)
	}
	if plain > 0 {
		add("MaxPool", x, ir.Ints("kernel_shape", 1, 1))
		add("ReorderOutput", x, ir.Int("channels", plain))
	}
	g.Outputs = []*onnx.ValueInfo{{Name: x, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}}}
	m := model(13, g)
	m.Opsets = append(m.Opsets, &onnx.Opset{Domain: "com.microsoft.nchwc", Version: 1})
	return m
}

// TestChannelBlock: the size of blocks is found in a whole model, and is not written.
func TestChannelBlock(t *testing.T) {
	differing := func(filter int64) float32 { return float32(1 + filter*7%5) }
	alike := func(int64) float32 { return 1 }
	first := func(n int64) func(int64) float32 {
		return func(filter int64) float32 { return float32(max(0, min(1, n-filter))) }
	}
	for _, c := range []struct {
		what    string
		weights []*onnx.Tensor
		plain   int64
		want    int64
		doubt   bool
	}{
		{"filters of narrow blocks", []*onnx.Tensor{blocks(64, 32, 8, differing)}, 0, 8, false},
		{"filters of wide blocks", []*onnx.Tensor{blocks(64, 32, 16, differing)}, 0, 16, false},
		{"too few filters", []*onnx.Tensor{blocks(32, 32, 8, differing)}, 0, 16, true},
		{"filters that fill up narrow blocks", []*onnx.Tensor{blocks(16, 32, 8, first(9))}, 0, 8, false},
		{"filters that fill up wide blocks", []*onnx.Tensor{blocks(16, 32, 16, first(9))}, 0, 16, false},
		{"half of the filters fill up", []*onnx.Tensor{blocks(16, 32, 16, first(8))}, 0, 16, false},
		{"filters that say nothing", []*onnx.Tensor{blocks(64, 32, 8, alike)}, 0, 16, true},
		{"one filter in four", []*onnx.Tensor{blocks(16, 1, 16, first(4))}, 0, 16, true},
		{"filters of one channel", []*onnx.Tensor{blocks(16, 1, 8, first(9))}, 0, 8, false},
		{"no weights at all", []*onnx.Tensor{blocks(32, 32, 8, first(0))}, 0, 16, true},
		{"no filters", []*onnx.Tensor{blocks(0, 32, 8, alike)}, 0, 16, true},
		{"another size", []*onnx.Tensor{blocks(32, 32, 16, alike), blocks(24, 32, 8, alike)}, 0, 8, false},
		{"less than a wide block of channels", []*onnx.Tensor{blocks(64, 32, 8, differing), blocks(16, 12, 16, alike)}, 0, 16, false},
		{"a narrow block of channels", []*onnx.Tensor{blocks(16, 3, 8, alike), blocks(16, 8, 8, alike)}, 0, 8, false},
		{"eight channels in no block", []*onnx.Tensor{blocks(16, 8, 16, alike)}, 0, 16, false},
		{"more channels to fill up than narrow blocks need", []*onnx.Tensor{blocks(16, 3, 16, alike)}, 8, 16, false},
		{"as many as both need", []*onnx.Tensor{blocks(16, 3, 16, alike)}, 9, 16, true},
	} {
		m := inBlocks(c.weights, c.plain)
		if doubts := ir.Doubts(m, ""); (len(doubts) > 0) != c.doubt {
			t.Errorf("%s: in doubt about %q", c.what, doubts)
		}
		in := imported(t, m)
		for a := range in.Applies() {
			if op := a.Op().(*ir.Op); op.Type == "Conv" && op.Int("channel_block", 0) != c.want {
				t.Errorf("%s: %v, want blocks of %d", c.what, op, c.want)
			}
		}
		for _, n := range exported(t, in).Graph.Nodes {
			if n.Op == "Conv" && len(n.Attributes) > 0 {
				t.Errorf("%s: the attribute %s is written", c.what, n.Attributes[0].Name)
			}
		}
	}
}

// TestChannelBlockOfChannels: channels that fill up a block tell its size as well.
func TestChannelBlockOfChannels(t *testing.T) {
	for _, block := range []int64{8, 16} {
		w := blocks(16, 32, block, func(int64) float32 { return 1 })
		for f := range int64(16) {
			for c := int64(30); c < 32; c++ {
				for p := range int64(9) {
					w.Floats[(((f/block*(32/block)+c/block)*9+p)*block+c%block)*block+f%block] = 0
				}
			}
		}
		m := inBlocks([]*onnx.Tensor{w}, 0)
		for a := range imported(t, m).Applies() {
			if got := a.Op().(*ir.Op).Int("channel_block", 0); got != block || ir.Doubts(m, "") != nil {
				t.Errorf("blocks of %d are taken to have %d", block, got)
			}
		}
	}
}
