package standard_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
)

// pooled is a graph of ONNX's nodes of no model. Its Pad and pool need not be two nodes, and its If is
// decided by a size.
const pooled = `onnx-model: none

graph {
    input %x : float[n,2,4,4]
    input %z : float[n,m]
    %w = constant {[0.5,1,-1,2]} : float[2,2,1,1]
    %s = constant {[2,4]} : float[2]
    %v = constant {[1,3]} : float[2]
    %p = constant {[0,0,1,1,0,0,1,1]} : int64[8]{0,0,1,1,0,0,1,1}
    %1 = Conv(%x, %w) : float[n,2,4,4]
    %2 = BatchNormalization(%1, %s, %s, %v, %v) : float[n,2,4,4]
    %3 = Relu(%2) : float[n,2,4,4]
    %4 = Pad(%3, %p) : float[n,2,6,6]
    %y = MaxPool{kernel_shape=ints[2,2]}(%4) : float[n,2,5,5]
    %5 = Shape{start=1}(%z) : int64[1]{m}
    %6 = constant {[3]} : int64[1]{3}
    %7 = Equal(%5, %6) : bool[1]
    %8 = Exp(%z) : float[n,m]
    %9 = Neg(%8) : float[n,m]
    %10 = Tanh(%z) : float[n,m]
    %q = If(%7, %9, %10) : float[n,m]
    return %y, %q
}
`

// TestModels: a model is made, optimized, written, and read again; what fails is repeated, made smaller
// and blamed.
func TestModels(t *testing.T) {
	t.Chdir(t.TempDir())
	save := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	save("model.graph", pooled)
	nnopt(t, "opt", "--query=none", "--output=model.onnx", "model.graph").ok(t)
	var report struct {
		Before, After map[string]int
		Verified      string
		Changes       []struct{ Pass, Rule, Old, New string }
	}
	decode := func(args ...string) {
		t.Helper()
		report.After, report.Before, report.Changes = nil, nil, nil
		if err := json.Unmarshal([]byte(nnopt(t, append([]string{"opt", "--json", "--output=out.onnx"}, args...)...).ok(t).stdout), &report); err != nil {
			t.Fatal(err)
		}
	}
	decode("model.onnx")
	if report.Before["BatchNormalization"] != 1 || report.After["BatchNormalization"] != 0 || report.After["If"] != 1 || !strings.HasPrefix(report.Verified, "verified") {
		t.Errorf("the report is %+v", report)
	}
	found := false
	for _, c := range report.Changes {
		found = found || c.Rule == "fuse_bn_into_conv" && c.Pass == "simplify_nodes"
	}
	if !found {
		t.Errorf("no change is by fuse_bn_into_conv: %+v", report.Changes)
	}
	// Sizes that are not asked for stay open; those that are decide.
	contains(t, nnopt(t, "info", "out.onnx").ok(t).stdout, "input x: float[n, 2, 4, 4]", "output q: float[n, m]")
	decode("--shape=z=2x3", "--query=+fast_run -upward", "model.onnx")
	if report.After["If"] != 0 || report.After["Tanh"] != 0 || report.After["Exp"] != 1 {
		t.Errorf("with z of 2x3: %+v", report.After)
	}
	contains(t, nnopt(t, "info", "out.onnx").ok(t).stdout, "input z: float[2, 3]", "output q: float[2, 3]")
	decode("--query=none", "model.onnx")
	a, err := os.ReadFile("model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile("out.onnx"); err != nil || string(a) != string(b) {
		t.Errorf("without passes the file is another one: %v", err)
	}
	// A graph file of a model is optimized as the model is.
	save("again.graph", nnopt(t, "graph", "--query=none", "model.onnx").ok(t).stdout)
	direct := nnopt(t, "graph", "model.onnx").ok(t).stdout
	if got := nnopt(t, "opt", "again.graph").ok(t).stdout; strings.Count(got, "\n") != strings.Count(direct, "\n") {
		t.Errorf("as a file of graphs it is\n%s, and was\n%s", got, direct)
	}
	for _, args := range [][]string{
		{"opt", "--trace=all", "--output=out.onnx", "model.onnx"}, {"opt", "--max-rewrites=0", "--output=out.onnx", "model.onnx"},
		{"profile", "--format=json", "model.onnx"}, {"profile", "--format=trace", "model.onnx"}, {"graph", "--every", "model.onnx"},
		{"graph", "--format=dot", "model.onnx"}, {"view", "model.onnx"}, {"opt", "--query=debug", "again.graph"},
	} {
		nnopt(t, args...).ok(t)
	}
	// A wrong rule: opt writes nothing, debug mode leaves a reproducer.
	wrong := "--rule=(Relu x) => (Exp x)"
	nnopt(t, "opt", wrong, "--output=wrong.onnx", "model.onnx").fails(t, 1, "the optimized model computes something else")
	if _, err := os.Stat("wrong.onnx"); err == nil {
		t.Error("a wrong model was written")
	}
	nnopt(t, "opt", "--query=debug", wrong, "again.graph").fails(t, 1, "a reproducer is in nnopt-failure-1.graph")
	nnopt(t, "reproduce", "nnopt-failure-1.graph").fails(t, 1, "it still fails")
	contains(t, nnopt(t, "bisect", "nnopt-failure-1.graph").ok(t).stdout, "to blame: rewrite", "rule1: Relu(")
	contains(t, nnopt(t, "reduce", "nnopt-failure-1.graph").ok(t).stderr, "1 applies instead of")
	// Faults say where and what to do.
	nnopt(t, "opt", "--shape=w=1", "--output=out.onnx", "model.onnx").fails(t, 1, "input w", "no such input")
	nnopt(t, "opt", "--shape=z=1", "--output=out.onnx", "model.onnx").fails(t, 1, "input z", "2 dimensions")
	nnopt(t, "opt", "--set=v=1", "--output=out.onnx", "model.onnx").fails(t, 2, "the model has no input v; it has x, z")
	save("broken.onnx", "not a model")
	nnopt(t, "opt", "--output=out.onnx", "broken.onnx").fails(t, 1, "broken.onnx")
}

// TestModelRuleFails: the reproducer of a model whose optimization fails has the rules of the command line.
func TestModelRuleFails(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := writeONNX(t.Context(), "m.onnx"); err != nil {
		t.Fatal(err)
	}
	nnopt(t, "opt", "--rule=(Relu x) => (Neg (Relu x))", "--output=out.onnx", "m.onnx").fails(t, statusFault, "rules do not terminate", "a reproducer is in nnopt-failure-1.graph")
	nnopt(t, "reproduce", "nnopt-failure-1.graph").fails(t, statusFault, "it still fails: no-end in canonicalize/rule1")
}

// TestModelRules: the machine finds two rules that others have shipped, and what is right instead.
func TestModelRules(t *testing.T) {
	longtest.Only(t)
	const pad = "&& explicit_pads(a) && image_of_size(r) && within_kernel(a, n) => (MaxPool{padded(a, n)} r)"
	for rule, class := range map[string]string{
		"(Reshape{a} (Reshape{b} x _) s) => (Reshape{a} x s)":                      "wrong",
		"(Reshape{a} (Reshape{b} x _) s) && copies_none(a, s) => (Reshape{a} x s)": "exact",
		"(MaxPool{a} n@(Pad{m} r ...)) && zero_pads(m, n) " + pad:                  "wrong",
		"(MaxPool{a} n@(Pad{m} r@(Relu _) ...)) && zero_pads(m, n) " + pad:         "exact",
		"(ArgMax{a} (Softmax{a} x)) => (ArgMax{a} x)":                              "wrong",
		"(Transpose{p} (Transpose{q} x)) => x":                                     "wrong",
		"(Add x 0) => x":                                                           "wrong",
	} {
		r := nnopt(t, "rule", "check", "--dialect=onnx", rule)
		if got := strings.Fields(strings.TrimPrefix(r.stdout, "!")); len(got) == 0 || got[0] != class {
			t.Errorf("%s: %s, not %s", rule, r.stdout, class)
		}
	}
}

// TestOtherValues: sequences and optional values are drawn, compared, and written with reproducers, also as outputs.
func TestOtherValues(t *testing.T) {
	t.Chdir(t.TempDir())
	graph := file(t, "other.graph", `onnx-model: none

graph {
    input %x : float[n,2]
    input %s : opaque[seq(float[n,2])]
    input %o : opaque[optional(float[n])]
    %h = OptionalHasElement(%o) : bool[]
    %nh = Not(%h) : bool[]
    %nx = Neg(%x) : float[n,2]
    %t = SequenceInsert(%s, %nx) : opaque[seq(float[n,2])]
    %u = SequenceConstruct(%nx, %x) : opaque[seq(float[n,2])]
    %i = Identity(%o) : opaque[optional(float[n])]
    return %h, %t, %u, %s, %i, %nh
}
`)
	nnopt(t, "opt", "--query=none", "--output=other.onnx", graph).ok(t)
	contains(t, nnopt(t, "opt", "--output=out.onnx", "other.onnx").ok(t).stdout, "eliminate_identity", "\nverified on random inputs: both models compute the same\n")
	nnopt(t, "opt", "--query=debug", graph).ok(t)
	contains(t, nnopt(t, "reproduce", "--query=fast_run", graph).ok(t).stderr, "it does not fail")
	const wrong = "--rule=(Neg x) => x"
	nnopt(t, "opt", wrong, "--output=out.onnx", "other.onnx").fails(t, statusFault, "the optimized model computes something else: output 1 is sequence([[")
	nnopt(t, "opt", "--query=debug", wrong, graph).fails(t, statusFault, "a reproducer is in nnopt-failure-1.graph (values in canonicalize/rule1)")
	nnopt(t, "reproduce", "nnopt-failure-1.graph").fails(t, statusFault, "it still fails")
	contains(t, nnopt(t, "bisect", "nnopt-failure-1.graph").ok(t).stdout, "rule1: Neg(x) -> x")
	contains(t, nnopt(t, "reduce", "nnopt-failure-1.graph").ok(t).stderr, "1 applies instead of")
	nnopt(t, "reproduce", "nnopt-failure-1.reduced.graph").fails(t, statusFault, "it still fails")
	// An optional input is tried with a value and without. What asks for the value can't do without it.
	nnopt(t, "opt", "--rule=(Not x) => (Xor x x)", "--output=out.onnx", "other.onnx").fails(t, statusFault, "the optimized model computes something else: output 5 is False, not True")
}

// TestCodes: opt says how far codes of weights move outputs, and refuses what moves them further than the setting says.
func TestCodes(t *testing.T) {
	t.Chdir(t.TempDir())
	// Weights of two products, which differ by 1.
	weights := make([]string, 2*32*32)
	for i := range 32 * 32 {
		weights[i], weights[i+32*32] = strconv.Itoa(i*37%101), strconv.Itoa(i*37%101+1)
	}
	graph := func(name, output string) {
		text := fmt.Sprintf(`onnx-model: none

graph {
    input %%x : float[n,32]
    %%w = constant {[%s]} : float[32,32]
    %%v = constant {[%s]} : float[32,32]
    %%y = MatMul(%%x, %%w) : float[n,32]
    %%z = MatMul(%%x, %%v) : float[n,32]
    %%d = Sub(%%y, %%z) : float[n,32]
    return %%%s
}
`, strings.Join(weights[:32*32], ","), strings.Join(weights[32*32:], ","), output)
		nnopt(t, "opt", "--query=none", "--output="+name+".onnx", file(t, name+".graph", text)).ok(t)
	}
	graph("product", "y")
	graph("difference", "d")
	const query = "--query=+fast_run +matmul_nbits -reassoc"
	out := nnopt(t, "opt", query, "--output=codes.onnx", "product.onnx").ok(t).stdout
	contains(t, out, "com.microsoft.MatMulNBits", "\nverified on random inputs: outputs are off by up to ", " of their norm, since weights are codes of few bits\n")
	nnopt(t, "opt", query, "--output=codes.onnx", "difference.onnx").fails(t, statusFault, "weights that are codes of few bits change outputs by up to ", "matmul_nbits{error=…} allows more than 25 %")
	contains(t, nnopt(t, "opt", query+" matmul_nbits{error=0.001}", "--output=floats.onnx", "difference.onnx").ok(t).stdout, "verified: nothing has changed")
}

// TestSetOthers: flags give sequences and optional values, to run a model and to fix them.
func TestSetOthers(t *testing.T) {
	longtest.Only(t)
	t.Chdir(t.TempDir())
	graph := file(t, "set.graph", `onnx-model: none

graph {
    input %s : opaque[seq(float[n])]
    input %o : opaque[optional(float[n])]
    %h = OptionalHasElement(%o) : bool[]
    %l = SequenceLength(%s) : int64[]
    %i = Identity(%s) : opaque[seq(float[n])]
    return %h, %l, %i
}
`)
	nnopt(t, "opt", "--query=none", "--output=set.onnx", graph).ok(t)
	for _, c := range []struct{ s, o, want string }{
		{"1,2;3", "4", "h: bool 1\nl: int64 2\ni[0]: float[2] 1 2\ni[1]: float[1] 3\n"},
		{"1,2", "4,5", "h: bool 1\nl: int64 1\ni[0]: float[2] 1 2\n"},
		{"", "none", "h: bool 0\nl: int64 0\ni: no tensors\n"},
	} {
		set := []string{"--set=s=" + c.s, "--set=o=" + c.o}
		if out := nnopt(t, append([]string{"eval", "set.onnx"}, set...)...).ok(t).stdout; out != c.want {
			t.Errorf("%q: %s, want %s", set, out, c.want)
		}
		// What is fixed does not depend on what is given.
		contains(t, nnopt(t, append([]string{"opt", "--output=fixed.onnx", "set.onnx"}, set...)...).ok(t).stdout, "\n      2 by --set\n", "\nverified on random inputs: both models compute the same\n")
		if out := nnopt(t, "eval", "fixed.onnx", "--set=s=7", "--set=o=7").ok(t).stdout; out != c.want {
			t.Errorf("%q: %s, want %s", set, out, c.want)
		}
		// A file of graphs keeps what is given.
		text := nnopt(t, append([]string{"graph", "--query=none", "set.onnx"}, set...)...).ok(t).stdout
		contains(t, text, fmt.Sprintf("\nonnx-values: o=%s s=%s\n", c.o, c.s))
		if err := os.WriteFile("given.graph", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		contains(t, nnopt(t, "reproduce", "--query=debug", "given.graph").ok(t).stderr, "it does not fail")
	}
	contains(t, nnopt(t, "eval", "--shape=s=2", "--shape=o=3", "set.onnx").ok(t).stdout, "l: int64 2\ni[0]: float[2] 0.1", "i[1]: float[2] ")
	nnopt(t, "eval", "--set=s=none", "--shape=o=1", "set.onnx").fails(t, statusUsage, "--set s: it is seq(float[n]), which has to have a value")
	nnopt(t, "eval", "--set=s=1", "--set=o=1;2", "set.onnx").fails(t, statusUsage, "--set o: 2 tensors, and it is optional(float[n])")
	nnopt(t, "opt", "--shape=s=1", "set.onnx").fails(t, statusUsage, "--shape s: it is seq(float[n]), of which only the value can be fixed, by --set")
}

// TestUnsortedModel: a file whose nodes are out of order is optimized as it is run, unless they form a circle.
func TestUnsortedModel(t *testing.T) {
	t.Chdir(t.TempDir())
	node := func(op, input, output string) *onnx.Node {
		return &onnx.Node{Op: op, Inputs: []string{input}, Outputs: []string{output}}
	}
	three := int64(3)
	of := func(name string) *onnx.ValueInfo {
		return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float, Shape: &onnx.Shape{Dims: []*onnx.Dim{{Value: &three}}}}}}
	}
	write := func(name string, nodes ...*onnx.Node) {
		t.Helper()
		m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 13}},
			Graph: &onnx.Graph{Name: "g", Inputs: []*onnx.ValueInfo{of("x")}, Outputs: []*onnx.ValueInfo{of("y")}, Nodes: nodes}}
		if err := m.WriteFile(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	write("unsorted.onnx", node("Relu", "s", "y"), node("Exp", "x", "s"))
	if out := nnopt(t, "opt", "--output=sorted.onnx", "unsorted.onnx").ok(t).stdout; !strings.Contains(out, "verified") {
		t.Error(out)
	}
	m, err := onnx.ReadFile("sorted.onnx")
	if err != nil || onnx.Check(m) != nil {
		t.Errorf("%v, %v", err, onnx.Check(m))
	}
	write("circle.onnx", node("Relu", "s", "y"), node("Exp", "y", "s"))
	if r := nnopt(t, "opt", "circle.onnx"); r.status == 0 || !strings.Contains(r.stderr, "depends on its own results") {
		t.Errorf("%d: %s", r.status, r.stderr)
	}
}
