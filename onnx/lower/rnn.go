package lower

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

var recurrent = map[string]func(c *call) []*value{
	"LSTM": (*call).lstm,
	"GRU":  (*call).gru,
	"RNN":  (*call).rnn,
}

// A recurrence is what the recurrent operators have in common: x is [T, N, I], and weights have a
// first dimension of directions.
type recurrence struct {
	*call
	gates, hidden, directions int
	x                         variable
	steps, batch              ir.Dim
	batchFirst                bool
	lengths                   variable // [N], or nil
	quantized                 bool     // inputs and states are rounded to integers of 8 bits
	activations               []func(variable) variable
}

// maxSteps bounds the steps of a loop that is unrolled, each of which has applies of its own, and the items of a sequence.
const maxSteps = 10000

func (c *call) recurrence(gates int, functions ...string) *recurrence {
	r := &recurrence{call: c, gates: gates, hidden: c.int("hidden_size", 0), directions: 1, batchFirst: c.int("layout", 0) == 1}
	r.x = c.x(0)
	shape := slices.Clone(c.dims(r.x))
	c.failIf(len(shape) != 3, "an input of shape %v", shape)
	if r.batchFirst {
		r.x = tensor.SwapAxes(r.x, 0, 1)
		shape[0], shape[1] = shape[1], shape[0]
	}
	r.steps, r.batch = shape[0], shape[1]
	if c.text("direction", "forward") == "bidirectional" {
		r.directions = 2
	}
	r.quantized = c.op.Name() == "com.microsoft.DynamicQuantizeLSTM"
	if r.hidden == 0 {
		last := 2
		if r.quantized {
			last = 1
		}
		r.hidden = c.dim(c.x(2), last)
	}
	// Each direction has activations of its own, which the attribute lists one direction after the other.
	names := make([]string, 0, r.directions*len(functions))
	for range r.directions {
		names = append(names, functions...)
	}
	if a := c.attribute("activations"); a != nil {
		for i, f := range a.Strings {
			if i < len(names) {
				names[i] = string(f)
			}
		}
	}
	r.activate(names)
	if c.has(4) {
		r.lengths = tensor.Cast(c.x(4), array.Int64)
	}
	return r
}

// A gateActivation is a function that gates may have, with the values that alpha and beta have by default.
type gateActivation struct {
	of                  func(x variable, alpha, beta float64) variable
	hasAlpha, hasBeta   bool
	alphaElse, betaElse float64
}

// gateActivations are the functions of gates by their names in lower case, which is how ONNX Runtime reads them.
var gateActivations = map[string]gateActivation{
	"sigmoid": {of: func(x variable, _, _ float64) variable { return tensor.Sigmoid(x) }},
	"tanh":    {of: func(x variable, _, _ float64) variable { return tensor.Tanh(x) }},
	"relu":    {of: func(x variable, _, _ float64) variable { return tensor.Maximum(x, number(0, x)) }},
	"affine": {hasAlpha: true, hasBeta: true, alphaElse: 1, of: func(x variable, alpha, beta float64) variable {
		return tensor.Add(tensor.Mul(number(alpha, x), x), number(beta, x))
	}},
	"leakyrelu":       {hasAlpha: true, alphaElse: 0.01, of: func(x variable, alpha, _ float64) variable { return leakyRelu(x, alpha) }},
	"thresholdedrelu": {hasAlpha: true, alphaElse: 1, of: func(x variable, alpha, _ float64) variable { return thresholdedRelu(x, alpha) }},
	"scaledtanh": {hasAlpha: true, hasBeta: true, alphaElse: 1, betaElse: 1, of: func(x variable, alpha, beta float64) variable {
		return tensor.Mul(number(alpha, x), tensor.Tanh(tensor.Mul(number(beta, x), x)))
	}},
	"hardsigmoid": {hasAlpha: true, hasBeta: true, alphaElse: 0.2, betaElse: 0.5, of: hardSigmoid},
	"elu":         {hasAlpha: true, alphaElse: 1, of: func(x variable, alpha, _ float64) variable { return elu(x, alpha) }},
	"softsign":    {of: func(x variable, _, _ float64) variable { return softsign(x) }},
	"softplus":    {of: func(x variable, _, _ float64) variable { return tensor.Softplus(x) }},
}

// activate sets the activations. The numbers in activation_alpha and activation_beta are for those that have such
// a number, in their order.
func (r *recurrence) activate(names []string) {
	next := func(name string) func(otherwise float64) float64 {
		var list []float32
		if a := r.attribute(name); a != nil {
			list = a.Floats
		}
		return func(otherwise float64) float64 {
			if len(list) == 0 {
				return otherwise
			}
			v := float64(list[0])
			list = list[1:]
			return v
		}
	}
	nextAlpha, nextBeta := next("activation_alpha"), next("activation_beta")
	clip := r.float("clip", 0)
	for i, name := range names {
		f, ok := gateActivations[strings.ToLower(name)]
		r.failIf(!ok, "%w: activation %s", ErrUnsupported, name)
		alpha, beta := f.alphaElse, f.betaElse
		if f.hasAlpha {
			alpha = nextAlpha(alpha)
		}
		if f.hasBeta {
			beta = nextBeta(beta)
		}
		r.activations = append(r.activations, func(x variable) variable {
			// ONNX clips what goes into an activation, not what comes out of it; ONNX Runtime not a cell that
			// the third one of an LSTM is for.
			if clip > 0 && !(r.gates == 4 && i%3 == 2) {
				x = tensor.Maximum(number(-clip, x), tensor.Minimum(number(clip, x), x))
			}
			return f.of(x, alpha, beta)
		})
	}
}

// part returns what an input has for a direction.
func (r *recurrence) part(k, direction int) variable {
	return r.constant(k, tensor.Subtensor(r.call.x(k), tensor.At(tensor.Int(direction))))
}

// constant returns what is made of input k as a constant if the input is one. A loop would take anything else from outside,
// and prepare the weights of its product in each step.
func (r *recurrence) constant(k int, v variable) variable {
	if r.in[k].v.IsConstant() {
		if a, err := r.values.Value(v); err == nil {
			return tensor.Constant(a)
		}
	}
	return v
}

// fromState returns what the state h adds to the sums of some gates: h R', without a bias.
func (r *recurrence) fromState(h variable, direction, first, end int) variable {
	rows := tensor.SliceOf(tensor.Int(first*r.hidden), tensor.Int(end*r.hidden), 1)
	return tensor.Dot(h, r.constant(2, tensor.Transpose(tensor.Subtensor(r.part(2, direction), rows))))
}

// gate returns a gate's part of the last dimension, or of the only one.
func (r *recurrence) gate(v variable, k int) variable {
	index := tensor.SliceOf(tensor.Int(k*r.hidden), tensor.Int((k+1)*r.hidden), 1)
	return part(v, ndim(v)-1, index)
}

// initial returns the state before the first step.
func (r *recurrence) initial(k, direction int) variable {
	if !r.has(k) {
		return tensor.Zeros(tensor.TypeOf(r.x).DType(), r.size(r.batch), tensor.Int(r.hidden))
	}
	v := r.call.x(k)
	if r.batchFirst {
		v = tensor.SwapAxes(v, 0, 1)
	}
	return tensor.Subtensor(v, tensor.At(tensor.Int(direction)))
}

// stepNodes is as many nodes as leave only a single step without a loop: products of several steps would prepare the
// same weights once each.
const stepNodes = shortLoop

// run goes over the steps of each direction. step returns the states after a step, of which the first
// is the output; x is what weighted returns for it, in parts. It returns the outputs, [T, D, N, H], and the last states, [D, N, H].
func (r *recurrence) run(states func(direction int) []variable, step func(direction int, x, s []variable) []variable) []*value {
	var outputs []variable
	var last [][]variable
	for d := range r.directions {
		out, s := r.direction(d, states(d), step)
		outputs = append(outputs, out)
		for k, v := range s {
			if len(last) <= k {
				last = append(last, nil)
			}
			last[k] = append(last[k], v)
		}
	}
	y := tensor.Stack(1, outputs...)
	if r.batchFirst {
		y = tensor.DimShuffle(y, 2, 0, 1, 3)
	}
	out := []*value{r.typed(y, r.elem(0))}
	for _, list := range last {
		v := tensor.Stack(0, list...)
		if r.batchFirst {
			v = tensor.SwapAxes(v, 0, 1)
		}
		out = append(out, r.typed(v, r.elem(0)))
	}
	return out
}

// direction goes over the steps of a direction, which are a loop. It returns the outputs, [T, N, H], and the last states.
func (r *recurrence) direction(d int, s []variable, step func(direction int, x, s []variable) []variable) (variable, []variable) {
	if n, ok := r.steps.Number(); ok && n == 0 {
		return tensor.Zeros(tensor.TypeOf(r.x).DType(), tensor.Int(0), r.size(r.batch), tensor.Int(r.hidden)), s
	}
	back := r.directions == 2 && d == 1 || r.text("direction", "forward") == "reverse"
	// Integers of a state depend on the states of all items at a step, and ONNX Runtime turns each item round
	// by itself, so that all of them have a first step at once.
	each := back && r.quantized && r.lengths != nil
	turn := func(v variable) variable {
		switch {
		case each:
			return r.turned(v)
		case back:
			return tensor.Flip(v, 0)
		}
		return v
	}
	plain := func(v variable) *value { return &value{v: v} }
	loop := looped{nodes: stepNodes, stacked: 1, open: true, steps: -1, most: r.size(r.steps), more: tensor.Constant(array.Scalar(true)),
		carried: lists.Map(s, plain)}
	for _, x := range r.weighted(d, turn) {
		loop.items = append(loop.items, plain(x))
	}
	if n, ok := r.steps.Number(); ok {
		loop.steps = int(n)
	}
	if r.lengths != nil {
		// An item that is turned by itself begins with its sequence like the others.
		valid := tensor.Map(array.Gt, tensor.DimShuffle(r.lengths, -1, 0, -1), tensor.DimShuffle(tensor.ARange(tensor.Int(0), r.size(r.steps), tensor.Int(1)), 0, -1, -1))
		if !each {
			valid = turn(valid)
		}
		loop.items = append(loop.items, plain(valid))
	}
	loop.round = func(in ...*value) []*value {
		old := lists.Map(in[:len(s)], func(v *value) variable { return v.v })
		next := step(d, lists.Map(in[len(s):], func(v *value) variable { return v.v }), old)
		out := next[0]
		if r.lengths != nil {
			// Beyond the end of a sequence, the state stays and the output is 0.
			valid := in[len(in)-1].v
			out = tensor.Switch(valid, out, number(0, out))
			for k := range next {
				next[k] = tensor.Switch(valid, next[k], old[k])
			}
		}
		return lists.Map(append(next, out), plain)
	}
	made := r.looping(loop)
	return turn(r.sized(made[len(s)].v)), lists.Map(made[:len(s)], func(v *value) variable { return v.v })
}

// sized says of outputs, [T, N, H], what a loop with open sizes does not.
func (r *recurrence) sized(y variable) variable {
	if !unsized(y) {
		return y
	}
	return tensor.SpecifySizes(y, r.size(r.steps), r.size(r.batch), tensor.Int(r.hidden))
}

// turned returns the steps of each item, [T, N, I], in the opposite order, as far as its sequence goes.
func (r *recurrence) turned(x variable) variable {
	shape := r.call.shape(x)
	steps, items := tensor.ARange(tensor.Int(0), tensor.Int(shape[0]), tensor.Int(1)), tensor.ARange(tensor.Int(0), tensor.Int(shape[1]), tensor.Int(1))
	t, n := tensor.DimShuffle(steps, 0, -1), tensor.DimShuffle(r.lengths, -1, 0)
	at := tensor.Switch(tensor.Map(array.Lt, t, n), tensor.Sub(tensor.Sub(n, tensor.Int(1)), t), t)
	at = tensor.Add(tensor.Mul(at, tensor.Int(shape[1])), tensor.DimShuffle(items, -1, 0))
	return tensor.Take(r.reshape(x, []int{shape[0] * shape[1], shape[2]}), at)
}

// weighted returns x W' for all gates and steps, which are one product, with the biases that are added to it, for the
// steps in their order. For a GRU, which has no use for all gates together, there are as many parts.
func (r *recurrence) weighted(d int, turn func(variable) variable) []variable {
	var y variable
	if r.quantized {
		y = r.timesCodes(r.x, 1, d)
	} else {
		y = tensor.Dot(r.x, tensor.Transpose(r.part(1, d)))
	}
	if r.has(3) {
		y = tensor.Add(y, r.bias(d, 0))
		if r.gates != 3 { // what a GRU resets has a bias
			y = tensor.Add(y, r.bias(d, 1))
		}
	}
	if y = turn(y); r.gates != 3 {
		return []variable{y}
	}
	return lists.Map(lists.Range[int](r.gates), func(k int) variable { return r.gate(y, k) })
}

// sums returns x + h R' for all gates.
func (r *recurrence) sums(d int, x, h variable) variable {
	if r.quantized {
		return tensor.Add(x, r.timesCodes(h, 2, d))
	}
	return tensor.Add(x, r.fromState(h, d, 0, r.gates))
}

// timesCodes returns x times the weights that input k holds as integers, [directions, inputs, gates], with a scale and a
// zero for each direction or gate. All of x becomes integers with one scale.
func (r *recurrence) timesCodes(x variable, k, d int) variable {
	scale, zero := dynamicScale(x)
	sums := tensor.MatmulInteger(r.quantize(x, scale, zero, onnx.Uint8), r.part(k, d), zero, r.part(7+2*k, d))
	return tensor.Mul(tensor.Cast(sums, array.Float32), tensor.Mul(scale, r.part(6+2*k, d)))
}

// biased adds the biases of the state to the sums of some gates.
func (r *recurrence) biased(sums variable, d, first, end int) variable {
	if !r.has(3) {
		return sums
	}
	gates := tensor.SliceOf(tensor.Int(first*r.hidden), tensor.Int(end*r.hidden), 1)
	return tensor.Add(sums, r.constant(3, tensor.Subtensor(r.bias(d, 1), gates)))
}

// bias returns that of the input, 0, or of the state, 1.
func (r *recurrence) bias(d, which int) variable {
	n := r.gates * r.hidden
	return tensor.Subtensor(r.part(3, d), tensor.SliceOf(tensor.Int(which*n), tensor.Int((which+1)*n), 1))
}

func (c *call) rnn() []*value {
	r := c.recurrence(1, "Tanh")
	return r.run(func(d int) []variable { return []variable{r.initial(5, d)} }, func(d int, x, s []variable) []variable {
		return []variable{r.activations[d](r.sums(d, x[0], s[0]))}
	})
}

// quantizedLSTM is an LSTM whose weights are integers, and whose inputs become some: all in front of the steps, and in each
// step the state.
func (c *call) quantizedLSTM() []*value {
	if !c.has(4) {
		return c.lstm()
	}
	plain := *c
	plain.in = slices.Clone(c.in)
	x := c.x(0) // steps that no item has don't count
	used := tensor.Map(array.Lt, arange(c.shape(x)[0]), reduceAll(array.Max, c.integers(4)))
	plain.in[0] = &value{v: tensor.Mul(x, tensor.Cast(asDim(used, 0, 3), tensor.TypeOf(x).DType())), elem: c.elem(0)}
	return plain.lstm()
}

// lstm has the gates i, o, f, c, with peepholes for i, o, f.
func (c *call) lstm() []*value {
	r := c.recurrence(4, "Sigmoid", "Tanh", "Tanh")
	coupled := c.bool("input_forget", false)
	return r.run(func(d int) []variable { return []variable{r.initial(5, d), r.initial(6, d)} }, func(d int, x, s []variable) []variable {
		sums := r.sums(d, x[0], s[0])
		f, g, h := r.activations[3*d], r.activations[3*d+1], r.activations[3*d+2]
		peep := func(v variable, k int, cell variable) variable {
			if !r.has(7) {
				return v
			}
			return tensor.Add(v, tensor.Mul(r.gate(r.part(7, d), k), cell))
		}
		input := f(peep(r.gate(sums, 0), 0, s[1]))
		forget := f(peep(r.gate(sums, 2), 2, s[1]))
		if coupled {
			forget = tensor.Sub(number(1, input), input)
		}
		cell := tensor.Add(tensor.Mul(forget, s[1]), tensor.Mul(input, g(r.gate(sums, 3))))
		// The peephole of the output sees the new cell, the others the old one.
		output := f(peep(r.gate(sums, 1), 1, cell))
		return []variable{tensor.Mul(output, h(cell)), cell}
	})
}

// gru has the gates z, r, h.
func (c *call) gru() []*value {
	r := c.recurrence(3, "Sigmoid", "Tanh")
	linear := c.bool("linear_before_reset", false)
	return r.run(func(d int) []variable { return []variable{r.initial(5, d)} }, func(d int, x, s []variable) []variable {
		f, g := r.activations[2*d], r.activations[2*d+1]
		// The sum of the third gate has the state after its reset, so it can't be one with those of the other gates, unless
		// linear_before_reset resets the sum.
		gates := 2
		if linear {
			gates = 3
		}
		sums := r.biased(r.fromState(s[0], d, 0, gates), d, 0, gates)
		update, reset := f(tensor.Add(x[0], r.gate(sums, 0))), f(tensor.Add(x[1], r.gate(sums, 1)))
		var inner variable
		if linear {
			inner = tensor.Mul(reset, r.gate(sums, 2))
		} else {
			inner = r.biased(r.fromState(tensor.Mul(reset, s[0]), d, 2, 3), d, 2, 3)
		}
		hidden := g(tensor.Add(x[2], inner))
		return []variable{tensor.Add(tensor.Mul(tensor.Sub(number(1, update), update), hidden), tensor.Mul(update, s[0]))}
	})
}
