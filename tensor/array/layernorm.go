package array

import (
	"github.com/nnopt/nnopt/kernel"
)

// LayerNorm sets y, which is contiguous, to x with each row along the last dimension standardized: see
// kernel.LayerNormRows. Gain and bias have a number for each column, and may be nil. All are float32s. The
// bits are those of the steps one by one.
func (ws *Workspace) LayerNorm(y, x, gain, bias *Array, divisor, eps float32) error {
	if y.Len() == 0 {
		return nil
	}
	n := y.shape[y.ndim-1]
	for _, a := range []**Array{&x, &gain, &bias} {
		if *a == nil {
			continue
		}
		t, release, err := ws.contiguous(*a)
		if err != nil {
			return err
		}
		defer release()
		*a = t
	}
	p := normArgs{y: Slice[float32](y), x: Slice[float32](x), n: n, divisor: divisor, eps: eps}
	if gain != nil {
		// The kernel takes both. What is added to leave a number as it is, is -0.
		p.gain, p.bias = Slice[float32](gain), ws.negativeZeros(n)
		if bias != nil {
			p.bias = Slice[float32](bias)
		}
	}
	rows := y.Len() / n
	if parts := ws.partsOf(y.Len()*normed, rows, 1); parts > 1 {
		return ws.crewOf().norm.run(ws, parts, rows, 1, p, normRows)
	}
	return normRows(ws, &p, 0, rows)
}

// normed is what an element takes, in picoseconds.
const normed = 300

// normArgs are those of a LayerNorm of which some rows are computed at a time.
type normArgs struct {
	y, x, gain, bias []float32
	n                int
	divisor, eps     float32
}

// normRows computes some rows.
func normRows(_ *Workspace, p *normArgs, first, next int) error {
	kernel.LayerNormRows(p.y[first*p.n:next*p.n], p.x[first*p.n:next*p.n], p.n, p.gain, p.bias, p.divisor, p.eps)
	return nil
}
