package expr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// windowOps makes the ops that move a window, of which the parameters are those that the ops print.
var windowOps = map[string]maker{
	"Conv":          convOp[tensor.ConvOp],
	"ConvLast":      convOp[tensor.ConvLastOp],
	"ConvTranspose": convOp[tensor.ConvTransposeOp],
	"ConvWeights":   convOp[tensor.ConvWeightsOp],

	"ConvLastInteger": func(params []string) (tensor.Op, bool) {
		float := len(params) > 0 && params[0] == "float32"
		if float {
			params = params[1:]
		}
		op, ok := convOp[tensor.ConvLastOp](params)
		if !ok || op.(tensor.ConvLastOp).Groups != 1 {
			return nil, false
		}
		return tensor.ConvLastIntegerOp{Window: op.(tensor.ConvLastOp).Window, Float: float}, true
	},

	"Winograd": func(params []string) (tensor.Op, bool) {
		if len(params) == 0 {
			return nil, false
		}
		tile, err := strconv.Atoi(params[0])
		w, rest, ok := parseWindow(2, params[1:])
		return tensor.WinogradOp{Window: w, Tile: tile}, err == nil && ok && len(rest) == 0
	},

	"ResizePlaces": func(params []string) (tensor.Op, bool) {
		if len(params) < 1 || len(params) > 2 {
			return nil, false
		}
		op := tensor.ResizePlacesOp{Coordinates: params[0]}
		if len(params) == 2 {
			op.Nearest = params[1]
		}
		return op, op.Valid() && (len(params) == 1 || params[1] != "")
	},

	"Interpolate": onAxis(func(axis int8) tensor.Op { return tensor.InterpolateOp{Axis: axis} }),

	"MaxPool": poolOp[tensor.PoolOp](array.PoolMax), "MaxPoolLast": poolOp[tensor.PoolLastOp](array.PoolMax),
	"AveragePool": poolOp[tensor.PoolOp](array.PoolMean), "AveragePoolLast": poolOp[tensor.PoolLastOp](array.PoolMean), "AveragePoolGrad": poolOp[tensor.PoolGradOp](array.PoolMean),
	"SumPool": poolOp[tensor.PoolOp](array.PoolSum), "SumPoolLast": poolOp[tensor.PoolLastOp](array.PoolSum), "SumPoolGrad": poolOp[tensor.PoolGradOp](array.PoolSum),
	"MaxPoolPlaces": func(params []string) (tensor.Op, bool) {
		w, ceil, rest, ok := parsePool(params)
		return tensor.PoolPlacesOp{Window: w, Ceil: ceil}, ok && len(rest) == 0
	},
}

// convOp makes an op with a number of spatial dimensions, a window and groups.
func convOp[O interface {
	tensor.Op
	~struct {
		Window array.Window
		Groups int
	}
}](params []string) (tensor.Op, bool) {
	if len(params) == 0 {
		return nil, false
	}
	dims, err := strconv.Atoi(params[0])
	if err != nil {
		return nil, false
	}
	w, rest, ok := parseWindow(dims, params[1:])
	list, rest, ok := namedIntegers(rest, "groups", 1, ok)
	if list == nil {
		list = []int{1}
	}
	return O(tensor.ConvOp{Window: w, Groups: list[0]}), ok && len(rest) == 0 && list[0] > 0
}

// poolOp returns the maker of an op with the sizes of a window, and words at the end.
func poolOp[O interface {
	tensor.Op
	~struct {
		Window array.Window
		Ceil   bool
		Kind   array.Pooling
	}
}](kind array.Pooling) maker {
	return func(params []string) (tensor.Op, bool) {
		w, ceil, rest, ok := parsePool(params)
		kind := kind
		if len(rest) > 0 && rest[0] == "count_include_pad" && kind == array.PoolMean {
			kind, rest = array.PoolPaddedMean, rest[1:]
		}
		return O(tensor.PoolOp{Window: w, Ceil: ceil, Kind: kind}), ok && len(rest) == 0
	}
}

// parsePool reads the window of a pool, and whether the last one may end behind the padding, and returns the parameters
// behind that.
func parsePool(params []string) (w array.Window, ceil bool, rest []string, ok bool) {
	if len(params) == 0 {
		return w, false, nil, false
	}
	sizes := strings.Split(params[0], ",")
	w, rest, ok = parseWindow(len(sizes), params[1:])
	sized, ok2 := offsets(params[:1], len(sizes))
	copy(w.Size[:], sized)
	if ceil = len(rest) > 0 && rest[0] == "ceil"; ceil {
		rest = rest[1:]
	}
	return w, ceil, rest, ok && ok2
}

// parseWindow reads the window of dims dimensions, and returns the parameters behind it.
func parseWindow(dims int, params []string) (w array.Window, rest []string, ok bool) {
	if dims < 1 || dims > array.MaxSpatial {
		return w, nil, false
	}
	w.Dims, ok = dims, true
	for d := range dims {
		w.Stride[d], w.Dilation[d] = 1, 1
	}
	// In the order in which ops print them. Each may be missing.
	list, params, ok := namedIntegers(params, "strides", dims, ok)
	copy(w.Stride[:], list)
	list, params, ok = namedIntegers(params, "dilations", dims, ok)
	copy(w.Dilation[:], list)
	list, params, ok = namedIntegers(params, "pads", 2*dims, ok)
	if len(list) > 0 {
		copy(w.Before[:], list[:dims])
		copy(w.After[:], list[dims:])
	}
	return w, params, ok
}

// namedIntegers reads a list of n numbers such as "pads=1,1", if it is the first parameter, and
// returns the other parameters. The result is false if ok is, or if the list is wrong.
func namedIntegers(params []string, name string, n int, ok bool) ([]int, []string, bool) {
	if len(params) == 0 {
		return nil, nil, ok
	}
	text, named := strings.CutPrefix(params[0], name+"=")
	if !named {
		return nil, params, ok
	}
	list, good := offsets([]string{text}, n)
	return list, params[1:], ok && good
}

// windows holds the functions of convolutions, pools and resampling, with the arguments that ONNX has
// for the operators. A number that is given for a list is used for all spatial dimensions.
var windows = map[string]function{
	"conv": conv, "conv_transpose": convTranspose, "resize": resize,
	"max_pool":        pooled(tensor.MaxPool),
	"max_pool_places": pooled(tensor.MaxPoolPlaces),
	"sum_pool":        pooled(tensor.SumPool),
	"average_pool": func(c *call) *fgraph.Variable {
		padded := c.flag(-1, "count_include_pad", false)
		return pooled(func(x *fgraph.Variable, sizes []int, s tensor.Slide, ceil bool) *fgraph.Variable {
			return tensor.AveragePool(x, sizes, s, ceil, padded)
		})(c)
	},
	"lp_pool": func(c *call) *fgraph.Variable {
		p := c.integer(-1, "p", 2)
		return pooled(func(x *fgraph.Variable, sizes []int, s tensor.Slide, ceil bool) *fgraph.Variable {
			return tensor.LpPool(x, p, sizes, s, ceil)
		})(c)
	},
}

// perDimension returns an optional argument that is a list of n numbers, or one number for all.
func (c *call) perDimension(name string, n int) []int {
	x, ok := c.arg(-1, name)
	if !ok || x.kind == kindNone {
		return nil
	}
	list := x.integers(c.name)
	if x.kind != kindList && n > 0 {
		list = slices.Repeat(list, n)
	}
	return list
}

// slide returns the arguments of a window for x. The pads are those at the beginning of all
// dimensions, and then those at the end.
func (c *call) slide(x *fgraph.Variable) tensor.Slide {
	n := tensor.TypeOf(x).NDim() - 2
	s := tensor.Slide{Strides: c.perDimension("strides", n), Dilations: c.perDimension("dilations", n)}
	if pads := c.perDimension("pads", 2*n); len(pads) > 0 {
		if len(pads) != 2*n {
			fail(c.name, "%d pads for %d spatial dimensions, two for each are expected", len(pads), n)
		}
		s.Before, s.After = pads[:n], pads[n:]
	}
	return s
}

// factors returns input, weights, and the bias or nil.
func (c *call) factors() (x, weights, bias *fgraph.Variable) {
	c.count(3)
	if b, ok := c.arg(2, "bias"); ok && b.kind != kindNone {
		bias = b.tensor(c.name)
	}
	return c.tensor(0, "x"), c.tensor(1, "weights"), bias
}

func conv(c *call) *fgraph.Variable {
	x, w, b := c.factors()
	return tensor.Conv(x, w, b, c.slide(x), c.groups())
}

func (c *call) groups() int {
	groups := c.integer(-1, "groups", 1)
	if groups < 1 {
		fail(c.name, "%d groups", groups)
	}
	return groups
}

func convTranspose(c *call) *fgraph.Variable {
	x, w, b := c.factors()
	output := c.perDimension("output_padding", tensor.TypeOf(x).NDim()-2)
	return tensor.ConvTranspose(x, w, b, c.slide(x), output, c.groups())
}

// pooled returns the function of a pool.
func pooled(f func(x *fgraph.Variable, sizes []int, s tensor.Slide, ceil bool) *fgraph.Variable) function {
	return func(c *call) *fgraph.Variable {
		c.count(2)
		x := c.tensor(0, "x")
		k := c.need(1, "kernel_shape")
		sizes := k.integers(c.name)
		if n := tensor.TypeOf(x).NDim() - 2; k.kind != kindList && n > 0 {
			sizes = slices.Repeat(sizes, n)
		}
		return f(x, sizes, c.slide(x), c.flag(-1, "ceil_mode", false))
	}
}

// resize takes sizes or scales, one for each dimension.
func resize(c *call) *fgraph.Variable {
	c.count(1)
	x := c.tensor(0, "x")
	o := tensor.ResizeOptions{
		Coordinates: c.text(-1, "coordinates", "half_pixel"),
		Nearest:     c.text(-1, "nearest_mode", "round_prefer_floor"),
	}
	switch mode := c.text(-1, "mode", "nearest"); mode {
	case "linear":
		o.Linear = true
	case "nearest":
	default:
		fail(c.name, "there is no mode %q; there are nearest and linear", mode)
	}
	list, ok := c.arg(-1, "sizes")
	scales, ok2 := c.arg(-1, "scales")
	if ok == ok2 {
		fail(c.name, "either sizes or scales are expected")
	}
	if ok {
		return tensor.ResizeTo(x, o, sizes(c.name, []value{list})...)
	}
	if scales.kind != kindList {
		fail(c.name, "scales are a list of numbers")
	}
	numbers := make([]float64, len(scales.list))
	for i, v := range scales.list {
		if v.kind != kindNumber {
			fail(c.name, "scales are a list of numbers")
		}
		numbers[i] = v.num.f
	}
	return tensor.ResizeBy(x, o, numbers...)
}
