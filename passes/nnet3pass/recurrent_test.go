package nnet3pass_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/profile"
)

// recurrentConfig is a layer with a bypass of its own past.
const recurrentConfig = `
input-node name=input dim=6
component name=below type=AffineComponent input-dim=6 output-dim=8 param-stddev=0.3
component-node name=below component=below input=input
dim-range-node name=head input-node=below dim=5 dim-offset=0
component name=w type=%s input-dim=13 output-dim=5 param-stddev=0.3 bias-stddev=0.1
component-node name=w component=w input=%s
component name=s type=SigmoidComponent dim=5
component-node name=s component=s input=w
output-node name=output input=s`

// TestSplitRecurrentAffine: whether the steps of a recurrent layer share a product decides no bit
// of the result.
func TestSplitRecurrentAffine(t *testing.T) {
	for _, c := range []struct {
		name, component, input string
		fires                  bool
	}{
		{"recurrent", "NaturalGradientAffineComponent", "Append(below, IfDefined(Offset(s, -1)))", true},
		{"delay", "AffineComponent", "Append(Offset(below, 1), IfDefined(Offset(s, -2)))", true},
		{"backwards", "AffineComponent", "Append(below, IfDefined(Offset(s, 1)))", true},
		{"linear", "LinearComponent", "Append(below, IfDefined(Offset(s, -1)))", true},
		{"recurrent part first", "AffineComponent", "Append(IfDefined(Offset(s, -1)), below)", false},
		{"not recurrent", "AffineComponent", "Append(below, head)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(recurrentConfig, c.component, c.input)
			if c.component == "LinearComponent" {
				text = strings.Replace(text, " bias-stddev=0.1", "", 1)
			}
			nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
			if err != nil {
				t.Fatal(err)
			}
			req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 9, Sequences: 2})
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := compile.Compile(nn, req, compile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			plain := optimize(t, nn, compiled, "+fast_run -split_recurrent_affine")
			db := passes.Default()
			if err := db.Register("split_small", nnet3pass.SplitRecurrentAffine(0), 1.9, "fast_run"); err != nil {
				t.Fatal(err)
			}
			opt, err := db.Build(optdb.Include("fast_run"))
			if err != nil {
				t.Fatal(err)
			}
			rec := profile.New(opt.Name(), opt.Class())
			split, err := passes.Optimize(context.Background(), compiled, nn, opt, rec)
			if err != nil {
				t.Fatal(err)
			}
			rec.End()
			i := slices.IndexFunc(rec.Record().Children, func(r *profile.Record) bool { return r.Name == "split_small" })
			if fired := rec.Record().Children[i].Changed > 0; fired != c.fires {
				t.Errorf("fired: %t, want %t", fired, c.fires)
			}
			for i, cmd := range split.Commands {
				if c.fires && cmd.Type == computation.Propagate && split.Component(nn, cmd.Args[0]).InputDim() == 13 {
					t.Errorf("command %d, a step, reads all parameters", i)
				}
			}
			if err := computation.Check(split, computation.NewNetworkInfo(nn, split.Derived), computation.CheckOptions{AllowUnused: true}); err != nil {
				t.Fatal(err)
			}
			compareResults(t, "split", results(t, nn, split, req), results(t, nn, plain, req), 0)
		})
	}
}

// TestSplitRecurrentDerivative: whether the steps of a recurrent layer compute the derivative for
// the layer below together decides no bit of the results.
func TestSplitRecurrentDerivative(t *testing.T) {
	for _, c := range []struct {
		name, component, input string
		fires                  bool
	}{
		{"recurrent", "NaturalGradientAffineComponent", "Append(below, IfDefined(Offset(s, -1)))", true},
		{"delay", "AffineComponent", "Append(Offset(below, 1), IfDefined(Offset(s, -2)))", true},
		{"backwards", "AffineComponent", "Append(below, IfDefined(Offset(s, 1)))", true},
		{"linear", "LinearComponent", "Append(below, IfDefined(Offset(s, -1)))", true},
		{"recurrent part first", "AffineComponent", "Append(IfDefined(Offset(s, -1)), below)", false},
		{"below twice", "AffineComponent", "Append(Sum(below, Offset(below, 1)), IfDefined(Offset(s, -1)))", true},
		{"not recurrent", "AffineComponent", "Append(below, head)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fmt.Sprintf(recurrentConfig, c.component, c.input)
			if c.component == "LinearComponent" {
				text = strings.Replace(text, " bias-stddev=0.1", "", 1)
			}
			nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
			if err != nil {
				t.Fatal(err)
			}
			req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 9, Sequences: 2, Derivative: true})
			if err != nil {
				t.Fatal(err)
			}
			req.Inputs[0].HasDeriv = true
			compiled, err := compile.Compile(nn, req, compile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			plain := optimize(t, nn, compiled, "+fast_run -split_recurrent_derivative")
			db := passes.Default()
			if err := db.Register("split_small", nnet3pass.SplitRecurrentDerivative(0), 1.95, "fast_run"); err != nil {
				t.Fatal(err)
			}
			opt, err := db.Build(optdb.Include("fast_run"))
			if err != nil {
				t.Fatal(err)
			}
			rec := profile.New(opt.Name(), opt.Class())
			split, err := passes.Optimize(context.Background(), compiled, nn, opt, rec)
			if err != nil {
				t.Fatal(err)
			}
			rec.End()
			i := slices.IndexFunc(rec.Record().Children, func(r *profile.Record) bool { return r.Name == "split_small" })
			if fired := rec.Record().Children[i].Changed > 0; fired != c.fires {
				t.Errorf("fired: %t, want %t", fired, c.fires)
			}
			if err := computation.Check(split, computation.NewNetworkInfo(nn, split.Derived), computation.CheckOptions{AllowUnused: true}); err != nil {
				t.Fatal(err)
			}
			compareResults(t, "split", results(t, nn, split, req), results(t, nn, plain, req), 0)
		})
	}
}

// recurrentCell is an affine and a cell, of a type and so many columns of input next to the state.
// Its output has two parts of four columns, the second of which the affine sees again; the state is
// that part or the first one.
const recurrentCell = `
input-node name=input dim=6
component name=w type=NaturalGradientAffineComponent input-dim=10 output-dim=%[2]d
component-node name=w component=w input=Append(input, IfDefined(Offset(m, -1)))
component name=cell type=%[1]sComponent cell-dim=4 %[4]s
component-node name=cell component=cell input=Append(w, IfDefined(Offset(%[3]s, -1)))
dim-range-node name=c input-node=cell dim=4 dim-offset=0
dim-range-node name=m input-node=cell dim=4 dim-offset=4
output-node name=output input=m`

// TestConsolidateCells: the updates of an affine are merged; those of a cell, which computes them
// alongside its derivatives, are not.
func TestConsolidateCells(t *testing.T) {
	for _, c := range []struct {
		typ     string
		cols    int
		state   string
		options string
	}{
		{"LstmNonlinearity", 16, "c", ""},
		{"GruNonlinearity", 12, "m", "recurrent-dim=4"},
		{"OutputGruNonlinearity", 8, "m", ""},
	} {
		t.Run(c.typ, func(t *testing.T) {
			consolidateCell(t, fmt.Sprintf(recurrentCell, c.typ, c.cols, c.state, c.options))
		})
	}
}

func consolidateCell(t *testing.T, config string) {
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	const frames = 7
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: frames, Derivative: true})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compile.Compile(nn, req, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := optimize(t, nn, compiled, "+fast_run")
	counts := map[string]int{}
	for _, cmd := range got.Commands {
		if cmd.Type.IsBackprop() {
			name := nn.ComponentNames[0]
			if strings.Contains(got.Component(nn, cmd.Args[0]).Type(), "Nonlinearity") {
				name = nn.ComponentNames[1]
			}
			counts[cmd.Type.String()+" "+name]++
		}
	}
	if counts["Backprop w"] != 1 || counts["Backprop cell"] != frames || counts["BackpropNoModelUpdate cell"] != 0 {
		t.Errorf("backward runs: %v", counts)
	}
	compareResults(t, "optimized", results(t, nn, got, req), results(t, nn, compiled, req), 1e-5)
}
