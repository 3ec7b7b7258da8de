package nnet3pass_test

import (
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// TestSumsOfSums optimizes layers that each add up two times of the layer before. Multiplied out,
// they would be a sum with a term for every subset of the layers.
func TestSumsOfSums(t *testing.T) {
	const layers = 40
	var text strings.Builder
	text.WriteString("input-node name=input dim=2\ncomponent name=c type=NoOpComponent dim=2\n")
	last, need := "input", int32(0)
	for i := range int32(layers) {
		fmt.Fprintf(&text, "component-node name=n%d component=c input=Sum(%s, Scale(0.5, Offset(%s, %d)))\n", i, last, last, i%7+1)
		last, need = fmt.Sprint("n", i), need+i%7+1
	}
	fmt.Fprintf(&text, "output-node name=output input=%s\n", last)
	nn, err := nnet3.ParseConfig(strings.NewReader(text.String()), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	req := &computation.Request{Outputs: []computation.IoSpecification{{Name: "output", Indexes: []index.Index{{T: 0}, {T: 1}}}}}
	req.Inputs = []computation.IoSpecification{{Name: "input"}}
	for i := range need + 2 {
		req.Inputs[0].Indexes = append(req.Inputs[0].Indexes, index.Index{T: i})
	}
	c, err := compile.Compile(nn, req, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := runSegments(t, nn, c, []*computation.Request{req})
	for _, query := range queries {
		sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(sample)
		before := sample[0].Value.Uint64()
		optimized := optimize(t, nn, c, query)
		metrics.Read(sample)
		if used := sample[0].Value.Uint64() - before; used > 256<<20 {
			t.Errorf("%s: %d MiB were allocated", query, used>>20)
		}
		agree(t, query, runSegments(t, nn, optimized, []*computation.Request{req}), want, 1e-4)
	}
}

// BenchmarkSplice optimizes an affine over an Append of many terms, and reports the time per term.
func BenchmarkSplice(b *testing.B) {
	opt, err := passes.Default().Build(optdb.Include("fast_run"))
	if err != nil {
		b.Fatal(err)
	}
	for _, terms := range []int{200, 2000, 20000} {
		b.Run(fmt.Sprint(terms), func(b *testing.B) {
			const times = 100
			list := make([]string, terms)
			for i := range list {
				list[i] = fmt.Sprintf("Offset(input, %d)", i%times)
			}
			config := fmt.Sprintf("input-node name=input dim=1\ncomponent name=a type=AffineComponent input-dim=%d output-dim=4\n"+
				"component-node name=a component=a input=Append(%s)\noutput-node name=output input=a\n", terms, strings.Join(list, ", "))
			nn, err := nnet3.ParseConfig(strings.NewReader(config), "config", 1)
			if err != nil {
				b.Fatal(err)
			}
			req := &computation.Request{Inputs: []computation.IoSpecification{{Name: "input"}}, Outputs: []computation.IoSpecification{{Name: "output"}}}
			req.Outputs[0].Indexes = []index.Index{{T: 0}}
			for i := range int32(times) {
				req.Inputs[0].Indexes = append(req.Inputs[0].Indexes, index.Index{T: i})
			}
			c, err := compile.Compile(nn, req, compile.Options{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				got, err := passes.Optimize(b.Context(), c, nn, opt, nil)
				if err != nil {
					b.Fatal(err)
				}
				if len(got.Commands) >= terms {
					b.Fatalf("%d commands", len(got.Commands))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(terms), "ns/term")
		})
	}
}
