package onnxpass

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
)

// padFunctions are about a Pad in front of a convolution or a pool.
var padFunctions = []pattern.Function{
	pattern.NewGuard("zero_pads({m}, n)", 2, "the Pad n adds zeros, and only behind the dimension of channels", func(a pattern.Args) bool {
		_, value, ok := spatialPads(a.Vars[0])
		return ok && value == 0
	}),
	pattern.NewGuard("lowest_pads({m}, n)", 2, "the Pad n adds -∞, and only behind the dimension of channels", func(a pattern.Args) bool {
		_, value, ok := spatialPads(a.Vars[0])
		return ok && math.IsInf(value, -1)
	}),
	pattern.NewGuard("explicit_pads({a})", 1, "the padding of a convolution or a pool does not depend on sizes", func(a pattern.Args) bool {
		mode := parse(a.Params[0]).Text("auto_pad", "NOTSET")
		return mode == "NOTSET" || mode == "VALID" || mode == ""
	}),
	pattern.NewGuardOfEach("image_of_size(x)", 1, "all dimensions of x behind that of channels are known, and none is 0", func(x *fgraph.Variable) bool {
		dims, ranked := ir.TypeOf(x).Shape()
		return ranked && len(dims) > 2 && !slices.ContainsFunc(dims[2:], func(d ir.Dim) bool {
			n, known := d.Number()
			return !known || n == 0
		})
	}),
	pattern.NewGuard("within_kernel({a}, n)", 2, "with the Pad n as well, every window of a pool has an element of its input in it, and none ends elsewhere", withinKernel),
	pattern.NewGuard("counts_pads({a}, n)", 2, "a mean divides by the size of the kernel, and with the Pad n as well each of its windows has an element of its input in it", func(a pattern.Args) bool {
		op := parse(a.Params[0])
		none := !slices.ContainsFunc(op.Ints("pads"), func(p int64) bool { return p != 0 })
		return (none || op.Int("count_include_pad", 0) != 0) && withinKernel(a)
	}),
	attributesFunction("padded({a}, n)", "the attributes with the padding of the Pad n as well", padded),
	attributesFunction("padded_and_counted({a}, n)", "the attributes with the padding of the Pad n as well, which counts in a mean", func(a pattern.Args, list attributeList) attributeList {
		return padded(a, list).with(ir.Int("count_include_pad", 1))
	}),
}

// spatialPads returns what a Pad adds in front of and behind each dimension after the second: first all
// in front. ok is false if that is not known, negative, or it adds to the first two as well.
func spatialPads(n *fgraph.Variable) (pads []int64, value float64, ok bool) {
	if !isOp(n, "Pad") || opOf(n).Text("mode", "constant") != "constant" {
		return nil, 0, false
	}
	in := n.Owner().Inputs()
	rank := ir.TypeOf(in[0]).Rank()
	list, known := ir.NumbersOf(in[1])
	if rank < 3 || !known || len(in) > 4 {
		return nil, 0, false
	}
	if len(in) > 2 && !ir.IsOmitted(in[2]) {
		if value, ok = ir.NumberOf(in[2]); !ok {
			return nil, 0, false
		}
	}
	// Axes that the Pad does not name get nothing.
	all := make([]int64, 2*rank)
	axes := lists.Range[int64](rank)
	if len(in) == 4 && !ir.IsOmitted(in[3]) {
		if axes, known = ir.NumbersOf(in[3]); !known {
			return nil, 0, false
		}
	}
	if len(list) != 2*len(axes) {
		return nil, 0, false
	}
	for i, axis := range axes {
		k, in := normalized(axis, rank)
		if !in {
			return nil, 0, false
		}
		all[k], all[rank+k] = list[i], list[len(axes)+i]
	}
	if slices.ContainsFunc(all, func(p int64) bool { return p < 0 }) || all[0] != 0 || all[1] != 0 || all[rank] != 0 || all[rank+1] != 0 {
		return nil, 0, false
	}
	return slices.Concat(all[2:rank], all[rank+2:]), value, true
}

// sumOfPads returns the padding of a convolution or a pool and of a Pad in front of it.
func sumOfPads(op *ir.Op, n *fgraph.Variable) []int64 {
	pads, _, _ := spatialPads(n)
	sum := slices.Clone(pads)
	for i, p := range op.Ints("pads") {
		if i < len(sum) {
			sum[i] += p
		}
	}
	return sum
}

func padded(a pattern.Args, list attributeList) attributeList {
	return list.without("auto_pad").with(ir.Ints("pads", sumOfPads(&ir.Op{Attributes: list}, a.Vars[0])...))
}

// withinKernel reports whether padding is below the sizes of the kernel, as runtimes ask for. Windows
// that are dilated, or rounded up in number, may see padding alone all the same.
func withinKernel(a pattern.Args) bool {
	op := parse(a.Params[0])
	kernel := op.Ints("kernel_shape")
	if op.Int("ceil_mode", 0) != 0 || slices.ContainsFunc(op.Ints("dilations"), func(d int64) bool { return d != 1 }) {
		return false
	}
	sum := sumOfPads(op, a.Vars[0])
	for i, p := range sum {
		if len(sum) != 2*len(kernel) || p >= kernel[i%len(kernel)] {
			return false
		}
	}
	return true
}
