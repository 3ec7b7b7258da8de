package tensorpass

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

const (
	// trialSize is the size of a dimension of an input that is not known.
	trialSize = 8
	// trialCost is what the draws of a trial may cost, in the unit of tensor.Cost, apart from the first few.
	trialCost  = 300e9
	leastDraws = 3
	mostDraws  = 96
	// Calls that hand a state on are more: an error may grow from one to the next.
	leastCalls, mostCalls = 16, 96
)

// A draw is the inputs of a call.
type draw struct {
	inputs    []*array.Array
	continues bool           // what is carried is what the draw before has made
	exact     []*array.Array // what is compared, computed with float32s
}

// A carried state is an input that has, in the next call, the value of an output.
type carried struct{ in, out int }

// carriedBy returns the states that a graph seems to hand on to its next call: pairs of an input and an
// output of one type, the last ones first, if an input of another kind is left that brings something new.
// A graph that is called otherwise loses nothing but time: its products may get more bits than they need.
func carriedBy(g *fgraph.FunctionGraph) []carried {
	var list []carried
	in, out := g.Inputs(), g.Outputs()
	used := make([]bool, len(in))
	for o, v := range slices.Backward(out) {
		t := typeOf(v)
		if !t.DType().IsFloat() || t.IsCSR() || slices.Contains(t.Shape(), tensor.Unknown) || t.NDim() == 0 {
			continue
		}
		for i, x := range slices.Backward(in) {
			if tx := typeOf(x); !used[i] && tx.DType() == t.DType() && !tx.IsCSR() && slices.Equal(tx.Shape(), t.Shape()) {
				used[i] = true
				list = append(list, carried{i, o})
				break
			}
		}
	}
	for i, v := range in {
		if !used[i] && typeOf(v).NDim() > 0 {
			return list
		}
	}
	return nil
}

// What floats are drawn. Real inputs are of no known kind, and an error that is small for noise may be
// large for others: where few elements are large, all others are rounded to few levels.
const (
	noise = iota
	lines // noise whose lines, along the last dimension, are differently loud
	tones // a sum of waves along all dimensions
	quiet // noise that is small beside biases
	peaks // cubes of noise: few elements are large
	positive
	silence // the last one
	kinds
)

// drawsOf returns the inputs of a trial of a graph that costs so much: some by themselves, each of another
// kind, and if a state is carried, a sequence of calls that begins with zeros and changes its kind. It
// returns nil if an input is too large.
func drawsOf(g *fgraph.FunctionGraph, cost float64, state []carried) []*draw {
	r := rand.New(rand.NewPCG(1, 2))
	limits := indexLimits(g)
	for _, v := range g.Inputs() {
		if typeOf(v).IsCSR() || volume(trialShape(typeOf(v))) > trialBytes/4 {
			return nil
		}
	}
	bytes := 1
	for _, v := range slices.Concat(g.Inputs(), g.Outputs()) {
		bytes += typeOf(v).DType().Size() * volume(trialShape(typeOf(v)))
	}
	within := func(least, most int) int {
		n := min(max(int(trialCost/max(cost, 1)), least), most)
		return min(n, max(trialBytes/bytes, 1))
	}
	inputs := func(kind int) []*array.Array {
		list := make([]*array.Array, len(g.Inputs()))
		for i, v := range g.Inputs() {
			list[i] = randomInput(r, typeOf(v), limits[i], kind)
		}
		return list
	}
	var draws []*draw
	n := within(leastDraws, mostDraws)
	if !slices.ContainsFunc(g.Inputs(), func(v *variable) bool { return typeOf(v).DType().IsFloat() }) {
		n = min(n, kinds) // all kinds are one
	}
	for i := range n {
		kind := i
		if i >= kinds {
			kind = i % silence // of silence there is only one
		}
		draws = append(draws, &draw{inputs: inputs(kind)})
	}
	if len(state) == 0 {
		return draws
	}
	n = within(leastCalls, mostCalls)
	for i := range n {
		d := &draw{inputs: inputs(i * kinds / n), continues: i > 0}
		for _, s := range state {
			d.inputs[s.in] = array.New(d.inputs[s.in].DType(), d.inputs[s.in].Shape()...)
		}
		draws = append(draws, d)
	}
	return draws
}

// randomInput returns the value of an input: floats of a kind, integers that index are any index, other
// integers are 1 and bools true.
func randomInput(r *rand.Rand, t tensor.Type, limit, kind int) *array.Array {
	a := array.New(t.DType(), trialShape(t)...)
	if t.DType().IsFloat() {
		fill(r, a, kind)
		return a
	}
	for i := range a.Len() {
		if limit > 0 {
			a.SetFloat(i, float64(r.IntN(limit)))
		} else {
			a.SetFloat(i, 1)
		}
	}
	return a
}

// trialShape returns the shape of a value of a type.
func trialShape(t tensor.Type) []int {
	shape := slices.Clone(t.Shape())
	for d, n := range shape {
		if n == tensor.Unknown {
			shape[d] = trialSize
		}
	}
	return shape
}

// loudness is the standard deviation of the logarithm of how loud a line is: 17 dB.
const loudness = 2

// fill gives floats values of a kind.
func fill(r *rand.Rand, a *array.Array, kind int) {
	wave := func(int) float64 { return 0 }
	if kind == tones {
		wave = waves(r, a.Shape())
	}
	gain, line := 1.0, rowOf(a)
	for i := range a.Len() {
		if kind == lines && i%line == 0 {
			gain = elementary.Exp(loudness * r.NormFloat64())
		}
		x := r.NormFloat64()
		switch kind {
		case lines:
			x *= gain
		case tones:
			x = wave(i)
		case quiet:
			x *= 1.0 / 32
		case peaks:
			x *= float64(x * x)
		case positive:
			x = r.Float64()
		case silence:
			x = 0
		}
		a.SetFloat(i, x)
	}
}

// waves returns a sum of three waves of any length and direction, by element.
func waves(r *rand.Rand, shape []int) func(i int) float64 {
	const count, levels = 3, 1 << 8
	var wave [levels]float64
	for k := range wave {
		wave[k] = elementary.Sin(2 * math.Pi / levels * float64(k))
	}
	var phases [count][][]int // by wave and dimension, in 2⁻¹⁶ of a level
	for w := range phases {
		for _, n := range shape {
			list, step, at := make([]int, n), r.Float64(), r.IntN(levels<<16)
			step *= step // long waves are as likely as short ones
			for k := range list {
				list[k] = at
				at += int(step * (levels << 15)) // at most half a wave
			}
			phases[w] = append(phases[w], list)
		}
	}
	return func(i int) float64 {
		var at [count]int
		for d := len(shape) - 1; d >= 0; d-- {
			k := i % shape[d]
			i /= shape[d]
			for w := range at {
				at[w] += phases[w][d][k]
			}
		}
		return wave[at[0]>>16%levels] + wave[at[1]>>16%levels] + wave[at[2]>>16%levels]
	}
}

func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		if d != 0 && n > trialBytes/d {
			return trialBytes
		}
		n *= d
	}
	return n
}

// indexLimits returns, for each input that indexes a tensor, how many indexes there are at most, and 0 for
// others.
func indexLimits(g *fgraph.FunctionGraph) []int {
	limits := make([]int, len(g.Inputs()))
	number := make(map[*variable]int)
	for i, v := range g.Inputs() {
		number[v] = i
	}
	for a := range g.Ordered() {
		if _, ok := a.Op().(tensor.AdvancedSubtensorOp); !ok {
			continue
		}
		size := typeOf(a.Inputs()[0]).Dim(0)
		todo, seen := []*variable{a.Inputs()[1]}, make(map[*variable]bool)
		for len(todo) > 0 {
			v := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[v] || typeOf(v).DType().IsFloat() {
				continue
			}
			seen[v] = true
			if i, ok := number[v]; ok && size > 0 && (limits[i] == 0 || size < limits[i]) {
				limits[i] = size
			}
			if v.Owner() != nil {
				todo = append(todo, v.Owner().Inputs()...)
			}
		}
	}
	return limits
}
