package repro_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/networks"
	"github.com/nnopt/nnopt/tool/repro"
)

// deepConfig is a network of layers with scaled sums between them.
func deepConfig(layers int) string {
	var b strings.Builder
	b.WriteString("input-node name=input dim=4\ncomponent name=a0 type=NaturalGradientAffineComponent input-dim=12 output-dim=6\n" +
		"component-node name=a0 component=a0 input=Append(Offset(input, -1), input, Offset(input, 1))\ncomponent name=r0 type=RectifiedLinearComponent dim=6\ncomponent-node name=r0 component=r0 input=a0\n")
	for i := 1; i <= layers; i++ {
		fmt.Fprintf(&b, "component name=a%d type=NaturalGradientAffineComponent input-dim=6 output-dim=6\ncomponent-node name=a%d component=a%d input=Sum(r%d, Scale(0.5, Offset(r%d, 1)))\n", i, i, i, i-1, i-1)
		fmt.Fprintf(&b, "component name=r%d type=SigmoidComponent dim=6\ncomponent-node name=r%d component=r%d input=a%d\n", i, i, i, i)
	}
	fmt.Fprintf(&b, "output-node name=output input=r%d\n", layers)
	return b.String()
}

// networkFaults are faults of passes over networks.
var networkFaults = []fault{
	{"a rule that forgets a term", func(t *testing.T, db *optdb.SequenceDB) {
		plantPass(t, db, 1.95, rewrite.Rule{Name: "forget", Doc: "Forgets a term.", On: []rewrite.Track{rewrite.TrackType[*lower.Assemble]()},
			Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
				op := a.Op().(*lower.Assemble)
				if len(op.Terms) != 2 || op.Terms[0].Scale == op.Terms[1].Scale {
					return c.Miss("no scaled sum of two"), nil
				}
				return rewrite.Replace(lower.NewAssemble(op.Rows, op.Cols, slices.Clone(op.Terms[:1]), a.Inputs())), nil
			}})
	}, repro.Failure{Kind: repro.Values, Pass: "planted", Rule: "forget"}, "Scatter{"},
	{"a rule that panics", func(t *testing.T, db *optdb.SequenceDB) {
		plantPass(t, db, 1.95, rewrite.Rule{Name: "panics", Doc: "Panics.", On: []rewrite.Track{rewrite.TrackType[*lower.Assemble]()},
			Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
				if op := a.Op().(*lower.Assemble); len(op.Terms) == 2 && op.Terms[0].Scale != op.Terms[1].Scale {
					return rewrite.Replace(a.Inputs()[2]), nil
				}
				return rewrite.Result{}, nil
			}})
	}, repro.Failure{Kind: repro.Panic, Pass: "planted", Rule: "panics"}, ""},
	{"a rule that fuses the wrong component", func(t *testing.T, db *optdb.SequenceDB) {
		plantPass(t, db, 1.95, rewrite.Rule{Name: "skip", Doc: "Skips a component.", On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()},
			Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
				if op := a.Op().(lower.Propagate); op.C.Type() == "SigmoidComponent" && len(a.Outputs()) == 1 {
					return rewrite.Replace(a.Inputs()[0]), nil
				}
				return rewrite.Result{}, nil
			}})
	}, repro.Failure{Kind: repro.Values, Pass: "planted", Rule: "skip"}, ""},
}

// plantPass registers a walk with a rule.
func plantPass(t *testing.T, db *optdb.SequenceDB, position float64, rule rewrite.Rule) {
	t.Helper()
	check(t, db.Add(optdb.Entry{Name: "planted", Doc: "Does harm.", Rewriter: rewrite.In2Out("planted", rule), Position: position, Tags: []string{"fast_run"}}))
}

// lowered returns the graph of a request to a network.
func lowered(t *testing.T, layers, frames int, train bool) (*nnet3.Nnet, *fgraph.FunctionGraph) {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(deepConfig(layers)), "config", 1)
	check(t, err)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: frames, Derivative: train})
	check(t, err)
	c, err := compile.CompileContext(t.Context(), nn, req, compile.Options{})
	check(t, err)
	p, err := lower.Lower(c, nn)
	check(t, err)
	return nn, p.Graph
}

// TestNetworkFaults is TestFaults for networks, for computations with a gradient and without.
func TestNetworkFaults(t *testing.T) {
	layers := 300
	if !longtest.Enabled() {
		layers = 15
	}
	for _, train := range []bool{false, true} {
		nn, g := lowered(t, layers, 8, train)
		for _, f := range networkFaults {
			t.Run(fmt.Sprintf("%s, training %t", f.name, train), func(t *testing.T) {
				c := planted(t, f, g)
				c.World = networks.World(nn, lower.Dialect{Network: nn})
				testFault(t, f, c)
			})
		}
	}
}
