package standard_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/standard"
)

// gain multiplies by a factor.
type gain struct {
	dim    int
	factor float32
}

func (c *gain) Type() string   { return "GainComponent" }
func (c *gain) InputDim() int  { return c.dim }
func (c *gain) OutputDim() int { return c.dim }
func (c *gain) Properties() component.Properties {
	return component.Simple | component.PropagateInPlace | component.BackpropInPlace
}

func (c *gain) Init(line *component.ConfigLine) {
	c.dim, c.factor = line.Int("dim", 0), line.Float("factor", 1)
	if c.dim <= 0 {
		line.Fail("dim is missing")
	}
}

func (c *gain) Fields(f *component.Fields) {
	f.Dim("<Dim>", &c.dim)
	f.Float("<Factor>", &c.factor)
}

func (c *gain) Propagate(_ *component.Workspace, _ component.ForwardPass, in, out kernel.Matrix) (component.Memo, error) {
	kernel.CopyScaled(out, c.factor, in)
	return nil, nil
}

func (c *gain) Backprop(_ *component.Workspace, pass component.BackwardPass) error {
	kernel.CopyScaled(pass.InDeriv, c.factor, pass.OutDeriv)
	return nil
}

// gainConfig is a program that has gains, and a rule as text by which those of gains are dropped.
func gainConfig(t *testing.T) standard.Program {
	t.Helper()
	types, err := component.Kaldi().With(func() component.Component { return new(gain) })
	if err != nil {
		t.Fatal(err)
	}
	rules, err := pattern.ParseRules("gain.rules", `
# A gain changes no sign: relu(gain(relu(x))) = gain(relu(x)), if the factor is positive as here.
relu_of_gain: canonicalize; fast_run
    (RectifiedLinearComponent y@(GainComponent (RectifiedLinearComponent _))) => y
`)
	if err != nil {
		t.Fatal(err)
	}
	return standard.Program{Name: "other", Components: types, Database: func() (*optdb.SequenceDB, error) {
		db := passes.Default()
		return db, optdb.AddRules(db, nnet3pass.VocabularyOf(types), rules)
	}}
}

const gainNetwork = `
input-node name=input dim=2
component name=relu type=RectifiedLinearComponent dim=2
component name=gain type=GainComponent dim=2 factor=3
component name=both type=CompositeComponent max-rows-process=100 num-components=2 component1='type=GainComponent dim=2 factor=2' component2='type=TanhComponent dim=2'
component-node name=relu1 component=relu input=input
component-node name=gain component=gain input=relu1
component-node name=relu2 component=relu input=gain
component-node name=both component=both input=relu2
output-node name=output input=both
`

// TestComponents: networks of a component type of the caller are read, written, optimized and run.
func TestComponents(t *testing.T) {
	cfg := gainConfig(t)
	config := file(t, "net.config", gainNetwork)
	model := filepath.Join(t.TempDir(), "net.raw")
	call(cfg, "init", "--binary=false", config, model).ok(t)
	contains(t, readFile(t, model), "<GainComponent> <Dim> 2 <Factor> 3 </GainComponent>", "<GainComponent> <Dim> 2 <Factor> 2 </GainComponent>")
	contains(t, call(cfg, "info", model).ok(t).stdout, "GainComponent, input-dim=2, output-dim=2, dim=2, factor=3")
	binary := filepath.Join(t.TempDir(), "net.raw")
	call(cfg, "copy", model, binary).ok(t)
	contains(t, call(cfg, "info", binary).ok(t).stdout, "factor=3")
	contains(t, call(cfg, "compile", "--trace=relu_of_gain", binary).ok(t).stderr, "canonicalize/relu_of_gain: ")
	for _, query := range []string{"debug", "fast_run", "none"} {
		call(cfg, "compile", "--query="+query, "--need-model-derivative", binary).ok(t)
		features := file(t, "feats", "a  [\n  0.5 -1 ]\n")
		out := call(cfg, "run", "--query="+query, binary, "ark:"+features, "ark,t:-").ok(t).stdout
		if out != "a  [\n  0.9950548 0 ]\n" { // tanh(2*3*0.5)
			t.Errorf("%s: %q", query, out)
		}
	}
	nnopt(t, "info", binary).fails(t, statusFault, "<GainComponent> can't be part of a composite")
	call(cfg, "info", file(t, "x.config", strings.Replace(gainNetwork, "=GainComponent", "=GianComponent", 1))).fails(t, statusFault, "did you mean GainComponent?")
}

// TestComponentFailure: a wrong rule about a component type of the caller is found, and its
// reproducer is read again.
func TestComponentFailure(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg := gainConfig(t)
	wrong, err := pattern.Compile(nnet3pass.VocabularyOf(cfg.Components), "(GainComponent x) => x", pattern.Named("wrong"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Database = func() (*optdb.SequenceDB, error) {
		db := passes.Default()
		return db, db.Register("drop_gain", rewrite.In2Out("drop_gain", wrong), 1.1, "fast_run")
	}
	r := call(cfg, "compile", "--query=debug", file(t, "net.config", gainNetwork))
	if r.status != statusFault || !strings.Contains(r.stderr, "other-failure-1.graph") {
		t.Fatalf("status %d: %s", r.status, r.stderr)
	}
	again := call(cfg, "reproduce", "other-failure-1.graph")
	contains(t, again.stdout+again.stderr, "it still fails: values in drop_gain/wrong")
}

// TestComponentRegistry: a registry refuses what it can't have.
func TestComponentRegistry(t *testing.T) {
	types := component.Kaldi()
	again := func() component.Component { c, _ := types.New("TanhComponent"); return c }
	if _, err := types.With(again); !errors.Is(err, component.ErrRegistry) || !strings.Contains(err.Error(), "there is a TanhComponent already") {
		t.Error(err)
	}
	if _, err := types.With(func() component.Component { return misnamed{} }); !errors.Is(err, component.ErrRegistry) || !strings.Contains(err.Error(), `"Gain"`) {
		t.Error(err)
	}
	if _, err := pattern.New(nnet3pass.Vocabulary(), pattern.Rule{}); err == nil {
		t.Error("an empty rule")
	}
	if _, err := pattern.Compile(nnet3pass.Vocabulary(), "(TahnComponent x) => x"); err == nil || !strings.Contains(err.Error(), "did you mean TanhComponent?") {
		t.Error(err)
	}
}

// misnamed has a name that configuration lines can't have.
type misnamed struct{ component.Component }

func (misnamed) Type() string { return "Gain" }
