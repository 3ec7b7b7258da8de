package exec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// boaster subtracts two vectors: x - y. What it says about itself by optional interfaces is wrong in
// one way, its name, or right.
type boaster string

func (b boaster) String() string { return string(b) }

func (b boaster) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return []fgraph.Type{tensor.VectorType(array.Float64)}, nil
}

func (b boaster) Compile(a *fgraph.Apply) (tensor.Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		*out[0] = *array.New(array.Float64, in[0].Len())
		for i := range in[0].Len() {
			out[0].SetFloat(i, in[0].Float(i)-in[1].Float(i))
		}
		return nil
	}, nil
}

func (b boaster) InferShape(a *fgraph.Apply, s *tensor.Shapes) [][]*fgraph.Variable {
	switch n := s.Dim(a.Inputs()[0], 0); b {
	case "shape":
		return [][]*fgraph.Variable{{tensor.Add(n, tensor.Int(1))}}
	case "rank":
		return [][]*fgraph.Variable{{n, n}}
	case "unknown":
		return nil
	default:
		return [][]*fgraph.Variable{{n}}
	}
}

func (b boaster) Commutes() bool { return b == "commutes" }

func (b boaster) Overwriting() tensor.Op {
	switch b {
	case "no twin":
		return nil
	case "twin":
		return twin{negated: true}
	case "twin not in place":
		return boaster("twin not in place")
	}
	return twin{}
}

func (b boaster) AddTo(p *array.Program, x ...int) int {
	if b == "fused" {
		return p.Append(array.Add, x...)
	}
	return p.Append(array.Sub, x...)
}

// twin subtracts in place.
type twin struct{ negated bool }

func (twin) String() string             { return "twin" }
func (twin) DestroyMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }
func (twin) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return []fgraph.Type{in[0].Type()}, nil
}

func (w twin) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		*out[0] = *in[0]
		for i := range in[0].Len() {
			d := in[0].Float(i) - in[1].Float(i)
			if w.negated {
				d = -d
			}
			out[0].SetFloat(i, d)
		}
		return nil
	}, nil
}

// TestCheckOfClaims: debug mode finds ops whose optional declarations are wrong.
func TestCheckOfClaims(t *testing.T) {
	for name, want := range map[boaster]string{
		"honest": "", "unknown": "", "no twin": "",
		"shape":             "dimension 0 of output 0 has size 2, but 3 is inferred",
		"rank":              "it infers 2 sizes for output 0, and there are 1",
		"commutes":          "output 0 has other values with its first two inputs swapped",
		"twin":              "output 0 has other values as its twin in place",
		"twin not in place": "its twin in place, twin not in place, overwrites nothing",
		"fused":             "output 0 has other values as part of a larger op",
	} {
		x, y := tensor.Vector("x"), tensor.Vector("y")
		for _, check := range []bool{false, true} {
			out := []*fgraph.Variable{tensor.MustApply(name, x, y)}
			f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x, y}, out, exec.FunctionOptions{Check: check})
			if err != nil {
				t.Fatal(err)
			}
			a, b := array.Of([]float64{1, 2}, 2), array.Of([]float64{5, 7}, 2)
			_, err = f.Call(t.Context(), a, b)
			if !check || want == "" {
				if err != nil {
					t.Errorf("%s, check %t: %v", name, check, err)
				}
			} else if !errors.Is(err, fgraph.ErrDeclaration) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
			if a.String() != "[1.0, 2.0]" || b.String() != "[5.0, 7.0]" {
				t.Errorf("%s overwrites its arguments", name)
			}
		}
	}
	// A constant, and one variable twice.
	x := tensor.Vector("x")
	for _, out := range []*fgraph.Variable{
		tensor.MustApply(boaster("honest"), x, x),
		tensor.MustApply(boaster("honest"), tensor.Constant(array.Of([]float64{1, 2}, 2)), x),
	} {
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{out}, exec.FunctionOptions{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Call(t.Context(), array.Of([]float64{1, 2}, 2)); err != nil {
			t.Error(err)
		}
	}
}
