package component

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/kernel"
)

// ErrDerived is the error for what derived components can't do: be made from a configuration line, be read or written.
var ErrDerived = errors.New("a derived component belongs to a computation, not to a model")

// A Product is a derived component: a linear or affine component, or a part of one, together with what is done to its result
// before that is stored. It shares the parameters of the component it was made of. With all parts, element by element or row
// by row in this order,
//
//	v = Σ_i x_i·W_iᵀ + b [+ y];  v = max(v, 0);  v = v∘scale + offset;  v = tail(v);  y = v [+ alpha·y]
//
// where x_i is some columns of some rows of the input: which ones, the precomputed indexes say. y is added at one of the two
// places at most. Optimizations make Products, with methods that leave their receiver alone.
type Product struct {
	base          Component
	inputDim      int
	simple        bool // there is one block, and it takes the rows as they come
	blocks        []productBlock
	adds          bool // y is added before everything else
	bias          []float32
	relu          bool
	scale, offset []float32
	tail          []Component
	alpha         float32
}

// productBlock is one W_i and the first of the columns of the input that it is multiplied with.
type productBlock struct {
	w   *weights
	col int
	// goesOn says that the block continues the sums of the block before, or the first one those in y, as if they had not been
	// divided. The result then has the same bits.
	goesOn bool
}

// NewProduct returns c as a Product, without anything done to its result, if it is a component of the kind. Where c adds to
// its output, the Product overwrites it.
func NewProduct(c Component) (*Product, bool) {
	p := &Product{base: c, inputDim: c.InputDim(), simple: c.Properties().Has(Simple)}
	switch c := c.(type) {
	case *affineComponent:
		p.of(&c.affine)
	case *naturalGradientAffineComponent:
		p.of(&c.affine)
	case *fixedAffineComponent:
		p.of(&c.affine)
	case *linearComponent:
		p.of(&c.affine)
	case *tdnnComponent:
		p.bias = c.Bias()
		for i := range c.blocks {
			p.blocks = append(p.blocks, productBlock{w: &c.blocks[i]})
		}
	case *Product:
		return c, true
	default:
		return nil, false
	}
	return p, true
}

func (p *Product) of(a *affine) {
	p.blocks, p.bias = []productBlock{{w: &a.weights}}, a.Bias()
}

// A Splice says where a Product finds a part of what it is multiplied with, after its input was replaced by that of which the
// input was put together: columns [Col, Col+Cols) of its block number Block are columns from SrcCol on of the new input, and
// output row i takes row Rows[i]. A part that does not begin with the block goes on with its sums, so that the bits stay the same,
// unless it is summed Apart.
type Splice struct {
	Block, Col, Cols int
	SrcCol           int
	Rows             []int32
	Apart            bool
}

// Whole reports whether the product is that of one matrix with the rows as they come, and adds to nothing.
func (p *Product) Whole() bool { return p.simple && len(p.blocks) == 1 && !p.adds && p.alpha == 0 }

// AddsFirst reports whether y is added before anything else is done to the sums.
func (p *Product) AddsFirst() bool { return p.adds }

// Blocks calls f for every block of the product, with its first column in the input and its width.
func (p *Product) Blocks(f func(block, col, cols int)) {
	for i, b := range p.blocks {
		f(i, b.col, b.w.m.Cols)
	}
}

// Divisible reports whether the columns of a block may be divided among several without changing a bit.
func (p *Product) Divisible(block int) bool {
	w := p.blocks[block].w.m
	return !kernel.IsNarrow(w.Rows, w.Cols)
}

// Resumable reports whether a product of what comes before a column of a block may be followed by another one, which adds the rest to what
// the first has left, without changing a bit. Sums of a later block are not begun with those of an earlier one, and a
// bias of a product that is not simple is added to those of the first block.
func (p *Product) Resumable(block, col int) bool {
	if block == 0 {
		return col == 0 || p.Divisible(0)
	}
	return col == 0 && (p.bias == nil || p.base.Properties().Has(Simple))
}

// Rows gives for every output row the input row that the block takes. pre is the product's, nil for a simple one, and rows is
// the number of output rows.
func (p *Product) Rows(block int, pre Precomputed, rows int) ([]int32, bool) {
	src := make([]int32, rows)
	if p.simple {
		for i := range src {
			src[i] = int32(i)
		}
		return src, true
	}
	x, ok := pre.(*tdnnIndexes)
	if !ok || block >= len(x.Runs) || x.OutputRows != rows {
		return nil, false
	}
	for _, r := range x.Runs[block] {
		for k := range r.Count {
			src[r.Out+k*r.OutStep] = r.In + k*r.InStep
		}
	}
	return src, true
}

// Splice returns the part of the product that takes the spliced columns from an input of the given size, and its precomputed
// indexes. A part that is not first adds to its output; one that is not last leaves the bias, and what is done to the result,
// to the last.
func (p *Product) Splice(splices []Splice, inputRows, inputDim int, first, last bool) (*Product, Precomputed) {
	q := *p
	q.simple, q.inputDim = false, inputDim
	q.blocks = make([]productBlock, len(splices))
	pre := &tdnnIndexes{Runs: make([][]run, len(splices)), InputRows: inputRows}
	for i, s := range splices {
		from := &p.blocks[s.Block]
		q.blocks[i] = productBlock{w: from.w.part(s.Col, s.Cols), col: s.SrcCol, goesOn: !s.Apart && (s.Col > 0 || from.goesOn)}
		pre.Runs[i], pre.OutputRows = findRuns(s.Rows), len(s.Rows)
	}
	if !last {
		q.bias, q.relu, q.scale, q.offset, q.tail, q.alpha = nil, false, nil, nil, nil, 0
	}
	q.adds = q.adds || !first
	return &q, pre
}

// Follow returns the product followed by c, if c is a component that can be done to the product's result as it is stored:
// one that works row by row and keeps the number of columns.
func (p *Product) Follow(c Component) (*Product, bool) {
	if p.alpha != 0 || c.InputDim() != p.OutputDim() || c.OutputDim() != p.OutputDim() {
		return nil, false
	}
	q := *p
	switch c := c.(type) {
	case *rectifiedLinearComponent:
		if p.scale == nil && p.tail == nil {
			q.relu = true
			return &q, true
		}
	case *BatchNorm:
		if !c.TestMode() {
			return nil, false
		}
		if scale, offset := c.Scale(), c.Offset(); p.scale == nil && p.tail == nil && len(scale) == c.OutputDim() && len(offset) == len(scale) {
			q.scale, q.offset = scale, offset
			return &q, true
		}
	case *sigmoidComponent, *tanhComponent, *logSoftmaxComponent, *softmaxComponent, *normalizeComponent, *fixedScaleComponent, *fixedBiasComponent, *perElementScaleComponent, *perElementOffsetComponent, *scaleAndOffsetComponent:
	case *dropoutComponent:
		if !c.TestMode() {
			return nil, false
		}
	default:
		return nil, false
	}
	q.tail = append(append([]Component(nil), p.tail...), c)
	return &q, true
}

// After returns p after inner, multiplied out: p(inner(x)) as one product, with the precomputed indexes of inner. Both must be of one
// matrix, and nothing be done to the result of inner. It does so only where that takes fewer multiplications. The bits differ from
// those of one after the other.
func (p *Product) After(inner *Product) (*Product, bool) {
	if !p.Whole() || len(inner.blocks) != 1 || inner.adds || inner.relu || inner.scale != nil || inner.tail != nil || inner.alpha != 0 {
		return nil, false
	}
	from, w := inner.blocks[0], p.blocks[0].w
	if b, cols := w.m, from.w.m.Cols; w.parts == nil || from.goesOn || b.Rows*cols > b.Cols*(cols+b.Rows) {
		return nil, false
	}
	c := w.after(p.bias, from.w, inner.bias)
	q := *p
	q.simple, q.inputDim = inner.simple, inner.inputDim
	q.blocks = []productBlock{{w: &c.weights, col: from.col}}
	if c.constant != nil {
		q.bias = c.constant
	}
	return &q, true
}

// Onto returns the product that adds its result to alpha times what its output holds.
func (p *Product) Onto(alpha float32) (*Product, bool) {
	if p.alpha != 0 || p.adds || alpha == 0 {
		return nil, false
	}
	q := *p
	q.alpha = alpha
	return &q, true
}

// Base is the component that the product was made of.
func (p *Product) Base() Component { return p.base }

// Type names the parts.
func (p *Product) Type() string {
	parts := []string{strings.TrimSuffix(p.base.Type(), "Component")}
	if p.adds {
		parts = append(parts, "Add")
	}
	if p.relu {
		parts = append(parts, "RectifiedLinear")
	}
	if p.scale != nil {
		parts = append(parts, "Scale")
	}
	for _, c := range p.tail {
		parts = append(parts, strings.TrimSuffix(c.Type(), "Component"))
	}
	if p.alpha != 0 {
		parts = append(parts, "Residual")
	}
	return strings.Join(parts, "+")
}

// InputDim is the number of columns of the input.
func (p *Product) InputDim() int { return p.inputDim }

// OutputDim is the base component's.
func (p *Product) OutputDim() int { return p.base.OutputDim() }

// Properties of a product. It has no backward pass.
func (p *Product) Properties() Properties {
	return Properties(0).with(Simple, p.simple).with(PropagateAdds, p.alpha != 0 || p.adds)
}

// Init fails with ErrDerived.
func (p *Product) Init(*ConfigLine) error { return ErrDerived }

// Fields of the component.
func (p *Product) Fields(f *Fields) {
	f.derived()
}

// Prepare prepares the parameters of the base component.
func (p *Product) Prepare() {
	for _, b := range p.blocks {
		b.w.prepareOnce()
	}
}

// Propagate computes y.
func (p *Product) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkDims(p, in, out); err != nil {
		return nil, err
	}
	if p.alpha == 0 || p.tail == nil {
		if err := p.mul(w, pre, in, p.alpha, out); err != nil {
			return nil, err
		}
		return nil, p.finish(w, out)
	}
	defer w.Release(w.Mark())
	y := w.Matrix(out.Rows, out.Cols)
	if err := p.mul(w, pre, in, 0, y); err != nil {
		return nil, err
	}
	if err := p.finish(w, y); err != nil {
		return nil, err
	}
	kernel.CopyScaled(out, p.alpha, out)
	kernel.Add(out, 1, y)
	return nil, nil
}

// finish does the tail.
func (p *Product) finish(w *Workspace, y kernel.Matrix) error {
	for _, c := range p.tail {
		if _, err := c.Propagate(w, nil, y, y); err != nil {
			return err
		}
	}
	return nil
}

// mul computes what comes before the tail, and adds alpha times what y holds.
func (p *Product) mul(w *Workspace, pre Precomputed, in kernel.Matrix, alpha float32, y kernel.Matrix) error {
	ep := kernel.Epilogue{
		Accumulate: p.adds && !p.blocks[0].goesOn, Bias: p.bias, BiasFirst: !p.base.Properties().Has(Simple),
		ReLU: p.relu, Scale: p.scale, Offset: p.offset, Alpha: alpha,
	}
	if p.simple {
		if in.Rows != y.Rows {
			return shapeError(p, "propagate", in, y)
		}
		ep.Residual = residual(alpha, y)
		p.blocks[0].w.mul(in, ep, y)
		return nil
	}
	x, ok := pre.(*tdnnIndexes)
	if !ok || len(x.Runs) != len(p.blocks) || x.InputRows != in.Rows || x.OutputRows != y.Rows {
		return fmt.Errorf("%s: precomputed indexes do not fit %d input and %d output rows: %w", p.Type(), in.Rows, y.Rows, ErrShape)
	}
	mulRuns(w, p.blocks, x.Runs, ep, in, y)
	return nil
}

// residual is what an epilogue adds, if it does: what y holds.
func residual(alpha float32, y kernel.Matrix) kernel.Matrix {
	if alpha == 0 {
		return kernel.Matrix{}
	}
	return y
}

// mulRuns computes y = Σ_i x_i·W_iᵀ and what ep adds to it, where the runs of block i say which rows of in are x_i. Where all
// blocks have their runs in the same output rows, the products read the rows in place, all blocks in one pass; otherwise the
// rows are put together first.
func mulRuns(w *Workspace, blocks []productBlock, runs [][]run, ep kernel.Epilogue, in, y kernel.Matrix) {
	if !ready(blocks) && ep.Alpha == 0 {
		mulEach(blocks, runs, ep, in, y)
		return
	}
	defer w.Release(w.Mark())
	segs := w.segments(len(blocks))
	for i := range blocks {
		b := &blocks[i]
		segs[i] = kernel.Segment{W: b.w.ready(), Continue: b.goesOn}
	}
	if !alike(runs) {
		for i := range blocks {
			segs[i].X = gather(w, runs[i], kernel.Cols(in, blocks[i].col, blocks[i].w.m.Cols), y.Rows)
		}
		ep.Residual = residual(ep.Alpha, y)
		kernel.MulSegments(segs, ep, y)
		return
	}
	for r := range runs[0] {
		for i := range blocks {
			segs[i].X = runs[i][r].rows(kernel.Cols(in, blocks[i].col, blocks[i].w.m.Cols))
		}
		out := runs[0][r].output(y)
		ep.Residual = residual(ep.Alpha, out)
		kernel.MulSegments(segs, ep, out)
	}
}

// ready reports whether the blocks are prepared, or must be to go on with each other's sums.
func ready(blocks []productBlock) bool {
	for i := range blocks {
		if blocks[i].goesOn {
			return true
		}
	}
	return blocks[0].w.prepared != nil
}

// mulEach does what mulRuns does block by block, for weights that are not prepared.
func mulEach(blocks []productBlock, runs [][]run, ep kernel.Epilogue, in, y kernel.Matrix) {
	for i := range blocks {
		each := kernel.Epilogue{Accumulate: i > 0 || ep.Accumulate}
		if last := i == len(blocks)-1; last {
			each.ReLU, each.Scale, each.Offset = ep.ReLU, ep.Scale, ep.Offset
			if !ep.BiasFirst {
				each.Bias = ep.Bias
			}
		}
		if i == 0 && ep.BiasFirst {
			each.Bias = ep.Bias
		}
		for _, r := range runs[i] {
			blocks[i].w.mul(r.rows(kernel.Cols(in, blocks[i].col, blocks[i].w.m.Cols)), each, r.output(y))
		}
	}
}

// alike reports whether all blocks take rows for the same output rows, run by run.
func alike(runs [][]run) bool {
	for _, rs := range runs[1:] {
		if len(rs) != len(runs[0]) {
			return false
		}
		for i, r := range rs {
			if s := runs[0][i]; r.Out != s.Out || r.OutStep != s.OutStep || r.Count != s.Count {
				return false
			}
		}
	}
	return true
}

// gather puts the rows that the runs take together, in scratch memory.
func gather(w *Workspace, runs []run, in kernel.Matrix, rows int) kernel.Matrix {
	x := w.Matrix(rows, in.Cols)
	for _, r := range runs {
		for k := range r.Count {
			copy(kernel.Row(x, int(r.Out+k*r.OutStep)), kernel.Row(in, int(r.In+k*r.InStep)))
		}
	}
	return x
}
