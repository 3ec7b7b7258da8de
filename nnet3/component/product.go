package component

import (
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
)

// A Product is a derived component: a linear or affine component, or a part of one, fused with
// operations on its result. It shares the parameters of its base component. With all parts, it
// computes, element by element or row by row,
//
//	v = Σ_i x_i·W_iᵀ + b [+ y];  v = max(v, 0);  v = v∘scale + offset;  v = tail(v);  y = v [+ alpha·y]
//
// where the precomputed indexes say which columns of which rows of the input x_i consists of. y is
// added in one of the two places at most.
//
// A Product is immutable. The methods by which optimizations extend it return a new one.
type Product struct{ product }

// product has the fields of a Product, and its methods as a Component.
type product struct {
	derived
	inputDim      int
	simple        bool // there is one block, which takes the rows in order
	blocks        []productBlock
	adds          bool // y is added first
	bias          []float32
	relu          bool
	scale, offset []float32
	scaledBy      Component // has the scale and the offset
	tail          []Component
	alpha         float32
	precision     kernel.Precision
	// Of a quantized product, the mean squares of the distance of levels in a column of parameters and
	// of the length of the column.
	step, length float64
	inner        *Product // the product that the base follows, whose compound the blocks are of
}

// productBlock is one W_i and the first of the input columns that it is multiplied with.
type productBlock struct {
	w   *weights
	col int
	// goesOn says that the block continues the sums of the previous block or, if it is the first,
	// those in y. The bits are those of an undivided sum.
	goesOn bool
}

// NewProduct returns c as a Product that leaves its result as it is. It reports false if c is not a
// linear or affine component, a TDNN or a Product. A Product overwrites its output even if c adds
// to it.
func NewProduct(c Component) (*Product, bool) {
	p := &Product{product{derived: derived{c}, inputDim: c.InputDim(), simple: c.Properties().Has(Simple)}}
	switch c := c.(type) {
	case interface{ factor() *affine }:
		a := c.factor()
		p.blocks, p.bias = []productBlock{{w: &a.weights}}, a.Bias()
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

// A Splice says where a Product finds a part of its operand after its input was replaced by one of
// the parts that the input was made of. Columns [Col, Col+Cols) of block number Block are the
// columns from SrcCol on of the new input, and output row i takes row Rows[i]. A part that does not
// begin with the block continues its sums, so that the bits stay the same, unless Apart is set.
type Splice struct {
	Block, Col, Cols int
	SrcCol           int
	Rows             []int32
	Apart            bool
}

// Whole reports whether p multiplies its rows in order by a single matrix, and does not add to y.
func (p *Product) Whole() bool { return p.simple && len(p.blocks) == 1 && !p.adds && p.alpha == 0 }

// AddsFirst reports whether p adds y to the sums before anything else.
func (p *Product) AddsFirst() bool { return p.adds }

// Propagate computes out, the y of the formula above.
func (p *Product) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	// Without a tail, the epilogue can add alpha·y, and without alpha, the tail can work in place.
	// With both, the old y must survive until the tail is done, so the result is computed beside
	// it.
	if p.alpha == 0 || p.tail == nil {
		if err := p.mul(w, pass, in, p.alpha, out); err != nil {
			return nil, err
		}
		return nil, p.finish(w, out)
	}
	defer w.Release(w.Mark())
	y := w.Matrix(out.Rows, out.Cols)
	if err := p.mul(w, pass, in, 0, y); err != nil {
		return nil, err
	}
	if err := p.finish(w, y); err != nil {
		return nil, err
	}
	w.Threads.CopyScaled(out, p.alpha, out)
	w.Threads.Add(out, 1, y)
	return nil, nil
}

// Blocks calls f for every block of the product, with its first input column and its width.
func (p *Product) Blocks(f func(block, col, cols int)) {
	for i, b := range p.blocks {
		f(i, b.col, b.w.m.Cols)
	}
}

// Divisible reports whether the columns of a block can be divided among several blocks without
// changing a bit.
func (p *Product) Divisible(block int) bool {
	w := p.blocks[block].w.m
	return kernel.Divisible(w.Rows, w.Cols)
}

// Resumable reports whether the product can be divided in two before a column of a block, so that
// the second product adds to the sums of the first, without changing a bit. Sums of a later block
// don't continue those of an earlier one, and a product that is not simple adds its bias to the
// first block.
func (p *Product) Resumable(block, col int) bool {
	if block == 0 {
		return col == 0 || p.Divisible(0)
	}
	return col == 0 && (p.bias == nil || p.base.Properties().Has(Simple))
}

// Rows returns, for each of rows output rows, the input row that the block takes. pre is the
// Precomputed of the product, nil if it is simple.
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

// Splice returns the part of the product that takes the spliced columns from an input with
// inputRows rows and inputDim columns, and its precomputed indexes. A part that is not the first
// adds to its output. Only the last has the bias and the operations on the result.
func (p *Product) Splice(splices []Splice, inputRows, inputDim int, first, last bool) (*Product, Precomputed) {
	q := *p
	q.simple, q.inputDim = false, inputDim
	q.blocks = make([]productBlock, len(splices))
	pre := &tdnnIndexes{Runs: make([][]run, len(splices)), InputRows: inputRows}
	for i, s := range splices {
		from := &p.blocks[s.Block]
		// The parts share the parameters with the whole, and all products with the same part share
		// one prepared form of it.
		q.blocks[i] = productBlock{w: from.w.part(s.Col, s.Cols), col: s.SrcCol, goesOn: !s.Apart && (s.Col > 0 || from.goesOn)}
		pre.Runs[i], pre.OutputRows = findRuns(s.Rows), len(s.Rows)
	}
	// Operations on the result need the complete sum, and the bias is added once.
	if !last {
		q.bias, q.relu, q.scale, q.offset, q.scaledBy, q.tail, q.alpha = nil, false, nil, nil, nil, nil, 0
	}
	q.adds = q.adds || !first
	return &q, pre
}

// Follow returns the product followed by c. It reports false unless c is a component that a product
// can apply before it stores the result: one that works row by row and preserves the number of
// columns.
func (p *Product) Follow(c Component) (*Product, bool) {
	if p.alpha != 0 || c.InputDim() != p.OutputDim() || c.OutputDim() != p.OutputDim() {
		return nil, false
	}
	q := *p
	switch c := c.(type) {
	case *nonlinearity:
		// The epilogue has a fixed order: ReLU, then scale and offset. A ReLU behind a scale goes
		// to the tail; a second one in front of it changes nothing.
		if c.function == &rectifiedLinear && p.scale == nil && p.tail == nil {
			q.relu = true
			return &q, true
		}
	case *batchNorm:
		if !c.test {
			return nil, false
		}
		if p.scale == nil && p.tail == nil {
			q.scale, q.offset, q.scaledBy = c.scale, c.offset, c
			return &q, true
		}
	default:
		if !rowwise(c) {
			return nil, false
		}
	}
	q.tail = append(slices.Clone(p.tail), c)
	return &q, true
}

// rowwise reports whether c is a component that can be in the tail of a product, apart from those
// that Follow treats by themselves.
func rowwise(c Component) bool {
	switch c := c.(type) {
	case *dropoutComponent:
		return c.test
	case *normalizeComponent, *fixedScaleComponent, *fixedBiasComponent, *perElementScaleComponent,
		*perElementOffsetComponent, *scaleAndOffsetComponent:
		return true
	}
	return false
}

// After returns p(inner(x)) as one product, whose matrix is the product of the two matrices. It
// takes the precomputed indexes of inner. It reports false unless both products have one matrix,
// inner has no operations on its result, and the compound takes fewer multiplications. Its bits
// differ from those of two products.
func (p *Product) After(inner *Product) (*Product, bool) {
	if !p.Whole() || len(inner.blocks) != 1 || inner.adds || inner.relu || inner.scale != nil || inner.tail != nil || inner.alpha != 0 {
		return nil, false
	}
	// Between the two matrices there must be nothing but the bias of the first. Then W(Vx + c) + b
	// is (WV)x + (Wc + b), at Rows·cols multiplications a row instead of Cols·(cols + Rows).
	from, w := inner.blocks[0], p.blocks[0].w
	if b, cols := w.m, from.w.m.Cols; w.parts == nil || from.goesOn || b.Rows*cols > b.Cols*(cols+b.Rows) {
		return nil, false
	}
	c := w.after(p.bias, from.w, inner.bias)
	q := *p
	q.simple, q.inputDim, q.inner = inner.simple, inner.inputDim, inner
	q.blocks = []productBlock{{w: &c.weights, col: from.col}}
	if c.constant != nil {
		q.bias = c.constant
	}
	return &q, true
}

// Onto returns a product that adds its result to alpha times its output. It reports false if p adds
// to its output already or alpha is 0.
func (p *Product) Onto(alpha float32) (*Product, bool) {
	if p.alpha != 0 || p.adds || alpha == 0 {
		return nil, false
	}
	q := *p
	q.alpha = alpha
	return &q, true
}
