package pipeline_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
)

// TestDivided: products have the same bits compiled and optimized, with an appended input, in a
// recurrence, and after a fixed affine. Some are narrow, and can't be divided; some are a little
// too wide or too short for that; and some must keep the order of their sums.
func TestDivided(t *testing.T) {
	const fixed = `
input-node name=input dim=20
component name=lda type=NaturalGradientAffineComponent input-dim=60 output-dim=50
component-node name=lda component=lda input=Append(Offset(input, -1), input, Offset(input, 1))
component name=relu type=RectifiedLinearComponent dim=50
component-node name=relu component=relu input=lda
component name=out type=TYPE input-dim=INPUT output-dim=OUTPUT
component-node name=out component=out input=Append(TAKEN)
component name=y type=RectifiedLinearComponent dim=OUTPUT
component-node name=y component=y input=out
output-node name=output input=y
`
	const affine, tdnn = "NaturalGradientAffineComponent", "TdnnComponent time-offsets=-1,0,2"
	twelve := "relu, " + strings.Repeat("lda, Offset(lda, 1), ", 5) + "lda"
	for _, c := range []struct{ input, output, taken, kind string }{
		{"40", "10", "Offset(input, -1), Offset(input, 1)", affine},
		{"100", "16", "relu, Offset(relu, 2)", affine},
		{"100", "17", "relu, Offset(relu, 2)", affine},
		{"100", "24", "relu, lda", affine},
		{"100", "25", "relu, lda", affine},
		{"600", "16", twelve, affine},
		{"600", "25", twelve, affine},
		{"150", "40", "relu, lda, Offset(relu, 1)", affine},
		{"300", "40", "relu, lda, relu, lda, relu, lda", affine},
		{"200", "40", "relu, Offset(relu, 1), lda, Offset(lda, 1)", tdnn},
		{"200", "40", "relu, Offset(relu, 1), lda, Offset(lda, 1)", tdnn + " use-bias=false"},
		{"20", "16", "input", affine},
		{"60", "12", "relu, IfDefined(Offset(y10, -1))", affine},
	} {
		config := strings.NewReplacer("INPUT", c.input, "OUTPUT", c.output, "TAKEN", c.taken, "TYPE", c.kind).Replace(fixed)
		if strings.Contains(c.taken, "y10") {
			config = strings.Replace(config, "output-node", "dim-range-node name=y10 input-node=y dim-offset=1 dim=10\noutput-node", 1)
		}
		nn, err := nnet3.ParseConfig(strings.NewReader(config), c.taken, 7)
		if err != nil {
			t.Fatal(err)
		}
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 20, Sequences: 3})
		if err != nil {
			t.Fatal(err)
		}
		in, err := pipeline.RandomValues(nn, req, 1)
		if err != nil {
			t.Fatal(err)
		}
		want := execute(t, nn, req, in, "none").Outputs[0].Matrix
		for _, query := range []string{"+fast_run", "+fast_run -local_splice_product", "+fast_run -split_recurrent_affine"} {
			got := execute(t, nn, req, in, query).Outputs[0].Matrix
			for i := range want.Rows {
				for j, v := range kernel.Row(want, i) {
					if kernel.Row(got, i)[j] != v {
						t.Fatalf("%s, %s columns, %s: element (%d, %d) is %v, want %v", c.taken, c.output, query, i, j, kernel.Row(got, i)[j], v)
					}
				}
			}
		}
	}
}
