package lower

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The operators of transformers.
var attention = map[string]func(c *call) []*value{
	"TensorScatter":                 (*call).cacheUpdate,
	"LinearAttention":               (*call).linearAttention,
	"ai.onnx.preview.FlexAttention": (*call).flexAttention,
}

// cacheUpdate writes an update to a cache, behind so many entries for each item of the batch.
func (c *call) cacheUpdate() []*value {
	x, y := c.shape(c.x(0)), c.shape(c.x(1))
	axis := c.axis(c.int("axis", -2), len(x))
	mode := c.oneOf("mode", "linear", "linear", "circular")
	same := slices.Clone(y)
	if len(y) == len(x) {
		same[axis] = x[axis]
	}
	if axis == 0 || !slices.Equal(same, x) || y[axis] > x[axis] {
		c.fail("an update of shape %v for %v along %d, mode %q", y, x, axis, mode)
	}
	at := asDim(arange(y[axis]), axis, len(x))
	if c.has(2) {
		c.failIf(!slices.Equal(c.shape(c.x(2)), x[:1]), "%v places for %d items", c.shape(c.x(2)), x[0])
		at = tensor.Add(at, asDim(c.integers(2), 0, len(x)))
	}
	if mode == "circular" {
		at = tensor.Map(array.Mod, at, number(float64(max(x[axis], 1)), at))
	}
	return c.like(tensor.ScatterElements(c.x(0), tensor.Alloc(at, sizes(y)...), c.x(1), axis, false))
}

// linearRule says what a step of LinearAttention does to the state of a head, and which sizes there are.
type linearRule struct {
	Batch, Steps, Queries, Heads, Keys, Values int
	Scale                                      float64
	Decay, Beta                                int // how many numbers there are for each step: 0 if there are none
}

// linearAttention lowers LinearAttention: attention without softmax, so that what was seen is a matrix for
// each head, which a step decays, corrects and adds to. Queries read it, several heads of them one.
func (c *call) linearAttention() []*value {
	q, k, v := c.shape(c.x(0)), c.shape(c.x(1)), c.shape(c.x(2))
	p := linearRule{Queries: c.int("q_num_heads", 0), Heads: c.int("kv_num_heads", 0)}
	if len(q) != 3 || len(k) != 3 || len(v) != 3 || p.Heads < 1 || p.Queries < 1 || p.Queries%p.Heads != 0 || q[2]%p.Queries != 0 || v[2]%p.Heads != 0 ||
		k[2] != q[2]/p.Queries*p.Heads || k[0] != q[0] || v[0] != q[0] || k[1] != q[1] || v[1] != q[1] {
		c.fail("queries of shape %v in %d heads, keys of %v and values of %v in %d", q, p.Queries, k, v, p.Heads)
	}
	p.Batch, p.Steps, p.Keys, p.Values = q[0], q[1], q[2]/p.Queries, v[2]/p.Heads
	if p.Scale = c.float("scale", 0); p.Scale == 0 {
		p.Scale = 1 / math.Sqrt(float64(max(p.Keys, 1)))
	}
	rule := c.text("update_rule", "gated_delta")
	gated, delta := rule == "gated" || rule == "gated_delta", rule == "delta" || rule == "gated_delta"
	if !gated && !delta && rule != "linear" || gated != c.has(4) || delta != c.has(5) {
		c.fail("update_rule %q, with a decay: %v, with a beta: %v", rule, c.has(4), c.has(5))
	}
	inputs := []variable{c.floats(0), c.floats(1), c.floats(2)}
	state, elem := []int{p.Batch, p.Heads, p.Keys, p.Values}, c.elem(0)
	c.bounded(state)
	if c.has(3) {
		elem = c.elem(3)
		inputs = append(inputs, c.stepsOf(3, state))
	} else {
		inputs = append(inputs, tensor.Alloc(tensor.Constant(array.Scalar(0.0)), sizes(state)...))
	}
	if gated {
		p.Decay = p.Heads
		if at(c.shape(c.x(4)), 2, 0) != p.Heads {
			p.Decay = p.Heads * p.Keys
		}
		inputs = append(inputs, c.stepsOf(4, []int{p.Batch, p.Steps, p.Decay}))
	}
	if delta {
		p.Beta = 1
		if at(c.shape(c.x(5)), 2, 0) != 1 {
			p.Beta = p.Heads
		}
		inputs = append(inputs, c.stepsOf(5, []int{p.Batch, p.Steps, p.Beta}))
	}
	y := routine(c, "LinearAttention", attended, p, inputs, tensor.NewType(array.Float64, p.Batch, p.Steps, p.Queries*p.Values), tensor.NewType(array.Float64, state...))
	return []*value{c.typed(y[0], c.elem(0)), c.typed(y[1], elem)}
}

// stepsOf returns an input as float64s, which must have a shape.
func (c *call) stepsOf(k int, want []int) variable {
	if have := c.shape(c.x(k)); !slices.Equal(have, want) {
		c.fail("input %d has the shape %v, not %v", k, have, want)
	}
	return c.floats(k)
}

// attended computes LinearAttention, one head after the other.
func attended(p linearRule, in []*array.Array) ([]*array.Array, error) {
	q, k, v := array.Slice[float64](in[0]), array.Slice[float64](in[1]), array.Slice[float64](in[2])
	state := in[3].Clone()
	var decay, beta []float64
	if rest := in[4:]; p.Decay > 0 {
		decay = array.Slice[float64](rest[0])
		// So that the betas are at one place with and without decays.
		in = in[1:]
	}
	if p.Beta > 0 {
		beta = array.Slice[float64](in[4])
	}
	y := array.New(array.Float64, p.Batch, p.Steps, p.Queries*p.Values)
	out, states := array.Slice[float64](y), array.Slice[float64](state)
	group := p.Queries / p.Heads
	fresh := make([]float64, p.Values)
	for b := range p.Batch {
		for h := range p.Heads {
			s := states[(b*p.Heads+h)*p.Keys*p.Values:][:p.Keys*p.Values]
			for t := range p.Steps {
				step := b*p.Steps + t
				key := k[(step*p.Heads+h)*p.Keys:][:p.Keys]
				copy(fresh, v[(step*p.Heads+h)*p.Values:][:p.Values])
				// First the decay: what the state answers below is what is left of it.
				if p.Decay > 0 {
					for i := range p.Keys {
						// There is one decay for a head, or one for each of its keys.
						at := step*p.Decay + h
						if p.Decay != p.Heads {
							at = step*p.Decay + h*p.Keys + i
						}
						// The decay is given as a logarithm.
						scaled(s[i*p.Values:][:p.Values], elementary.Exp(decay[at]))
					}
				}
				if p.Beta > 0 {
					// What the state already answers to this key need not be added again.
					for i, x := range key {
						added(fresh, s[i*p.Values:], -x)
					}
					at := step*p.Beta + h
					if p.Beta == 1 {
						at = step
					}
					scaled(fresh, beta[at])
				}
				for i, x := range key {
					added(s[i*p.Values:][:p.Values], fresh, x)
				}
				for g := range group {
					head := step*p.Queries + h*group + g
					answer := out[head*p.Values:][:p.Values]
					for i, x := range q[head*p.Keys:][:p.Keys] {
						added(answer, s[i*p.Values:], x)
					}
					scaled(answer, p.Scale)
				}
			}
		}
	}
	return []*array.Array{y, state}, nil
}

// scaled multiplies numbers by a factor.
func scaled(x []float64, by float64) {
	for i := range x {
		x[i] *= by
	}
}

// added adds multiples of other numbers.
func added(x, y []float64, by float64) {
	for i := range x {
		x[i] += float64(y[i] * by)
	}
}

// flexAttention lowers FlexAttention: attention whose scores and probabilities graphs may change.
func (c *call) flexAttention() []*value {
	q, k, v := c.shape(c.x(0)), c.shape(c.x(1)), c.shape(c.x(2))
	if len(q) != 4 || len(k) != 4 || len(v) != 4 || k[1] < 1 || q[1]%k[1] != 0 || v[1] != k[1] || k[0] != q[0] || v[0] != q[0] || k[2] != v[2] || k[3] != q[3] {
		c.fail("queries of shape %v, keys of %v and values of %v", q, k, v)
	}
	elem := onnx.Float
	if c.elem(0) == onnx.Double {
		elem = onnx.Double
	}
	if to := c.int("softmax_precision", 0); to != 0 {
		elem = onnx.DataType(to)
	}
	shape := []int{q[0], q[1], q[2], k[2]}
	c.bounded(shape)
	keys, values := c.x(1), c.x(2)
	if n := q[1] / k[1]; n > 1 {
		keys, values = tensor.Repeat(keys, tensor.Int(n), 1), tensor.Repeat(values, tensor.Int(n), 1)
	}
	scores := tensor.Matmul(c.x(0), tensor.DimShuffle(keys, 0, 1, 3, 2))
	scores = tensor.Mul(scores, number(c.float("scale", 1/math.Sqrt(float64(max(q[3], 1)))), scores))
	scores = c.modified("score_mod", scores, elem)
	p := c.reshape(tensor.Softmax(c.reshape(scores, []int{product(shape[:3]), shape[3]})), shape)
	return c.like(tensor.Matmul(tensor.Cast(c.modified("prob_mod", p, elem), tensor.TypeOf(values).DType()), values))
}

// modified runs a graph of the node, if there is one, on a tensor whose type and shape it keeps.
func (c *call) modified(body string, x variable, elem onnx.DataType) variable {
	in := c.typed(x, elem)
	if c.op.Body(body) == nil {
		return in.v
	}
	out := c.body(body).run(in)
	if len(out) != 1 || out[0].v == nil || out[0].elem != elem || !slices.Equal(c.shape(out[0].v), c.shape(x)) {
		c.fail("%s does not keep the type and shape of its input", body)
	}
	return out[0].v
}
