package session_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestSpend: weights that passes have made of those of a convolution and a normalization are gone after the first call,
// in which they were packed, and later calls do not need them. Without Spend they stay.
func TestSpend(t *testing.T) {
	const channels = 512
	m := model([]string{"x"}, []string{"y"}, node("Conv", "x w", "c"), node("BatchNormalization", "c s s s s", "y"))
	for name, shape := range map[string][]int{"w": {channels, channels, 1, 1}, "s": {channels}} {
		a := array.New(array.Float32, shape...)
		for i, s := 0, array.Slice[float32](a); i < len(s); i++ {
			s[i] = float32(i%7) + 1
		}
		w, err := lower.TensorOf(name, a, onnx.Float)
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.Initializers = append(m.Graph.Initializers, w)
	}
	in := map[string]*array.Array{"x": array.Full(array.Float32, 1, 1, channels, 8, 8)}
	const weights = channels * channels * 4
	var results []*array.Array
	for _, spend := range []bool{false, true} {
		f, err := session.Model(t.Context(), m, session.Options{Optimizer: build(t, "fast_run"), Spend: spend}, in)
		if err != nil {
			t.Fatal(err)
		}
		heap() // what pools keep goes with the second collection
		before := heap()
		for range 2 {
			out, err := f.NewRunner().Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, out["y"])
		}
		heap()
		// What was packed takes as much as what it was packed from.
		if more := int(heap()) - int(before); (more < weights/2) != spend {
			t.Errorf("spend %t: %d bytes more than before the first call, for weights of %d", spend, more, weights)
		}
		runtime.KeepAlive(f)
	}
	if slices.ContainsFunc(results, func(y *array.Array) bool { return !array.Equal(y, results[0]) }) {
		t.Error("another result")
	}
	// Functions of a session may have these constants in common, so they keep them.
	s := session.New(m, session.Options{Optimizer: build(t, "fast_run"), Spend: true})
	for size := range 3 {
		in["x"] = array.Full(array.Float32, 1, 1, channels, 8, 8+size)
		if _, _, err := s.Run(t.Context(), in); err != nil {
			t.Error(err)
		}
	}
}
