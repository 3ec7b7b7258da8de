package onnx_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/nnopt/nnopt/onnx"
)

// chain returns a model of n nodes in a row, each with a weight and an attribute.
func chain(n int) *onnx.Model {
	m := plain()
	g := &onnx.Graph{Name: "g", Inputs: []*onnx.ValueInfo{value("v0")}, Outputs: []*onnx.ValueInfo{value(fmt.Sprint("v", n))}}
	for i := range n {
		w := fmt.Sprint("w", i)
		g.Initializers = append(g.Initializers, &onnx.Tensor{Name: w, DataType: onnx.Uint8, Dims: []int64{1, 100}, Raw: make([]byte, 100)})
		g.Nodes = append(g.Nodes, node("Conv", fmt.Sprint("v", i, " ", w), fmt.Sprint("v", i+1), &onnx.Attribute{Name: "pads", Type: onnx.AttributeInts, Ints: []int64{1, 1, 1, 1}}))
	}
	m.Graph = g
	return m
}

// BenchmarkModel shows that what is done with models takes time in proportion to them.
func BenchmarkModel(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		data := written(b, chain(n))
		m, err := onnx.Parse(data)
		if err != nil {
			b.Fatal(err)
		}
		changed, err := onnx.Parse(bytes.Clone(data))
		if err != nil {
			b.Fatal(err)
		}
		changed.Graph.Nodes[n/2].Name = "changed"
		for name, do := range map[string]func() error{
			"Parse":        func() error { _, err := onnx.Parse(data); return err },
			"Check":        func() error { return onnx.Check(m) },
			"Write":        func() error { return m.Write(io.Discard) },
			"WriteChanged": func() error { return changed.Write(io.Discard) },
		} {
			b.Run(fmt.Sprintf("%s/nodes=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := do(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			})
		}
	}
}
