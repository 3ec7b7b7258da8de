package model_test

import (
	"testing"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/tensor/array"
)

// BenchmarkRun runs a tiny model, a decoder of two layers that is given 32 tokens, by all that runs one.
func BenchmarkRun(b *testing.B) {
	m, err := model.Options{Threads: 1}.Open("testdata/decoder.onnx")
	if err != nil {
		b.Fatal(err)
	}
	in, arrays := make(model.Inputs), make(map[string]*array.Array)
	for _, v := range m.Inputs() {
		a := array.New(array.Float32, 1, 1, 0, 8)
		if v.Type == "int64" {
			a = array.Full(array.Int64, 1, 1, 32)
		}
		in[v.Name], arrays[v.Name] = a, a
	}
	runner, under := m.NewRunner(), m.Session().NewRunner()
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"session", func() error { _, _, err := under.Run(b.Context(), arrays); return err }},
		{"Runner", func() error { return second(runner.Run(b.Context(), in)) }},
		{"Run", func() error { return second(m.Run(b.Context(), in)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
