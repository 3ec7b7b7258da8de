package standard_test

import (
	"os"
	"strings"
	"testing"
)

// TestTuneVerb: the verb writes a query that --query @FILE reads, for each kind of subject.
func TestTuneVerb(t *testing.T) {
	t.Chdir(exampleFiles(t))
	for _, args := range [][]string{
		{"net.config"},
		{"--frames-per-chunk=20", "net.config"},
		{"--need-model-derivative", "net.config"},
		{"--shape", "x=2x3", "model.onnx"},
		{"--vars=x y: vector", "tanh(x*y) + exp(x)"},
	} {
		out := nnopt(t, append([]string{"tune", "--seconds=0.5", "--output=my.query"}, args...)...).ok(t)
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
