package passes_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/proctest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestRulesAreMadeWhenNeeded: rules for tensors are compiled for an optimizer that rewrites tensors,
// and by nothing before: neither by a database, nor by a query or a list of passes, nor for networks.
// Rules are made once in a process, so the test starts its own.
func TestRulesAreMadeWhenNeeded(t *testing.T) {
	const child = "NNOPT_TEST_LAZY_RULES"
	if os.Getenv(child) == "" {
		proctest.NeedsPrograms(t)
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	none := func(after string) {
		if n, of := rulesMade(); n > 0 || of < 100 {
			t.Errorf("%d of %d rules are made after %s", n, of, after)
		}
	}
	db := passes.Default()
	none("the database")
	opt, err := db.Build(optdb.Include("fast_run", "local_add_canonizer"))
	if err != nil {
		t.Fatal(err)
	}
	none("a query")
	if len(db.Outline()) < 200 || len(db.Names()) < 200 || len(opt.Outline()) < 100 || len(opt.String()) < 1000 {
		t.Error("entries are missing")
	}
	none("a list")
	optimizeNetwork(t, opt)
	none("a network")

	s := expr.NewScope()
	y := s.MustParse("exp(x)*y/y")
	g, err := tensor.NewGraph(s.Inputs(), []*fgraph.Variable{y})
	if err == nil {
		err = opt.Rewrite(t.Context(), g, nil)
	}
	if n, of := rulesMade(); err != nil || n < of/2 || n == of {
		t.Errorf("%d of %d rules are made for tensors; those that are not selected never are: %v", n, of, err)
	}
}

// rulesMade returns how many of the rules that are text are made, and how many there are.
func rulesMade() (made, all int) {
	for _, l := range tensorpass.Rules() {
		if rewrite.Outline(l.Rule).Reason != "" {
			continue
		}
		all++
		if rewrite.Made(l.Rule) {
			made++
		}
	}
	return made, all
}

// optimizeNetwork optimizes a small computation of nnet3.
func optimizeNetwork(t *testing.T, opt *optdb.Optimizer) {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader("input-node name=input dim=2\ncomponent name=a type=NaturalGradientAffineComponent input-dim=2 output-dim=2\n"+
		"component-node name=a component=a input=input\noutput-node name=output input=a\n"), "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	frames := []index.Index{{T: 0}, {T: 1}}
	c, err := compile.Compile(nn, &computation.Request{
		Inputs:  []computation.IoSpecification{{Name: "input", Indexes: frames}},
		Outputs: []computation.IoSpecification{{Name: "output", Indexes: frames}},
	}, compile.Options{})
	if err == nil {
		_, err = passes.Optimize(t.Context(), c, nn, opt, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}
