package decodable

import (
	"cmp"
	"fmt"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/kernel/elementary"
)

// An outputScale is what happens to the output of the network.
type outputScale struct {
	scale  float32
	offset []float32 // added to the output before scaling: minus the logarithms of the priors, or nil
	exp    bool
}

func newOutputScale(priors []float32, scale float32, exp bool, cols int) (outputScale, error) {
	o := outputScale{scale: cmp.Or(scale, 1), exp: exp}
	if len(priors) == 0 {
		return o, nil
	}
	if len(priors) != cols {
		return o, fmt.Errorf("%w: %d priors for %d columns of output", ErrOptions, len(priors), cols)
	}
	o.offset = make([]float32, len(priors))
	for i, p := range priors {
		o.offset[i] = -float32(elementary.Log(float64(p)))
	}
	return o, nil
}

// finish copies the output y of a computation to out, unless it is there already, and applies priors,
// scale and exponential. Priors come before the scale, to round as in Kaldi.
func (o *outputScale) finish(out, y kernel.Matrix) {
	scale := o.scale
	if o.offset != nil {
		scale = 1
	}
	if &out.Data[0] == &y.Data[0] {
		kernel.Scale(out, scale)
	} else {
		kernel.CopyScaled(out, scale, y)
	}
	if o.offset != nil {
		kernel.AddRow(out, 1, o.offset)
		kernel.Scale(out, o.scale)
	}
	if !o.exp {
		return
	}
	for i := range out.Rows {
		row := kernel.Row(out, i)
		kernel.ExpVec(row, row, 0)
	}
}
