package component

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
)

// The columns of a cell don't depend on each other, so a wide cell, which is computed in pieces, has
// the bits of narrow ones.
func TestWideLstm(t *testing.T) {
	const dim, rows, lo, hi = lstmCols + 40, 3, lstmCols - 5, lstmCols + 6
	r := rand.New(rand.NewPCG(1, 2))
	// columns returns some columns of each of the parts of m.
	columns := func(m kernel.Matrix, parts int) kernel.Matrix {
		out := kernel.New(m.Rows, parts*(hi-lo))
		for p := range parts {
			kernel.Copy(kernel.Cols(out, p*(hi-lo), hi-lo), kernel.Cols(m, p*dim+lo, hi-lo))
		}
		return out
	}
	cell := func(params kernel.Matrix) *lstmNonlinearityComponent {
		n := numUnits * params.Cols
		return &lstmNonlinearityComponent{
			training: training{learningRate: 0.5}, params: params, valueSum: make([]float64, n), derivSum: make([]float64, n),
			selfRepairConfig: []float32{0.05, 0.05, 0.2, 0.05, 0.2, 1, 1, 1, 1, 1},
		}
	}
	in, dy, params := randomMatrix(r, rows, 5*dim), randomMatrix(r, rows, 2*dim), randomMatrix(r, 3, dim)
	run := func(params, in, dy kernel.Matrix) (y, dx kernel.Matrix, u *lstmNonlinearityComponent) {
		c, w := cell(params), new(Workspace)
		u = cell(kernel.New(3, params.Cols))
		y, dx = kernel.New(rows, 2*params.Cols), kernel.New(rows, 5*params.Cols)
		if _, err := c.Propagate(w, ForwardPass{}, in, y); err != nil {
			t.Fatal(err)
		}
		if err := c.Backprop(w, BackwardPass{InValue: in, OutDeriv: dy, InDeriv: dx, ToUpdate: u}); err != nil {
			t.Fatal(err)
		}
		return y, dx, u
	}
	y, dx, u := run(params, in, dy)
	narrowY, narrowDX, narrowU := run(columns(params, 1), columns(in, 5), columns(dy, 2))
	sameBits(t, "output", columns(y, 2).Data, narrowY.Data)
	sameBits(t, "derivative of the input", columns(dx, 5).Data, narrowDX.Data)
	sameBits(t, "gradient", columns(u.params, 1).Data, narrowU.params.Data)
	for k := range numUnits {
		if got, want := u.valueSum[k*dim+lo:k*dim+hi], narrowU.valueSum[k*(hi-lo):(k+1)*(hi-lo)]; !slices.Equal(got, want) {
			t.Errorf("sums of unit %d: got %v, want %v", k, got, want)
		}
		if got, want := u.derivSum[k*dim+lo:k*dim+hi], narrowU.derivSum[k*(hi-lo):(k+1)*(hi-lo)]; !slices.Equal(got, want) {
			t.Errorf("sums of derivatives of unit %d: got %v, want %v", k, got, want)
		}
	}
}
