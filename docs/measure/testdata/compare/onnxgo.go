package main

import (
	"os"

	"github.com/owulveryck/onnx-go"
	"github.com/owulveryck/onnx-go/backend/x/gorgonnx"
	"gorgonia.org/tensor"
)

func open(name string, in []value) func() []any {
	backend := gorgonnx.NewGraph()
	m := onnx.NewModel(backend)
	data, err := os.ReadFile(name)
	check(err)
	check(m.UnmarshalBinary(data))
	return func() (out []any) {
		for i, v := range in {
			sizes := make([]int, len(v.Dims))
			for i, d := range v.Dims {
				sizes[i] = int(d)
			}
			check(m.SetInput(i, tensor.New(tensor.WithShape(sizes...), tensor.WithBacking(v.slice()))))
		}
		check(backend.Run())
		values, err := m.GetOutputTensors()
		check(err)
		for _, v := range values {
			out = append(out, v.Data())
		}
		return out
	}
}
