package pipeline_test

import "fmt"

// mixed is layers of all kinds and of one width, each on any lower layer or on a descriptor of
// several.
func (n *network) mixed() {
	height, filters := n.between(1, 6), n.units(1, 3)
	width := height * filters
	nodes := []string{n.input("input", width)}
	if n.chance(2) {
		nodes = append(nodes, n.input("other", width))
	}
	ivector := ""
	if n.chance(3) {
		ivector = n.input("ivector", n.width())
	}
	for range n.between(2, 6) {
		x := n.sum(nodes, n.between(0, 2), width)
		var y string
		switch n.r.IntN(12) {
		case 0:
			y = n.affine(x, width, width)
		case 1:
			y = n.tdnn(x, width, width)
		case 2, 3:
			y = n.keep(x, height, filters)
		case 4:
			d, dim := fmt.Sprintf("Append(%s, %s)", x, n.sum(nodes, 1, width)), 2*width
			if ivector != "" {
				d, dim = fmt.Sprintf("Append(%s, %s, ReplaceIndex(%s, t, 0))", x, d, ivector), dim+width+n.dim[ivector]
			}
			y = n.affine(d, dim, width)
		case 5:
			y = n.node("ElementwiseProduct", fmt.Sprintf("Append(%s, %s)", x, n.sum(nodes, 1, width)), width, "input-dim=%d output-dim=%d", 2*width, width)
		case 6:
			y = n.again(x, width)
		case 7:
			y = n.attend(x, width)
		case 8:
			y = n.pooled(x, width)
		case 9:
			y = n.part(fmt.Sprintf("part%d", len(n.lines)), n.affine(x, width, 2*width), n.between(0, width), width)
		default:
			y = n.rowByRow(x, width)
		}
		nodes = append(nodes, y)
	}
	n.output("output", n.sum(nodes, 2, width))
	for i := range n.r.IntN(3) {
		n.output(fmt.Sprintf("output%d", i+2), n.sum(nodes, 1, width))
	}
}

// keep adds a convolution that keeps the shape of its input.
func (n *network) keep(x string, height, filters int) string {
	times := n.offsets(3)
	heights := [...]string{"-1,0,1", "0", "0,1"}[n.r.IntN(3)]
	return n.node("TimeHeightConvolution", x, height*filters,
		"num-filters-in=%d num-filters-out=%d height-in=%d height-out=%d height-offsets=%s time-offsets=%s required-time-offsets=%d max-memory-mb=%g bias-stddev=1",
		filters, filters, height, height, heights, join(times), times[n.r.IntN(len(times))], [...]float64{200, 0.0001}[n.r.IntN(2)])
}

// again adds an affine and a nonlinearity that see their own past output.
func (n *network) again(x string, width int) string {
	y := fmt.Sprintf("again%d", len(n.lines))
	n.component(y+"_W", "NaturalGradientAffine", "input-dim=%d output-dim=%d", 2*width, width)
	n.at(y+"_W", y+"_W", fmt.Sprintf("Append(%s, %s)", x, past(y, n.delay())), width)
	n.component(y, [...]string{"RectifiedLinear", "Tanh", "Sigmoid"}[n.r.IntN(3)], "dim=%d", width)
	return n.at(y, y, y+"_W", width)
}

// attend adds restricted self-attention between two affines.
func (n *network) attend(x string, width int) string {
	key, value, left, right := n.between(1, 4), n.between(1, 4), n.between(0, 2), n.between(1, 2)
	y := n.affine(x, width, 2*key+value+left+1+right)
	y = n.node("RestrictedAttention", y, value,
		"num-heads=1 key-dim=%d value-dim=%d time-stride=%d num-left-inputs=%d num-right-inputs=%d num-left-inputs-required=%d num-right-inputs-required=%d output-context=false",
		key, value, n.between(1, 2), left, right, n.between(0, left), n.between(0, right))
	return n.affine(y, value, width)
}

// pooled adds the mean over a window, and an affine.
func (n *network) pooled(x string, width int) string {
	n.node("StatisticsExtraction", x, width+1, "input-dim=%d input-period=1 output-period=1 include-variance=false", width)
	y := n.node("StatisticsPooling", n.last, width, "input-dim=%d input-period=1 left-context=%d right-context=%d num-log-count-features=0 output-stddevs=false variance-floor=0.01",
		width+1, n.between(1, 3), n.between(0, 3))
	n.wide = true
	return n.affine(y, width, width)
}

// rowByRow adds a component that works row by row, sometimes in place.
func (n *network) rowByRow(x string, width int) string {
	kinds := [...]struct{ typ, options string }{
		{"RectifiedLinear", ""}, {"Sigmoid", ""}, {"Tanh", ""}, {"Softmax", ""}, {"LogSoftmax", ""}, {"BatchNorm", ""}, {"Normalize", ""},
		{"PerElementScale", "param-stddev=0.5"}, {"PerElementOffset", "param-stddev=1"}, {"ScaleAndOffset", ""}, {"FixedScale", ""}, {"FixedBias", ""},
		{"ClipGradient", "clipping-threshold=3 norm-based-clipping=true"}, {"NoOp", "backprop-scale=0.5"}, {"NoOp", ""},
		{"BackpropTruncation", n.truncation(1)}, {"GeneralDropout", "dropout-proportion=0"},
	}
	k := kinds[n.r.IntN(len(kinds))]
	return n.node(k.typ, x, width, "dim=%d %s", width, k.options)
}
