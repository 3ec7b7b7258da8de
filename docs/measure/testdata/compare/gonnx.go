package main

import (
	"github.com/advancedclimatesystems/gonnx"
	"gorgonia.org/tensor"
)

func open(name string, in []value) func() []any {
	m, err := gonnx.NewModelFromFile(name)
	check(err)
	inputs := gonnx.Tensors{}
	for _, v := range in {
		sizes := make([]int, len(v.Dims))
		for i, d := range v.Dims {
			sizes[i] = int(d)
		}
		inputs[v.Name] = tensor.New(tensor.WithShape(sizes...), tensor.WithBacking(v.slice()))
	}
	return func() (out []any) {
		values, err := m.Run(inputs)
		check(err)
		for _, name := range m.OutputNames() {
			out = append(out, values[name].Data())
		}
		return out
	}
}
