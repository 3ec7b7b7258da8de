package tensortest

import (
	"errors"
	"math"
	"math/rand/v2"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

type variable = fgraph.Variable

// A Motif is the text of an expression. Its variables are those of Vars.
type Motif string

// Vars declares the inputs of generated expressions and of motifs. All unknown sizes are one size.
const Vars = "x y z w: vector; X Y Z: matrix; s b: scalar; t: tensor3; f: float32 vector; F: float32 matrix; i j: int64 vector; n m: int64 scalar;" +
	"p q: bool vector; r: row; c: col; S: csr; v: float64[3]; k: int64[3]; V: float64[3, 3]"

// SmallVars declares integers of fewer than 64 bits, see [NewGeneratorOf].
const SmallVars = "g: int8 vector; h: uint8 vector; G: int32 matrix; H: uint8 matrix; o: uint8 scalar; e: int8 scalar"

// A Generator makes random expressions. It computes every part at once, and drops a part whose
// values are not finite, are large, are so close to a jump of a function that rounding decides, or
// depend on how intermediate results are rounded (see [noise]).
type Generator struct {
	// Motifs are expressions to use as parts, with other parts in place of their variables.
	Motifs []Motif
	// Patterns are patterns of rules to use as parts, with other parts in place of their names.
	Patterns []pattern.Expr
	// Vocabulary gives the ops in Patterns their meaning.
	Vocabulary pattern.Vocabulary

	rng    *rand.Rand
	scope  *expr.Scope
	args   []*array.Array
	pool   []item
	values map[*variable]*array.Array
	noise  noise
	shared []*variable // computed for the last part, to be parts of their own
}

type item struct {
	v     *variable
	value *array.Array
	used  bool
}

// size is used for every unknown size.
const size = 3

// NewGenerator returns a generator that has its inputs. The same seed gives the same expressions.
func NewGenerator(seed uint64) *Generator { return NewGeneratorOf(seed, "") }

// NewGeneratorOf returns a generator that also has the inputs that a text declares.
func NewGeneratorOf(seed uint64, vars string) *Generator {
	g := &Generator{rng: rand.New(rand.NewPCG(seed, 42)), scope: expr.NewScope(), values: make(map[*variable]*array.Array), noise: newNoise(seed)}
	if err := g.scope.Declare(Vars + "; " + vars); err != nil {
		panic(err)
	}
	for _, v := range g.scope.Inputs() {
		a := g.argument(tensor.TypeOf(v))
		g.args = append(g.args, a)
		g.values[v] = a
		g.noise.exact(v, a)
		g.pool = append(g.pool, item{v, a, true})
	}
	return g
}

// argument returns a value for an input: floats away from zero and from integers, or integers that
// are valid indexes.
func (g *Generator) argument(t tensor.Type) *array.Array {
	shape := t.Shape()
	for d, n := range shape {
		if n == tensor.Unknown {
			shape[d] = size
		}
	}
	a := array.New(t.DType(), shape...)
	for i := range a.Len() {
		switch d := t.DType(); {
		case d == array.Bool:
			a.SetFloat(i, float64(g.rng.IntN(2)))
		case d.IsInteger():
			a.SetFloat(i, float64(g.rng.IntN(size)))
		default:
			v := 0.1 + float64(0.8*g.rng.Float64())
			if g.rng.IntN(2) == 0 {
				v = -v
			}
			a.SetFloat(i, v)
		}
	}
	if t.IsCSR() {
		for i := range a.Len() {
			if g.rng.IntN(2) == 0 {
				a.SetFloat(i, 0)
			}
		}
		return array.ToCSR(a)
	}
	return a
}

// Inputs returns the inputs and their values.
func (g *Generator) Inputs() ([]*variable, []*array.Array) { return g.scope.Inputs(), g.args }

// Outputs returns n parts, or fewer. Parts that nothing else uses come first.
func (g *Generator) Outputs(n int) []*variable {
	var out []*variable
	for _, again := range []bool{false, true} {
		for i := len(g.pool) - 1; i >= len(g.args) && len(out) < n; i-- {
			if g.pool[i].used == again {
				out = append(out, g.pool[i].v)
			}
		}
	}
	if len(out) == 0 {
		out = append(out, g.pool[0].v)
	}
	return out
}

// Grow adds n parts, or fewer if most attempts fail.
func (g *Generator) Grow(n int) {
	for made, tries := 0, 0; made < n && tries < 50*n; tries++ {
		if g.step() {
			made++
		}
	}
}

// step tries to add a part.
func (g *Generator) step() bool {
	var from []int // of the pool
	pick := func(ok func(item) bool) *variable {
		i := g.choose(ok)
		if i < 0 {
			return nil
		}
		from = append(from, i)
		return g.pool[i].v
	}
	g.shared = nil
	v, err := tensor.Try(func() *variable { return g.part(pick) })
	if err != nil || v == nil {
		return false
	}
	a, ok := g.compute(v)
	if !ok {
		return false
	}
	// Only now: a part that was dropped uses nothing.
	for _, i := range from {
		g.pool[i].used = true
	}
	for _, w := range g.shared {
		if b := g.values[w]; b != nil && w != v {
			g.pool = append(g.pool, item{w, b, false})
		}
	}
	g.pool = append(g.pool, item{v, a, false})
	return true
}

// choose returns the index of a part that fits, more likely of a late one, or -1.
func (g *Generator) choose(ok func(item) bool) int {
	for range 40 {
		i := g.rng.IntN(len(g.pool))
		// Late parts consist of others, so that expressions become deep and not only many.
		if g.rng.IntN(3) > 0 {
			i = max(i, g.rng.IntN(len(g.pool)))
		}
		if ok(g.pool[i]) {
			return i
		}
	}
	return -1
}

// compute computes a part, and reports whether to keep it.
func (g *Generator) compute(v *variable) (*array.Array, bool) {
	todo := []*variable{v}
	for len(todo) > 0 {
		w := todo[len(todo)-1]
		if g.values[w] != nil {
			todo = todo[:len(todo)-1]
			continue
		}
		if a := tensor.ConstantOf(w); a != nil {
			g.values[w] = a
			g.noise.exact(w, a)
			continue
		}
		if w.Owner() == nil {
			return nil, false
		}
		ready := true
		for _, in := range w.Owner().Inputs() {
			if g.values[in] == nil {
				todo, ready = append(todo, in), false
			}
		}
		if ready && !g.apply(w.Owner()) {
			return nil, false
		}
	}
	return g.values[v], true
}

// apply computes an apply of known inputs, and reports whether to keep it.
func (g *Generator) apply(a *fgraph.Apply) bool {
	in := lists.Map(a.Inputs(), func(v *fgraph.Variable) *array.Array { return g.values[v] })
	if !smooth(a, in) {
		return false
	}
	k, err := tensor.Compile(a)
	if err != nil {
		return false
	}
	out, ok := run(a, k, in)
	if !ok {
		return false
	}
	for i := range out {
		if out[i].Len() > 500 || !moderate(out[i]) {
			return false
		}
	}
	if !g.noise.apply(a, k, out) {
		return false
	}
	for i, v := range a.Outputs() {
		g.values[v] = out[i]
	}
	return true
}

// run runs the kernel of an apply, and reports whether that has no error.
func run(a *fgraph.Apply, k tensor.Kernel, in []*array.Array) ([]*array.Array, bool) {
	out, err := tensor.Run(a, k, new(array.Workspace), in)
	if errors.Is(err, tensor.ErrPanic) {
		panic(err) // a fault of the kernel is not to be passed over
	}
	return out, err == nil
}

// moderate reports whether all elements are finite, and neither large nor tiny. It is false for half
// floats, whose rounding hides faults.
func moderate(a *array.Array) bool {
	if a.DType().IsHalf() {
		return false
	}
	for i := range a.Len() {
		// Not v >= 1e3, which is false for NaN.
		if v := math.Abs(a.Float(i)); !(v < 1e3) || a.DType().IsFloat() && v != 0 && v < 1e-4 {
			return false
		}
	}
	return true
}

// smooth reports whether no argument is so close to a jump of the op that rounding decides.
func smooth(a *fgraph.Apply, in []*array.Array) bool {
	const near = 1e-3
	far := func(x *array.Array, f func(float64) float64) bool {
		for i := range x.Len() {
			if x.DType().IsFloat() && math.Abs(f(x.Float(i))) < near {
				return false
			}
		}
		return true
	}
	self := func(v float64) float64 { return v }
	toInteger := func(v float64) float64 { return v - math.Round(v) }
	switch op := a.Op().(type) {
	case tensor.ArgmaxOp, tensor.ArgsortOp:
		return !equalElements(in[0], near)
	case tensor.Elemwise:
		switch op.Op {
		case array.Floor, array.Ceil, array.Trunc:
			return far(in[0], toInteger)
		case array.Round:
			return far(in[0], func(v float64) float64 { return toInteger(v + 0.5) })
		case array.Sgn, array.Abs, array.Log, array.Sqrt, array.Inv:
			return far(in[0], self)
		case array.Cast:
			switch {
			case op.To == array.Bool:
				return far(in[0], self)
			case !op.To.IsFloat():
				return far(in[0], toInteger)
			}
			return true
		case array.TrueDiv, array.IntDiv, array.Mod, array.Eq, array.Neq, array.Lt, array.Le, array.Gt, array.Ge, array.Pow, array.Arctan2, array.Xlogy, array.Xlog1py, array.Copysign, array.Hypot:
			return smoothPair(op.Op, a, in, near)
		case array.Tan, array.Arctanh, array.Arcsin, array.Arccos, array.Arccosh:
			return far(in[0], func(v float64) float64 { return math.Abs(v) - 1 }) && far(in[0], elementary.Cos)
		case array.Erfinv, array.Erfcinv, array.Log1mexp, array.Cbrt, array.Gamma, array.GammaLn, array.Psi:
			return far(in[0], toInteger)
		case array.Polygamma:
			return far(in[0], toInteger) && far(in[1], toInteger)
		case array.Switch:
			return !in[0].DType().IsFloat() || far(in[0], self)
		}
	case tensor.Reduce:
		if op.Op == array.All || op.Op == array.Any {
			return far(in[0], self)
		}
	}
	return true
}

// smoothPair is smooth for operations on two arguments.
func smoothPair(op array.Opcode, a *fgraph.Apply, in []*array.Array, near float64) bool {
	// Both sides round alike, whatever the graph becomes, so that a comparison is decided.
	if a.Inputs()[0] == a.Inputs()[1] && op != array.TrueDiv && op != array.IntDiv && op != array.Mod {
		return true
	}
	x, y := in[0], in[1]
	if !x.DType().IsFloat() && !y.DType().IsFloat() {
		return op != array.TrueDiv && op != array.IntDiv && op != array.Mod || !hasZero(y)
	}
	for i := range x.Len() {
		for j := range y.Len() {
			u, v := x.Float(i), y.Float(j)
			var d float64
			switch op {
			case array.TrueDiv:
				d = v
			case array.IntDiv, array.Mod:
				if d = v; math.Abs(v) > near {
					// The quotient jumps at every integer.
					d = u/v - math.Round(u/v)
				}
			case array.Pow:
				// Polynomials have no jump. Any other power is steep, infinite or NaN near 0.
				if d = u; v == math.Round(v) && v >= 0 {
					d = 1
				}
			case array.Arctan2:
				// The angle is undecided at the origin, and jumps by 2π at the negative half of the axis.
				d = max(math.Abs(u), math.Abs(v))
				if v < 0 {
					d = min(d, math.Abs(u))
				}
			case array.Xlogy, array.Copysign:
				d = min(math.Abs(u), math.Abs(v))
			case array.Xlog1py:
				d = min(math.Abs(u), math.Abs(v+1))
			case array.Hypot:
				d = max(math.Abs(u), math.Abs(v))
			default:
				d = u - v
			}
			if math.Abs(d) < near {
				return false
			}
		}
	}
	return true
}

// hasZero reports whether an element is 0.
func hasZero(a *array.Array) bool {
	for i := range a.Len() {
		if a.Float(i) == 0 {
			return true
		}
	}
	return false
}
