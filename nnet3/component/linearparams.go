package component

import (
	"math"
	"sync"

	"github.com/nnopt/nnopt/kernel"
)

// weights is a matrix that inputs are multiplied by, with the form that Prepare made of it.
type weights struct {
	m        kernel.Matrix
	prepared *kernel.Weights
	parts    *parts
	version  int      // counts the changes of the matrix
	whole    *weights // of which these are columns from col on, or nil
	col      int
}

// parts are blocks of columns of a matrix of weights, each prepared by itself, and what it was multiplied with, for derived
// components that share them.
type parts struct {
	mu        sync.Mutex
	list      []*weights
	cols      [][2]int
	compounds []*compound
}

// A compound is an affine map after another one: x ↦ W(Vx + c) + b as one matrix and one vector.
type compound struct {
	first           *weights
	second          kernel.Matrix
	firstBias, bias []float32
	weights         weights
	constant        []float32 // nil if there is no firstBias, so that the bias is the one there was
}

// after is the map with these weights and this bias after another one. Those who ask for the same get the same.
func (w *weights) after(bias []float32, first *weights, firstBias []float32) *compound {
	w.parts.mu.Lock()
	defer w.parts.mu.Unlock()
	for _, c := range w.parts.compounds {
		if c.first == first {
			return c
		}
	}
	c := &compound{first: first, second: w.m, firstBias: firstBias, bias: bias}
	c.weights = weights{m: kernel.New(w.m.Rows, first.m.Cols), parts: new(parts)}
	if firstBias != nil {
		c.constant = make([]float32, w.m.Rows)
	}
	c.multiply()
	w.parts.compounds = append(w.parts.compounds, c)
	return c
}

// multiply computes the compound.
func (c *compound) multiply() {
	w := c.second
	kernel.MulNN(1, w, c.first.m, 0, c.weights.m)
	if c.firstBias != nil {
		n := len(c.firstBias)
		x := kernel.Matrix{Rows: 1, Cols: n, Stride: n, Data: c.firstBias}
		kernel.Mul(x, w, kernel.Epilogue{Bias: c.bias}, kernel.Matrix{Rows: 1, Cols: w.Rows, Stride: w.Rows, Data: c.constant})
	}
}

// of reports whether the parts are those of m, so far as there are any.
func (p *parts) of(m kernel.Matrix) bool {
	if len(p.compounds) > 0 {
		return kernel.Same(p.compounds[0].second, m)
	}
	if len(p.list) == 0 {
		return true
	}
	first, n := p.cols[0][0], p.cols[0][1]
	return first+n <= m.Cols && kernel.Same(p.list[0].m, kernel.Cols(m, first, n))
}

// mul computes y = x·mᵀ and what ep adds to it.
func (w *weights) mul(x kernel.Matrix, ep kernel.Epilogue, y kernel.Matrix) {
	if w.prepared != nil {
		w.prepared.Mul(x, ep, y)
		return
	}
	kernel.Mul(x, w.m, ep, y)
}

func (w *weights) prepare() { w.prepared = kernel.NewWeights(w.m) }

// renew makes the prepared forms anew, those of parts too, after elements of the matrix were changed.
func (w *weights) renew() {
	w.version++
	if w.prepared != nil {
		w.prepared.Renew()
	}
	if w.parts != nil {
		for _, p := range w.parts.list {
			p.renew()
		}
		for _, c := range w.parts.compounds {
			c.multiply()
			c.weights.renew()
		}
	}
}

// ready is the prepared form. It is made for the occasion where Prepare was not called.
func (w *weights) ready() *kernel.Weights {
	if w.prepared != nil {
		return w.prepared
	}
	return kernel.NewWeights(w.m)
}

func (w *weights) prepareOnce() {
	if w.prepared == nil {
		w.prepare()
	}
}

// part is n columns of the weights, from column col on. Those who ask for the same get the same.
func (w *weights) part(col, n int) *weights {
	if col == 0 && n == w.m.Cols {
		return w
	}
	if w.whole != nil {
		return w.whole.part(w.col+col, n)
	}
	if w.parts == nil {
		return &weights{m: kernel.Cols(w.m, col, n)}
	}
	w.parts.mu.Lock()
	defer w.parts.mu.Unlock()
	for i, c := range w.parts.cols {
		if c == [2]int{col, n} {
			return w.parts.list[i]
		}
	}
	p := &weights{m: kernel.Cols(w.m, col, n), whole: w, col: col}
	w.parts.list = append(w.parts.list, p)
	w.parts.cols = append(w.parts.cols, [2]int{col, n})
	return p
}

func (w *weights) copy() weights {
	c := weights{m: kernel.Clone(w.m), parts: new(parts)}
	if w.prepared != nil {
		c.prepare()
	}
	return c
}

// changed forgets the prepared forms, which no longer belong to the matrix, those of parts too. Parts of another matrix are
// forgotten themselves.
func (w *weights) changed() {
	w.prepared = nil
	w.version++
	switch {
	case w.parts == nil:
		w.parts = new(parts)
	case !w.parts.of(w.m):
		w.parts = new(parts)
	default:
		for _, p := range w.parts.list {
			p.changed()
		}
		for _, c := range w.parts.compounds {
			c.multiply()
			c.weights.changed()
		}
	}
}

// affine is what components of the form y = x·Wᵀ + b have in common. The bias may be missing.
type affine struct {
	weights
	bias []float32
}

// Bias returns the vector b, or nil if there is none. It is shared with the component.
func (a *affine) Bias() []float32 {
	if len(a.bias) == 0 {
		return nil
	}
	return a.bias
}

// Prepare makes the form of W that products are fast with.
func (a *affine) Prepare() { a.prepare() }

// Renew makes the prepared forms of W anew.
func (a *affine) Renew() { a.renew() }

// blocks reads input-dim, output-dim and the number of blocks that divides both, by its key. It returns the dimensions of a
// block.
func (c *ConfigLine) blocks(key string) (in, out, n int) {
	in, out, n = c.dim("input-dim"), c.dim("output-dim"), c.dimOr(key, 1)
	if in%n != 0 || out%n != 0 {
		c.Fail("input-dim=%d and output-dim=%d are no multiples of %s=%d", in, out, key, n)
	}
	return max(in/n, 1), max(out/n, 1), n
}

// random draws parameters as param-stddev, bias-mean and bias-stddev say.
func (a *affine) random(cfg *ConfigLine, in, out int, biasStddev float32) {
	a.m = cfg.randn(out, in, 0, cfg.Float("param-stddev", 1/float32(math.Sqrt(float64(in)))))
	a.bias = cfg.randnVector(out, cfg.Float("bias-mean", 0), cfg.Float("bias-stddev", biasStddev))
	a.changed()
}

// propagate computes y = x·Wᵀ + b.
func (a *affine) propagate(in, out kernel.Matrix) {
	a.mul(in, kernel.Epilogue{Bias: a.Bias()}, out)
}

// update adds rate times the gradient to the parameters.
func (a *affine) update(rate float32, in, outDeriv kernel.Matrix) {
	kernel.MulTN(rate, outDeriv, in, 1, a.m)
	if len(a.bias) != 0 {
		kernel.AddColSums(a.bias, rate, outDeriv)
	}
	a.changed()
}

func (a *affine) params() []Param {
	if len(a.bias) == 0 {
		return []Param{{"linear-params", a.m}}
	}
	return []Param{{"linear-params", a.m}, vectorParam("bias", a.bias)}
}

// fields names <LinearParams> and <BiasParams>. The bias may be empty if the component can do without.
func (a *affine) fields(f *Fields, optionalBias bool) {
	f.weights("<LinearParams>", &a.weights)
	f.Vector("<BiasParams>", &a.bias)
	f.Check(a.m.Rows > 0 && a.m.Cols > 0, "there are no linear parameters")
	f.Check(len(a.bias) == a.m.Rows || optionalBias && len(a.bias) == 0, "%d biases for %d outputs", len(a.bias), a.m.Rows)
}
