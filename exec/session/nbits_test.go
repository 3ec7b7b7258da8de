package session_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestBlockCodes: products with codes, and rows of them, are those with what the codes mean.
func TestBlockCodes(t *testing.T) {
	const terms, columns, block, blocks = 50, 33, 32, 2
	r := rand.New(rand.NewPCG(1, 2))
	bytes := func(shape ...int) *array.Array {
		a := array.New(array.Uint8, shape...)
		for i := range a.Len() {
			a.SetFloat(i, float64(r.IntN(256)))
		}
		return a
	}
	floats := func(shape ...int) *array.Array {
		a := array.New(array.Float32, shape...)
		for i := range a.Len() {
			a.SetFloat(i, r.Float64())
		}
		return a
	}
	codes, scales, zeros, x := bytes(columns, blocks, block/2), floats(columns, blocks), bytes(columns, 1), floats(3, terms)
	order := array.New(array.Int32, terms)
	for i := range terms {
		order.SetFloat(i, float64(i/block+r.IntN(blocks-i/block)))
	}
	nibble := func(a *array.Array, i int) float64 { return float64(int(a.Float(i/2)) >> (i % 2 * 4) & 15) }
	weight := func(j, l, b int) float64 {
		return (nibble(codes, j*blocks*block+l) - nibble(zeros, 2*j+b)) * scales.Float(j*blocks+b)
	}
	for _, c := range []struct {
		op, inputs string
	}{
		{"MatMulNBits", "x w s z"}, {"MatMulNBits", "x w s z g"}, {"GatherBlockQuantized", "rows i s z"},
	} {
		n := node(c.op, c.inputs, "y", whole("bits", 4), whole("block_size", block))
		if c.op == "MatMulNBits" {
			n.Attributes = append(n.Attributes, whole("K", terms), whole("N", columns))
		}
		n.Domain = "com.microsoft"
		rows := codes.Reshape(columns, blocks*block/2)
		nodes := []*onnx.Node{constant("w", codes, onnx.Uint8), constant("rows", rows, onnx.Uint8), constant("s", scales, onnx.Float), constant("z", zeros, onnx.Uint8),
			constant("g", order, onnx.Int32), constant("i", array.Of([]int64{4, -1, 4}, 3), onnx.Int64), n}
		m := model([]string{"x"}, []string{"y"}, nodes...)
		m.Opsets = append(m.Opsets, &onnx.Opset{Domain: n.Domain, Version: 1})
		in := map[string]*array.Array{"x": x}
		f, err := session.Model(t.Context(), m, session.Options{}, in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := f.Call(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		y := out["y"]
		for i := range 3 {
			for j := range y.Dim(1) {
				want := 0.0
				if c.op == "MatMulNBits" {
					for l := range terms {
						b := l / block
						if strings.HasSuffix(c.inputs, "g") {
							b = int(order.Int(l))
						}
						want += x.Float(i*terms+l) * weight(j, l, b)
					}
				} else {
					want = weight([]int{4, columns - 1, 4}[i], j, j/block)
				}
				if got := y.Float(i*y.Dim(1) + j); math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
					t.Fatalf("%s of %s, %d, %d: %v, want %v", c.op, c.inputs, i, j, got, want)
				}
			}
		}
	}
}
