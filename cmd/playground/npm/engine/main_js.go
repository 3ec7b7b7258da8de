// Command engine is the program of the npm package, for WebAssembly. With arguments it is the command nnopt; without, it
// opens and runs models for a script.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall/js"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/standard"
)

func main() {
	if len(os.Args) > 1 {
		os.Exit(standard.Program{}.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) // Main asks for signals, which there are none of
	}
	models := make(map[int]*model.Model)
	// open(bytes, query) returns {id, values}, the second the JSON of inputs and outputs. run(id, [{name, dims, bytes}]) returns a
	// list like that of its inputs. Both return {error} if there is one.
	open := js.FuncOf(answering(func(args []js.Value) (any, error) {
		m, err := model.Options{Query: args[1].String()}.Parse(bytesOf(args[0]))
		if err != nil {
			return nil, err
		}
		values, err := json.Marshal(map[string]any{"inputs": described(m.Inputs()), "outputs": described(m.Outputs())})
		if err != nil {
			return nil, err
		}
		id := len(models)
		models[id] = m
		return map[string]any{"id": id, "values": string(values)}, nil
	}))
	run := js.FuncOf(answering(func(args []js.Value) (any, error) { return run(models[args[0].Int()], args[1]) }))
	js.Global().Call("opened", open, run)
	select {}
}

// answering makes the answer of a function one for scripts. What panics is an error.
func answering(f func([]js.Value) (any, error)) func(js.Value, []js.Value) any {
	return func(_ js.Value, args []js.Value) (answer any) {
		defer func() {
			if p := recover(); p != nil {
				answer = map[string]any{"error": fmt.Sprint("internal error: ", p)}
			}
		}()
		answer, err := f(args)
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return answer
	}
}

// A value is what a script is told of an input or an output.
type value struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Dims []any  `json:"dims"` // numbers, or the symbols of those that are open
}

func described(values []model.Value) []value {
	list := make([]value, len(values))
	for i, v := range values {
		list[i] = value{v.Name, v.Type, []any{}}
		for _, d := range v.Dims {
			if d.Size < 0 {
				list[i].Dims = append(list[i].Dims, d.Symbol)
			} else {
				list[i].Dims = append(list[i].Dims, d.Size)
			}
		}
	}
	return list
}

// run runs a model with the inputs of a script, whose bytes are those of a tensor of ONNX.
func run(m *model.Model, list js.Value) (any, error) {
	elements := make(map[string]onnx.DataType)
	for _, in := range m.File().Graph.Inputs {
		if in.Type != nil && in.Type.Tensor != nil {
			elements[in.Name] = in.Type.Tensor.Elem
		}
	}
	inputs := make(model.Inputs)
	for i := range list.Length() {
		in := list.Index(i)
		t := &onnx.Tensor{Name: in.Get("name").String(), Raw: bytesOf(in.Get("bytes"))}
		t.DataType = elements[t.Name]
		for k := range in.Get("dims").Length() {
			t.Dims = append(t.Dims, int64(in.Get("dims").Index(k).Int()))
		}
		a, err := lower.ArrayOf(t, "")
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", t.Name, err)
		}
		inputs[t.Name] = a
	}
	out, err := m.Run(context.Background(), inputs)
	if err != nil {
		return nil, err
	}
	answer := []any{}
	for _, v := range m.Outputs() {
		if a := out[v.Name]; a != nil {
			given, err := tensorOf(v.Name, a)
			if err != nil {
				return nil, err
			}
			answer = append(answer, given)
		}
	}
	return answer, nil
}

// types are the types of elements that a script can have.
var types = map[array.DType]onnx.DataType{
	array.Bool: onnx.Bool, array.Float16: onnx.Float16, array.Float32: onnx.Float, array.Float64: onnx.Double,
	array.Int8: onnx.Int8, array.Int16: onnx.Int16, array.Int32: onnx.Int32, array.Int64: onnx.Int64,
	array.Uint8: onnx.Uint8, array.Uint16: onnx.Uint16, array.Uint32: onnx.Uint32, array.Uint64: onnx.Uint64,
}

func tensorOf(name string, a *array.Array) (any, error) {
	elem, ok := types[a.DType()]
	if !ok {
		return nil, fmt.Errorf("output %q: there are no arrays of %v in JavaScript", name, a.DType())
	}
	t, err := lower.TensorOf(name, a, elem)
	if err != nil {
		return nil, err
	}
	dims := []any{}
	for _, d := range t.Dims {
		dims = append(dims, int(d))
	}
	bytes := js.Global().Get("Uint8Array").New(len(t.Raw))
	js.CopyBytesToJS(bytes, t.Raw)
	return map[string]any{"name": name, "type": a.DType().String(), "dims": dims, "bytes": bytes}, nil
}

func bytesOf(v js.Value) []byte {
	data := make([]byte, v.Length())
	js.CopyBytesToGo(data, v)
	return data
}
