package session_test

import (
	"errors"
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

// node makes a node of an operator.
func node(op string, inputs, outputs string, attributes ...*onnx.Attribute) *onnx.Node {
	split := func(s string) []string { return strings.Split(s, " ") }
	return &onnx.Node{Op: op, Inputs: split(inputs), Outputs: split(outputs), Attributes: attributes}
}

func whole(name string, v int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeInt, Int: v}
}

func constant(name string, a *array.Array, elem onnx.DataType) *onnx.Node {
	t, err := lower.TensorOf("", a, elem)
	if err != nil {
		panic(err)
	}
	return &onnx.Node{Op: "Constant", Outputs: []string{name}, Attributes: []*onnx.Attribute{{Name: "value", Type: onnx.AttributeTensor, Tensor: t}}}
}

// names returns inputs or outputs of a graph, of which nothing but the names is known.
func names(list ...string) (infos []*onnx.ValueInfo) {
	for _, name := range list {
		infos = append(infos, &onnx.ValueInfo{Name: name})
	}
	return infos
}

// doubling is a loop that doubles x until it is 100, and stacks what it sees. most is an input, or "".
func doubling(most string) *onnx.Model {
	zero := int64(1)
	body := &onnx.Graph{Inputs: names("i", "c", "s"), Outputs: names("more", "twice", "seen"), Nodes: []*onnx.Node{
		node("Add", "s s", "twice"), node("Less", "twice limit", "more"), node("Identity", "s", "seen")}}
	body.Outputs[2].Type = &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: &onnx.Shape{Dims: []*onnx.Dim{{Value: &zero}}}}}
	m := model([]string{"x"}, []string{"y", "all"},
		constant("limit", array.Of([]float32{100}, 1), onnx.Float),
		node("Loop", most+"  x", "y all", &onnx.Attribute{Name: "body", Type: onnx.AttributeGraph, Graph: body}))
	if most != "" {
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: most})
	}
	return m
}

// TestLoop: a condition may depend on what is carried.
func TestLoop(t *testing.T) {
	m := doubling("")
	in := map[string]*array.Array{"x": array.Of([]float32{10}, 1)}
	f, err := session.Model(t.Context(), m, session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Call(t.Context(), in)
	if err != nil || !slices.Equal(out["y"].Floats(), []float64{160}) || !slices.Equal(out["all"].Floats(), []float64{10, 20, 40, 80}) || !slices.Equal(out["all"].Shape(), []int{4, 1}) {
		t.Errorf("%v %v, %v", out["y"], out["all"], err)
	}
	// The same graph has other numbers of rounds.
	for first, want := range map[float32][]float64{60: {60}, 3: {3, 6, 12, 24, 48, 96}, 200: {200}} {
		out, err := f.Call(t.Context(), map[string]*array.Array{"x": array.Of([]float32{first}, 1)})
		if last := 2 * want[len(want)-1]; err != nil || !slices.Equal(out["y"].Floats(), []float64{last}) || !slices.Equal(out["all"].Floats(), want) {
			t.Errorf("from %v: %v %v, %v", first, out["y"], out["all"], err)
		}
	}
}

// TestNoIterations: what is stacked then is empty, with the declared shape.
func TestNoIterations(t *testing.T) {
	in := map[string]*array.Array{"x": array.Of([]float32{10}, 1), "n": array.Scalar(int64(0))}
	f, err := session.Model(t.Context(), doubling("n"), session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Call(t.Context(), in)
	if err != nil || out["y"].Float(0) != 10 || !slices.Equal(out["all"].Shape(), []int{0, 1}) {
		t.Errorf("%v %v, %v", out["y"], out["all"], err)
	}
}

// TestEndless: a loop without an end ends soon, as a fault.
func TestEndless(t *testing.T) {
	longtest.Only(t)
	in := map[string]*array.Array{"x": array.Of([]float32{0}, 1)}
	start := time.Now()
	f, err := session.Model(t.Context(), doubling(""), session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Call(t.Context(), in); !errors.Is(err, lower.ErrUnsupported) || time.Since(start) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

// TestScanBack: scanned from the end, and stacked in that order or from the end, along an axis.
func TestScanBack(t *testing.T) {
	list := func(name string, v ...int64) *onnx.Attribute {
		return &onnx.Attribute{Name: name, Type: onnx.AttributeInts, Ints: v}
	}
	body := &onnx.Graph{Inputs: []*onnx.ValueInfo{{Name: "s"}, {Name: "e"}}, Outputs: []*onnx.ValueInfo{{Name: "t"}, {Name: "u"}, {Name: "v"}},
		Nodes: []*onnx.Node{node("Add", "s e", "t"), node("Identity", "t", "u"), node("Identity", "t", "v")}}
	m := model([]string{"s0", "x"}, []string{"s1", "y", "z"}, node("Scan", "s0 x", "s1 y z", whole("num_scan_inputs", 1), list("scan_input_axes", 1),
		list("scan_input_directions", 1), list("scan_output_axes", 1, 0), list("scan_output_directions", 0, 1),
		&onnx.Attribute{Name: "body", Type: onnx.AttributeGraph, Graph: body}))
	in := map[string]*array.Array{"s0": array.Of([]float32{0, 0}, 2), "x": array.Of([]float32{1, 2, 3, 10, 20, 30}, 2, 3)}
	f, err := session.Model(t.Context(), m, session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Call(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]float64{"s1": {6, 60}, "y": {3, 5, 6, 30, 50, 60}, "z": {6, 60, 5, 50, 3, 30}} {
		if !slices.Equal(out[name].Floats(), want) {
			t.Errorf("%s is %v, and should be %v", name, out[name].Floats(), want)
		}
	}
}

// TestSequences: places count from the end, too.
func TestSequences(t *testing.T) {
	number := func(name string, v int64) *onnx.Node { return constant(name, array.Scalar(v), onnx.Int64) }
	m := model([]string{"x"}, []string{"last", "n", "joined", "stacked"},
		number("two", 2), number("minus1", -1), number("minus2", -2),
		node("SplitToSequence", "x two", "parts"), // 1 2, 3 4, 5
		node("SequenceAt", "parts minus1", "last"),
		node("SequenceErase", "parts minus1", "pairs"),
		node("SequenceInsert", "pairs last minus1", "more"), // 1 2, 5, 3 4
		node("SequenceErase", "more minus2", "again"),
		node("SequenceLength", "more", "n"),
		node("ConcatFromSequence", "more", "joined", whole("axis", 0)),
		node("ConcatFromSequence", "again", "stacked", whole("axis", -1), whole("new_axis", 1)))
	in := map[string]*array.Array{"x": array.Of([]float32{1, 2, 3, 4, 5}, 5)}
	f, err := session.Model(t.Context(), m, session.Options{}, in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.Call(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]float64{"last": {5}, "n": {3}, "joined": {1, 2, 5, 3, 4}, "stacked": {1, 3, 2, 4}} {
		if !slices.Equal(out[name].Floats(), want) {
			t.Errorf("%s is %v, and should be %v", name, out[name].Floats(), want)
		}
	}
	for _, wrong := range []*onnx.Node{node("Relu", "parts", "last"), node("SequenceAt", "x two", "last"), node("SequenceAt", "parts minus9", "last")} {
		m := model([]string{"x"}, []string{"last"}, number("two", 2), number("minus9", -9), node("SplitToSequence", "x two", "parts"), wrong)
		if _, err := session.Model(t.Context(), m, session.Options{}, in); err == nil || !strings.Contains(err.Error(), wrong.Op) {
			t.Errorf("%s: %v", wrong.Op, err)
		}
	}
}

// TestSequenceInput: a sequence is given and returned by its items, and an optional value by a tensor.
func TestSequenceInput(t *testing.T) {
	float := &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}
	m := model(nil, []string{"more", "has"}, node("SequenceInsert", "list x", "more"), node("OptionalHasElement", "maybe", "has"))
	m.Graph.Inputs = []*onnx.ValueInfo{{Name: "x", Type: float}, {Name: "list", Type: &onnx.Type{Sequence: &onnx.ElementType{Elem: float}}},
		{Name: "maybe", Type: &onnx.Type{Optional: &onnx.ElementType{Elem: float}}}}
	for n := range 3 {
		in := map[string]*array.Array{"x": array.Scalar(float32(9))}
		for i := range n {
			in[lower.Item("list", i)] = array.Of([]float32{float32(i)}, 1)
		}
		if n == 2 {
			in["maybe"] = in["x"]
		}
		f, err := session.Model(t.Context(), m, session.Options{}, in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := f.Call(t.Context(), in)
		if err != nil || len(out) != n+2 || out[lower.Item("more", n)].Float(0) != 9 || out["has"].Float(0) != float64(n/2) {
			t.Errorf("%d items: %v, %v", n, out, err)
		}
	}
	gap := map[string]*array.Array{"x": array.Scalar(float32(9)), "list[1]": array.Scalar(float32(1))}
	if _, err := session.Model(t.Context(), m, session.Options{}, gap); !errors.Is(err, lower.ErrInput) || !strings.Contains(err.Error(), "list[1]") {
		t.Errorf("an item behind a missing one: %v", err)
	}
}
