package tensor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
)

// The ops that move a window over the spatial dimensions of x, which is [N, C, spatial…], in each
// channel. With Ceil, the last window may end behind the padding.
type (
	// PoolOp computes what a window finds: the largest element (MaxPool), the mean (AveragePool), or
	// the sum (SumPool). Padding is left out, except from the number of elements that
	// array.PoolPaddedMean divides by.
	PoolOp = poolOp
	// PoolPlacesOp computes the places of the elements that a PoolOp of maxima finds: of equal ones
	// the first. They are integers that count through all elements of x in row-major order.
	PoolPlacesOp = poolPlacesOp
	// PoolGradOp computes the gradient of a PoolOp of means or sums: inputs dy, and the spatial sizes
	// of x as integer scalars.
	PoolGradOp = poolGradOp
)

type (
	poolOp struct {
		Window array.Window
		Ceil   bool
		Kind   array.Pooling
	}
	poolPlacesOp struct {
		noGradient
		Window array.Window
		Ceil   bool
	}
	poolGradOp poolOp
)

// MaxPool returns the largest element of each window.
func MaxPool(x *fgraph.Variable, sizes []int, slide Slide, ceil bool) *fgraph.Variable {
	return poolOf("max_pool", x, sizes, slide, ceil, array.PoolMax)
}

// MaxPoolPlaces returns the places of the elements that MaxPool returns, as [PoolPlacesOp] has them.
func MaxPoolPlaces(x *fgraph.Variable, sizes []int, slide Slide, ceil bool) *fgraph.Variable {
	w := slide.window("max_pool", TypeOf(x).NDim()-2, sizes)
	return MustApply(PoolPlacesOp{Window: w, Ceil: ceil}, x)
}

// AveragePool returns the mean of each window: of its elements in x, or with padded of all, also
// those in the padding, which are 0.
func AveragePool(x *fgraph.Variable, sizes []int, slide Slide, ceil, padded bool) *fgraph.Variable {
	kind := array.PoolMean
	if padded {
		kind = array.PoolPaddedMean
	}
	x = Cast(x, TypeOf(x).DType().Float())
	return poolOf("average_pool", x, sizes, slide, ceil, kind)
}

// SumPool returns the sum of each window.
func SumPool(x *fgraph.Variable, sizes []int, slide Slide, ceil bool) *fgraph.Variable {
	return poolOf("sum_pool", Cast(x, TypeOf(x).DType().Float()), sizes, slide, ceil, array.PoolSum)
}

// LpPool returns the p-norm of each window: the p-th root of the sum of |x|^p.
func LpPool(x *fgraph.Variable, p int, sizes []int, slide Slide, ceil bool) *fgraph.Variable {
	if p < 1 {
		fail("lp_pool", "the exponent %d", p)
	}
	powers := Abs(Cast(x, TypeOf(x).DType().Float()))
	if p == 1 {
		return poolOf("lp_pool", powers, sizes, slide, ceil, array.PoolSum)
	}
	powers = Pow(powers, Number(float64(p), powers))
	sums := poolOf("lp_pool", powers, sizes, slide, ceil, array.PoolSum)
	if p == 2 {
		return Sqrt(sums)
	}
	return Pow(sums, Number(1/float64(p), sums))
}

func poolOf(name string, x *fgraph.Variable, sizes []int, slide Slide, ceil bool, kind array.Pooling) *fgraph.Variable {
	w := slide.window(name, TypeOf(x).NDim()-2, sizes)
	return MustApply(PoolOp{Window: w, Ceil: ceil, Kind: kind}, x)
}

func (op poolOp) String() string { return poolText(poolName(op.Kind), op.Window, op.Ceil, op.Kind) }
func (op poolPlacesOp) String() string {
	return poolText("MaxPoolPlaces", op.Window, op.Ceil, array.PoolMax)
}
func (op poolGradOp) String() string {
	return poolText(poolName(op.Kind)+"Grad", op.Window, op.Ceil, op.Kind)
}

func poolName(kind array.Pooling) string {
	switch kind {
	case array.PoolMax:
		return "MaxPool"
	case array.PoolSum:
		return "SumPool"
	}
	return "AveragePool"
}

// poolText returns for example MaxPool{3,3}{strides=2,2}{pads=1,1,1,1}{ceil}.
func poolText(name string, w array.Window, ceil bool, kind array.Pooling) string {
	sizes := lists.Map(w.Size[:min(max(w.Dims, 0), array.MaxSpatial)], strconv.Itoa)
	text := name + "{" + strings.Join(sizes, ",") + "}" + windowText(w)
	if ceil {
		text += "{ceil}"
	}
	if kind == array.PoolPaddedMean {
		text += "{count_include_pad}"
	}
	return text
}

// inferPool returns the type of the result of a pool of x.
func inferPool(op fgraph.Op, w array.Window, ceil bool, kind array.Pooling, in []*fgraph.Variable) (s spec, err error) {
	if err := checkWindow(op, w, true); err != nil {
		return s, err
	}
	if len(in) != 1 {
		return s, wrongCount(op, in, 1)
	}
	s = TypeOf(in[0]).h.Value()
	if int(s.ndim) != w.Dims+2 || s.csr || !s.dtype.IsFloat() && (kind != array.PoolMax || s.dtype != array.Int64) {
		return s, argError(op, 0, "is a %v, not a tensor of numbers with %d dimensions", in[0].Type(), w.Dims+2)
	}
	for d := range w.Dims {
		n := int(s.shape[d+2])
		out, err := slidSize(w, d, n, w.Size[d], ceil)
		if err == nil && out != Unknown {
			err = coveredWindows(w, d, n, out, kind)
		}
		if err != nil {
			return s, argError(op, 0, "is a %v: %v", in[0].Type(), err)
		}
		s.shape[d+2] = staticSize(out)
	}
	return s, nil
}

// coveredWindows checks that no window consists of padding alone, if that has no maximum or mean.
func coveredWindows(w array.Window, d, n, out int, kind array.Pooling) error {
	if kind == array.PoolSum {
		return nil
	}
	// A window that begins in the input needs no look, and those that do are most.
	begin := func(at int) int { return min(max(0, (at+w.Before[d]+w.Stride[d]-1)/w.Stride[d]), out) }
	for _, part := range [][2]int{{0, begin(0)}, {begin(n), out}} {
		for i := part[0]; i < part[1]; i++ {
			if w.Covered(d, n, i, kind == array.PoolPaddedMean) == 0 {
				return fmt.Errorf("window %d of dimension %d, which has size %d, has only padding", i, d+2, n)
			}
		}
	}
	return nil
}

func (op poolOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return inferred(inferPool(op, op.Window, op.Ceil, op.Kind, in))
}

func (op poolPlacesOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	s, err := inferPool(op, op.Window, op.Ceil, array.PoolMax, in)
	if err != nil {
		return nil, err
	}
	s.dtype = array.Int64
	return one(s.intern()), nil
}

func (op poolGradOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if err := checkWindow(op, op.Window, true); err != nil {
		return nil, err
	}
	if op.Kind == array.PoolMax {
		return nil, opError(op, "there is none for maxima")
	}
	if len(in) != 1+op.Window.Dims {
		return nil, wrongCount(op, in, 1+op.Window.Dims)
	}
	y, err := slidArgs(op, 0, in[0], op.Window)
	if err != nil {
		return nil, err
	}
	s, err := sizesOf(op, 1, in)
	if err != nil {
		return nil, err
	}
	for d, n := range s.shape[:s.ndim] {
		size, err := slidSize(op.Window, d, int(n), op.Window.Size[d], op.Ceil)
		if m := int(y.shape[d+2]); err == nil && size != Unknown && m != Unknown && m != size {
			err = fmt.Errorf("for it dimension %d of the first one has size %d, not %d", d+2, size, m)
		}
		if err != nil {
			return nil, argError(op, 1+d, "is the size %d: %v", n, err)
		}
		y.shape[d+2] = n
	}
	return one(y.intern()), nil
}

// fitPool checks the sizes of a pool when it runs, and appends those of the result to shape.
func fitPool(op fgraph.Op, shape []int, w array.Window, ceil bool, kind array.Pooling, spatial []int) ([]int, error) {
	for d, n := range spatial {
		if n > 1<<40 {
			return nil, fmt.Errorf("%w: %v: size %d of dimension %d", ErrShape, op, n, d+2)
		}
		out, err := slidSize(w, d, n, w.Size[d], ceil)
		if err == nil {
			err = coveredWindows(w, d, n, out, kind)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %v: %w", ErrShape, op, err)
		}
		shape = append(shape, out)
	}
	return shape, nil
}

func (op poolOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		x := in[0].Shape()
		y, err := fitPool(op, append(buf[:0], x[:2]...), op.Window, op.Ceil, op.Kind, x[2:])
		if err != nil {
			return err
		}
		if err := ws.New(out[0], in[0].DType(), y...); err != nil {
			return err
		}
		return ws.Pool(out[0], in[0], op.Window, op.Kind)
	}, nil
}

func (op poolPlacesOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		x := in[0].Shape()
		y, err := fitPool(op, append(buf[:0], x[:2]...), op.Window, op.Ceil, array.PoolMax, x[2:])
		if err != nil {
			return err
		}
		if err := ws.New(out[0], array.Int64, y...); err != nil {
			return err
		}
		return ws.PoolPlaces(out[0], in[0], op.Window)
	}, nil
}

func (op poolGradOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf, sizes [array.MaxDims]int
		y := in[0].Shape()
		spatial, err := readSizes(op, &sizes, in[1:])
		if err != nil {
			return err
		}
		want, err := fitPool(op, append(buf[:0], y[:2]...), op.Window, op.Ceil, op.Kind, spatial)
		if err != nil {
			return err
		}
		for d, n := range want {
			if n != y[d] {
				return fmt.Errorf("%w: %v: dimension %d has size %d where windows on %d elements make %d", ErrShape, op, d, y[d], spatial[d-2], n)
			}
		}
		var shape [array.MaxDims]int
		if err := ws.New(out[0], in[0].DType(), append(append(shape[:0], y[:2]...), spatial...)...); err != nil {
			return err
		}
		return ws.PoolGrad(out[0], in[0], op.Window, op.Kind)
	}, nil
}

// pooledShape returns the shape of a pool of x.
func pooledShape(a *fgraph.Apply, s *Shapes, w array.Window, ceil bool) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	dims := []*fgraph.Variable{s.Dim(x, 0), s.Dim(x, 1)}
	for d := range w.Dims {
		dims = append(dims, slidDim(s, w, d, s.Dim(x, d+2), s.size(w.Size[d]), ceil))
	}
	return [][]*fgraph.Variable{dims}
}

func (op poolOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return pooledShape(a, s, op.Window, op.Ceil)
}

func (op poolPlacesOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	return pooledShape(a, s, op.Window, op.Ceil)
}

func (op poolGradOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	y := a.Inputs()[0]
	return [][]*fgraph.Variable{append([]*fgraph.Variable{s.Dim(y, 0), s.Dim(y, 1)}, a.Inputs()[1:]...)}
}

// Grad gives the gradient of a maximum to the first element that attains it.
func (op poolOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, g := a.Inputs()[0], out[0]
	if op.Kind != array.PoolMax {
		return []*fgraph.Variable{MustApply(PoolGradOp(op), append([]*fgraph.Variable{g}, spatialSizes(x)...)...)}
	}
	places := MustApply(PoolPlacesOp{Window: op.Window, Ceil: op.Ceil}, x)
	// Added, because windows overlap: one element may be the largest of several.
	flat := IncTake(ZerosLike(Flatten(x, 1)), Flatten(g, 1), Flatten(places, 1))
	return []*fgraph.Variable{Reshape(flat, dimSizes(x)...)}
}

func (op poolGradOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	return gradients(a, MustApply(PoolOp(op), out[0]))
}

func (op poolOp) Cost(a *fgraph.Apply) float64       { return poolCost(a, a.Out(), op.Window) }
func (op poolPlacesOp) Cost(a *fgraph.Apply) float64 { return poolCost(a, a.Out(), op.Window) }
func (op poolGradOp) Cost(a *fgraph.Apply) float64   { return poolCost(a, a.Inputs()[0], op.Window) }

// poolCost counts the elements of all windows.
func poolCost(a *fgraph.Apply, y *fgraph.Variable, w array.Window) float64 {
	n := elements(y)
	for _, k := range w.Size[:w.Dims] {
		n *= float64(k)
	}
	return callCost + float64(writeCost*bytes(a.Outputs())) + float64(poolElementCost*n)
}

// poolElementCost is what an element of a window takes, in picoseconds: see directCost.
const poolElementCost = 400.0

// PoolLastOp is PoolOp of floats with channels last: x is [N, spatial…, C].
type PoolLastOp = poolLastOp

type poolLastOp poolOp

func (op poolLastOp) String() string {
	return poolText(poolName(op.Kind)+"Last", op.Window, op.Ceil, op.Kind)
}

// first returns x as PoolOp has it.
func (op poolLastOp) first(x *fgraph.Variable) *fgraph.Variable {
	return DimShuffle(x, ToSecond(op.Window.Dims+2)...)
}

// Infer implements Op.
func (op poolLastOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 {
		return nil, wrongCount(op, in, 1)
	}
	if t := TypeOf(in[0]); t.NDim() != op.Window.Dims+2 || !t.DType().IsFloat() || t.IsCSR() {
		return nil, argError(op, 0, "is a %v, not a tensor of floats with %d dimensions", t, op.Window.Dims+2)
	}
	types, err := PoolOp(op).Infer([]*fgraph.Variable{op.first(in[0])})
	if err != nil {
		return nil, err
	}
	s := types[0].(Type).h.Value()
	last := s
	for i, d := range ToLast(op.Window.Dims + 2) {
		last.shape[i] = s.shape[d]
	}
	return one(last.intern()), nil
}

// Compile implements Op.
func (op poolLastOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		x := in[0].Shape()
		last := len(x) - 1
		y, err := fitPool(op, append(buf[:0], x[0]), op.Window, op.Ceil, op.Kind, x[1:last])
		if err != nil {
			return err
		}
		if err := ws.New(out[0], in[0].DType(), append(y, x[last])...); err != nil {
			return err
		}
		return ws.PoolLast(out[0], in[0], op.Window, op.Kind)
	}, nil
}

// InferShape implements ShapeInferer.
func (op poolLastOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x := a.Inputs()[0]
	dims := []*fgraph.Variable{s.Dim(x, 0)}
	for d := range op.Window.Dims {
		dims = append(dims, slidDim(s, op.Window, d, s.Dim(x, d+1), s.size(op.Window.Size[d]), op.Ceil))
	}
	return [][]*fgraph.Variable{append(dims, s.Dim(x, op.Window.Dims+1))}
}

// Grad implements Differentiable: the gradient is that of PoolOp.
func (op poolLastOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	first, err := Make(PoolOp(op), op.first(a.Inputs()[0]))
	if err != nil {
		return []*fgraph.Variable{nil}
	}
	g := PoolOp(op).Grad(first, []*fgraph.Variable{op.first(out[0])})
	return []*fgraph.Variable{DimShuffle(g[0], ToLast(op.Window.Dims+2)...)}
}

// Cost implements Coster.
func (op poolLastOp) Cost(a *fgraph.Apply) float64 { return poolCost(a, a.Out(), op.Window) }
