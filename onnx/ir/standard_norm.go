package ir

import "github.com/nnopt/nnopt/onnx"

// standardNorms are normalizations and losses.
var standardNorms = []Operator{
	{Type: "BatchNormalization", MinInputs: 5, MaxInputs: 5, Infer: inferBatchNormalization},
	{Type: "InstanceNormalization", MinInputs: 3, MaxInputs: 3, Infer: inferInstanceNormalization},
	{Type: "GroupNormalization", MinInputs: 3, MaxInputs: 3, Infer: func(c *Call) {
		if c.Legacy != 0 { // scales were of groups
			c.like(0, 0)
			return
		}
		inferInstanceNormalization(c)
	}},
	{Type: "LayerNormalization", MinInputs: 2, MaxInputs: 3, Infer: inferLayerNormalization},
	{Type: "RMSNormalization", MinInputs: 2, MaxInputs: 2, Infer: inferSame},
	{Type: "LpNormalization", MinInputs: 1, MaxInputs: 1, Infer: inferSame},
	{Type: "MeanVarianceNormalization", MinInputs: 1, MaxInputs: 1, Infer: inferSame},
	{Type: "LRN", MinInputs: 1, MaxInputs: 1, Infer: inferSame},
	// In training, elements are dropped at random.
	{Type: "Dropout", MinInputs: 1, MaxInputs: 3, Random: true, Infer: func(c *Call) {
		c.like(0, 0)
		if c.shaped(1, onnx.Bool, 0); c.Legacy != 0 && c.Legacy < 10 { // the mask was of numbers
			c.like(1, 0)
		}
	}},
	{Type: "NegativeLogLikelihoodLoss", MinInputs: 2, MaxInputs: 3, Body: func(b *Builder) []variable { return []variable{b.loss(b.x(0))} }},
	{Type: "SoftmaxCrossEntropyLoss", MinInputs: 2, MaxInputs: 3, Body: func(b *Builder) []variable {
		y := b.Do("LogSoftmax", b.x(0), Int("axis", 1))
		return []variable{b.loss(y), y}
	}},
}

// inferBatchNormalization: before opset 14 there could be further results, which are statistics, too.
func inferBatchNormalization(c *Call) {
	// Until opset 8, statistics could be of each element with spatial=0.
	if c.Op.Int("spatial", 1) != 0 {
		c.checkChannels(4)
	}
	c.like(0, 0)
	// Mean, variance, and in old versions both again as they were saved.
	for k := 1; k < 5; k++ {
		c.like(k, 3+(k+1)%2)
	}
}

func inferInstanceNormalization(c *Call) {
	c.checkChannels(2)
	c.like(0, 0)
}

// checkChannels fails if one of the inputs from 1 to last is known not to have an element for each channel.
func (c *Call) checkChannels(last int) {
	dims, ranked := c.shape(0)
	if !ranked || len(dims) < 2 {
		return
	}
	for k := 1; k <= last; k++ {
		if s := c.sizesOf(k, 1); s[0].Differs(dims[1]) {
			c.Fail("input %d has %v elements for %v channels", k, s[0], dims[1])
		}
	}
}

// inferLayerNormalization: means and deviations are of all dimensions from the axis on.
func inferLayerNormalization(c *Call) {
	c.like(0, 0)
	dims, ranked := c.shape(0)
	if ranked {
		for i := c.axis(c.Op.Int("axis", -1), len(dims)); i < len(dims); i++ {
			dims[i] = Known(1)
		}
	}
	for k := 1; k <= 2; k++ {
		if n := c.In(k).Rank(); ranked && n > len(dims) {
			c.Fail("input %d has %d dimensions, more than the first one", k, n)
		}
	}
	elem := c.to("stash_type", onnx.Float)
	c.Set(1, tensor(elem, dims, ranked))
	c.Set(2, tensor(elem, dims, ranked))
}

// loss returns the loss of logarithms of probabilities x, [N, C, …], for classes, input 1, [N, …].
func (b *Builder) loss(x variable) variable {
	classes, elem := b.integers(1), TypeOf(x).Elem()
	ignored := b.Do("Less", classes, classes) // none is
	if a := b.Attribute("ignore_index"); a != nil {
		ignored = b.Do("Equal", classes, Int64(a.Int))
		// A class that is ignored may be none at all. Any valid index will do, since its weight is 0.
		classes = b.Do("Where", ignored, Int64(0), classes)
	}
	weight := b.cast(b.Do("Not", ignored), elem)
	if weights := b.x(2); weights != nil {
		weight = b.mul(b.Do("Gather", weights, classes), weight)
	}
	loss := b.Do("Neg", b.Do("Squeeze", b.Do("GatherElements", x, b.unsqueeze(classes, 1), Int("axis", 1)), []int64{1}))
	loss = b.mul(loss, weight)
	all := func(v variable) variable { return b.Do("ReduceSum", v, Int("keepdims", 0)) }
	switch b.Op.Text("reduction", "mean") {
	case "none":
		return loss
	case "sum":
		return all(loss)
	}
	// ONNX's mean divides by the sum of the weights, not by the number of items.
	return b.div(all(loss), all(weight))
}
