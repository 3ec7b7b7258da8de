package tensor

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// The ops of convolutions. The input x is [N, C, spatial…], the weights are [M, C/groups, window…],
// and the result y is [N, M, positions…]. With Groups, the channels of x and y are divided into as
// many groups, and each channel of y is computed from the group of x that corresponds. The sizes of
// Window are 0, since the weights have them. Each op is linear in both of its factors, and the
// gradient of each consists of the other two.
type (
	// ConvOp computes y, the cross-correlation: inputs x, weights.
	ConvOp = convOp
	// ConvTransposeOp computes the gradient of ConvOp with respect to x: inputs y, weights, and the
	// spatial sizes of x as integer scalars.
	ConvTransposeOp = convTransposeOp
	// ConvWeightsOp computes the gradient of ConvOp with respect to the weights: inputs x, y, and
	// the sizes of the window as integer scalars.
	ConvWeightsOp = convWeightsOp
)

type (
	convOp struct {
		Window array.Window
		Groups int
	}
	convTransposeOp convOp
	convWeightsOp   convOp
)

// Conv returns the convolution of x, [N, C, spatial…] with one to three spatial dimensions, as ONNX
// and networks understand it: the cross-correlation with the weights, [M, C/groups, window…]. The
// bias, a number for each of M channels, may be nil, and 0 groups mean 1.
func Conv(x, weights, bias *fgraph.Variable, slide Slide, groups int) *fgraph.Variable {
	const name = "conv"
	x, weights, w := convArgs(name, x, weights, slide)
	return addBias(name, MustApply(ConvOp{Window: w, Groups: max(groups, 1)}, x, weights), bias)
}

// ConvTranspose returns what Conv is the transpose of: each element of x, [N, M, spatial…], adds a
// multiple of the weights, [M, C/groups, window…], to the place in the result to which a window of
// Conv belongs. Padding is cut off. The result is as small as it can be, and larger by outputPadding
// at the end of each dimension, unless that is empty.
func ConvTranspose(x, weights, bias *fgraph.Variable, slide Slide, outputPadding []int, groups int) *fgraph.Variable {
	const name = "conv_transpose"
	x, weights, w := convArgs(name, x, weights, slide)
	if len(outputPadding) != 0 && len(outputPadding) != w.Dims {
		fail(name, "%d numbers of output padding for %d spatial dimensions", len(outputPadding), w.Dims)
	}
	// More at the end is less padding that is cut off there.
	for d, n := range outputPadding {
		if n < 0 || n > maxWindow {
			fail(name, "output padding of %d", n)
		}
		w.After[d] -= n
	}
	op := ConvTransposeOp{Window: w, Groups: max(groups, 1)}
	in := []*fgraph.Variable{x, weights}
	for d := range w.Dims {
		// (n-1)·stride + (window-1)·dilation + 1 - padding: the largest distance of two elements that Conv
		// reads for n positions. Padding may be more than that.
		begin := intMap(array.Mul, intMap(array.Sub, sizeOf(x, d+2), Int(1)), Int(w.Stride[d]))
		window := intMap(array.Mul, intMap(array.Sub, sizeOf(weights, d+2), Int(1)), Int(w.Dilation[d]))
		size := intMap(array.Add, intMap(array.Add, begin, window), Int(1-w.Before[d]-w.After[d]))
		in = append(in, intMap(array.Maximum, size, Int(0)))
	}
	return addBias(name, MustApply(op, in...), bias)
}

// convArgs gives both factors of a convolution one type of floats.
func convArgs(name string, x, weights *fgraph.Variable, slide Slide) (_, _ *fgraph.Variable, w array.Window) {
	n := TypeOf(x).NDim()
	if n < 3 || n > 2+array.MaxSpatial || TypeOf(weights).NDim() != n {
		fail(name, "a %v with weights that are a %v; batch, channels and 1 to %d spatial dimensions are expected", x.Type(), weights.Type(), array.MaxSpatial)
	}
	dtype := array.Upcast(TypeOf(x).DType(), TypeOf(weights).DType()).Float()
	return Cast(x, dtype), Cast(weights, dtype), slide.window(name, n-2, nil)
}

// addBias adds a number to each channel.
func addBias(name string, y, bias *fgraph.Variable) *fgraph.Variable {
	if bias == nil {
		return y
	}
	b := TypeOf(bias)
	if n := TypeOf(y).Dim(1); b.NDim() != 1 || n != Unknown && b.Dim(0) != Unknown && b.Dim(0) != n {
		fail(name, "a bias that is a %v for the channels of a %v", b, y.Type())
	}
	return Add(y, asDim(bias, 1, TypeOf(y).NDim()))
}

func (op convOp) String() string          { return convText("Conv", op.Window, op.Groups) }
func (op convTransposeOp) String() string { return convText("ConvTranspose", op.Window, op.Groups) }
func (op convWeightsOp) String() string   { return convText("ConvWeights", op.Window, op.Groups) }

// convText returns for example Conv{2}{strides=2,2}{pads=1,1,1,1}{groups=4}.
func convText(name string, w array.Window, groups int) string {
	text := fmt.Sprintf("%s{%d}", name, w.Dims) + windowText(w)
	if groups != 1 {
		text += fmt.Sprintf("{groups=%d}", groups)
	}
	return text
}

// checkConv checks the parameters of an op with two factors and sizes, and returns their types.
func checkConv(op fgraph.Op, w array.Window, groups int, in []*fgraph.Variable, sizes int) (a, b, c spec, err error) {
	if err = checkWindow(op, w, false); err != nil {
		return
	}
	if groups < 1 || groups > maxWindow {
		err = opError(op, "%d groups", groups)
		return
	}
	if len(in) != 2+sizes {
		err = wrongCount(op, in, 2+sizes)
		return
	}
	if a, err = slidArgs(op, 0, in[0], w); err != nil {
		return
	}
	if b, err = slidArgs(op, 1, in[1], w); err == nil && a.dtype != b.dtype {
		err = argError(op, 1, "is a %v, whose elements have another type than those of a %v", in[1].Type(), in[0].Type())
	}
	if err == nil && sizes > 0 {
		c, err = sizesOf(op, 2, in)
	}
	return
}

func (op convOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	x, w, _, err := checkConv(op, op.Window, op.Groups, in, 0)
	if err != nil {
		return nil, err
	}
	s := spec{dtype: x.dtype, ndim: x.ndim}
	s.shape[0], s.shape[1] = x.shape[0], w.shape[0]
	if err := checkChannels(op.Groups, int(x.shape[1]), int(w.shape[0]), int(w.shape[1])); err != nil {
		return nil, argError(op, 1, "is a %v: %v", in[1].Type(), err)
	}
	for d := range op.Window.Dims {
		n, err := slidSize(op.Window, d, int(x.shape[d+2]), int(w.shape[d+2]), false)
		if err != nil {
			return nil, argError(op, 0, "is a %v: %v", in[0].Type(), err)
		}
		s.shape[d+2] = staticSize(n)
	}
	return one(s.intern()), nil
}

// checkChannels compares the channels of x and y and those of a group of x; any may be Unknown.
func checkChannels(groups, x, y, group int) error {
	switch {
	case x != Unknown && x%groups != 0:
		return fmt.Errorf("%d channels are not divisible into %d groups", x, groups)
	case y != Unknown && y%groups != 0:
		return fmt.Errorf("%d channels of the result are not divisible into %d groups", y, groups)
	case x != Unknown && group != Unknown && x/groups != group:
		return fmt.Errorf("dimension 1 has size %d, where %d channels in %d groups make %d", group, x, groups, x/groups)
	}
	return nil
}

func (op convTransposeOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	y, w, s, err := checkConv(op, op.Window, op.Groups, in, op.Window.Dims)
	if err != nil {
		return nil, err
	}
	if err := checkChannels(op.Groups, Unknown, int(y.shape[1]), Unknown); err != nil {
		return nil, argError(op, 0, "is a %v: %v", in[0].Type(), err)
	}
	if _, err := agree(op, 1, int(y.shape[1]), int(w.shape[0])); err != nil {
		return nil, err
	}
	out := spec{dtype: y.dtype, ndim: y.ndim}
	out.shape[0], out.shape[1] = y.shape[0], Unknown
	if n := int(w.shape[1]); n != Unknown {
		out.shape[1] = staticSize(n * op.Groups)
	}
	for d, n := range s.shape[:s.ndim] {
		out.shape[d+2] = n
		size, err := slidSize(op.Window, d, int(n), int(w.shape[d+2]), false)
		if err != nil {
			return nil, argError(op, 2+d, "is the size %d: %v", n, err)
		}
		// Several sizes of x have the same number of positions, so the size is an input. Here it has to be one
		// of those.
		if m := int(y.shape[d+2]); size != Unknown && m != Unknown && size != m {
			return nil, argError(op, 2+d, "is the size %d, for which dimension %d of the first one has size %d, not %d", n, d+2, size, m)
		}
	}
	return one(out.intern()), nil
}

func (op convWeightsOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	x, y, s, err := checkConv(op, op.Window, op.Groups, in, op.Window.Dims)
	if err != nil {
		return nil, err
	}
	if err := checkChannels(op.Groups, int(x.shape[1]), int(y.shape[1]), Unknown); err != nil {
		return nil, opError(op, "a %v and a %v: %v", in[0].Type(), in[1].Type(), err)
	}
	if _, err := agree(op, 1, int(x.shape[0]), int(y.shape[0])); err != nil {
		return nil, err
	}
	out := spec{dtype: x.dtype, ndim: x.ndim}
	out.shape[0], out.shape[1] = y.shape[1], Unknown
	if n := int(x.shape[1]); n != Unknown {
		out.shape[1] = staticSize(n / op.Groups)
	}
	for d, n := range s.shape[:s.ndim] {
		if out.shape[d+2] = n; n == 0 {
			return nil, argError(op, 2+d, "is a window of size 0")
		}
		size, err := slidSize(op.Window, d, int(x.shape[d+2]), int(n), false)
		if err != nil {
			return nil, argError(op, 2+d, "is the size %d: %v", n, err)
		}
		if m := int(y.shape[d+2]); size != Unknown && m != Unknown && size != m {
			return nil, argError(op, 1, "is a %v, whose dimension %d should have size %d", in[1].Type(), d+2, size)
		}
	}
	return one(out.intern()), nil
}

// fitConv checks the shapes of the arrays of a convolution when it runs, and returns the window with its
// sizes.
func fitConv(op fgraph.Op, w array.Window, groups int, x, weights, y []int) (array.Window, error) {
	wrong := func(format string, args ...any) (array.Window, error) {
		return w, fmt.Errorf("%w: %v: %s", ErrShape, op, fmt.Sprintf(format, args...))
	}
	// Kernels compute their indexes from these sizes without another look.
	if x[0] != y[0] {
		return wrong("%d and %d items", x[0], y[0])
	}
	if weights[0] != y[1] {
		return wrong("weights of shape %v for %d channels of the result", slices.Clone(weights), y[1])
	}
	if err := checkChannels(groups, x[1], y[1], weights[1]); err != nil {
		return wrong("weights of shape %v: %v", slices.Clone(weights), err)
	}
	for d := range w.Dims {
		n := weights[d+2]
		if n < 1 || n > maxWindow || x[d+2] > 1<<40 {
			return wrong("a window of size %d in dimension %d of size %d", n, d+2, x[d+2])
		}
		w.Size[d] = n
		size, err := slidSize(w, d, x[d+2], n, false)
		if err != nil {
			return wrong("%v", err)
		}
		if size != y[d+2] {
			return wrong("dimension %d has size %d where a window of %d in %d elements makes %d", d+2, y[d+2], n, x[d+2], size)
		}
	}
	return w, nil
}

func (op convOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf [array.MaxDims]int
		x, weights := in[0].Shape(), in[1].Shape()
		y := append(buf[:0], x[0], weights[0])
		w := op.Window
		for d := range w.Dims {
			// fitConv refuses a size out of bounds, but it wants to know y, for which the size has to be sane.
			w.Size[d] = min(max(weights[d+2], 1), maxWindow)
			y = append(y, w.OutputSize(d, x[d+2], false))
		}
		w, err := fitConv(op, w, op.Groups, x, weights, y)
		if err != nil {
			return err
		}
		if err := ws.New(out[0], in[0].DType(), y...); err != nil {
			return err
		}
		return ws.Conv(out[0], in[0], in[1], w, op.Groups)
	}, nil
}

// phaseWeights is the form of weights of phases for strides.
type phaseWeights [array.MaxSpatial]int

func (op convTransposeOp) Compile(a *fgraph.Apply) (Kernel, error) {
	var prepared func(ws *array.Workspace) *array.LastWeights
	if w := ConstantOf(a.Inputs()[1]); w != nil && w.DType() == array.Float32 {
		prepared = preparation.Once(w, phaseWeights(op.Window.Stride), func(ws *array.Workspace) *array.LastWeights { return array.PhaseWeights(w, op.Window, ws.Threads) })
	}
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf, sizes [array.MaxDims]int
		y, weights := in[0].Shape(), in[1].Shape()
		spatial, err := readSizes(op, &sizes, in[2:])
		if err != nil {
			return err
		}
		x := append(append(buf[:0], y[0], weights[1]*op.Groups), spatial...)
		w, err := fitConv(op, op.Window, op.Groups, x, weights, y)
		if err != nil {
			return err
		}
		if err := ws.New(out[0], in[0].DType(), x...); err != nil {
			return err
		}
		return ws.ConvTranspose(out[0], in[0], in[1], prepared, w, op.Groups)
	}, nil
}

func (op convWeightsOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		var buf, sizes [array.MaxDims]int
		x, y := in[0].Shape(), in[1].Shape()
		window, err := readSizes(op, &sizes, in[2:])
		if err != nil {
			return err
		}
		weights := append(append(buf[:0], y[1], x[1]/op.Groups), window...)
		w, err := fitConv(op, op.Window, op.Groups, x, weights, y)
		if err != nil {
			return err
		}
		if err := ws.New(out[0], in[0].DType(), weights...); err != nil {
			return err
		}
		return ws.ConvWeights(out[0], in[0], in[1], w, op.Groups)
	}, nil
}

func (op convOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, w := a.Inputs()[0], a.Inputs()[1]
	dims := []*fgraph.Variable{s.Dim(x, 0), s.Dim(w, 0)}
	for d := range op.Window.Dims {
		dims = append(dims, slidDim(s, op.Window, d, s.Dim(x, d+2), s.Dim(w, d+2), false))
	}
	return [][]*fgraph.Variable{dims}
}

func (op convTransposeOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	y, w := a.Inputs()[0], a.Inputs()[1]
	channels := intMap(array.Mul, s.Dim(w, 1), s.size(op.Groups))
	return [][]*fgraph.Variable{append([]*fgraph.Variable{s.Dim(y, 0), channels}, a.Inputs()[2:]...)}
}

func (op convWeightsOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, y := a.Inputs()[0], a.Inputs()[1]
	channels := intMap(array.IntDiv, s.Dim(x, 1), s.size(op.Groups))
	return [][]*fgraph.Variable{append([]*fgraph.Variable{s.Dim(y, 1), channels}, a.Inputs()[2:]...)}
}

// spatialSizes returns the sizes of x behind batch and channels.
func spatialSizes(x *fgraph.Variable) []*fgraph.Variable { return dimSizes(x)[2:] }

// slidBy applies one of the ops to two factors and to the sizes of like.
func slidBy(op Op, x, y, like *fgraph.Variable) *fgraph.Variable {
	return MustApply(op, append([]*fgraph.Variable{x, y}, spatialSizes(like)...)...)
}

func (op convOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, w, g := a.Inputs()[0], a.Inputs()[1], out[0]
	return []*fgraph.Variable{slidBy(ConvTransposeOp(op), g, w, x), slidBy(ConvWeightsOp(op), x, g, w)}
}

func (op convTransposeOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	y, w, g := a.Inputs()[0], a.Inputs()[1], out[0]
	return gradients(a, MustApply(ConvOp(op), g, w), slidBy(ConvWeightsOp(op), g, y, w))
}

func (op convWeightsOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, y, g := a.Inputs()[0], a.Inputs()[1], out[0]
	return gradients(a, slidBy(ConvTransposeOp(op), y, g, x), MustApply(ConvOp(op), x, g))
}

func (op convOp) Cost(a *fgraph.Apply) float64 { return convCost(a, a.Out(), a.Inputs()[1]) }
func (op convTransposeOp) Cost(a *fgraph.Apply) float64 {
	return convCost(a, a.Inputs()[0], a.Inputs()[1])
}
func (op convWeightsOp) Cost(a *fgraph.Apply) float64 { return convCost(a, a.Inputs()[1], a.Out()) }

// convCost returns the cost of a convolution with result y: that of a product of matrices, and of
// reading an element of the input for each element of a patch, or of summing up directly.
func convCost(a *fgraph.Apply, y, weights *fgraph.Variable) float64 {
	t := TypeOf(y)
	channels := size(weights, 0)
	products := float64(elements(y) * elements(weights) / max(channels, 1))
	each := double
	if t.DType() == array.Float32 {
		each = single
	}
	// No product of matrices: each channel is summed up directly, with weights of its own.
	if TypeOf(weights).Dim(1) == 1 {
		each = directCost
	}
	// A patch is gathered once for all channels of the result.
	gathered := float64(products / max(channels, 1) * float64(t.DType().Size()))
	return callCost + float64(writeCost*bytes(a.Outputs())) + float64(products*each) + float64(readCost*(gathered+bytes(a.Inputs())))
}

// directCost is what a multiplication takes where each channel has its own weights, in picoseconds:
// measured on a processor on which products take 2.6 times as long as those of the other costs
// (2026-11-24), and divided by that.
const directCost = 100.0
