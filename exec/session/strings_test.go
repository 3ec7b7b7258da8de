package session_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

func texts(name string, list ...string) *onnx.Attribute {
	a := &onnx.Attribute{Name: name, Type: onnx.AttributeStrings}
	for _, s := range list {
		a.Strings = append(a.Strings, []byte(s))
	}
	return a
}

func text(name, s string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeString, String: []byte(s)}
}

// stringModel computes with strings x that are known only when a function runs.
func stringModel() *onnx.Model {
	m := model([]string{"x"}, []string{"y", "same", "parts", "counts", "back", "unique"},
		node("Constant", "", "dash", texts("value_strings", "-")),
		node("Constant", "", "ab", texts("value_strings", "ab-")),
		node("StringConcat", "x dash", "joined"),
		node("Equal", "joined ab", "same"),
		node("Where", "same joined x", "z"),
		node("StringNormalizer", "z", "y", text("case_change_action", "UPPER"), texts("stopwords", "THE")),
		node("StringSplit", "joined", "parts counts", text("delimiter", "-")),
		node("Size", "x", "n"),
		node("Cast", "n", "digits", whole("to", int64(onnx.String))),
		node("StringConcat", "digits digits", "twice"),
		node("Cast", "twice", "back", whole("to", int64(onnx.Int64))),
		node("Unique", "x", "unique"))
	for _, n := range m.Graph.Nodes[:2] {
		n.Inputs = nil
	}
	m.Opsets[0].Version = 20
	m.Graph.Inputs[0].Type = &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.String}}
	return m
}

// checkStrings checks what the model makes of ab, another word, and one that it leaves out.
func checkStrings(out map[string]*array.Array, word string) error {
	for name, want := range map[string][]string{"y": {"AB-", strings.ToUpper(word)}, "parts": {"ab", "", word, "", "The", ""}, "unique": {"The", "ab", word}} {
		if got := out[name].Strings(); !slices.Equal(got, want) {
			return fmt.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := fmt.Sprint(out["same"], out["counts"], out["back"]); got != "[True, False, False] [2, 2, 2] 33" {
		return fmt.Errorf("the others are %s", got)
	}
	return nil
}

// TestStrings: strings of runs are computed, moved and compared with those of the model. No op takes their numbers, and
// no number is taken for a string.
func TestStrings(t *testing.T) {
	for _, query := range []string{"none", "fast_run"} {
		s := session.New(stringModel(), session.Options{Optimizer: build(t, query)})
		for _, word := range []string{"x", "xé", "x"} {
			_, out, err := s.Run(t.Context(), map[string]*array.Array{"x": array.OfStrings([]string{"ab", word, "The"}, 3)})
			if err == nil {
				err = checkStrings(out, word)
			}
			if err != nil {
				t.Errorf("%s: %v", query, err)
			}
		}
		_, out, err := s.Run(t.Context(), map[string]*array.Array{"x": array.OfStrings([]string{"the", "THE"}, 2)})
		if err != nil || !slices.Equal(out["y"].Strings(), []string{""}) {
			t.Errorf("%s: nothing but words that are left out: %v, %v", query, out["y"], err)
		}
		if _, _, err := s.Run(t.Context(), map[string]*array.Array{"x": array.Of([]int64{0, 0, 0}, 3)}); err == nil {
			t.Error("integers as strings")
		}
	}
	bad := model([]string{"x"}, []string{"y"}, node("Max", "x x", "y"))
	bad.Graph.Inputs[0].Type.Tensor.Elem = onnx.String
	if _, _, err := session.New(bad, session.Options{}).Run(t.Context(), map[string]*array.Array{"x": array.OfStrings([]string{"a"}, 1)}); err == nil {
		t.Error("the larger one of two strings")
	}
}

// TestStringsAreForgotten: runs with other strings each, in several goroutines, compute what they should, and memory
// does not grow.
func TestStringsAreForgotten(t *testing.T) {
	s := session.New(stringModel(), session.Options{})
	runs := longtest.Of(1000, 3000)
	size := 1_500_000 / runs
	work := func(from, n int) {
		r := s.NewRunner()
		for i := range n {
			word := fmt.Sprintf("x%0*d", size, from+i)
			_, out, err := r.Run(t.Context(), map[string]*array.Array{"x": array.OfStrings([]string{"ab", word, "The"}, 3)})
			if err == nil {
				err = checkStrings(out, word)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}
	work(0, 10)
	before := heap()
	var wg sync.WaitGroup
	for k := range 2 {
		wg.Go(func() { work((k+1)<<20, runs) })
	}
	wg.Wait()
	// Each run makes three strings, which are 9 MB of all runs.
	if grown := int64(heap()) - int64(before); grown > 4<<20 {
		t.Errorf("%d bytes more after %d runs", grown, 2*runs)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestLoopOfStrings: a loop carries strings and stacks them.
func TestLoopOfStrings(t *testing.T) {
	body := &onnx.Graph{Inputs: names("i", "c", "s"), Outputs: names("more", "twice", "seen"), Nodes: []*onnx.Node{
		node("StringConcat", "s s", "twice"), node("Identity", "c", "more"), node("Identity", "twice", "seen")}}
	m := model([]string{"n", "x"}, []string{"y", "all"}, node("Loop", "n  x", "y all", &onnx.Attribute{Name: "body", Type: onnx.AttributeGraph, Graph: body}))
	m.Opsets[0].Version = 20
	m.Graph.Inputs[0].Type.Tensor.Elem, m.Graph.Inputs[1].Type.Tensor.Elem = onnx.Int64, onnx.String
	s := session.New(m, session.Options{})
	run := func(n int64, x string) (map[string]*array.Array, error) {
		_, out, err := s.Run(t.Context(), map[string]*array.Array{"n": array.Scalar(n), "x": array.OfStrings([]string{x}, 1)})
		return out, err
	}
	out, err := run(3, "ab")
	if err != nil || !slices.Equal(out["all"].Strings(), []string{"abab", "abababab", "abababababababab"}) || out["y"].Strings()[0] != "abababababababab" {
		t.Errorf("%v, %v", out, err)
	}
}
