package standard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestTuneVerb: the verb writes a query that --query @FILE reads, for each kind of subject.
func TestTuneVerb(t *testing.T) {
	longtest.Only(t)
	t.Chdir(exampleFiles(t))
	for _, args := range [][]string{
		{"--shape", "x=2x3", "model.onnx"},
		{"net.config"},
		{"--frames-per-chunk=20", "net.config"},
		{"--need-model-derivative", "net.config"},
		{"--vars=x y: vector", "tanh(x*y) + exp(x)"},
	}[:longtest.Of(2, 5)] {
		out := nnopt(t, append([]string{"tune", fmt.Sprintf("--seconds=0.%d", longtest.Of(1, 5)), "--output=my.query"}, args...)...).ok(t)
		text, err := os.ReadFile("my.query")
		if err != nil || out.stdout != "" {
			t.Fatalf("%v, %s", err, out.stdout)
		}
		for _, want := range []string{"# " + args[len(args)-1] + ", tuned by nnopt tune on ", "# machine: ", "# base: +fast_run", "\n+fast_run"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%v: nothing about %q:\n%s", args, want, text)
			}
		}
		nnopt(t, "passes", "--query=@my.query").ok(t)
	}
	if out := nnopt(t, "tune", "--seconds=0.001", "-x").ok(t).stdout; !strings.Contains(out, "tuned: nothing pays") {
		t.Errorf("an expression with a minus: %s", out)
	}
}

// TestTuneCertain: where a classifier is certain about any noise, what it reads is compared; the file warns
// only if that does not depend on inputs, either.
func TestTuneCertain(t *testing.T) {
	longtest.Only(t)
	t.Chdir(t.TempDir())
	offset, err := lower.TensorOf("offset", array.Of([]float32{1000, 0, -1000}, 3), onnx.Float)
	if err != nil {
		t.Fatal(err)
	}
	floats := &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float}}
	for _, c := range []struct {
		size string
		warn bool
	}{{"x=2x3", false}, {"x=2x1", true}} {
		m := &onnx.Model{IRVersion: 8, Opsets: []*onnx.Opset{{Version: 17}}, Graph: &onnx.Graph{Name: "certain", Initializers: []*onnx.Tensor{offset},
			Nodes:  []*onnx.Node{{Op: "Add", Inputs: []string{"x", "offset"}, Outputs: []string{"z"}}, {Op: "Softmax", Inputs: []string{"z"}, Outputs: []string{"y"}}},
			Inputs: []*onnx.ValueInfo{{Name: "x", Type: floats}}, Outputs: []*onnx.ValueInfo{{Name: "y", Type: floats}}}}
		if c.warn { // the same for all rows of one column, and what is read as well
			m.Graph.Nodes = []*onnx.Node{{Op: "Softmax", Inputs: []string{"x"}, Outputs: []string{"z"}}, {Op: "Relu", Inputs: []string{"z"}, Outputs: []string{"y"}}}
			m.Graph.Initializers = nil
		}
		if err := m.WriteFile(t.Context(), "certain.onnx"); err != nil {
			t.Fatal(err)
		}
		out := nnopt(t, "tune", "--seconds=0.01", "--shape", c.size, "certain.onnx").ok(t).stdout
		if got := strings.Contains(out, "# WARNING"); got != c.warn {
			t.Errorf("%s: %s", c.size, out)
		}
	}
}

func TestTuneVerbFaults(t *testing.T) {
	t.Chdir(exampleFiles(t))
	for _, c := range []struct {
		args string
		want string
	}{
		{"tune", "MODEL or EXPR expected"},
		{"tune|--seconds=0|x", "--seconds=0: not a number between 0.001 and 1e+06"},
		{"tune|--seconds=nan|x", "--seconds=nan: not a number between"},
		{"tune|--error=0.1|x", "--error has no meaning without --allow"},
		{"tune|--error=-1|--allow=int8|x", "--error=-1: not a number between 0 and 1"},
		{"tune|--allow=reasoc|x", "reasoc is no tag that has to be allowed; did you mean reassoc?"},
		{"tune|--allow=fusion|x", "fusion is no tag that has to be allowed"},
		{"tune|--output=net.config|net.config", "net.config is an input and would be overwritten"},
		{"tune|--shape|x=2x3|net.config", "--shape has no meaning for a network"},
		{"tune|--input|x=a.npy|net.config", "--input has no meaning for a network"},
		{"tune|--query=+nothing_such|x", "nothing_such"},
		{"tune|--rule=(tanh x) => x|x", "unknown flag --rule"},
		{"tune|--trace=all|x", "unknown flag --trace"},
	} {
		nnopt(t, strings.Split(c.args, "|")...).fails(t, statusUsage, c.want)
	}
	nnopt(t, "tune", "none.onnx").fails(t, statusFault, "none.onnx")
}
