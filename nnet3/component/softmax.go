package component

import (
	"github.com/nnopt/nnopt/kernel"
)

// softmaxFloor is the least value of a Softmax.
const softmaxFloor = 1e-20

// softmaxComponent normalizes the exponentials of each row to the sum 1.
type softmaxComponent struct{ nonlinearity }

// Type is "SoftmaxComponent".
func (c *softmaxComponent) Type() string { return "SoftmaxComponent" }

// Properties of a softmax.
func (c *softmaxComponent) Properties() Properties {
	return Simple | PropagateInPlace | BackpropInPlace | BackpropNeedsOutput | StoresStats
}

// Init knows dim.
func (c *softmaxComponent) Init(cfg *ConfigLine) error { return c.init(cfg) }

// Propagate computes y.
func (c *softmaxComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.Softmax(out, in, softmaxFloor)
	return nil, nil
}

// Backprop computes dx = y∘(dy - Σy·dy).
func (c *softmaxComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	if u, ok := toUpdate.(*softmaxComponent); ok {
		u.storeBackpropStats(outDeriv)
	}
	kernel.SoftmaxDeriv(inDeriv, outValue, outDeriv)
	return nil
}

// StoreStats accumulates the average of the output.
func (c *softmaxComponent) StoreStats(in, out kernel.Matrix, memo Memo) { c.storeStats(out, nil) }

// logSoftmaxComponent is the logarithm of Softmax.
type logSoftmaxComponent struct{ nonlinearity }

// Type is "LogSoftmaxComponent".
func (c *logSoftmaxComponent) Type() string { return "LogSoftmaxComponent" }

// Properties of a logarithmic softmax.
func (c *logSoftmaxComponent) Properties() Properties {
	return Simple | BackpropNeedsOutput | StoresStats
}

// Init knows dim.
func (c *logSoftmaxComponent) Init(cfg *ConfigLine) error { return c.init(cfg) }

// Propagate computes y = x - log Σexp(x).
func (c *logSoftmaxComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	kernel.LogSoftmax(out, in)
	return nil, nil
}

// Backprop computes dx = dy - exp(y)·Σdy.
func (c *logSoftmaxComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil || !wanted(inDeriv) {
		return err
	}
	if u, ok := toUpdate.(*logSoftmaxComponent); ok {
		u.storeBackpropStats(outDeriv)
	}
	kernel.LogSoftmaxDeriv(inDeriv, outValue, outDeriv)
	return nil
}

// StoreStats does nothing: the averages of logarithms tell nothing.
func (c *logSoftmaxComponent) StoreStats(in, out kernel.Matrix, memo Memo) {}
