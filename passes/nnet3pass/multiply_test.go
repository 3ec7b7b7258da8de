package nnet3pass_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// TestMultiplyOut: a fixed linear map and the next one become one where that is cheaper and nothing
// else reads the value between them.
func TestMultiplyOut(t *testing.T) {
	const lda = "input-node name=input dim=60\n" +
		"component name=lda type=FixedAffineComponent input-dim=180 output-dim=180\n" +
		"component-node name=lda component=lda input=Append(Offset(input, -1), input, Offset(input, 1))\n"
	for _, c := range []struct {
		name, text string
		train      bool
		products   int // that are run forward
	}{
		{"transform of the features", lda + `
component name=a type=NaturalGradientAffineComponent input-dim=180 output-dim=200
component-node name=a component=a input=lda
component name=r type=RectifiedLinearComponent dim=200
component-node name=r component=r input=a
output-node name=output input=r`, false, 1},
		{"three", lda + `
component name=a type=LinearComponent input-dim=180 output-dim=300
component-node name=a component=a input=lda
component name=b type=AffineComponent input-dim=300 output-dim=90
component-node name=b component=b input=a
output-node name=output input=b`, false, 2},
		{"two that are trained", `input-node name=input dim=60
component name=a type=AffineComponent input-dim=60 output-dim=300
component-node name=a component=a input=input
component name=b type=AffineComponent input-dim=300 output-dim=90
component-node name=b component=b input=a
output-node name=output input=b`, false, 2},
		{"bottleneck", lda + `
component name=a type=AffineComponent input-dim=180 output-dim=100
component-node name=a component=a input=lda
component name=b type=AffineComponent input-dim=100 output-dim=300
component-node name=b component=b input=a
output-node name=output input=b`, false, 2},
		{"another use", lda + `
component name=a type=AffineComponent input-dim=180 output-dim=200
component-node name=a component=a input=lda
output-node name=output input=a
output-node name=between input=lda`, false, 2},
		{"something between", lda + `
component name=r type=RectifiedLinearComponent dim=180
component-node name=r component=r input=lda
component name=a type=AffineComponent input-dim=180 output-dim=200
component-node name=a component=a input=r
output-node name=output input=a`, false, 2},
		{"training", lda + `
component name=a type=AffineComponent input-dim=180 output-dim=200
component-node name=a component=a input=lda
output-node name=output input=a`, true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			nn, err := nnet3.ParseConfig(strings.NewReader(c.text), "config", 1)
			if err != nil {
				t.Fatal(err)
			}
			outputs := []string{"output"}
			if strings.Contains(c.text, "between") {
				outputs = append(outputs, "between")
			}
			req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 9, Derivative: c.train, Outputs: outputs})
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := compile.Compile(nn, req, compile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := optimize(t, nn, compiled, "+fast_run")
			n := 0
			for _, cmd := range got.Commands {
				if cmd.Type != computation.Propagate {
					continue
				}
				if name := got.Component(nn, cmd.Args[0]).Type(); strings.Contains(name, "Affine") || strings.HasPrefix(name, "Linear") {
					n++
				}
			}
			if n != c.products {
				t.Errorf("%d products, want %d", n, c.products)
			}
			compareResults(t, "multiplied out", results(t, nn, got, req), results(t, nn, compiled, req), 1e-5)
		})
	}
}

// TestMultiplyOnce: an affine multiplies a vector that all times share once per sequence. Where
// that saves nothing, it does what it did before.
func TestMultiplyOnce(t *testing.T) {
	for _, c := range []struct {
		name, input       string
		dim               int
		frames, sequences int
		rows              []int // that products make, in order
	}{
		{"one sequence", "Append(Offset(input, -1), input, ReplaceIndex(ivector, t, 0))", 140, 20, 1, []int{1, 20}},
		{"three sequences", "Append(Offset(input, -1), input, ReplaceIndex(ivector, t, 0))", 140, 20, 3, []int{3, 60}},
		{"a single frame", "Append(Offset(input, -1), input, ReplaceIndex(ivector, t, 0))", 140, 1, 1, []int{1, 1}},
		{"a vector for every frame", "Append(Offset(input, -1), input, vector)", 140, 20, 1, []int{20, 20}},
		{"the vector is in the middle", "Append(Offset(input, -1), ReplaceIndex(ivector, t, 0), input)", 140, 20, 1, []int{20, 20}},
		{"the vector comes twice", "Append(input, ReplaceIndex(ivector, t, 0), ReplaceIndex(ivector, t, 0))", 262, 20, 1, []int{20, 20}},
		{"a scaled vector", "Append(Offset(input, -1), input, Scale(2.0, ReplaceIndex(ivector, t, 0)))", 140, 20, 1, []int{20}},
		{"nothing but the vector", "ReplaceIndex(ivector, t, 0)", 128, 20, 1, []int{20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nn, err := nnet3.ParseConfig(strings.NewReader(fmt.Sprintf(`input-node name=input dim=6
input-node name=ivector dim=128
input-node name=vector dim=128
component name=a type=NaturalGradientAffineComponent input-dim=%d output-dim=128
component-node name=a component=a input=%s
component name=r type=RectifiedLinearComponent dim=128
component-node name=r component=r input=a
output-node name=output input=r`, c.dim, c.input)), "config", 1)
			if err != nil {
				t.Fatal(err)
			}
			req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: c.frames, Sequences: c.sequences})
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := compile.Compile(nn, req, compile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := optimize(t, nn, compiled, "+fast_run")
			var rows []int
			for _, cmd := range got.Commands {
				if cmd.Type == computation.Propagate {
					rows = append(rows, int(got.Submatrices[cmd.Args[3]].NumRows))
				}
			}
			if !slices.Equal(rows, c.rows) {
				t.Errorf("products of %v rows, want %v", rows, c.rows)
			}
			compareResults(t, "multiplied once", results(t, nn, got, req), results(t, nn, compiled, req), 1e-5)
		})
	}
}
