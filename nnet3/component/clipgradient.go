package component

import (
	"math"

	"github.com/nnopt/nnopt/internal/kernel"
)

// clipGradientComponent copies its input and, on the way back, clips the derivatives: each element
// to ±threshold, or each row to that 2-norm. If it clips too many rows, it can pull its input
// towards repairTarget.
type clipGradientComponent struct {
	columns
	threshold        float32
	normBased        bool
	repairProportion float32 // the input is repaired if more than this proportion of rows is clipped
	repairTarget     float32
	repairScale      float32

	numClipped, count            int
	numSelfRepaired, numBackprop int
}

func (c *clipGradientComponent) Type() string     { return "ClipGradientComponent" }
func (c *clipGradientComponent) IsIdentity() bool { return true }
func (c *clipGradientComponent) Properties() Properties {
	return Simple | PropagateInPlace | BackpropInPlace | BackpropNeedsInput
}

// Init reads dim, clipping-threshold, norm-based-clipping,
// self-repair-clipped-proportion-threshold, self-repair-target and self-repair-scale.
func (c *clipGradientComponent) Init(cfg *ConfigLine) {
	*c = clipGradientComponent{
		columns:          columns{cfg.dim("dim")},
		threshold:        cfg.Float("clipping-threshold", 15),
		normBased:        cfg.Bool("norm-based-clipping", false),
		repairProportion: cfg.Float("self-repair-clipped-proportion-threshold", 0.01),
		repairTarget:     cfg.Float("self-repair-target", 0),
		repairScale:      cfg.Float("self-repair-scale", 1),
	}
	if min(c.threshold, c.repairProportion, c.repairTarget, c.repairScale) < 0 {
		cfg.Fail("thresholds, target and scale may not be negative")
	}
}

func (c *clipGradientComponent) Fields(f *Fields) {
	f.Dim("<Dim>", &c.dim)
	f.Float("<ClippingThreshold>", &c.threshold)
	f.Bool("<NormBasedClipping>", &c.normBased)
	Since(f, f.Float, "<SelfRepairClippedProportionThreshold>", &c.repairProportion, 1)
	Since(f, f.Float, "<SelfRepairTarget>", &c.repairTarget, 0)
	Since(f, f.Float, "<SelfRepairScale>", &c.repairScale, 0)
	f.Int("<NumElementsClipped>", &c.numClipped)
	f.Int("<NumElementsProcessed>", &c.count)
	Since(f, f.Int, "<NumSelfRepaired>", &c.numSelfRepaired, 0)
	Since(f, f.Int, "<NumBackpropped>", &c.numBackprop, 0)
}

// Propagate copies in to out.
func (c *clipGradientComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	w.Threads.Copy(out, in)
	return nil, nil
}

// Backprop copies the derivative and clips it. A threshold of 0 lets nothing through.
func (c *clipGradientComponent) Backprop(w *Workspace, pass BackwardPass) error {
	if c.threshold == 0 {
		w.Threads.Fill(pass.InDeriv, 0)
		return nil
	}
	w.Threads.Copy(pass.InDeriv, pass.OutDeriv)
	clipped := 0
	for i := range pass.InDeriv.Rows {
		row := kernel.Row(pass.InDeriv, i)
		if !c.normBased {
			for j, v := range row {
				row[j] = max(min(v, c.threshold), -c.threshold)
			}
			continue
		}
		if norm := rowNorm(row); norm > float64(c.threshold) {
			clipped++
			kernel.ScaleVec(row, float32(float64(c.threshold)/norm), row)
		}
	}
	u, ok := pass.ToUpdate.(*clipGradientComponent)
	if !ok {
		return nil
	}
	if c.normBased {
		u.numClipped += clipped
		u.count += pass.InDeriv.Rows
	}
	u.numBackprop++
	c.repair(u, pass.InValue, pass.InDeriv)
	return nil
}

func rowNorm(row []float32) float64 { return math.Sqrt(float64(kernel.Dot(row, row))) }

// repair adds a term to dx that pulls inputs whose absolute value exceeds the target towards it: in
// proportion to the excess, to the fraction of clipped rows and to the average norm of dx. It
// preserves that norm.
func (c *clipGradientComponent) repair(u *clipGradientComponent, x, dx kernel.Matrix) {
	if c.repairProportion >= 1 || c.repairScale == 0 || c.count == 0 {
		return
	}
	proportion := float64(c.numClipped) / float64(c.count)
	if proportion <= float64(c.repairProportion) {
		return
	}
	u.numSelfRepaired++
	var excess, before float64
	for i := range x.Rows {
		sum := 0.0
		for _, v := range kernel.Row(x, i) {
			e := c.excess(v)
			sum += float64(float64(e) * float64(e))
		}
		excess += math.Sqrt(sum)
		before += rowNorm(kernel.Row(dx, i))
	}
	if excess == 0 {
		return
	}
	push := float32(float64(c.repairScale) * proportion * before / excess)
	after := 0.0
	for i := range x.Rows {
		row := kernel.Row(dx, i)
		for j, v := range kernel.Row(x, i) {
			row[j] -= float32(push * c.excess(v))
		}
		after += rowNorm(row)
	}
	if after != 0 {
		kernel.Scale(dx, float32(before/after))
	}
}

// excess returns the amount by which the absolute value of x exceeds the target, with the sign of
// x.
func (c *clipGradientComponent) excess(x float32) float32 {
	switch {
	case x > c.repairTarget:
		return x - c.repairTarget
	case -x > c.repairTarget:
		return x + c.repairTarget
	}
	return 0
}

// ZeroStats resets the statistics.
func (c *clipGradientComponent) ZeroStats() {
	c.numClipped, c.count, c.numSelfRepaired, c.numBackprop = 0, 0, 0, 0
}
