package standard_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// TestNothingInVain: a flag that would change nothing, or contradicts another one, is an error.
func TestNothingInVain(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	config := file(t, "net.config", smallConfig)
	model := filepath.Join(recipes, "tdnnf_infer", "model.raw")
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct {
		args, want string // arguments are separated by "|"
	}{
		{"compile|--quantize.error=0.1|" + config, "add +int8 or +int16"},
		{"run|--quantize.error=0.1|" + model + "|ark:" + missing + "|ark:" + missing, "add +int8 or +int16"},
		{"compile|--query=+fast_run limit_quantization_error{error=0.1}|" + config, "its tags are quantize_products default int16 int8"},
		{"compile|--query=+fast_run specialize{max-use=3}|--optimization.specialize=false|" + config, "settings of specialize change nothing"},
		{"compile|--query=none|--optimization.merge1=true|" + config, "merge1: not selected"},
		{"compile|--query=none|--optimization.propagate-in-place=true|" + config, "propagate_in_place: not selected"},
		{"compile|--query=none|--pipeline=merge1|" + config, "--query selects passes already"},
		{"expr|--pipeline=merge1|--query=none|x", "--pipeline selects passes already"},
		{"compile|--request=" + missing + "|--num-sequences=2|" + config, "--num-sequences has no meaning beside --request"},
		{"compile|--srand=1|" + model, "--srand has no meaning for a model"},
		{"info|--srand=1|" + model, "--srand has no meaning for a model"},
		{"profile|--srand=1|" + model, "--srand has no meaning for a model"},
		{"compile|--json|--diff|" + config, "exclude each other"},
		{"compile|--before|--both|" + config, "exclude each other"},
		{"compile|--width=80|" + config, "without --diff"},
		{"compile|--json|--debug-info|" + config, "beside --json"},
		{"profile|--diff=" + missing + "|--format=json|" + config, "--format has no meaning beside --diff"},
		{"graph|--vars=x: vector|" + config, "--vars has no meaning for a network"},
		{"graph|--request=" + missing + "|x + y", "--request has no meaning for an expression"},
		{"graph|--quantize.error=0.1|x + y", "add +int8 or +int16"},
		{"view|--outputs=all|x + y", "--outputs has no meaning for an expression"},
		{"view|--grad=x|" + config, "--grad has no meaning for a network"},
		{"view|--query=none|" + file(t, "page.html", "<!DOCTYPE html>"), "--query has no meaning for a page"},
		{"view|--trace=all|" + file(t, "profile.json", "{}"), "--trace has no meaning for a profile"},
		{"expr|--json|--format=dot|x", "--format has no meaning beside --json"},
		{"expr|--json|--format=nothing|x", "want graph, tree, dot or html"},
		{"expr|--srand=1|x", "--srand has no meaning without --eval=random"},
		{"expr|--format=html|--eval=x=1|x", "--eval has no meaning beside --format=html"},
		{"expr|--eval=x=1; x=2|x", "a second value of x"},
		{"passes|--ablation|--rules", "exclude each other"},
		{"passes|--ablation|--json|" + recipes, "--json has no meaning"},
		{"passes|--explain=merge1|--json", "--json has no meaning"},
		{"bench|nnet3|--model=" + config + "|--streams=3", "--streams has no meaning for one network"},
		{"bench|nnet3|--request=" + missing + "|--count-only", "--count-only has no meaning"},
		{"bench|compile|--request=" + missing + "|--model=" + config, "--model has no meaning for compile"},
		{"bench|stream|--model=" + config + "|--unit=true", "--unit has no meaning for streams"},
		{"copy|--binary=false|ark:" + missing + "|ark:" + missing, "ark,t:"},
		{"copy|--vectors|" + model + "|" + missing, "--vectors has no meaning for a model"},
		{"copy|--compression-method=3|ark:" + missing + "|ark:" + missing, "without --compress"},
		{"copy|--vectors|--compress|ark:" + missing + "|ark:" + missing, "--compress has no meaning for vectors"},
		{"run|--online-ivector-period=3|" + model + "|ark:" + missing + "|ark:" + missing, "--online-ivector-period has no meaning"},
		{"run|--use-gpu=maybe|" + model + "|ark:" + missing + "|ark:" + missing, "want no or optional"},
	} {
		nnopt(t, strings.Split(c.args, "|")...).fails(t, statusUsage, c.want)
	}
	// Passes are also left out of the optimizer of an expression, and rules of flags join the
	// database once.
	contains(t, nnopt(t, "graph", "--optimization.canonicalize=false", "--optimization.stabilize=false", "--optimization.specialize=false", "x*y/y").ok(t).stdout, "true_div")
	// A file that is missing is a fault of the world, however it is named.
	for _, args := range [][]string{{"expr", "--rules=" + missing, "x"}, {"compile", "--rules=" + missing, config}, {"rule", "check", "--file=" + missing}} {
		nnopt(t, args...).fails(t, statusFault, missing)
	}
}

// TestErrorsAreShort: no error quotes all of an untrusted input.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	config := file(t, "net.config", smallConfig)
	big := strings.Repeat("x", 60_000)
	for _, args := range [][]string{
		{"passes", "--query=+" + big}, {"passes", "--query=" + big}, {"passes", "--query=+fast_run " + big + "{a=b}"},
		{"passes", "--query=+fast_run canonicalize{" + big + "=1}"}, {"passes", "--query=+fast_run canonicalize{max-use=" + big + "}"},
		{"passes", "--explain=" + big}, {"expr", "--trace=" + big, "x"}, {"expr", "--why-not=" + big, "x"}, {"compile", "--pipeline=" + big, config},
		{"compile", "--pipeline=" + big + "(", config}, {"graph", "--after=" + big, "x + y"}, {"compile", "--outputs=" + big, config},
		{"expr", "--rule=(" + big + " x) => x", "x"}, {"expr", "--rule=" + big, "x"}, {"expr", "--rule=(add x y) => (add x " + big + ")", "x"},
		{"expr", big + "("}, {"expr", big + "(x)"}, {"expr", "--vars=x: " + big, "x"}, {"expr", "--grad=" + big, "x"}, {"expr", "--eval=" + big, "x"},
		{"expr", "--eval=" + big + "=1", "x"}, {"run", big, big, big}, {"run", "m", "ark:a", big}, {big}, {"help", big}, {"compile", "--" + big},
		{"compile", "--srand=" + big, config}, {"bench", big}, {"view", "--listen=" + big, "x"}, {"rule", "check", big},
		{"info", file(t, "a.config", "component name="+big+" type=Affine")}, {"info", file(t, "b.config", big)}, {"info", file(t, "c.config", "output-node name=o input="+big)},
		{"info", file(t, "d.config", "component name=a type="+big+" dim=3")}, {"info", file(t, "e.raw", "<Nnet3> "+big)},
		{"compile", "--request=" + file(t, "r.json", `{"outputs": "`+big+`"}`), config}, {"compile", "--request=" + file(t, "s.json", `{"`+big+`": [1]}`), config},
		{"opt", file(t, "g.graph", big)}, {"opt", file(t, "h.graph", "graph {\n\t"+big+"\n}")}, {"opt", file(t, "i.graph", "graph {\n\t%0: "+big+"\n}")},
		{"expr", "--rules=" + file(t, "a.rules", "# A.\n"+big), "x"}, {"expr", "--rules=" + file(t, "b.rules", "# A.\na: canonicalize\n    (neg (neg x) => "+big), "x"},
		{"expr", "--rules=" + file(t, "c.rules", "# A.\n"+big+": canonicalize\n    (neg (neg x)) => x y"), "x"},
	} {
		r := nnopt(t, args...)
		if r.status == statusOK || len(r.stderr) > 1000 {
			what := strings.Join(args, " ")
			t.Errorf("%.80s: status %d, %d bytes: %.300s", strings.ReplaceAll(what, big, "BIG"), r.status, len(r.stderr), r.stderr)
		}
	}
}
