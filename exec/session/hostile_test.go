package session_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestHostileOperators: attributes and inputs of any kind make no panic, take little time and memory,
// and errors name the node.
func TestHostileOperators(t *testing.T) {
	ops := strings.Fields(`Attention RotaryEmbedding TensorScatter RMSNormalization CenterCropPad AffineGrid CumProd CumSum NonMaxSuppression
		LinearAttention CausalConvWithState MaxRoiPool BitCast QuantizeLinear DequantizeLinear ReduceMax LpNormalization
		RoiAlign GridSample DFT STFT MelWeightMatrix Unique ScatterElements ScatterND MaxUnpool Col2Im Resize TfIdfVectorizer Loop Scan
		SequenceInsert SequenceAt SequenceErase SplitToSequence ConcatFromSequence SequenceMap OptionalGetElement MaxPool Cast GroupNormalization`)
	names := strings.Fields(`axis axes output_height output_width sampling_ratio spatial_scale align_corners onesided inverse kernel_shape strides pads
		dilations num_scan_inputs q_num_heads kv_num_heads num_heads rotary_embedding_dim num_groups max_gram_length min_gram_length max_skip_count
		ngram_counts ngram_indexes pool_int64s storage_order to keepdims new_axis interleaved is_causal qk_matmul_output_mode exclusive block_size output_dtype p pooled_shape`)
	texts := map[string][]string{"mode": {"linear", "cubic", "nearest", "avg", "max", "TF", "circular"}, "reduction": {"none", "add", "mul", "max"},
		"coordinate_transformation_mode": {"tf_crop_and_resize", "half_pixel_symmetric", "align_corners", "what"}, "padding_mode": {"zeros", "border", "reflection"},
		"keep_aspect_ratio_policy": {"not_larger", "stretch"}, "nearest_mode": {"ceil", "floor"}}
	sizes := []int64{-1 << 63, -1 << 40, -7, -1, 0, 0, 1, 1, 2, 2, 3, 4, 1 << 20, 1<<31 - 1, 1 << 40, 1<<63 - 1}
	rng := rand.New(rand.NewPCG(3, 4))
	some := func() int64 {
		if rng.IntN(4) > 0 {
			return int64(rng.IntN(4))
		}
		return sizes[rng.IntN(len(sizes))]
	}
	for range longtest.Of(500, 20000) {
		n := &onnx.Node{Op: ops[rng.IntN(len(ops))], Name: "bad", Outputs: []string{"y"}}
		for range rng.IntN(6) {
			name := names[rng.IntN(len(names))]
			n.Attributes = append(n.Attributes, &onnx.Attribute{Name: name, Int: some(), Float: float32(some()), Ints: []int64{some(), some(), some(), some()}[:rng.IntN(5)]})
		}
		for name, list := range texts {
			if rng.IntN(3) == 0 {
				n.Attributes = append(n.Attributes, &onnx.Attribute{Name: name, String: []byte(list[rng.IntN(len(list))])})
			}
		}
		m := &onnx.Model{Opsets: []*onnx.Opset{{Version: 8 + rng.Int64N(18)}}, Graph: &onnx.Graph{Nodes: []*onnx.Node{n}, Outputs: []*onnx.ValueInfo{{Name: "y"}}}}
		in := make(map[string]*array.Array)
		for k := range rng.IntN(6) {
			name := fmt.Sprint("x", k)
			m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name})
			n.Inputs = append(n.Inputs, name)
			shape := make([]int, rng.IntN(5))
			for d := range shape {
				shape[d] = rng.IntN(4)
			}
			in[name] = array.New([]array.DType{array.Float32, array.Int64, array.Bool}[rng.IntN(3)], shape...)
			for i := range in[name].Len() {
				in[name].SetFloat(i, float64(some()))
			}
		}
		checkHostile(t, m, in)
	}
}

func checkHostile(t *testing.T, m *onnx.Model, in map[string]*array.Array) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f, err := session.Model(t.Context(), m, session.Options{}, in)
	n := m.Graph.Nodes[0]
	if err != nil && !strings.Contains(err.Error(), n.Op) {
		t.Errorf("the error does not name %s: %v", n.Op, err)
	}
	if err == nil {
		if _, err = f.Call(t.Context(), in); errors.Is(err, lower.ErrInput) {
			t.Errorf("%s: %v", n.Op, err)
		}
	}
	runtime.ReadMemStats(&after)
	if took, bytes := time.Since(start), after.TotalAlloc-before.TotalAlloc; took > 20*time.Second || bytes > 4<<30 {
		t.Errorf("%s: %v and %d MB: %v", n.Op, took, bytes>>20, err)
	}
}

// TestDamagedOperators: cases that compute something, with an attribute, a number or a shape that is
// another one.
func TestDamagedOperators(t *testing.T) {
	list := readGolden(t)
	numbers := []float64{-1 << 63, -1e9, -3, -1, 0, 0.5, 1, 2, 5, 1e6, 1 << 31, 1e18, math.Inf(1), math.NaN()}
	rng := rand.New(rand.NewPCG(6, 6))
	for range longtest.Of(24, 500) {
		g := list[rng.IntN(len(list))]
		m := g.model(t)
		n := m.Graph.Nodes[0]
		in := make(map[string]*array.Array)
		for i, x := range g.Inputs {
			if x == nil {
				continue
			}
			a := x.array()
			switch {
			case rng.IntN(3) == 0 && a.Len() > 0:
				a.SetFloat(rng.IntN(a.Len()), numbers[rng.IntN(len(numbers))])
			case rng.IntN(6) == 0 && a.NDim() > 0:
				shape := slices.Clone(a.Shape())
				shape[rng.IntN(len(shape))] = rng.IntN(6)
				a = array.New(a.DType(), shape...)
			}
			in[fmt.Sprint("x", i)] = a
		}
		if len(n.Attributes) > 0 && rng.IntN(2) == 0 {
			a := n.Attributes[rng.IntN(len(n.Attributes))]
			v := numbers[rng.IntN(len(numbers))]
			if a.Int, a.Float = toInt(v), float32(v); len(a.Ints) > 0 {
				a.Ints[rng.IntN(len(a.Ints))] = a.Int
			}
		}
		checkHostile(t, m, in)
	}
}

// toInt makes an integer of a number, the largest one of infinity.
func toInt(v float64) int64 {
	if v >= 1<<63 || v != v {
		return math.MaxInt64
	}
	return int64(v)
}
