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
