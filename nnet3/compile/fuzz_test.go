package compile

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// FuzzCompile compiles anything. The result is an error or a computation that passes the checker.
// The context and the smallest chunk suffice.
func FuzzCompile(f *testing.F) {
	for _, net := range [][]string{spliced, recurrent, {
		"input-node name=input dim=4",
		"component name=t type=TdnnComponent input-dim=4 output-dim=2 time-offsets=-1,0,3",
		"component-node name=t component=t input=Round(input, 2)",
		"dim-range-node name=d input-node=t dim=1 dim-offset=1",
		"component name=s type=StatisticsExtractionComponent input-dim=1 input-period=1 output-period=4 include-variance=true",
		"component-node name=s component=s input=Failover(d, Const(1, 1))",
		"component name=p type=StatisticsPoolingComponent input-dim=3 input-period=4 left-context=8 right-context=8 num-log-count-features=0 output-stddevs=true",
		"component-node name=p component=p input=s",
		"output-node name=output input=Append(Switch(t, Offset(t, 1)), Scale(0.5, ReplaceIndex(p, t, 0)))",
	}} {
		f.Add(strings.Join(net, "\n"), int8(-3), int8(12), int8(0), int8(4), uint8(2))
	}
	f.Fuzz(func(t *testing.T, text string, first, last, from, to int8, sequences uint8) {
		if len(text) > 1500 || strings.Contains(text, "max-memory") || sequences > 4 {
			t.Skip("too much")
		}
		nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
		if err != nil || nn.NumParameters() > 1<<16 {
			t.Skip(err)
		}
		req := &computation.Request{NeedModelDerivative: sequences == 1}
		for i := range nn.Nodes {
			name := nn.Nodes[i].Name
			if nn.IsInputNode(i) {
				req.Inputs = append(req.Inputs, computation.IoSpecification{Name: name, Indexes: at(int32(sequences), int32(first), int32(last)), HasDeriv: first&1 == 0})
			} else if nn.IsOutputNode(i) {
				req.Outputs = append(req.Outputs, computation.IoSpecification{Name: name, Indexes: at(int32(sequences), int32(from), int32(to)), HasDeriv: true})
			}
		}
		fuzzContext(t, nn)
		c, err := Compile(nn, req, Options{DebugInfo: true, MaxCindexes: 1 << 15})
		if err != nil {
			return
		}
		if err := computation.Check(c, computation.NewNetworkInfo(nn, nil), computation.CheckOptions{Rewrite: true, AllowUnused: true}); err != nil {
			t.Fatal(err)
		}
	})
}

// fuzzContext compiles the smallest chunk with its context.
func fuzzContext(t *testing.T, nn *nnet3.Nnet) {
	var outputs []string
	req := &computation.Request{}
	for i := range nn.Nodes {
		if nn.IsOutputNode(i) {
			outputs = append(outputs, nn.Nodes[i].Name)
		}
	}
	left, right, err := Context(nn, outputs...)
	if err != nil {
		return
	}
	frames, err := SmallestChunk(nn, outputs...)
	if err != nil || left+frames+right > 1000 {
		return
	}
	for i := range nn.Nodes {
		spec := computation.IoSpecification{Name: nn.Nodes[i].Name}
		if nn.IsInputNode(i) {
			first := -left
			if spec.Name == ivectorName {
				first -= nn.Modulus()
			}
			spec.Indexes = at(1, int32(first), int32(frames+right))
			req.Inputs = append(req.Inputs, spec)
		} else if nn.IsOutputNode(i) {
			spec.Indexes = at(1, 0, int32(frames))
			req.Outputs = append(req.Outputs, spec)
		}
	}
	if _, err := Compile(nn, req, Options{MaxCindexes: 1 << 18}); errors.Is(err, ErrNotComputable) || errors.Is(err, errBadRequest) {
		t.Fatalf("context %d and %d, chunk of %d: %v", left, right, frames, err)
	}
}
