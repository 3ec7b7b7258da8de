package main

import (
	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/onnx-gomlx/onnx"
)

func open(name string, in []value) func() []any {
	backend, err := backends.NewWithConfig("go")
	check(err)
	m, err := onnx.ReadFile(name)
	check(err)
	ctx := context.New()
	check(m.VariablesToContext(ctx))
	exec, err := context.NewExec(backend, ctx, func(ctx *context.Context, inputs []*graph.Node) []*graph.Node {
		named := map[string]*graph.Node{}
		for i, v := range in {
			named[v.Name] = inputs[i]
		}
		return m.CallGraph(ctx, inputs[0].Graph(), named, m.OutputsNames...)
	})
	check(err)
	var inputs []any
	for _, v := range in {
		inputs = append(inputs, tensor(v))
	}
	return func() (out []any) {
		values, err := exec.Exec(inputs...)
		check(err)
		for _, v := range values {
			check(v.ConstFlatData(func(flat any) {
				switch s := flat.(type) {
				case []float32:
					out = append(out, append([]float32(nil), s...))
				case []int64:
					out = append(out, append([]int64(nil), s...))
				case []bool:
					out = append(out, append([]bool(nil), s...))
				default:
					panic("an output of another type")
				}
			}))
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
		return tensors.FromFlatDataAndDimensions(s, sizes...)
	case []int64:
		return tensors.FromFlatDataAndDimensions(s, sizes...)
	case []int32:
		return tensors.FromFlatDataAndDimensions(s, sizes...)
	case []bool:
		return tensors.FromFlatDataAndDimensions(s, sizes...)
	}
	panic("type " + v.Dtype)
}
