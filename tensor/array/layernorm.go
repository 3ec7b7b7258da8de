package array

import (
	"time"

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
		if *a != nil && !(*a).Contiguous() {
			t, err := ws.scratchCopy(*a)
			if err != nil {
				return err
			}
			defer ws.Release(t)
			*a = t
		}
	}
	j := normJob{y: Slice[float32](y), x: Slice[float32](x), n: n, divisor: divisor, eps: eps}
	if gain != nil {
		// The kernel takes both. What is added to leave a number as it is, is -0.
		j.gain, j.bias = Slice[float32](gain), ws.negativeZeros(n)
		if bias != nil {
			j.bias = Slice[float32](bias)
		}
	}
	rows := y.Len() / n
	if t := ws.Threads; t != nil {
		if j.parts = min(t.Parts(time.Duration(y.Len())*normed/1000), rows); j.parts > 1 {
			shared := &ws.crewOf().norm
			*shared = j
			t.Do(j.parts, shared)
			*shared = normJob{}
			return nil
		}
	}
	kernel.LayerNormRows(j.y, j.x, n, j.gain, j.bias, divisor, eps)
	return nil
}

// normed is what an element takes, in picoseconds.
const normed = 300

// normJob is a LayerNorm of which some rows are computed at a time.
type normJob struct {
	y, x, gain, bias []float32
	n, parts         int
	divisor, eps     float32
}

// Part computes some rows.
func (j *normJob) Part(i int) {
	first, next := piece(i, j.parts, len(j.y)/j.n, 1)
	kernel.LayerNormRows(j.y[first*j.n:next*j.n], j.x[first*j.n:next*j.n], j.n, j.gain, j.bias, j.divisor, j.eps)
}
