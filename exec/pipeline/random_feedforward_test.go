package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
)

// simplest is one affine.
func (n *network) simplest() {
	in := n.width()
	n.affine(n.input("input", in), in, n.width())
}

// context is one layer over several frames.
func (n *network) context() {
	x := n.input("input", n.width())
	if n.chance(2) {
		n.tdnn(x, n.dim[x], n.width())
	} else {
		d, dim := n.splice(x, 5)
		n.affine(d, dim, n.width())
	}
	if n.chance(3) {
		n.nonlinearity()
	}
}

// simple is some layers, with everything that descriptors do to sums, and perhaps an i-vector.
func (n *network) simple() {
	ivector := ""
	if n.chance(2) {
		ivector = n.input("ivector", n.width())
	}
	n.input("input", n.width())
	for i := range n.between(1, 3) {
		d, dim := n.splice(n.last, 4)
		if i == 0 && ivector != "" {
			d, dim = fmt.Sprintf("Append(%s, ReplaceIndex(ivector, t, 0))", d), dim+n.dim[ivector]
		}
		if n.chance(4) {
			d = fmt.Sprintf("Scale(%g, %s)", [...]float64{-1, 0.5, 2}[n.r.IntN(3)], d)
		}
		out := n.width()
		y := n.affine(d, dim, out)
		switch n.r.IntN(4) {
		case 0:
			n.affine(d, dim, out)
			n.node("NoOp", fmt.Sprintf("Sum(%s, Scale(0.5, %s))", y, n.last), out, "dim=%d", out)
		case 1:
			n.node("NoOp", fmt.Sprintf("Sum(%s, Const(-0.25, %d))", y, out), out, "dim=%d", out)
		}
		n.nonlinearity()
		if n.chance(4) {
			n.output(fmt.Sprintf("output%d", i), n.last)
		}
	}
	n.finish()
}

// finish adds an output layer, sometimes with a softmax.
func (n *network) finish() {
	y := n.affine(n.last, n.dim[n.last], n.width())
	if n.chance(2) {
		y = n.dims([...]string{"LogSoftmax", "Softmax"}[n.r.IntN(2)], "")
	}
	n.output("output", y)
}

// cnn is Kaldi's first convolution and its pooling.
func (n *network) cnn() {
	x, xFilter, xStep, xOut := n.windows(4)
	y, yFilter, yStep, yOut := n.windows(6)
	z, filters := n.between(1, 3), n.units(1, 6)
	n.input("input", x*y*z)
	n.node("Convolution", n.last, xOut*yOut*filters,
		"input-x-dim=%d input-y-dim=%d input-z-dim=%d filt-x-dim=%d filt-y-dim=%d filt-x-step=%d filt-y-step=%d num-filters=%d input-vectorization-order=%s",
		x, y, z, xFilter, yFilter, xStep, yStep, filters, [...]string{"zyx", "yzx"}[n.r.IntN(2)])
	if n.chance(2) {
		n.nonlinearity()
	}
	if !n.chance(3) {
		px, sx, ox := n.pool(xOut)
		py, sy, oy := n.pool(yOut)
		pz, sz, oz := n.pool(filters)
		n.node("Maxpooling", n.last, ox*oy*oz,
			"input-x-dim=%d input-y-dim=%d input-z-dim=%d pool-x-size=%d pool-y-size=%d pool-z-size=%d pool-x-step=%d pool-y-step=%d pool-z-step=%d",
			xOut, yOut, filters, px, py, pz, sx, sy, sz)
	}
	if n.chance(2) {
		n.finish()
	}
}

// windows draws a size that windows of some size cover exactly at some step.
func (n *network) windows(most int) (size, window, step, number int) {
	window, step, number = n.between(1, 4), n.between(1, 2), n.between(1, most)
	step = min(step, window)
	return window + (number-1)*step, window, step, number
}

// pool draws windows that cover a size exactly.
func (n *network) pool(size int) (window, step, number int) {
	window = n.between(1, size)
	step = n.between(1, window)
	for (size-window)%step != 0 {
		step--
	}
	return window, step, (size-window)/step + 1
}

// distribute makes several rows at different x from one, and joins them again.
func (n *network) distribute() {
	blocks, width, out := n.between(2, 4), n.units(1, 12), n.width()
	n.input("input", blocks*width)
	n.node("Distribute", n.last, width, "input-dim=%d output-dim=%d", blocks*width, width)
	y := n.affine(n.last, width, out)
	if n.chance(2) {
		y = n.nonlinearity()
	}
	var terms []string
	for x := range blocks {
		terms = append(terms, fmt.Sprintf("ReplaceIndex(%s, x, %d)", y, x))
	}
	if n.chance(2) {
		n.output("output", appended(terms))
		return
	}
	n.output("output", "Sum("+strings.Join(terms, ", ")+")")
}

// composite is components within one, and layers with a matrix for all blocks or one for each.
func (n *network) composite() {
	repeats, in, middle := n.between(1, 4), n.between(1, 8), n.between(1, 8)
	n.input("input", repeats*in)
	inner := fmt.Sprintf("type=%sComponent input-dim=%d output-dim=%d num-repeats=%d",
		[...]string{"NaturalGradientRepeatedAffine", "RepeatedAffine"}[n.r.IntN(2)], repeats*in, repeats*middle, repeats)
	parts := []string{inner}
	if n.chance(2) {
		parts = append(parts, fmt.Sprintf("type=RectifiedLinearComponent dim=%d", repeats*middle))
	}
	out := repeats * n.between(1, 8)
	parts = append(parts, fmt.Sprintf("type=BlockAffineComponent input-dim=%d output-dim=%d num-blocks=%d", repeats*middle, out, repeats))
	if n.chance(2) {
		parts = append(parts, fmt.Sprintf("type=SigmoidComponent dim=%d", out))
	}
	var options strings.Builder
	for i, p := range parts {
		fmt.Fprintf(&options, " component%d='%s'", i+1, p)
	}
	n.node("Composite", n.last, out, "max-rows-process=%d num-components=%d%s", n.between(1, 9), len(parts), options.String())
	if n.chance(2) {
		out = repeats * n.between(1, 4)
		n.node([...]string{"NaturalGradientRepeatedAffine", "RepeatedAffine"}[n.r.IntN(2)], n.last, out, "input-dim=%d output-dim=%d num-repeats=%d", n.dim[n.last], out, repeats)
	}
	if n.chance(2) {
		blocks := n.divisor(out)
		n.node("BlockAffine", n.last, 2*blocks, "input-dim=%d output-dim=%d num-blocks=%d", out, 2*blocks, blocks)
	}
	if n.chance(3) {
		n.finish()
	}
}

// statistics pools mean and variance over a window, as networks that adapt to or recognize speakers
// do.
func (n *network) statistics() {
	in := n.width()
	x := n.input("input", in)
	if n.chance(2) {
		d, dim := n.splice(x, 3)
		n.affine(d, dim, in)
		x = n.nonlinearity()
	}
	period := n.between(1, 3)
	output := period * n.between(1, 2)
	variance := n.chance(2)
	stats := in + 1
	if variance {
		stats += in
	}
	n.node("StatisticsExtraction", x, stats, "input-dim=%d input-period=%d output-period=%d include-variance=%t", in, period, output, variance)
	counts, left, right := n.between(0, 2), output*n.between(0, 3), output*n.between(0, 3)
	if left+right == 0 { // no window at all
		left = output
	}
	n.node("StatisticsPooling", n.last, stats-1+counts,
		"input-dim=%d input-period=%d left-context=%d right-context=%d num-log-count-features=%d output-stddevs=%t variance-floor=0.01",
		stats, output, left, right, counts, variance && n.chance(2))
	pooled, width := n.last, n.width()
	a := n.affine(x, in, width)
	b := n.affine(fmt.Sprintf("Round(%s, %d)", pooled, output), n.dim[pooled], width)
	n.output("output", fmt.Sprintf("Sum(%s, %s)", a, b))
	n.frames, n.wide = 3*output, true
}

// timeHeight is a stack of two-dimensional convolutions, some of them on sums of lower layers.
func (n *network) timeHeight() {
	height, filters := n.between(3, 12), n.units(1, 3)
	nodes := []string{n.input("input", height*filters)} // those of one shape
	for range n.between(1, 4) {
		x := nodes[len(nodes)-1]
		if len(nodes) > 1 && n.chance(2) {
			x = fmt.Sprintf("Sum(%s, %s)", nodes[n.r.IntN(len(nodes)-1)], x)
		}
		y, out, filtersOut := n.convolution(x, height, filters)
		if n.chance(2) {
			y = n.nonlinearity()
		}
		if out != height || filtersOut != filters {
			nodes = nil
		} else if n.chance(3) {
			y = n.node("NoOp", fmt.Sprintf("Sum(%s, %s)", x, y), n.dim[y], "dim=%d", n.dim[y])
		}
		nodes, height, filters = append(nodes, y), out, filtersOut
	}
	if n.chance(2) {
		n.finish()
	}
}

// convolution adds a TimeHeightConvolutionComponent, in every second case with as many filters as
// before.
func (n *network) convolution(x string, height, filters int) (y string, out, filtersOut int) {
	subsample, offsets := 1, "-1,0,1"
	if height >= 4 && n.chance(3) {
		subsample = 2
	}
	out = (height + subsample - 1) / subsample
	if height > 3 && n.chance(2) {
		offsets, out = "0,1,2", (height-3)/subsample+1 // no padding
	}
	filtersOut = filters
	if n.chance(2) {
		filtersOut = n.units(1, 5)
	}
	times := n.offsets(3)
	if n.chance(2) {
		step := n.between(1, 2)
		times = []int{-step, 0, step}
	}
	required := slices.DeleteFunc(slices.Clone(times), func(int) bool { return n.chance(2) })
	if len(required) == 0 {
		required = times
	}
	y = n.node("TimeHeightConvolution", x, out*filtersOut,
		"num-filters-in=%d num-filters-out=%d height-in=%d height-out=%d height-subsample-out=%d height-offsets=%s time-offsets=%s required-time-offsets=%s max-memory-mb=%g bias-stddev=1",
		filters, filtersOut, height, out, subsample, offsets, join(times), join(required), [...]float64{200, 0.001, 0.0001}[n.r.IntN(3)])
	return y, out, filtersOut
}

// attention is restricted self-attention.
func (n *network) attention() {
	heads, key, value := n.between(1, 3), n.units(1, 8), n.units(1, 8)
	left, right, stride := n.between(0, 3), n.between(0, 3), n.between(1, 3)
	for left+right == 0 { // a context of one frame makes no sense
		left = n.between(0, 3)
	}
	context := n.chance(2)
	in := heads * (2*key + value + left + 1 + right)
	out := heads * value
	if context {
		out += heads * (left + 1 + right)
	}
	n.input("input", n.width())
	n.affine(n.last, n.dim[n.last], in)
	n.node("RestrictedAttention", n.last, out,
		"num-heads=%d key-dim=%d value-dim=%d time-stride=%d num-left-inputs=%d num-right-inputs=%d num-left-inputs-required=%d num-right-inputs-required=%d output-context=%t",
		heads, key, value, stride, left, right, n.between(0, left), n.between(0, right), context)
	if n.chance(2) {
		n.nonlinearity()
		n.finish()
	}
}

// tdnnf is factored layers with a bypass around each.
func (n *network) tdnnf() {
	d, dim := n.splice(n.input("input", n.width()), 3)
	if n.chance(2) {
		n.input("ivector", n.units(2, 10))
		d, dim = fmt.Sprintf("Append(%s, ReplaceIndex(ivector, t, 0))", d), dim+n.dim["ivector"]
	}
	width := n.units(4, 32)
	x := n.affine(d, dim, width)
	if n.chance(2) {
		x = n.nonlinearity()
	}
	for range n.between(1, 4) {
		stride, bottleneck := n.between(0, 3), n.units(2, 12)
		n.node("Tdnn", x, bottleneck, "input-dim=%d output-dim=%d use-bias=false orthonormal-constraint=-1 time-offsets=%s", width, bottleneck, times(-stride, 0))
		y := n.node("Tdnn", n.last, width, "input-dim=%d output-dim=%d time-offsets=%s", bottleneck, width, times(0, stride))
		if !n.chance(4) {
			n.dims("RectifiedLinear", "")
			y = n.batchNorm()
		}
		if n.chance(2) {
			y = n.dims("GeneralDropout", "dropout-proportion=0 continuous=true")
		}
		x = n.node("NoOp", fmt.Sprintf("Sum(Scale(%g, %s), %s)", [...]float64{0.66, 1}[n.r.IntN(2)], x, y), width, "dim=%d", width)
	}
	if n.chance(2) {
		bottleneck := n.units(2, 12)
		n.node("Linear", x, bottleneck, "input-dim=%d output-dim=%d", width, bottleneck)
		n.batchNorm()
	}
	branch := n.last
	n.finish()
	if n.chance(3) {
		n.output("output-xent", n.affine(branch, n.dim[branch], n.width()))
	}
}

// times lists two time offsets, or one if they are equal.
func times(a, b int) string {
	if a == b {
		return join([]int{a})
	}
	return join([]int{a, b})
}

// dropout is components that are random in training, run in test mode.
func (n *network) dropout() {
	n.testMode = true
	d, dim := n.splice(n.input("input", n.width()), 3)
	n.affine(d, dim, n.units(2, 20))
	for range n.between(1, 4) {
		width := n.dim[n.last]
		switch n.r.IntN(5) {
		case 0:
			n.dims("Dropout", fmt.Sprintf("dropout-proportion=0.3 dropout-per-frame=%t", n.chance(2)))
		case 1:
			n.dims("GeneralDropout", fmt.Sprintf("dropout-proportion=0.4 block-dim=%d time-period=%d", n.divisor(width), n.between(0, 4)))
		case 2:
			n.dims("GeneralDropout", "specaugment-max-proportion=0.5 specaugment-max-regions=2")
		case 3:
			n.dims("SpecAugmentTimeMask", "zeroed-proportion=0.3 time-mask-max-frames=4")
		case 4:
			mask := fmt.Sprintf("mask%d", len(n.lines))
			x := n.last
			n.component(mask, "DropoutMask", "output-dim=%d dropout-proportion=0.2", width)
			n.at(mask, mask, x, width)
			n.node("ElementwiseProduct", fmt.Sprintf("Append(%s, %s)", x, mask), width, "input-dim=%d output-dim=%d", 2*width, width)
		}
		if n.chance(2) {
			n.affine(n.last, width, n.units(2, 20))
			n.nonlinearity()
		}
	}
	if n.chance(2) {
		n.finish()
	}
}

// rowWise is a chain of components that work row by row.
func (n *network) rowWise() {
	d, dim := n.splice(n.input("input", n.width()), 2)
	n.affine(d, dim, 4*n.units(1, 6))
	for range n.between(2, 6) {
		width := n.dim[n.last]
		switch n.r.IntN(16) {
		case 0:
			n.dims("PerElementScale", "param-stddev=0.5")
		case 1:
			n.dims("NaturalGradientPerElementScale", "param-stddev=0.5")
		case 2:
			n.dims("PerElementOffset", fmt.Sprintf("param-stddev=1 block-dim=%d", n.divisor(width)))
		case 3:
			n.dims("ScaleAndOffset", fmt.Sprintf("block-dim=%d", n.divisor(width)))
		case 4:
			n.dims("FixedScale", "")
		case 5:
			n.dims("FixedBias", "")
		case 6:
			n.dims("ClipGradient", fmt.Sprintf("clipping-threshold=%d norm-based-clipping=%t", n.between(1, 30), n.chance(2)))
		case 7:
			n.dims("NoOp", fmt.Sprintf("backprop-scale=%g", [...]float64{1, 0.5}[n.r.IntN(2)]))
		case 8:
			n.node("Normalize", n.last, width+1, "dim=%d add-log-stddev=true", width)
			n.affine(n.last, width+1, width)
		case 9:
			n.node("Permute", n.last, width, "column-map=%s", join(n.r.Perm(width)))
		case 10:
			out := n.divisor(width)
			n.node("SumBlock", n.last, out, "input-dim=%d output-dim=%d scale=0.5", width, out)
			n.affine(n.last, out, 4*n.units(1, 6))
		case 11:
			n.node("ConstantFunction", n.last, width, "input-dim=%d output-dim=%d output-stddev=1", width, width)
		case 12:
			x := n.last
			n.node("ElementwiseProduct", fmt.Sprintf("Append(%s, %s)", x, x), width, "input-dim=%d output-dim=%d", 2*width, width)
		case 13:
			out := n.divisor(width)
			n.node("Pnorm", n.last, out, "input-dim=%d output-dim=%d", width, out)
			n.affine(n.last, out, 4*n.units(1, 6))
		case 14:
			out := n.divisor(width)
			n.node("SumGroup", n.last, out, "input-dim=%d output-dim=%d", width, out)
			n.affine(n.last, out, 4*n.units(1, 6))
		default:
			n.nonlinearity()
		}
	}
	if n.chance(2) {
		n.finish()
	}
}
