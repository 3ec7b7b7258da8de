package ir_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
)

var update = flag.Bool("update", false, "rewrite testdata/infer")

// TestInfer compares inferred types with testdata/infer. A line there is an operator, its inputs and
// its results or what is wrong, with bars and an arrow between them. An input is a type, a list of floats that is a
// constant, or _ if it is left out.
func TestInfer(t *testing.T) {
	files, err := filepath.Glob("testdata/infer/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no cases")
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for line := range strings.Lines(string(data)) {
				line = strings.TrimSuffix(line, "\n")
				call, _, _ := strings.Cut(line, " -> ")
				if call = strings.TrimSuffix(call, " ->"); line == "" || strings.HasPrefix(line, "#") {
					fmt.Fprintln(&out, line)
				} else {
					fmt.Fprintln(&out, call, "->", inferred(t, call))
				}
			}
			if *update {
				if err := os.WriteFile(name, []byte(out.String()), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(data), out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// inferred returns the types of the results of a call as text.
func inferred(t *testing.T, call string) string {
	t.Helper()
	operators := ir.Standard()
	parts := strings.Split(call, " | ")
	op, err := operators.ParseOp(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	if op.Operator() == nil {
		t.Fatalf("there is no operator %s", op.Name())
	}
	var in []*fgraph.Variable
	for _, text := range parts[1:] {
		in = append(in, argument(t, text))
	}
	a, err := operators.Apply(op, in...)
	if err != nil {
		return "error: " + strings.TrimPrefix(err.Error(), ir.ErrType.Error()+": "+op.Name()+": ")
	}
	var out []string
	for _, v := range a.Outputs() {
		out = append(out, v.Type().String())
	}
	return strings.Join(out, " | ")
}

func argument(t *testing.T, text string) *fgraph.Variable {
	t.Helper()
	if text == "_" {
		return nil
	}
	if strings.HasPrefix(text, "(") {
		var raw []byte
		list := strings.Split(strings.Trim(text, "()"), ",")
		for _, s := range list {
			f, err := strconv.ParseFloat(s, 32)
			if err != nil {
				t.Fatal(err)
			}
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(f)))
		}
		dims := []int64{int64(len(list))}
		if len(list) == 1 {
			dims = nil
		}
		return ir.Constant(ir.NewValue(&onnx.Tensor{DataType: onnx.Float, Dims: dims, Raw: raw}, ""), "")
	}
	typ, err := ir.ParseType(text)
	if err != nil {
		t.Fatal(err)
	}
	return fgraph.NewInput(typ, "")
}

// BenchmarkInfer infers the types of a text encoder's layers, with symbols for batch and time.
func BenchmarkInfer(b *testing.B) {
	for _, layers := range []int{3, 30} {
		applies := encoder(b, layers)
		b.Run(strconv.Itoa(len(applies)), func(b *testing.B) {
			b.ReportAllocs()
			operators := ir.Standard()
			for b.Loop() {
				for _, a := range applies {
					if _, err := operators.Infer(a.Op().(*ir.Op), a.Inputs()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// encoder returns the applies of layers of attention with their shapes in parts, as exporters write them.
func encoder(tb testing.TB, layers int) []*fgraph.Apply {
	operators := ir.Standard()
	var applies []*fgraph.Apply
	apply := func(op string, in ...*fgraph.Variable) *fgraph.Variable {
		o, err := operators.ParseOp(op)
		if err != nil {
			tb.Fatal(err)
		}
		a, err := operators.Apply(o, in...)
		if err != nil {
			tb.Fatal(err)
		}
		applies = append(applies, a)
		return a.Out()
	}
	input := func(text string) *fgraph.Variable {
		t, err := ir.ParseType(text)
		if err != nil {
			tb.Fatal(err)
		}
		return fgraph.NewInput(t, "")
	}
	square, bias, scalar := input("float[384,384]"), input("float[384]"), input("float[]")
	x := input("float[n,t,384]")
	for range layers {
		var heads []*fgraph.Variable
		for range 3 {
			y := apply("Add", apply("MatMul", x, square), bias)
			shape := apply("Shape", y)
			n := apply("Unsqueeze", apply("Gather", shape, ir.Int64(0)), ir.Int64s(0))
			t := apply("Unsqueeze", apply("Gather", shape, ir.Int64(1)), ir.Int64s(0))
			y = apply("Reshape", y, apply("Concat{axis=0}", n, t, ir.Int64s(12), ir.Int64s(32)))
			heads = append(heads, apply("Transpose{perm=ints[0,2,1,3]}", y))
		}
		scores := apply("Div", apply("MatMul", heads[0], apply("Transpose{perm=ints[0,1,3,2]}", heads[1])), scalar)
		y := apply("Transpose{perm=ints[0,2,1,3]}", apply("MatMul", apply("Softmax", scores), heads[2]))
		x = apply("Add", x, apply("Reshape", y, ir.Int64s(0, 0, -1)))
		d := apply("Sub", x, apply("ReduceMean", x, ir.Int64s(-1)))
		x = apply("Div", d, apply("Sqrt", apply("ReduceMean", apply("Mul", d, d), ir.Int64s(-1))))
	}
	if got := ir.TypeOf(x).String(); got != "float[n,t,384]" {
		tb.Fatalf("the result is %s", got)
	}
	return applies
}
