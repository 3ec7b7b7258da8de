package component

import (
	"sync"

	"github.com/nnopt/nnopt/internal/kernel"
)

// weights is a matrix that inputs are multiplied by, with the prepared form of it.
type weights struct {
	m        kernel.Matrix
	prepared *kernel.Weights
	integers [forms][]*kernel.QuantizedWeights // nil until quantizeOnce
	rounding [forms][]rounding                 // nil until it is asked for
	parts    *parts
	version  int      // counts the changes of the matrix
	whole    *weights // the weights of which these are the columns from col on, or nil
	col      int

	// lean says that the elements of m are dropped once there is a prepared form of them. They are
	// nil then; see elements.
	lean   bool
	pieces []weights // which hold the elements of released weights without a prepared form
}

// parts are what derived components share of a matrix of weights: blocks of its columns, each
// prepared by itself, and its products with other weights.
type parts struct {
	mu        sync.Mutex
	list      []*weights
	cols      [][2]int
	compounds []*compound
}

// A form is a way to quantize weights.
type form uint8

const (
	grouped form = iota // Int8, groups of groupColumns columns
	whole8              // Int8, whole rows
	whole16             // Int16, whole rows
	forms
)

// groupColumns is how many columns of weights, and of what they are multiplied with, share steps in
// 8 bits. The fewer, the smaller are the steps, which the largest elements determine, and the more
// products of groups are added up. In tdnnf_swbd with random parameters the error at the output was
// 11 to 14 % with whole rows, 9 to 12 % with 384 columns, 7 to 11 % with 256 and 7 to 10 % with 192, and
// the time 0.32, 0.33, 0.36 and 0.39 of that of float32 (Zen 5, November 2026).
const groupColumns = 256

// precision returns the precision of the form.
func (f form) precision() kernel.Precision {
	if f == whole16 {
		return kernel.Int16
	}
	return kernel.Int8
}

// each calls do for the groups of a matrix, with their first columns. It stops at an error.
func (f form) each(m kernel.Matrix, do func(col int, part kernel.Matrix) (ok bool)) (ok bool) {
	if f != grouped {
		return do(0, m)
	}
	for col := 0; col < m.Cols; col += groupColumns {
		if !do(col, kernel.Cols(m, col, min(groupColumns, m.Cols-col))) {
			return false
		}
	}
	return true
}

// rounding says how coarsely a group of weights is quantized: what kernel.QuantizationSteps returns.
type rounding struct {
	col, cols    int
	step, length float64
	ok           bool
}

// A compound is an affine map after another one: x ↦ W(Vx + c) + b as one matrix and one vector.
type compound struct {
	first           *weights
	second          kernel.Matrix // without elements if they are released
	firstBias, bias []float32
	weights         weights
	constant        []float32 // Wc + b; nil if there is no firstBias, and the bias stays as it is
}

// after returns the map with these weights and this bias after another one: the same compound for
// the same maps.
func (w *weights) after(bias []float32, first *weights, firstBias []float32) *compound {
	w.parts.mu.Lock()
	defer w.parts.mu.Unlock()
	for _, c := range w.parts.compounds {
		if c.first == first {
			return c
		}
	}
	c := &compound{first: first, firstBias: firstBias, bias: bias}
	c.weights = weights{m: kernel.New(w.m.Rows, first.m.Cols), parts: new(parts), lean: w.lean}
	if firstBias != nil {
		c.constant = make([]float32, w.m.Rows)
	}
	c.multiply(w)
	w.parts.compounds = append(w.parts.compounds, c)
	return c
}

// multiply computes the matrix and the constant of the compound, whose second factor is given.
func (c *compound) multiply(second *weights) {
	w := second.elements()
	c.second = second.m
	c.weights.restore()
	kernel.MulNN(1, w, c.first.elements(), 0, c.weights.m)
	if c.firstBias != nil {
		n := len(c.firstBias)
		x := kernel.Matrix{Rows: 1, Cols: n, Stride: n, Data: c.firstBias}
		kernel.Mul(x, w, kernel.Epilogue{Bias: c.bias}, kernel.Matrix{Rows: 1, Cols: w.Rows, Stride: w.Rows, Data: c.constant})
	}
}

// of reports whether all parts belong to m.
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
	kernel.Mul(x, w.elements(), ep, y)
}

// renew recomputes the prepared forms, including those of parts, after a change of elements of the
// matrix.
func (w *weights) renew(t *kernel.Threads) {
	w.version++
	w.rounding = [forms][]rounding{}
	if w.prepared != nil {
		t.Renew(w.prepared)
	}
	for f, list := range w.integers {
		if list != nil {
			w.integers[f] = nil
			w.quantizeOnce(form(f))
		}
	}
	if w.parts != nil {
		for _, p := range w.parts.list {
			p.renew(t)
		}
		for _, c := range w.parts.compounds {
			c.multiply(w)
			c.weights.renew(t)
		}
	}
}

// steps returns kernel.QuantizationSteps of the groups of the weights. It computes them once. Any
// number of goroutines may call it.
func (w *weights) steps(f form) []rounding {
	shared := w.parts
	if w.whole != nil {
		shared = w.whole.parts
	}
	if shared == nil {
		return newRounding(f, w.elements())
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if w.rounding[f] == nil {
		w.rounding[f] = newRounding(f, w.elements())
	}
	return w.rounding[f]
}

func newRounding(f form, m kernel.Matrix) (list []rounding) {
	f.each(m, func(col int, part kernel.Matrix) bool {
		r := rounding{col: col, cols: part.Cols}
		r.step, r.length, r.ok = kernel.QuantizationSteps(f.precision(), part)
		list = append(list, r)
		return true
	})
	return list
}

// quantize returns the weights as integers, group by group. They are temporary if quantizeOnce was not
// called. It returns nil if they can't be quantized.
func (w *weights) quantize(f form) (list []*kernel.QuantizedWeights) {
	if w.integers[f] != nil {
		return w.integers[f]
	}
	ok := f.each(w.elements(), func(_ int, part kernel.Matrix) bool {
		q, ok := kernel.NewQuantizedWeights(f.precision(), part)
		list = append(list, q)
		return ok
	})
	if !ok {
		return nil
	}
	return list
}

// quantizeOnce keeps the weights as integers, if they can be quantized.
func (w *weights) quantizeOnce(f form) { w.integers[f] = w.quantize(f) }

// part returns n columns of the weights, from column col on: the same part for the same columns.
func (w *weights) part(col, n int) *weights {
	if col == 0 && n == w.m.Cols {
		return w
	}
	if w.whole != nil {
		// A part of a part is a part of the whole, so that there is one prepared form for the same
		// columns, however they were reached.
		return w.whole.part(w.col+col, n)
	}
	if w.parts == nil {
		return &weights{m: kernel.Cols(w.elements(), col, n)}
	}
	w.parts.mu.Lock()
	defer w.parts.mu.Unlock()
	for i, c := range w.parts.cols {
		if c == [2]int{col, n} {
			return w.parts.list[i]
		}
	}
	p := &weights{m: kernel.Matrix{Rows: w.m.Rows, Cols: n, Stride: w.m.Stride}, whole: w, col: col, lean: w.lean}
	if !w.released() {
		p.m = kernel.Cols(w.m, col, n)
	}
	w.parts.list = append(w.parts.list, p)
	w.parts.cols = append(w.parts.cols, [2]int{col, n})
	return p
}

func (w *weights) copy() weights {
	c := weights{m: kernel.Clone(w.elements()), parts: new(parts)}
	if w.prepared != nil {
		c.prepare()
	}
	return c
}

// changed drops the prepared forms, including those of parts, because they no longer match the
// matrix. Parts of another matrix are dropped altogether.
func (w *weights) changed() {
	w.prepared, w.integers, w.rounding = nil, [forms][]*kernel.QuantizedWeights{}, [forms][]rounding{}
	w.version++
	// There may be another matrix by now. Parts are views of the old one, which they would keep in
	// memory, and multiply by.
	if w.parts == nil || !w.parts.of(w.m) {
		w.parts = new(parts)
		return
	}
	for _, p := range w.parts.list {
		p.changed()
	}
	for _, c := range w.parts.compounds {
		c.multiply(w)
		c.weights.changed()
	}
}

// prepare makes the prepared form.
func (w *weights) prepare() {
	if w.released() && w.prepared != nil {
		return // it is all there is
	}
	w.prepared = kernel.NewWeights(w.elements())
	if w.lean {
		w.release()
	}
}

func (w *weights) prepareOnce() {
	if w.prepared == nil {
		w.prepare()
	}
}

// ready returns the prepared form, or a temporary one if Prepare was not called.
func (w *weights) ready() *kernel.Weights {
	if w.prepared != nil {
		return w.prepared
	}
	return kernel.NewWeights(w.elements())
}

// released reports whether the elements of the matrix are dropped.
func (w *weights) released() bool { return w.m.Data == nil && w.m.Rows > 0 && w.m.Cols > 0 }

// elements returns the matrix, or a copy of it if its elements are released. It may be called while
// others multiply.
func (w *weights) elements() kernel.Matrix {
	switch {
	case !w.released():
		return w.m
	case w.prepared != nil:
		return w.prepared.Matrix()
	case w.whole != nil:
		return kernel.Cols(w.whole.elements(), w.col, w.m.Cols)
	}
	m := kernel.New(w.m.Rows, w.m.Cols)
	for i := range w.pieces {
		kernel.Copy(w.piece(m, i), w.pieces[i].elements())
	}
	return m
}

// piece returns the place of a piece in m, which has the shape of w: pieces are side by side or
// one below the other.
func (w *weights) piece(m kernel.Matrix, i int) kernel.Matrix {
	rows, cols := w.pieces[i].m.Rows, w.pieces[i].m.Cols
	if cols < m.Cols {
		return kernel.Cols(m, i*cols, cols)
	}
	return kernel.Rows(m, i*rows, rows)
}

// release drops the elements of the matrix, of its parts and of its compounds, as far as they can
// be had from prepared forms, and has those that are prepared later do the same. It returns the
// memory of the matrix.
func (w *weights) release() (spare []float32) {
	if w.prepared == nil || !w.prepared.Release() {
		return nil
	}
	spare, w.lean, w.m.Data = w.m.Data, true, nil
	if w.parts == nil {
		return spare
	}
	for _, p := range w.parts.list {
		p.lean, p.m.Data = true, nil
		p.release()
	}
	for _, c := range w.parts.compounds {
		c.second.Data = nil
		c.weights.lean = true
		c.weights.release()
	}
	return spare
}

// restore reverses release. No product may be running.
func (w *weights) restore() {
	if !w.released() {
		return
	}
	m := w.elements()
	for i := range w.pieces {
		w.pieces[i].own(w.piece(m, i))
	}
	w.pieces = nil
	w.own(m)
}

// own makes m, which has the elements of w, the matrix of w.
func (w *weights) own(m kernel.Matrix) {
	w.lean, w.m = false, m
	if w.prepared != nil {
		w.prepared = kernel.NewWeights(m)
	}
	if w.parts == nil {
		return
	}
	for _, p := range w.parts.list {
		p.own(kernel.Cols(m, p.col, p.m.Cols))
	}
	for _, c := range w.parts.compounds {
		c.second = m
		c.weights.restore()
	}
}

// Factors are the weights that a component multiplies its input by in float32.
type Factors []*weights

// FactorsOf returns the factors of a product, an affine component or a TDNN, and nil for any other
// component.
func FactorsOf(c Component) (f Factors) {
	var blocks []productBlock
	switch c := c.(type) {
	case *Product:
		if c.precision == kernel.Float32 {
			blocks = c.blocks
		}
	case *tdnnComponent:
		blocks = c.products
	case interface{ factor() *affine }:
		return Factors{&c.factor().weights}
	}
	for i := range blocks {
		f = append(f, blocks[i].w)
	}
	return f
}

// preparedForms returns the prepared forms of factors, valid until the next call, or nil if one of
// them is not prepared.
func (w *Workspace) preparedForms(factors Factors) []*kernel.Weights {
	w.next = w.next[:0]
	for _, f := range factors {
		if f.prepared == nil {
			return nil
		}
		w.next = append(w.next, f.prepared)
	}
	return w.next
}
