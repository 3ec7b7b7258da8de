package standard_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/standard"
)

// with returns a program over the standard database with other rules and passes.
func with(t *testing.T, plant ...any) standard.Program {
	return standard.Program{Database: func() (*optdb.SequenceDB, error) {
		db := passes.Default()
		for _, p := range plant {
			var err error
			switch p := p.(type) {
			case rewrite.NodeRewriter:
				var group *optdb.EquilibriumDB
				if group, err = optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize"); err == nil {
					err = group.Register(rewrite.Describe(p).Name, p, "fast_run")
				}
			case rewrite.GraphRewriter:
				err = db.Register(rewrite.Describe(p).Name, p, 1.7, "fast_run")
			}
			if err != nil {
				return nil, err
			}
		}
		return db, nil
	}}
}

// onTanh is a rule for hyperbolic tangents.
func onTanh(name string, fn func(a *fgraph.Apply) rewrite.Result) rewrite.Rule {
	return rewrite.Rule{Name: name, Doc: "Does harm.", On: []rewrite.Track{rewrite.TrackOp(tensor.OpFor(array.Tanh))},
		Fn: func(_ *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) { return fn(a), nil }}
}

// careless computes the hyperbolic tangent, and overwrites its argument without saying so.
type careless struct{}

func (careless) String() string { return "careless" }
func (careless) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return []fgraph.Type{in[0].Type()}, nil
}
func (careless) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		*out[0] = *in[0].Clone()
		for i := range in[0].Len() {
			in[0].SetFloat(i, 7)
		}
		return nil
	}, nil
}

// longExpression has three applies for each of n terms, with hyperbolic tangents in the middle.
func longExpression(n int) string {
	terms := make([]string, n)
	for i := range terms {
		terms[i] = fmt.Sprintf("exp(x*%d)*y", i)
		if i%100 == 50 {
			terms[i] = "sqr(tanh(x*y))"
		}
	}
	return strings.Join(terms, " + ")
}

// TestReproducers: a fault of a pass over expressions is found by expr, and written to a file that
// fails in the same way; it is reduced and bisected by a command each.
func TestReproducers(t *testing.T) {
	longtest.Only(t)
	long, shorter := longExpression(330), longExpression(60)
	if !longtest.Enabled() {
		long = "exp(x)*y + sqr(tanh(x*y)) - sqrt(abs(y))"
		shorter = long
	}
	damage := rewrite.Global{Name: "damage", Doc: "Changes operands behind the back of the graph.", Fn: func(_ context.Context, h *rewrite.Handle) error {
		for a := range h.Graph().Applies() {
			if a.Op() == fgraph.Op(tensor.OpFor(array.Tanh)) {
				a.Inputs()[0] = a.Out()
			}
		}
		return nil
	}}
	for _, c := range []struct {
		name, query string
		cfg         standard.Program
		want        string // the failure
		blame       string // what bisect prints, a part
	}{
		{"a wrong rule", "debug", with(t, pattern.Must(tensorpass.Vocabulary(), "(tanh x)", "(sin x)", pattern.Named("wrong"))), "values in canonicalize/wrong", "canonicalize/wrong: tanh("},
		{"a rule that panics", "+fast_run", with(t, onTanh("panics", func(a *fgraph.Apply) rewrite.Result { return rewrite.Replace(a.Inputs()[1]) })), "panic in canonicalize/panics", "to blame: canonicalize/panics, without any rewrite before\nat: tanh("},
		{"rules without end", "+fast_run", with(t, pattern.Must(tensorpass.Vocabulary(), "(tanh x)", "(sin x)", pattern.Named("there")), pattern.Must(tensorpass.Vocabulary(), "(sin x)", "(tanh x)", pattern.Named("back"))), "no-end in canonicalize/back", "to blame: rewrite "},
		{"a proposal of another type", "+fast_run", with(t, onTanh("mistyped", func(*fgraph.Apply) rewrite.Result { return rewrite.Replace(tensor.Scalar("s")) })), "proposal in canonicalize/mistyped", "canonicalize/mistyped\nat: tanh("},
		{"a pass that damages the graph", "debug", with(t, damage), "damage in damage", "to blame: pass damage"},
		{"a pass that overwrites what is read", "debug", with(t, rewrite.In2Out("overwrite", onTanh("in_place", func(a *fgraph.Apply) rewrite.Result {
			return rewrite.Replace(tensor.MustApply(careless{}, a.Inputs()...))
		}))), "declaration in overwrite/in_place", "careless("},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			text := long
			if strings.HasPrefix(c.want, "no-end") {
				text = shorter // each run makes as many rewrites as may be, eight for each apply
			}
			failed := call(c.cfg, "expr", "--vars", "x y: vector", "--query", c.query, text)
			file := testReproducer(t, c.cfg, failed, c.want, c.blame)
			if c.query == "+fast_run" {
				testReproducer(t, c.cfg, call(c.cfg, "view", "--output=page.html", "--vars", "x y: vector", text), c.want, c.blame)
			}
			// The standard database has no such fault. Another fault is another failure.
			if got := nnopt(t, "reproduce", file); got.status != statusOK || !strings.Contains(got.stderr, "it does not fail") {
				t.Errorf("without the fault: %+v", got)
			}
			other := call(with(t, onTanh("other", func(*fgraph.Apply) rewrite.Result { panic("other") })), "reproduce", file)
			if other.status != statusOther || !strings.Contains(other.stderr, "in another way: panic in canonicalize/other instead of "+c.want) {
				t.Errorf("with another fault: %+v", other)
			}
		})
	}
}

// testReproducer looks for the reproducer that a verb says it has written, and has it repeated,
// reduced and bisected. It returns the name of the file.
func testReproducer(t *testing.T, cfg standard.Program, failed result, want, blame string) string {
	t.Helper()
	m := regexp.MustCompile(`a reproducer is in (\S+) \(` + regexp.QuoteMeta(want) + `\)`).FindStringSubmatch(failed.stderr)
	if failed.status != statusFault || m == nil {
		t.Fatalf("status %d: %s\nwant %s", failed.status, failed.stderr, want)
	}
	file := m[1]
	again := func(file string) {
		t.Helper()
		if got := call(cfg, "reproduce", file); got.status != statusFault || !strings.Contains(got.stderr, "it still fails: "+want+": ") {
			t.Errorf("reproduce %s: %+v", file, got)
		}
	}
	again(file)
	reduced := call(cfg, "reduce", file, "-o", "small.graph")
	if reduced.status != statusOK {
		t.Fatalf("reduce: %+v", reduced)
	}
	again("small.graph")
	text, err := os.ReadFile("small.graph")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), " = ") - strings.Count(string(text), " = constant "); n > 5 {
		t.Errorf("%d applies are left:\n%s", n, text)
	}
	bisected := call(cfg, "bisect", file).ok(t)
	contains(t, bisected.stdout, want, blame)
	again(strings.TrimSuffix(file, ".graph") + ".before.graph")
	return file
}

// forgetting is a rule that forgets a term of a sum, and panicking one that panics there.
func forgetting(name string, do func(op *lower.Assemble, a *fgraph.Apply) rewrite.Result) rewrite.GraphRewriter {
	return rewrite.In2Out("planted", rewrite.Rule{Name: name, Doc: "Does harm.", On: []rewrite.Track{rewrite.TrackType[*lower.Assemble]()},
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(*lower.Assemble)
			if len(op.Terms) < 2 {
				return c.Miss("no sum"), nil
			}
			return do(op, a), nil
		}})
}

// TestNetworkReproducers is TestReproducers for networks: every verb that optimizes writes
// reproducers, with the network beside where it comes from config lines or a pipe.
func TestNetworkReproducers(t *testing.T) {
	wrong := with(t, forgetting("forget", func(op *lower.Assemble, a *fgraph.Apply) rewrite.Result {
		return rewrite.Replace(lower.NewAssemble(op.Rows, op.Cols, slices.Clone(op.Terms[:1]), a.Inputs()))
	}))
	panics := with(t, forgetting("panics", func(_ *lower.Assemble, a *fgraph.Apply) rewrite.Result {
		return rewrite.Replace(a.Inputs()[len(a.Inputs())])
	}))
	config := file(t, "net.config", smallConfig)
	model := smallModel(t, smallRun)
	feats := "ark:" + file(t, "feats", smallFeatures)
	requests := file(t, "requests.json", `{"a": {"config": "small.config", "request":
		{"n": 2, "output_t": [0, 9, 1], "input_t": [-1, 9], "need_model_derivative": false, "outputs": ["output"]}}}`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(requests), "small.config"),
		[]byte("input-node name=input dim=4\noutput-node name=output input=Append(Offset(input, -1), input)\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	cases, err := filepath.Abs(filepath.Join(recipes, "tdnn_relu_batchnorm_infer"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		name        string
		cfg         standard.Program
		args        []string
		want, blame string
		beside      bool // the network is written beside
	}{
		{"compile", wrong, []string{"compile", "--query=debug", config}, "values in planted/forget", ": planted/forget: Concat{", true},
		{"compile, training", wrong, []string{"compile", "--query=debug", "--need-model-derivative", model}, "values in planted/forget", "planted/forget: ", false},
		{"profile", panics, []string{"profile", model}, "panic in planted/panics", "planted/panics, without any rewrite before\nat: ", false},
		{"bench", panics, []string{"bench", "nnet3", "--model", config, "--count-only"}, "panic in planted/panics", "planted/panics, without any rewrite before\nat: ", true},
		{"bench of networks", panics, []string{"bench", "nnet3", "--request", requests}, "panic in planted/panics", "planted/panics, without any rewrite before\nat: ", true},
		{"bench compile", panics, []string{"bench", "compile", "--request", requests}, "panic in planted/panics", "planted/panics, without any rewrite before\nat: ", true},
		{"view", panics, []string{"view", "--output=page.html", model}, "panic in planted/panics", "planted/panics, without any rewrite before\nat: ", false},
		{"demo", panics, []string{"demo"}, "panic in planted/panics", "planted/panics, without any rewrite before\nat: ", true},
		{"run", panics, []string{"run", model, feats, "ark:out"}, "panic in planted/panics", "planted/panics, without any rewrite before\nat: ", false},
		{"run from a pipe", panics, []string{"run", "--allow-pipes", "cat " + model + " |", feats, "ark:out"}, "panic in planted/panics", "planted/panics, without any rewrite before\nat: ", true},
		{"verify", panics, []string{"verify", cases}, "panic in planted/panics", "planted/panics, without any rewrite before\nat: ", false},
	} {
		if !longtest.Enabled() && i%4 != 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			failed := call(c.cfg, c.args...)
			failed.stderr += failed.stdout // verify has a table
			file := testReproducer(t, c.cfg, failed, c.want, c.blame)
			beside, _ := filepath.Glob("*.raw")
			if (len(beside) == 1) != c.beside {
				t.Errorf("networks beside it: %v", beside)
			}
			if got := nnopt(t, "reproduce", file); got.status != statusOK {
				t.Errorf("without the fault: %+v", got)
			}
		})
	}
}

// TestReproduceUsage: files that are no reproducers are errors.
func TestReproduceUsage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                         "graph {",
		"graph {\n return\n}\n":                    "it does not fail",
		"query: +nothing\ngraph {\n return\n}\n":   "nothing",
		"budget: -1\ngraph {\n return\n}\n":        "budget",
		"budget: many\ngraph {\n return\n}\n":      "budget",
		"failure: bad luck\ngraph {\n return\n}\n": "there is no failure",
		"check: all\ngraph {\n return\n}\n":        "check",
		"values:\n\t1\n\t2\ngraph {\n input %x : float64\n return %x\n}\n": "2 lines for 1 inputs",
		"values:\n\tx\ngraph {\n input %x : float64\n return %x\n}\n":      "values",
		"network: nowhere.raw\ngraph {\n return\n}\n":                      "nowhere.raw",
		"rules:\n\tthis is no rule\ngraph {\n return\n}\n":                 "rule",
	} {
		name := file(t, "case.graph", text)
		for _, verb := range []string{"reproduce", "reduce", "bisect"} {
			got := nnopt(t, verb, name)
			if ok := verb == "reproduce" && want == "it does not fail"; (got.status == statusOK) != ok || !strings.Contains(got.stderr, want) {
				t.Errorf("%s %q: %+v, want %s", verb, text, got, want)
			}
		}
	}
}

// TestSaturationBlamed: of a saturation the rule to blame is named, an equation that is false for
// negative numbers.
func TestSaturationBlamed(t *testing.T) {
	longtest.Only(t)
	t.Chdir(t.TempDir())
	rules := file(t, "wrong.rules", "# The absolute value of a product is the product.\nabsolute_product: saturate\n    (abs (mul x y)) <=> (mul x y)\n")
	args := []string{"expr", "--query", "debug +saturate", "--vars", "x y z: vector", "--rules", rules, "--eval", "x=[1, -2]; y=[3, 1]; z=[1, 1]", "x*y + x*z + sin(y)**2 + cos(y)**2 + abs(x*z)"}
	testReproducer(t, standard.Program{}, nnopt(t, args...), "values in saturate/absolute_product", "saturate/absolute_product: ")
}

// TestReproducerOfValues: the values of --eval, the rules of --rules and the budget of
// --max-rewrites are part of the reproducer.
func TestReproducerOfValues(t *testing.T) {
	t.Chdir(t.TempDir())
	rules := file(t, "wrong.rules", "# The absolute value of a number is the number.\nwrong: canonicalize; fast_run\n    (abs x) => x\n")
	args := []string{"expr", "--query", "debug", "--vars", "x: vector", "--rules", rules, "--max-rewrites=5"}
	nnopt(t, append(args, "--eval", "x=[1, 2]", "abs(x) + 1")...).ok(t)
	name := testReproducer(t, standard.Program{}, nnopt(t, append(args, "--eval", "x=[1, -2]", "abs(x) + 1")...), "values in canonicalize/wrong", "canonicalize/wrong: abs(x) -> x")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), "\nbudget: 5\n", "\nvalues:\n\t[2] 1 -2\n", "\nrules:\n\t# The absolute value", "\ncommand: nnopt expr --query debug")
	if got := nnopt(t, "reproduce", "--max-rewrites=0", name); got.status != statusOK {
		t.Errorf("without a rewrite: %+v", got)
	}
	contains(t, nnopt(t, "reproduce", "--trace=all", name).stderr, "rewriting: canonicalize/wrong: abs(x) -> x", "it still fails")
	// A second failure has a file of its own.
	if again := nnopt(t, append(args, "--eval", "x=[1, -2]", "abs(x) + 1")...); !strings.Contains(again.stderr, "nnopt-failure-2.graph") {
		t.Error(again.stderr)
	}
}
