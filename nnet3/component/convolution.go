package component

import (
	"math"

	"github.com/nnopt/nnopt/kernel"
)

// convolutionComponent is the older convolution over a three-dimensional input within a frame: filters of FiltX×FiltY×InputZ are
// moved over x and y, without padding. The output of a row of steps in x, then in y, is one column per filter.
type convolutionComponent struct {
	training
	affine                             // a row of linear parameters is a filter, ordered x, y, z
	inputX, inputY, inputZ             int
	filtX, filtY, filtXStep, filtYStep int
	order                              vectorization
	columns                            []int32 // of the input, for each patch in turn
}

// vectorization says how a three-dimensional input lies in a row. The values are those in files.
type vectorization int

const (
	orderYZX vectorization = iota // y changes fastest, then z, then x
	orderZYX                      // z changes fastest, then y, then x
)

// Type is "ConvolutionComponent".
func (c *convolutionComponent) Type() string { return "ConvolutionComponent" }

// InputDim is the size of the input.
func (c *convolutionComponent) InputDim() int { return c.inputX * c.inputY * c.inputZ }

// OutputDim is the number of steps times the number of filters.
func (c *convolutionComponent) OutputDim() int { return c.steps() * c.m.Rows }

// steps is the number of places of a filter, 0 if the sizes make no sense.
func (c *convolutionComponent) steps() int {
	x, ok := places(c.inputX, c.filtX, c.filtXStep)
	y, ok2 := places(c.inputY, c.filtY, c.filtYStep)
	if !ok || !ok2 {
		return 0
	}
	return x * y
}

// places returns the number of places of a window that is moved over size elements in steps. The last one must end at the
// end.
func places(size, window, step int) (int, bool) {
	if size <= 0 || window <= 0 || step <= 0 || window > size || (size-window)%step != 0 {
		return 0, false
	}
	return 1 + (size-window)/step, true
}

// Properties of a convolution.
func (c *convolutionComponent) Properties() Properties {
	return Simple | Updatable | BackpropNeedsInput | BackpropAdds | PropagateAdds
}

// Params returns the filters and their biases.
func (c *convolutionComponent) Params() []Param {
	return []Param{{"filter-params", c.m}, vectorParam("bias-params", c.bias)}
}

// Init knows input-x-dim, input-y-dim, input-z-dim, filt-x-dim, filt-y-dim, filt-x-step, filt-y-step,
// input-vectorization-order (zyx, yzx); and matrix, a file with the bias as last column, or num-filters, param-stddev,
// bias-stddev.
func (c *convolutionComponent) Init(cfg *ConfigLine) error {
	c.training.init(cfg)
	c.inputX, c.inputY, c.inputZ = cfg.dim("input-x-dim"), cfg.dim("input-y-dim"), cfg.dim("input-z-dim")
	c.filtX, c.filtY = cfg.dim("filt-x-dim"), cfg.dim("filt-y-dim")
	c.filtXStep, c.filtYStep = cfg.dim("filt-x-step"), cfg.dim("filt-y-step")
	c.order = orderZYX
	if order, ok := cfg.Value("input-vectorization-order"); ok {
		switch order {
		case "zyx":
		case "yzx":
			c.order = orderYZX
		default:
			cfg.Fail("input-vectorization-order=%s is neither zyx nor yzx", clip(order))
		}
	}
	if !c.sizesFit() {
		cfg.Fail("the filters do not cover the input exactly, or it is too large")
		return cfg.Err()
	}
	filter := c.filtX * c.filtY * c.inputZ
	if m, ok := cfg.matrix("matrix"); ok {
		c.affine = splitBias(cfg, m)
	} else {
		stddev := 1 / float32(math.Sqrt(float64(filter)))
		num := cfg.dim("num-filters")
		c.m = cfg.randn(num, filter, 0, cfg.Float("param-stddev", stddev))
		c.bias = cfg.randnVector(num, 0, cfg.Float("bias-stddev", 1))
	}
	c.changed()
	if c.m.Cols != filter || !product(maxDim, c.steps(), c.m.Rows) {
		cfg.Fail("%d filters of %d parameters do not fit filters of %d", c.m.Rows, c.m.Cols, filter)
	}
	if cfg.makeRoom(c.steps(), filter) {
		c.mapColumns()
	}
	return cfg.Err()
}

// product reports whether the product of the factors, none of them negative, is at most limit.
func product(limit int, factors ...int) bool {
	n := 1
	for _, f := range factors {
		if f < 0 || f > 0 && n > limit/f {
			return false
		}
		n *= f
	}
	return true
}

// sizesFit reports whether the sizes of input and filters make sense together.
func (c *convolutionComponent) sizesFit() bool {
	return product(maxDim, c.inputX, c.inputY, c.inputZ) && c.inputZ > 0 && c.steps() > 0 &&
		product(maxDim, c.steps(), c.filtX, c.filtY, c.inputZ)
}

// mapColumns finds the column of the input for each element of each patch.
func (c *convolutionComponent) mapColumns() {
	c.columns = make([]int32, 0, c.steps()*c.filtX*c.filtY*c.inputZ)
	for x0 := 0; x0+c.filtX <= c.inputX; x0 += c.filtXStep {
		for y0 := 0; y0+c.filtY <= c.inputY; y0 += c.filtYStep {
			for x := x0; x < x0+c.filtX; x++ {
				for y := y0; y < y0+c.filtY; y++ {
					for z := range c.inputZ {
						c.columns = append(c.columns, int32(c.order.column(x, y, z, c.inputY, c.inputZ)))
					}
				}
			}
		}
	}
}

// column returns where element (x, y, z) lies in a row.
func (v vectorization) column(x, y, z, dimY, dimZ int) int {
	if v == orderZYX {
		return (x*dimY+y)*dimZ + z
	}
	return (x*dimZ+z)*dimY + y
}

// Fields of the component.
func (c *convolutionComponent) Fields(f *Fields) {
	c.training.fields(f)
	f.Dim("<InputXDim>", &c.inputX)
	f.Dim("<InputYDim>", &c.inputY)
	f.Dim("<InputZDim>", &c.inputZ)
	f.Dim("<FiltXDim>", &c.filtX)
	f.Dim("<FiltYDim>", &c.filtY)
	f.Dim("<FiltXStep>", &c.filtXStep)
	f.Dim("<FiltYStep>", &c.filtYStep)
	order := int(c.order)
	f.Int("<InputVectorization>", &order)
	c.order = vectorization(order)
	f.Check(c.order == orderYZX || c.order == orderZYX, "unknown vectorization %d", order)
	f.Check(c.sizesFit(), "the filters do not cover the input exactly, or it is too large")
	f.weights("<FilterParams>", &c.weights)
	f.Vector("<BiasParams>", &c.bias)
	f.Check(c.m.Rows > 0 && c.m.Cols == c.filtX*c.filtY*c.inputZ && len(c.bias) == c.m.Rows && product(maxDim, c.steps(), c.m.Rows),
		"filter parameters of %d×%d and %d biases do not fit", c.m.Rows, c.m.Cols, len(c.bias))
	Since(f, f.Bool, "<IsGradient>", &c.gradient, c.gradient)
	f.Check(product(maxDim, c.steps(), c.m.Cols), "%d patches of %d are too many", c.steps(), c.m.Cols)
	f.Claim(4 * c.steps() * c.m.Cols)
	if f.Reading() {
		c.mapColumns()
	}
}

// patchRows is how many rows are spread out into patches at a time.
const patchRows = 32

// eachPatch calls f, a few rows at a time, with the number of the first row, the patches of the rows at one place and the
// number of the place.
func (c *convolutionComponent) eachPatch(w *Workspace, in kernel.Matrix, f func(first, place int, patches kernel.Matrix)) {
	mark := w.Mark()
	defer w.Release(mark)
	buffer := w.Matrix(min(patchRows, in.Rows), c.m.Cols)
	for first := 0; first < in.Rows; first += patchRows {
		rows := min(patchRows, in.Rows-first)
		for place := range c.steps() {
			patches := kernel.Rows(buffer, 0, rows)
			kernel.PermuteCols(patches, kernel.Rows(in, first, rows), c.columns[place*c.m.Cols:(place+1)*c.m.Cols])
			f(first, place, patches)
		}
	}
}

// Propagate adds the filters' results to the output.
func (c *convolutionComponent) Propagate(w *Workspace, pre Precomputed, in, out kernel.Matrix) (Memo, error) {
	if err := checkSimple(c, in, out); err != nil {
		return nil, err
	}
	c.eachPatch(w, in, func(first, place int, patches kernel.Matrix) {
		y := kernel.View(out, first, patches.Rows, place*c.m.Rows, c.m.Rows)
		c.mul(patches, kernel.Epilogue{Accumulate: true, Bias: c.bias}, y)
	})
	return nil, nil
}

// Backprop computes the derivatives of the input and of the filters.
func (c *convolutionComponent) Backprop(w *Workspace, pre Precomputed, inValue, outValue, outDeriv kernel.Matrix, memo Memo, toUpdate Component, inDeriv kernel.Matrix) error {
	if err := checkBackprop(c, inValue, outValue, outDeriv, toUpdate, inDeriv); err != nil {
		return err
	}
	if u, ok := toUpdate.(*convolutionComponent); ok {
		c.eachPatch(w, inValue, func(first, place int, patches kernel.Matrix) {
			u.update(u.learningRate, patches, kernel.View(outDeriv, first, patches.Rows, place*c.m.Rows, c.m.Rows))
		})
	}
	if !wanted(inDeriv) {
		return nil
	}
	mark := w.Mark()
	defer w.Release(mark)
	buffer := w.Matrix(min(patchRows, outDeriv.Rows), c.m.Cols)
	for first := 0; first < outDeriv.Rows; first += patchRows {
		patches := kernel.Rows(buffer, 0, min(patchRows, outDeriv.Rows-first))
		for place := range c.steps() {
			kernel.MulNN(1, kernel.View(outDeriv, first, patches.Rows, place*c.m.Rows, c.m.Rows), c.m, 0, patches)
			addToCols(kernel.Rows(inDeriv, first, patches.Rows), patches, c.columns[place*c.m.Cols:(place+1)*c.m.Cols])
		}
	}
	return nil
}

// addToCols adds column j of src to column to[j] of dst.
func addToCols(dst, src kernel.Matrix, to []int32) {
	for i := range src.Rows {
		d := kernel.Row(dst, i)
		for j, v := range kernel.Row(src, i) {
			d[to[j]] += v
		}
	}
}
