package session_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// summing is a model with a cache, a counter of runs and a mask: logits are sums of all positions.
func summing() *onnx.Model {
	m := model([]string{"input_ids", "attention_mask", "position_ids", "past_key_values.0.key", "h"}, []string{"logits", "present.0.key", "hn", "last"},
		constant("two", array.Of([]int64{2}, 1), onnx.Int64), constant("one", array.Of([]float32{1}, 1), onnx.Float),
		node("Cast", "input_ids", "x", whole("to", 1)), node("Unsqueeze", "x two", "x3"),
		node("Concat", "past_key_values.0.key x3", "present.0.key", whole("axis", 1)),
		node("Cast", "attention_mask", "mask", whole("to", 1)), node("Unsqueeze", "mask two", "mask3"),
		node("Mul", "present.0.key mask3", "seen"), node("ReduceSum", "seen", "logits"), node("Add", "h one", "hn"), node("Identity", "position_ids", "last"))
	ids := func(dims ...any) *onnx.Type { t := floats(dims...); t.Tensor.Elem = onnx.Int64; return t }
	for i, t := range []*onnx.Type{ids("batch", "n"), ids("batch", "all"), ids("batch", "n"), floats("batch", "past", 1), floats(1)} {
		m.Graph.Inputs[i].Type = t
	}
	return m
}

// TestStateful: states go on from run to run, and from forks, which don't see each other.
func TestStateful(t *testing.T) {
	m := summing()
	want := []session.State{{Output: "present.0.key", Input: "past_key_values.0.key"}, {Output: "hn", Input: "h"}}
	if got := session.FindStates(m); !slices.Equal(got, want) {
		t.Fatalf("states %v, want %v", got, want)
	}
	s := session.New(m, session.Options{Options: lower.Options{AnySizes: true}, Optimizer: build(t, "fast_run")})
	r, err := s.NewStateful()
	if err != nil {
		t.Fatal(err)
	}
	step := func(r *session.Stateful, ids ...int64) (sum float64, runs float64, last int64) {
		t.Helper()
		out, err := r.Run(t.Context(), map[string]*array.Array{"input_ids": array.Of(ids, 1, len(ids))})
		if err != nil {
			t.Fatal(err)
		}
		p := out["last"]
		return out["logits"].Float(0), out["hn"].Float(0), p.Int(p.Len() - 1)
	}
	for round := range 2 {
		sum := 0.0
		if got, runs, last := step(r, 1, 2, 3); got != 6 || runs != 1 || last != 2 {
			t.Errorf("round %d: the prompt: %v, %v, %d", round, got, runs, last)
		}
		sum = 6
		for i := range int64(20) {
			sum += float64(i)
			if got, runs, last := step(r, i); got != sum || runs != float64(i)+2 || last != 3+i {
				t.Fatalf("round %d: step %d: %v, %v, %d, want %v", round, i, got, runs, last, sum)
			}
		}
		fork := r.Fork()
		if got, _, _ := step(fork, 1000); got != sum+1000 || fork.Positions() != 24 {
			t.Errorf("a fork: %v, %d positions", got, fork.Positions())
		}
		if got, _, _ := step(r, 5); got != sum+5 || r.Positions() != 24 {
			t.Errorf("beside a fork: %v, %d positions", got, r.Positions())
		}
		r.Limit = 25
		step(r, 0)
		if _, err := r.Run(t.Context(), map[string]*array.Array{"input_ids": array.Of([]int64{1}, 1, 1)}); !errors.Is(err, session.ErrLimit) || r.Positions() != 25 {
			t.Errorf("beyond the limit: %v, %d positions", err, r.Positions())
		}
		r.Limit = 0
		r.Reset()
	}
	if made, err := s.Functions(); made > 4 || err != nil { // of sizes 0, 1 and others
		t.Errorf("%d functions: %v", made, err)
	}
	for _, states := range [][]session.State{{{Output: "nothing", Input: "h"}}, {{Output: "hn", Input: "nothing"}}} {
		if _, err := s.NewStateful(states...); !errors.Is(err, lower.ErrInput) {
			t.Errorf("%v: %v", states, err)
		}
	}
}

// A model with a cache sums all that it has seen. Two continuations of one prompt don't see each other.
func ExampleStateful() {
	s := session.New(summing(), session.Options{Options: lower.Options{AnySizes: true}})
	r, err := s.NewStateful()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.States())
	run := func(r *session.Stateful, ids ...int64) {
		out, err := r.Run(context.Background(), map[string]*array.Array{"input_ids": array.Of(ids, 1, len(ids))})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(out["logits"], "after", r.Positions(), "positions")
	}
	run(r, 1, 2, 3)
	other := r.Fork()
	run(r, 10)
	run(other, 20)
	run(r, 10)
	// Output:
	// [{present.0.key past_key_values.0.key} {hn h}]
	// [[[6.0]]] after 3 positions
	// [[[16.0]]] after 4 positions
	// [[[26.0]]] after 4 positions
	// [[[26.0]]] after 5 positions
}

// TestStatefulAttention: a decoder of opset 24 has one function for steps of two positions and more, with the bits of
// functions for their sizes; the cache is appended to in place.
func TestStatefulAttention(t *testing.T) {
	m := model([]string{"x", "cos", "sin", "mask", "past_key_values.0.key", "past_key_values.0.value"}, []string{"y", "present.0.key", "present.0.value"},
		node("RotaryEmbedding", "x cos sin", "q", whole("num_heads", 4)),
		node("Slice", "q zero sixteen last", "k"), constant("zero", array.Of([]int64{0}, 1), onnx.Int64), constant("sixteen", array.Of([]int64{16}, 1), onnx.Int64), constant("last", array.Of([]int64{2}, 1), onnx.Int64),
		node("Attention", "q k k mask past_key_values.0.key past_key_values.0.value", "y present.0.key present.0.value", whole("q_num_heads", 4), whole("kv_num_heads", 2), whole("is_causal", 1)))
	m.Opsets[0].Version = 24
	for i, dims := range [][]any{{"n", "s", 32}, {"n", "s", 4}, {"n", "s", 4}, {"s", "all"}, {"n", 2, "past", 8}, {"n", 2, "past", 8}} {
		m.Graph.Inputs[i].Type = floats(dims...)
	}
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(shape ...int) *array.Array {
		a := array.New(array.Float32, shape...)
		for i := range a.Len() {
			a.SetFloat(i, r.Float64()-0.5)
		}
		return a
	}
	s := session.New(m, session.Options{Options: lower.Options{AnySizes: true}, Optimizer: build(t, "fast_run")})
	stateful, err := s.NewStateful()
	if err != nil {
		t.Fatal(err)
	}
	key, value := draw(2, 2, 3, 8), draw(2, 2, 3, 8)
	for step := range 12 {
		n := 2 + step%3
		in := map[string]*array.Array{"x": draw(2, n, 32), "cos": draw(2, n, 4), "sin": draw(2, n, 4), "mask": draw(n, key.Dim(2)+n)}
		all := maps.Clone(in)
		all["past_key_values.0.key"], all["past_key_values.0.value"] = key, value
		_, want, err := session.New(m, session.Options{Optimizer: build(t, "fast_run")}).Run(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		if step == 0 {
			in = all
		}
		got, err := stateful.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range want {
			if !array.Equal(got[name], v) {
				t.Fatalf("step %d: %s is %v, want %v", step, name, got[name], v)
			}
		}
		key, value = want["present.0.key"], want["present.0.value"]
	}
	if made, err := s.Functions(); made != 1 || err != nil {
		t.Errorf("%d functions: %v", made, err)
	}
}
