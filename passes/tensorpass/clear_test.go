package tensorpass_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestClearRows: with integers of 8 bits, the best of the classes of a convolutional network stays the best
// where it is clear: where the two best ones are more than 0.2 standard deviations apart.
func TestClearRows(t *testing.T) {
	longtest.Only(t)
	r := rand.New(rand.NewPCG(1, 2))
	shape := []int{100, 24, 9, 9}
	x := fgraph.NewInput(tensor.NewType(array.Float32, shape...), "x")
	relu := func(x variable) variable { return tensor.Maximum(x, tensor.Number(0, x)) }
	one := tensor.Slide{Before: []int{1, 1}, After: []int{1, 1}}
	y := relu(tensor.Conv(x, tensor.Constant(normals(r, 48, 24, 3, 3)), nil, one, 1))
	y = relu(tensor.Conv(y, tensor.Constant(normals(r, 64, 48, 1, 1)), nil, tensor.Slide{}, 1))
	y = relu(tensor.Conv(y, tensor.Constant(normals(r, 48, 64, 3, 3)), nil, tensor.Slide{Strides: []int{2, 2}}, 1))
	out := tensor.Dot(tensor.Sum(y, 2, 3), tensor.Constant(normals(r, 48, 40)))
	plain, err := exec.NewFunction(t.Context(), []variable{x}, []variable{out}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := tensor.NewGraph([]variable{x}, []variable{out})
	if err != nil {
		t.Fatal(err)
	}
	var list []rewrite.GraphRewriter
	for _, name := range []string{"local_dot_to_dot22", "channels_last", "products_to_int8", "limit_integer_error", "fuse_product_epilogue"} {
		list = append(list, tensorpass.Pass(name))
	}
	rewritetest.Run(t, rewrite.NewSequence("integers", list...), g)
	f, err := exec.CompileGraph(g)
	if err != nil {
		t.Fatal(err)
	}
	arg := normals(r, shape...)
	want, err := plain.Call(t.Context(), arg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Call(t.Context(), arg)
	if err != nil {
		t.Fatal(err)
	}
	clear := 0
	for i := range shape[0] {
		row := make([]float64, 40)
		best, second, quantized := 0, -1, 0
		for j := range row {
			row[j] = want[0].Float(i*40 + j)
			if got[0].Float(i*40+j) > got[0].Float(i*40+quantized) {
				quantized = j
			}
			switch {
			case row[j] > row[best]:
				best, second = j, best
			case j != best && (second < 0 || row[j] > row[second]):
				second = j
			}
		}
		margin := row[best] - row[second]
		if margin*margin <= 0.04*variation(row)/40 {
			continue
		}
		if clear++; quantized != best {
			t.Errorf("row %d: class %d, by %v more than class %d, has become %d", i, best, margin, second, quantized)
		}
	}
	if clear < 20 {
		t.Errorf("%d of %d rows are clear", clear, shape[0])
	}
}
