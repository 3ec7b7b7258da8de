package pipeline_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/passes/passtest"
)

// factored has two layers that look back, each with a bypass, and an i-vector for each chunk.
const factored = `
input-node name=ivector dim=100
input-node name=input dim=40
component name=a type=NaturalGradientAffineComponent input-dim=180 output-dim=192
component-node name=a component=a input=Append(Offset(input, -1), input, ReplaceIndex(ivector, t, 0))
component name=a.relu type=RectifiedLinearComponent dim=192
component-node name=a.relu component=a.relu input=a
component name=b1 type=TdnnComponent input-dim=192 output-dim=48 time-offsets=-3,0 use-bias=false
component-node name=b1 component=b1 input=a.relu
component name=b2 type=TdnnComponent input-dim=48 output-dim=192 time-offsets=0,3
component-node name=b2 component=b2 input=b1
component name=b.relu type=RectifiedLinearComponent dim=192
component-node name=b.relu component=b.relu input=b2
component name=b.sum type=NoOpComponent dim=192
component-node name=b.sum component=b.sum input=Sum(Scale(0.66, a.relu), b.relu)
component name=c1 type=TdnnComponent input-dim=192 output-dim=48 time-offsets=-3,0 use-bias=false
component-node name=c1 component=c1 input=b.sum
component name=c2 type=TdnnComponent input-dim=48 output-dim=192 time-offsets=0,3
component-node name=c2 component=c2 input=c1
component name=c.relu type=RectifiedLinearComponent dim=192
component-node name=c.relu component=c.relu input=c2
component name=c.sum type=NoOpComponent dim=192
component-node name=c.sum component=c.sum input=Sum(Scale(0.66, b.sum), c.relu)
output-node name=output input=c.sum
`

// buildLoop builds the loop of the factored network.
func buildLoop(t *testing.T, query string, sequences int) *pipeline.Loop {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(factored), "factored", 1)
	if err != nil {
		t.Fatal(err)
	}
	nn.SetTestMode(true)
	left, right, err := compile.Context(nn)
	if err != nil {
		t.Fatal(err)
	}
	const chunk = 21
	if nn, err = compile.WithIvectorPeriod(nn, chunk); err != nil {
		t.Fatal(err)
	}
	requests, err := compile.LoopedRequests(nn, compile.LoopedConfig{
		FramesPerChunk: chunk, FrameSubsampling: 3, LeftContext: left, RightContext: right, Sequences: sequences})
	if err != nil {
		t.Fatal(err)
	}
	l, err := pipeline.BuildLoop(t.Context(), nn, requests, passtest.Optimizer(t, query))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLoopReadsWhatItTakes: a chunk reads rows of earlier chunks where they came in, and never
// builds the matrices that they were part of, whose other rows would be zero.
func TestLoopReadsWhatItTakes(t *testing.T) {
	for _, sequences := range []int{1, 4} {
		l := buildLoop(t, "+fast_run", sequences)
		c := l.Chunks[len(l.Chunks)-1].Computation
		for i, cmd := range c.Commands {
			if cmd.Type == computation.SetConst {
				t.Errorf("%d sequences: command %d sets a constant", sequences, i)
			}
		}
	}
}

// TestLoopMultipliesOnce: i-vectors of the last chunk and of this one are multiplied once, not for
// every frame.
func TestLoopMultipliesOnce(t *testing.T) {
	for _, sequences := range []int{1, 4} {
		l := buildLoop(t, "+fast_run", sequences)
		c := l.Chunks[len(l.Chunks)-1].Computation
		first := slices.IndexFunc(c.Commands, func(cmd computation.Command) bool { return cmd.Type == computation.Propagate })
		if rows := c.Submatrices[c.Commands[first].Args[3]].NumRows; rows != int32(2*sequences) {
			t.Errorf("%d sequences: the first product has %d rows, want %d", sequences, rows, 2*sequences)
		}
	}
}
