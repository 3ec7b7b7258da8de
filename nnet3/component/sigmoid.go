package component

import "github.com/nnopt/nnopt/kernel"

// A curve is an element-wise function of sigmoid shape, whose derivative follows from its value.
type curve struct {
	value  func(y, x kernel.Matrix)
	deriv  func(dx, y, dy kernel.Matrix)
	lower  float32 // units whose derivative is less on average are repaired
	centre func(y float32) float32
}

var (
	sigmoid = curve{kernel.Sigmoid, kernel.SigmoidDeriv, 0.05, func(y float32) float32 { return float32(2*y) - 1 }}
	tanh    = curve{kernel.Tanh, kernel.TanhDeriv, 0.2, func(y float32) float32 { return y }}
)

// saturating is what the nonlinearities with such a curve have in common.
type saturating struct{ nonlinearity }

func (s *saturating) saturation() *saturating { return s }

// Properties of an element-wise function.
func (s *saturating) Properties() Properties {
	return Simple | PropagateInPlace | BackpropNeedsOutput | StoresStats
}

// Init knows dim, block-dim, self-repair-scale, self-repair-lower-threshold, self-repair-upper-threshold.
func (s *saturating) Init(cfg *ConfigLine) error { return s.init(cfg) }

func (s *saturating) propagate(c Component, f *curve, in, out kernel.Matrix) error {
	if err := checkSimple(c, in, out); err != nil {
		return err
	}
	f.value(out, in)
	return nil
}

func (s *saturating) backprop(c Component, f *curve, inValue, outValue, outDeriv kernel.Matrix, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	f.deriv(inDeriv, outValue, outDeriv)
	if u, ok := toUpdate.(interface{ saturation() *saturating }); ok {
		to := &u.saturation().nonlinearity
		s.repairSaturated(to, f, outValue, inDeriv)
		to.storeBackpropStats(outDeriv)
	}
	return nil
}

// repairSaturated adds a term to dx that pushes units whose derivative is too small on average towards the middle.
func (s *saturating) repairSaturated(to *nonlinearity, f *curve, out, dx kernel.Matrix) {
	to.numDimsProcessed += float64(s.dim)
	if !s.repairs() {
		return
	}
	least := orDefault(s.lowerThreshold, f.lower) * s.count
	for j, sum := range s.derivSum {
		if sum >= least {
			continue
		}
		to.numDimsSelfRepaired++
		for i := range dx.Rows {
			kernel.Row(dx, i)[j] -= float32(s.selfRepairScale * f.centre(kernel.Row(out, i)[j]))
		}
	}
}

// sigmoidComponent is y = 1/(1+exp(-x)).
type sigmoidComponent struct{ saturating }

// Type is "SigmoidComponent".
func (c *sigmoidComponent) Type() string { return "SigmoidComponent" }

// Propagate computes y.
func (c *sigmoidComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	return nil, c.propagate(c, &sigmoid, in, out)
}

// Backprop computes dx = dy·y·(1-y).
func (c *sigmoidComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	return c.backprop(c, &sigmoid, inValue, outValue, outDeriv, toUpdate, inDeriv)
}

// StoreStats accumulates the averages of the output and of the derivative.
func (c *sigmoidComponent) StoreStats(in, out kernel.Matrix, memo Memo) {
	c.storeStats(out, sigmoid.deriv)
}

// tanhComponent is the hyperbolic tangent.
type tanhComponent struct{ saturating }

// Type is "TanhComponent".
func (c *tanhComponent) Type() string { return "TanhComponent" }

// Propagate computes y.
func (c *tanhComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	return nil, c.propagate(c, &tanh, in, out)
}

// Backprop computes dx = dy·(1-y²).
func (c *tanhComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	return c.backprop(c, &tanh, inValue, outValue, outDeriv, toUpdate, inDeriv)
}

// StoreStats accumulates the averages of the output and of the derivative.
func (c *tanhComponent) StoreStats(in, out kernel.Matrix, memo Memo) { c.storeStats(out, tanh.deriv) }
