package nnet3pass_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// TestOutputOfNothing: outputs that are an input, a part of a value, or the same as another output.
func TestOutputOfNothing(t *testing.T) {
	const layer = `
input-node name=input dim=4
component name=a type=AffineComponent input-dim=4 output-dim=6
component-node name=a component=a input=input
dim-range-node name=part input-node=a dim=2 dim-offset=3
`
	for name, outputs := range map[string]string{
		"input":        "output-node name=output input=input",
		"part":         "output-node name=output input=part",
		"rows":         "output-node name=output input=Offset(a, 1)",
		"parts":        "output-node name=output input=part\noutput-node name=other input=part\noutput-node name=all input=a",
		"twice":        "output-node name=output input=a\noutput-node name=other input=a",
		"input, twice": "output-node name=output input=input\noutput-node name=other input=input",
	} {
		t.Run(name, func(t *testing.T) {
			nn, err := nnet3.ParseConfig(strings.NewReader(layer+outputs), "config", 1)
			if err != nil {
				t.Fatal(err)
			}
			req := &computation.Request{Inputs: []computation.IoSpecification{{Name: "input", Indexes: []index.Index{{T: 0}, {T: 1}, {T: 2}}}}}
			for i, n := range nn.Nodes {
				if nn.IsOutputNode(i) {
					req.Outputs = append(req.Outputs, computation.IoSpecification{Name: n.Name, Indexes: []index.Index{{T: 0}, {T: 1}}})
				}
			}
			c, err := compile.Compile(nn, req, compile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := runSegments(t, nn, c, []*computation.Request{req})
			for _, query := range queries {
				agree(t, query, runSegments(t, nn, optimize(t, nn, c, query), []*computation.Request{req}), want, 1e-6)
			}
		})
	}
}

// TestRowsInOneMatrix: sums over rows that lie between the rows that they are summed from. Several
// of them can't be one command.
func TestRowsInOneMatrix(t *testing.T) {
	const text = `
input-node name=input dim=4
component name=l0.a type=AffineComponent input-dim=8 output-dim=8 param-stddev=0.3
component-node name=l0.a component=l0.a input=Append(input, IfDefined(Offset(l0.out, -1)))
component name=l0 type=RectifiedLinearComponent dim=8
component-node name=l0 component=l0 input=l0.a
dim-range-node name=l0.out input-node=l0 dim=4 dim-offset=0
component name=l1.a type=AffineComponent input-dim=8 output-dim=8 param-stddev=0.3
component-node name=l1.a component=l1.a input=Append(input, IfDefined(Offset(l1.out, -1)))
component name=l1 type=RectifiedLinearComponent dim=8
component-node name=l1 component=l1 input=l1.a
dim-range-node name=l1.out input-node=l1 dim=4 dim-offset=0
component name=l2.a type=AffineComponent input-dim=4 output-dim=8 param-stddev=0.3
component-node name=l2.a component=l2.a input=Append(Round(l0.out, 2))
component name=l2 type=SigmoidComponent dim=8
component-node name=l2 component=l2 input=l2.a
dim-range-node name=l2.out input-node=l2 dim=4 dim-offset=0
output-node name=output input=l2.out`
	nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	for frames := 1; frames < 9; frames += longtest.Of(3, 1) {
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: frames, Derivative: true})
		if err != nil {
			t.Fatal(err)
		}
		c, err := compile.Compile(nn, req, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := results(t, nn, c, req)
		for _, query := range append([]string{"+fast_run -consolidate_model_update -fusion", "+fast_run -convert_addition"}, queries...) {
			compareResults(t, query, results(t, nn, optimize(t, nn, c, query), req), want, 1e-4)
		}
	}
}
