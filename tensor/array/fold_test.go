package array_test

import (
	"testing"

	. "github.com/nnopt/nnopt/tensor/array"
)

// TestFold compares Fold with what programs compute.
func TestFold(t *testing.T) {
	xs := []*Array{Scalar(2.5), Of([]int64{3}, 1, 1), Of([]bool{true}, 1), Of([]float32{0.1}, 1)}
	for _, op := range []Opcode{Add, Mul, Sub, TrueDiv} {
		for _, dtype := range []DType{Float32, Float64} {
			got, ok := Fold(op, dtype, 7, xs)
			if !ok || got.DType() != dtype || got.NDim() != 2 {
				t.Fatalf("%v in %v: %v", op, dtype, got)
			}
			want := Full(dtype, 7, 1, 1)
			var ws Workspace
			p := NewProgram(dtype, dtype)
			p.Return(p.Append(op, 0, 1))
			for _, x := range xs {
				ws.Map(p, []*Array{want}, []*Array{want, x.Cast(dtype).Reshape(1, 1)})
			}
			if got.Float(0) != want.Float(0) {
				t.Errorf("%v in %v is %v, want %v", op, dtype, got, want)
			}
		}
	}
	if got, ok := Fold(Add, Int64, 0, []*Array{Scalar(int64(1<<60 + 1)), Scalar(int64(2))}); !ok || got.Int(0) != 1<<60+3 {
		t.Errorf("sum of int64: %v", got)
	}
	for name, ok := range map[string]bool{
		"floats in int64": was(Fold(Add, Int64, 0, xs)), "two elements": was(Fold(Add, Float64, 0, []*Array{New(Float64, 2)})),
		"bools": was(Fold(Add, Bool, 0, nil)), "quotient of integers": was(Fold(TrueDiv, Int64, 1, nil)), "one argument": was(Fold(Exp, Float64, 1, nil)),
	} {
		if ok {
			t.Errorf("%s: were combined", name)
		}
	}
}

func was[A, B any](_ A, b B) B { return b }
