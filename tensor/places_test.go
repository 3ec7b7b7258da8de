package tensor_test

import (
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestPlaces: indexes of known and unknown sizes, that repeat, are out of range or count from both ends.
func TestPlaces(t *testing.T) {
	open, five := tensor.Vector("x"), fgraph.NewInput(tensor.NewType(array.Float64, 5), "x")
	list := func(v ...int64) []*fgraph.Variable {
		return []*fgraph.Variable{tensor.Constant(array.Of(v, len(v)))}
	}
	for _, c := range []struct {
		x               *fgraph.Variable
		indexes         []*fgraph.Variable
		known, distinct bool
		least           int
	}{
		{five, list(0, -1, 2), true, true, 5},
		{five, list(1, -4), true, false, 2},
		{five, list(5), false, false, 0},
		{open, list(1, 3), true, true, 4},
		{open, list(-1, -3), true, true, 3},
		{open, list(1, -1), false, false, 0},
		{open, list(2, 2), true, false, 3},
		{open, []*fgraph.Variable{fgraph.NewInput(tensor.VectorType(array.Int64), "i")}, false, false, 0},
		{open, []*fgraph.Variable{tensor.ARange(tensor.Int(1), tensor.ShapeI(open, 0), tensor.Int(2))}, false, true, 0},
		{open, []*fgraph.Variable{tensor.ARange(tensor.Int(-2), tensor.ShapeI(open, 0), tensor.Int(1))}, false, false, 0},
	} {
		text := fgraph.Sprint(0, c.indexes...)
		p, known := tensor.PlacesOf(c.x, c.indexes)
		if known != c.known || p.LeastSize(0) != c.least {
			t.Errorf("%s of %v are %v, %v", text, c.x.Type(), p, known)
		}
		if got := tensor.DistinctIndexes(c.x, c.indexes); got != c.distinct {
			t.Errorf("%s of %v point to different places: %v", text, c.x.Type(), got)
		}
	}
	front, _ := tensor.PlacesOf(open, list(1))
	back, _ := tensor.PlacesOf(open, list(-1))
	if front.SameSigns(back) || !front.SameSigns(front) || !front.SameSigns(nil) {
		t.Error("signs of", front, back)
	}
}
