package component

import (
	"fmt"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/index"
)

// backpropTruncationComponent multiplies its input by Scale. On their way back, derivatives in recurrent networks are clipped by
// row norm, and now and then, at certain times, large ones are dropped.
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

// Type is "BackpropTruncationComponent".
func (c *backpropTruncationComponent) Type() string { return "BackpropTruncationComponent" }

// Scale is what the input is multiplied by.
func (c *backpropTruncationComponent) Scale() float32 { return c.scale }

// IsIdentity reports whether the scale is 1.
func (c *backpropTruncationComponent) IsIdentity() bool { return c.scale == 1 }

// Properties of truncation.
func (c *backpropTruncationComponent) Properties() Properties {
	return PropagateInPlace | BackpropInPlace
}

// Init knows dim, scale, clipping-threshold, zeroing-threshold, zeroing-interval, recurrence-interval.
func (c *backpropTruncationComponent) Init(cfg *ConfigLine) error {
	*c = backpropTruncationComponent{
		columns:            columns{cfg.dim("dim")},
		scale:              cfg.Float("scale", 1),
		clippingThreshold:  cfg.Float("clipping-threshold", 30),
		zeroingThreshold:   cfg.Float("zeroing-threshold", 15),
		zeroingInterval:    cfg.Int("zeroing-interval", 20),
		recurrenceInterval: cfg.Int("recurrence-interval", 1),
	}
	if !c.valid() {
		cfg.Fail("scale and intervals must be positive, thresholds may not be negative")
	}
	return cfg.Err()
}

func (c *backpropTruncationComponent) valid() bool {
	return c.scale > 0 && c.clippingThreshold >= 0 && c.zeroingThreshold >= 0 && c.zeroingInterval > 0 && c.recurrenceInterval > 0
}

// Fields of the component.
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
	f.Check(c.valid(), "scale or intervals are not positive, or thresholds are negative")
}

// boundaries is the Precomputed: which rows cross a time at which large derivatives are dropped.
type boundaries struct {
	crossed []bool
	num     int
}

// PrecomputeIndexes finds the rows for which a multiple of ZeroingInterval, shifted by the number of the sequence, lies
// between the time of the row and RecurrenceInterval before it.
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
func (c *backpropTruncationComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.CopyScaled(out, c.scale, in)
	return nil, nil
}

// Backprop computes dx = scale·dy, and then scales down or drops rows.
func (c *backpropTruncationComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	b, ok := pre.(*boundaries)
	if !ok || len(b.crossed) != outDeriv.Rows || inDeriv.Rows != outDeriv.Rows {
		return fmt.Errorf("%s: precomputed indexes do not fit %d rows: %w", c.Type(), outDeriv.Rows, ErrShape)
	}
	kernel.CopyScaled(inDeriv, c.scale, outDeriv)
	var clipped, zeroed float64
	for i, crossed := range b.crossed {
		row := kernel.Row(inDeriv, i)
		norm := rowNorm(row)
		if c.clippingThreshold > 0 && norm > float64(c.clippingThreshold) {
			clipped++
			scaleVec(float32(float64(c.clippingThreshold)/norm), row)
		}
		if crossed && c.zeroingThreshold > 0 && norm > float64(c.zeroingThreshold) {
			zeroed++
			clear(row)
		}
	}
	if u, ok := toUpdate.(*backpropTruncationComponent); ok {
		u.numClipped += clipped
		u.numZeroed += zeroed
		u.count += float64(outDeriv.Rows)
		u.numBoundaries += float64(b.num)
	}
	return nil
}

// ZeroStats forgets the statistics.
func (c *backpropTruncationComponent) ZeroStats() {
	c.numClipped, c.numZeroed, c.count, c.numBoundaries = 0, 0, 0, 0
}
