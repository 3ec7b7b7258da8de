package main

import (
	"context"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/tensor/array"
)

func open(name string, in []value) func() []any {
	m, err := model.Open(name)
	check(err)
	inputs := model.Inputs{}
	for _, v := range in {
		inputs[v.Name] = tensor(v)
	}
	return func() (out []any) {
		values, err := m.Run(context.Background(), inputs)
		check(err)
		for _, o := range m.Outputs() {
			out = append(out, elements(values[o.Name]))
		}
		return out
	}
}

func tensor(v value) any {
	sizes := make([]int, len(v.Dims))
	for i, d := range v.Dims {
		sizes[i] = int(d)
	}
	switch s := v.slice().(type) {
	case []float32:
		return model.Tensor(s, sizes...)
	case []int64:
		return model.Tensor(s, sizes...)
	case []int32:
		return model.Tensor(s, sizes...)
	case []bool:
		return model.Tensor(s, sizes...)
	default:
		return s
	}
}

func elements(a *array.Array) any {
	switch a.DType() {
	case array.Int64:
		s, err := model.Slice[int64](a)
		check(err)
		return s
	case array.Bool:
		s, err := model.Slice[bool](a)
		check(err)
		return s
	default:
		s, err := model.Slice[float32](a)
		check(err)
		return s
	}
}
