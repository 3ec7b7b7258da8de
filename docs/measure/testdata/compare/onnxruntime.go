package main

import (
	"os"

	ort "github.com/yalue/onnxruntime_go"
)

func open(name string, in []value) func() []any {
	ort.SetSharedLibraryPath(os.Getenv("ORT"))
	check(ort.InitializeEnvironment())
	options, err := ort.NewSessionOptions()
	check(err)
	check(options.SetIntraOpNumThreads(1))
	_, outputs, err := ort.GetInputOutputInfo(name)
	check(err)
	var inputNames, outputNames []string
	var inputs []ort.Value
	for _, v := range in {
		inputNames = append(inputNames, v.Name)
		inputs = append(inputs, tensor(v))
	}
	for _, o := range outputs {
		outputNames = append(outputNames, o.Name)
	}
	s, err := ort.NewDynamicAdvancedSession(name, inputNames, outputNames, options)
	check(err)
	return func() (out []any) {
		values := make([]ort.Value, len(outputs))
		check(s.Run(inputs, values))
		for _, v := range values {
			switch t := v.(type) {
			case *ort.Tensor[float32]:
				out = append(out, append([]float32(nil), t.GetData()...))
			case *ort.Tensor[int64]:
				out = append(out, append([]int64(nil), t.GetData()...))
			case *ort.Tensor[bool]:
				out = append(out, append([]bool(nil), t.GetData()...))
			default:
				panic("an output of another type")
			}
			check(v.Destroy())
		}
		return out
	}
}

func tensor(v value) ort.Value {
	switch s := v.slice().(type) {
	case []float32:
		return made(v, s)
	case []int64:
		return made(v, s)
	case []int32:
		return made(v, s)
	case []bool:
		return made(v, s)
	}
	panic("type " + v.Dtype)
}

func made[T ort.TensorData](v value, s []T) ort.Value {
	if len(v.Dims) == 0 {
		t, err := ort.NewScalar(s[0])
		check(err)
		return t
	}
	t, err := ort.NewTensor(ort.NewShape(v.Dims...), s)
	check(err)
	return t
}
