package component

import (
	"github.com/nnopt/nnopt/exec/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Sigmoid is y = 1/(1+exp(-x)).
type Sigmoid struct{ nonlinearity }

// Type is "SigmoidComponent".
func (c *Sigmoid) Type() string { return "SigmoidComponent" }

// Properties of a sigmoid.
func (c *Sigmoid) Properties() Properties {
	return Simple | PropagateInPlace | BackpropNeedsOutput | StoresStats
}

// Info describes the component.
func (c *Sigmoid) Info() string { return c.info(c) }

// Init knows dim, block-dim, self-repair-scale, self-repair-lower-threshold, self-repair-upper-threshold.
func (c *Sigmoid) Init(cfg *ConfigLine) error { return c.init(cfg) }

// Read reads what Write writes, and older forms.
func (c *Sigmoid) Read(r *kaldiio.Reader, typ string) error { return c.read(r, typ) }

// Write writes the component.
func (c *Sigmoid) Write(w *kaldiio.Writer) error { return c.write(w, c) }

// Propagate computes y.
func (c *Sigmoid) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.Sigmoid(out, in)
	return nil, nil
}

// Backprop computes dx = dy·y·(1-y).
func (c *Sigmoid) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.SigmoidDeriv(inDeriv, outValue, outDeriv)
	if u, ok := toUpdate.(*Sigmoid); ok {
		c.repairSaturated(&u.nonlinearity, 0.05, outValue, inDeriv, func(y float32) float32 { return 2*y - 1 })
		u.storeBackpropStats(outDeriv)
	}
	return nil
}

// StoreStats accumulates the averages of the output and of the derivative.
func (c *Sigmoid) StoreStats(in, out kernel.Matrix, memo Memo) {
	c.storeStats(out, func(dst, y kernel.Matrix) {
		kernel.Fill(dst, 1)
		kernel.SigmoidDeriv(dst, y, dst)
	})
}

// Copy returns a copy.
func (c *Sigmoid) Copy() Component { return &Sigmoid{c.copy()} }

// Tanh is the hyperbolic tangent.
type Tanh struct{ nonlinearity }

// Type is "TanhComponent".
func (c *Tanh) Type() string { return "TanhComponent" }

// Properties of a hyperbolic tangent.
func (c *Tanh) Properties() Properties {
	return Simple | PropagateInPlace | BackpropNeedsOutput | StoresStats
}

// Info describes the component.
func (c *Tanh) Info() string { return c.info(c) }

// Init knows dim, block-dim, self-repair-scale, self-repair-lower-threshold, self-repair-upper-threshold.
func (c *Tanh) Init(cfg *ConfigLine) error { return c.init(cfg) }

// Read reads what Write writes, and older forms.
func (c *Tanh) Read(r *kaldiio.Reader, typ string) error { return c.read(r, typ) }

// Write writes the component.
func (c *Tanh) Write(w *kaldiio.Writer) error { return c.write(w, c) }

// Propagate computes y.
func (c *Tanh) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.Tanh(out, in)
	return nil, nil
}

// Backprop computes dx = dy·(1-y²).
func (c *Tanh) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	kernel.TanhDeriv(inDeriv, outValue, outDeriv)
	if u, ok := toUpdate.(*Tanh); ok {
		c.repairSaturated(&u.nonlinearity, 0.2, outValue, inDeriv, func(y float32) float32 { return y })
		u.storeBackpropStats(outDeriv)
	}
	return nil
}

// StoreStats accumulates the averages of the output and of the derivative.
func (c *Tanh) StoreStats(in, out kernel.Matrix, memo Memo) {
	c.storeStats(out, func(dst, y kernel.Matrix) {
		kernel.Fill(dst, 1)
		kernel.TanhDeriv(dst, y, dst)
	})
}

// Copy returns a copy.
func (c *Tanh) Copy() Component { return &Tanh{c.copy()} }
