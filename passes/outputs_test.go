package passes_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// TestOutputOfNothing: outputs that are no value of their own, but an input, a part of a value, or the same as another output.
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
