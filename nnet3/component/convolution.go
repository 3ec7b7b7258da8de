package component

import (
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/kernel"
)

// convolutionComponent is the older convolution over a three-dimensional input within a frame:
// filters of filtX×filtY×inputZ move over x and y, without padding. The output has, for each step
// in x, then in y, a column per filter.
type convolutionComponent struct {
	training
	affine                             // a row of linear parameters is a filter, ordered x, y, z
	inputX, inputY, inputZ             int
	filtX, filtY, filtXStep, filtYStep int
	order                              vectorization
	columns                            []int32 // of the input, for each patch in turn
}

// vectorization is the order of a three-dimensional input in a row. The values are those in files.
type vectorization int

const (
	orderYZX vectorization = iota // y changes fastest, then z, then x
	orderZYX                      // z changes fastest, then y, then x
)

func (c *convolutionComponent) Type() string   { return "ConvolutionComponent" }
func (c *convolutionComponent) InputDim() int  { return c.inputX * c.inputY * c.inputZ }
func (c *convolutionComponent) OutputDim() int { return c.steps() * c.m.Rows }

// steps returns the number of places of a filter, 0 for sizes that make no sense.
func (c *convolutionComponent) steps() int {
	x, ok := places(c.inputX, c.filtX, c.filtXStep)
	y, ok2 := places(c.inputY, c.filtY, c.filtYStep)
	if !ok || !ok2 {
		return 0
	}
	return x * y
}

// places returns the number of places of a window that moves over size elements in steps. The last
// place must end with the last element.
func places(size, window, step int) (int, bool) {
	if size <= 0 || window <= 0 || step <= 0 || window > size || (size-window)%step != 0 {
		return 0, false
	}
	return 1 + (size-window)/step, true
}

func (c *convolutionComponent) Properties() Properties {
	return Simple | Updatable | BackpropNeedsInput | BackpropAdds | PropagateAdds
}

func (c *convolutionComponent) Params() []Param {
	c.restore()
	return []Param{{"filter-params", c.m}, vectorParam("bias-params", c.bias)}
}

// Init reads input-x-dim, input-y-dim, input-z-dim, filt-x-dim, filt-y-dim, filt-x-step,
// filt-y-step, input-vectorization-order (zyx, yzx); and matrix, a file with the bias as last
// column, or num-filters, param-stddev, bias-stddev.
func (c *convolutionComponent) Init(cfg *ConfigLine) {
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
			cfg.Fail("input-vectorization-order=%s is neither zyx nor yzx", fileio.Excerpt(order, 0))
		}
	}
	if problem := c.problem(); problem != "" {
		cfg.check(problem)
		return
	}
	filter := c.filtX * c.filtY * c.inputZ
	if m, ok := cfg.matrix("matrix"); ok {
		c.fromFile(cfg, m)
		c.changed()
	} else {
		c.random(cfg, filter, cfg.dim("num-filters"), 0, 1)
	}
	if c.m.Cols != filter || !atMost(maxDim, c.steps(), c.m.Rows) {
		cfg.Fail("%d filters of %d parameters do not fit filters of %d", c.m.Rows, c.m.Cols, filter)
	}
	if cfg.makeRoom(c.steps(), filter) {
		c.mapColumns()
	}
}

// atMost reports whether the product of the factors, none of them negative, is at most limit.
func atMost(limit int, factors ...int) bool {
	n := 1
	for _, f := range factors {
		if f < 0 || f > 0 && n > limit/f {
			return false
		}
		n *= f
	}
	return true
}

func (c *convolutionComponent) problem() string {
	if atMost(maxDim, c.inputX, c.inputY, c.inputZ) && c.inputZ > 0 && c.steps() > 0 &&
		atMost(maxDim, c.steps(), c.filtX, c.filtY, c.inputZ) {
		return ""
	}
	return "the filters do not cover the input exactly, or it is too large"
}

// mapColumns finds the input column of each element of each patch.
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

// column returns the place of element (x, y, z) in a row.
func (v vectorization) column(x, y, z, dimY, dimZ int) int {
	if v == orderZYX {
		return (x*dimY+y)*dimZ + z
	}
	return (x*dimZ+z)*dimY + y
}

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
	f.check(c.problem())
	f.weights("<FilterParams>", &c.weights)
	f.Vector("<BiasParams>", &c.bias)
	f.Check(c.m.Rows > 0 && c.m.Cols == c.filtX*c.filtY*c.inputZ && len(c.bias) == c.m.Rows && atMost(maxDim, c.steps(), c.m.Rows),
		"filter parameters of %d×%d and %d biases do not fit", c.m.Rows, c.m.Cols, len(c.bias))
	Since(f, f.Bool, "<IsGradient>", &c.gradient, c.gradient)
	f.Check(atMost(maxDim, c.steps(), c.m.Cols), "%d patches of %d are too many", c.steps(), c.m.Cols)
	f.Claim(4 * c.steps() * c.m.Cols)
	if f.Reading() {
		c.mapColumns()
	}
}

// patchRows is the number of rows that are spread out into patches at a time.
const patchRows = 32

// eachPatch calls f, a few rows at a time, with the number of the first row, the number of a place,
// and the patches of the rows at that place.
func (c *convolutionComponent) eachPatch(w *Workspace, in kernel.Matrix, f func(first, place int, patches kernel.Matrix)) {
	defer w.Release(w.Mark())
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

// Propagate adds the results of the filters to the output.
func (c *convolutionComponent) Propagate(w *Workspace, pass ForwardPass, in, out kernel.Matrix) (Memo, error) {
	c.eachPatch(w, in, func(first, place int, patches kernel.Matrix) {
		y := kernel.View(out, first, patches.Rows, place*c.m.Rows, c.m.Rows)
		c.mul(patches, kernel.Epilogue{Accumulate: true, Bias: c.bias, Threads: w.Threads}, y)
	})
	return nil, nil
}

// Backprop computes the derivatives of the input and of the filters.
func (c *convolutionComponent) Backprop(w *Workspace, pass BackwardPass) error {
	if u, ok := pass.ToUpdate.(*convolutionComponent); ok {
		c.eachPatch(w, pass.InValue, func(first, place int, patches kernel.Matrix) {
			u.update(w, u.learningRate, patches, kernel.View(pass.OutDeriv, first, patches.Rows, place*c.m.Rows, c.m.Rows))
		})
	}
	if !wanted(pass.InDeriv) {
		return nil
	}
	defer w.Release(w.Mark())
	buffer := w.Matrix(min(patchRows, pass.OutDeriv.Rows), c.m.Cols)
	for first := 0; first < pass.OutDeriv.Rows; first += patchRows {
		patches := kernel.Rows(buffer, 0, min(patchRows, pass.OutDeriv.Rows-first))
		for place := range c.steps() {
			w.Threads.MulNN(1, kernel.View(pass.OutDeriv, first, patches.Rows, place*c.m.Rows, c.m.Rows), c.m, 0, patches)
			addToCols(kernel.Rows(pass.InDeriv, first, patches.Rows), patches, c.columns[place*c.m.Cols:(place+1)*c.m.Cols])
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
