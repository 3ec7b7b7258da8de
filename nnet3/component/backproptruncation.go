package component

import (
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// backpropTruncationComponent multiplies its input by scale. On the way back it limits the
// derivatives of recurrent networks: it clips the norm of each row, and at certain times zeroes
// rows whose norm is large.
type backpropTruncationComponent struct {
	perIndex
	columns
	scale              float32
	clippingThreshold  float32
	zeroingThreshold   float32
	zeroingInterval    int
	recurrenceInterval int

	numClipped, numZeroed, count, numBoundaries float64
}

func (c *backpropTruncationComponent) Type() string     { return "BackpropTruncationComponent" }
func (c *backpropTruncationComponent) IsIdentity() bool { return c.scale == 1 }
func (c *backpropTruncationComponent) Properties() Properties {
	return PropagateInPlace | BackpropInPlace
}

// Init reads dim, scale, clipping-threshold, zeroing-threshold, zeroing-interval and
// recurrence-interval.
func (c *backpropTruncationComponent) Init(cfg *ConfigLine) {
	*c = backpropTruncationComponent{
		columns:            columns{cfg.dim("dim")},
		scale:              cfg.Float("scale", 1),
		clippingThreshold:  cfg.Float("clipping-threshold", 30),
		zeroingThreshold:   cfg.Float("zeroing-threshold", 15),
		zeroingInterval:    cfg.Int("zeroing-interval", 20),
		recurrenceInterval: cfg.Int("recurrence-interval", 1),
	}
	cfg.check(c.problem())
}

func (c *backpropTruncationComponent) problem() string {
	if c.scale > 0 && c.clippingThreshold >= 0 && c.zeroingThreshold >= 0 && c.zeroingInterval > 0 && c.recurrenceInterval > 0 {
		return ""
	}
	return "the scale or an interval is not positive, or a threshold is negative"
}

func (c *backpropTruncationComponent) Fields(f *Fields) {
	f.Dim("<Dim>", &c.dim)
	Since(f, f.Float, "<Scale>", &c.scale, 1)
	f.Float("<ClippingThreshold>", &c.clippingThreshold)
	f.Float("<ZeroingThreshold>", &c.zeroingThreshold)
	f.Int("<ZeroingInterval>", &c.zeroingInterval)
	f.Int("<RecurrenceInterval>", &c.recurrenceInterval)
	f.Double("<NumElementsClipped>", &c.numClipped)
	f.Double("<NumElementsZeroed>", &c.numZeroed)
	f.Double("<NumElementsProcessed>", &c.count)
	f.Double("<NumZeroingBoundaries>", &c.numBoundaries)
	f.check(c.problem())
}

// boundaries is the Precomputed: which rows cross a time at which large derivatives are zeroed.
type boundaries struct {
	crossed []bool
	num     int
}

// PrecomputeIndexes finds the rows with a multiple of zeroingInterval, shifted by the number of the
// sequence, between their time and recurrenceInterval before it.
func (c *backpropTruncationComponent) PrecomputeIndexes(in, out []index.Index, needBackprop bool) (Precomputed, error) {
	if err := checkPerIndex(c, in, out); err != nil {
		return nil, err
	}
	b := &boundaries{crossed: make([]bool, len(out))}
	for i, x := range out {
		t := x.T - x.N
		if floorDiv(t, int32(c.zeroingInterval)) != floorDiv(t-int32(c.recurrenceInterval), int32(c.zeroingInterval)) {
			b.crossed[i] = true
			b.num++
		}
	}
	return b, nil
}

// Propagate computes y = scale·x.
func (c *backpropTruncationComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	w.Threads.CopyScaled(out, c.scale, in)
	return nil, nil
}

// Backprop computes dx = scale·dy, and then scales down or zeroes rows.
func (c *backpropTruncationComponent) Backprop(w *Workspace, pass BackwardPass) error {
	b, ok := pass.Pre.(*boundaries)
	if !ok || len(b.crossed) != pass.OutDeriv.Rows {
		return misfit(c, pass.InDeriv.Rows, pass.OutDeriv.Rows)
	}
	w.Threads.CopyScaled(pass.InDeriv, c.scale, pass.OutDeriv)
	var clipped, zeroed float64
	for i, crossed := range b.crossed {
		row := kernel.Row(pass.InDeriv, i)
		norm := rowNorm(row)
		if c.clippingThreshold > 0 && norm > float64(c.clippingThreshold) {
			clipped++
			kernel.ScaleVec(row, float32(float64(c.clippingThreshold)/norm), row)
		}
		if crossed && c.zeroingThreshold > 0 && norm > float64(c.zeroingThreshold) {
			zeroed++
			clear(row)
		}
	}
	if u, ok := pass.ToUpdate.(*backpropTruncationComponent); ok {
		u.numClipped += clipped
		u.numZeroed += zeroed
		u.count += float64(pass.OutDeriv.Rows)
		u.numBoundaries += float64(b.num)
	}
	return nil
}

// ZeroStats resets the statistics.
func (c *backpropTruncationComponent) ZeroStats() {
	c.numClipped, c.numZeroed, c.count, c.numBoundaries = 0, 0, 0, 0
}
