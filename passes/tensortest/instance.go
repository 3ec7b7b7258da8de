package tensortest

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// An instance is what a pattern becomes with other parts in place of its names.
type instance struct {
	g      *Generator
	pick   picker
	vars   map[string]*variable
	rests  map[string][]*variable
	params map[string]any
	like   *variable   // the part that was picked last
	inner  []*variable // what is made below the root
}

// instance makes a part that a random pattern matches, as far as its guards hold.
func (g *Generator) instance(pick picker) *variable {
	m := &instance{g: g, pick: pick, vars: map[string]*variable{}, rests: map[string][]*variable{}, params: map[string]any{}}
	v := m.make(g.Patterns[g.rng.IntN(len(g.Patterns))])
	// Others may use what is below the root then, and a rule that matches must leave it as it is.
	if v != nil && g.rng.IntN(3) == 0 {
		g.shared = m.inner
	}
	return v
}

// make makes an expression of a pattern. It returns nil if nothing fits.
func (m *instance) make(e pattern.Expr) *variable {
	switch e := e.(type) {
	case pattern.Name:
		return m.name(string(e), nil)
	case pattern.Any:
		return m.leaf()
	case pattern.Literal:
		return m.number(e)
	case pattern.Or:
		return m.make(e[m.g.rng.IntN(len(e))])
	case *pattern.Bind:
		v := m.make(e.Expr)
		m.vars[e.Name] = v
		return v
	case *pattern.Call:
		return m.call(e)
	}
	return nil
}

// name returns what a name means, which is v or, if v is nil, any part if it is new.
func (m *instance) name(name string, v *variable) *variable {
	if have := m.vars[name]; have != nil {
		return have
	}
	if v == nil {
		v = m.leaf()
	}
	m.vars[name] = v
	return v
}

// leaf picks a part. Mostly it broadcasts with the last one.
func (m *instance) leaf() *variable {
	var v *variable
	if m.like != nil && m.g.rng.IntN(8) > 0 {
		v = m.g.pickLike(m.pick, m.like)
	} else {
		v = m.pick(anything)
	}
	if v != nil && !v.IsConstant() {
		m.like = v
	}
	return v
}

// number makes a number of a fitting type. Sometimes it is broadcast.
func (m *instance) number(l pattern.Literal) *variable {
	dtype := array.Float64
	if t, ok := array.ParseDType(l.Type()); ok {
		dtype = t
	} else if m.like != nil && m.g.rng.IntN(2) == 0 {
		dtype = tensor.TypeOf(m.like).DType()
	}
	if x := l.Float(); !dtype.IsFloat() && (x != float64(int64(x)) || dtype == array.Bool) {
		dtype = array.Float64
	}
	v := tensor.Constant(array.Full(dtype, l.Float()))
	if m.like != nil && m.g.rng.IntN(6) == 0 {
		return tensor.Second(m.like, v)
	}
	return v
}

// call makes an apply. Parameters of ops, and some arguments, are those of another apply of the op.
func (m *instance) call(e *pattern.Call) *variable {
	op, ok := m.g.Vocabulary.Operator(e.Op)
	base, param, _ := strings.Cut(strings.TrimSuffix(e.Op, "}"), "{")
	if families, can := m.g.Vocabulary.(pattern.Families); !ok && can {
		op, ok = families.Family(base)
	}
	if !ok || op.Make == nil {
		return nil
	}
	in, model := m.arguments(e.Args, op)
	making := pattern.Making{Inputs: in}
	if op.Param != nil {
		if making.Param = m.params[param]; making.Param == nil {
			if model == nil {
				return nil
			}
			making.Param = op.Param(model.Op())
			m.params[param] = making.Param
		}
	}
	if len(making.Inputs) == 0 || slices.Contains(making.Inputs, nil) {
		return nil
	}
	making.Like = making.Inputs[0]
	v, err := op.Make(making)
	if err != nil || v == nil || v.Owner() == nil || e.Output >= len(v.Owner().Outputs()) {
		return nil
	}
	v = v.Owner().Outputs()[e.Output]
	m.inner = append(m.inner, v)
	return v
}

// arguments makes the arguments of an apply. Those of an op that is not element-wise have to fit
// together, so another apply, the model, lends the inputs that are not determined yet.
func (m *instance) arguments(list []pattern.Expr, op pattern.Operator) (in []*variable, model *fgraph.Apply) {
	model = m.g.applyOf(op.Match)
	for k, arg := range list {
		// Parameters such as axes have to fit the first argument, which is known now.
		if k == 1 && op.Param != nil && in[0] != nil {
			model = m.g.applyOn(in[0], op.Match, model)
		}
		switch arg := arg.(type) {
		case pattern.Rest:
			rest, ok := m.rests[string(arg)]
			if !ok {
				rest = m.rest(k, model)
				m.rests[string(arg)] = rest
			}
			in = append(in, rest...)
		case pattern.Name:
			var v *variable
			if structural(model) && k < len(model.Inputs()) && (k > 0 || m.g.rng.IntN(2) == 0) {
				v = model.Inputs()[k]
			}
			in = append(in, m.name(string(arg), v))
		default:
			in = append(in, m.make(arg))
		}
	}
	if op.Commutes {
		// Rules have to match in any order of the arguments.
		m.g.rng.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
	}
	if len(list) == 1 && op.Param != nil && len(in) == 1 && in[0] != nil {
		model = m.g.applyOn(in[0], op.Match, model)
	}
	return in, model
}

// rest makes the inputs from k on.
func (m *instance) rest(k int, model *fgraph.Apply) []*variable {
	if structural(model) {
		return model.Inputs()[min(k, len(model.Inputs())):]
	}
	var rest []*variable
	for range m.g.rng.IntN(3) {
		rest = append(rest, m.leaf())
	}
	return rest
}

// structural reports whether there is an apply, and its op is not element-wise.
func structural(a *fgraph.Apply) bool {
	if a == nil {
		return false
	}
	_, elemwise := a.Op().(tensor.Elemwise)
	return !elemwise
}

// applyOf returns an apply of an op among the parts, or nil.
func (g *Generator) applyOf(match func(fgraph.Op) bool) *fgraph.Apply {
	i := g.choose(func(it item) bool { return it.v.Owner() != nil && match(it.v.Owner().Op()) })
	if i < 0 {
		return nil
	}
	return g.pool[i].v.Owner()
}

// applyOn returns a random apply of an op to x, or else the other one.
func (g *Generator) applyOn(x *variable, match func(fgraph.Op) bool, other *fgraph.Apply) *fgraph.Apply {
	a, ok := g.compute(x)
	if !ok {
		return other
	}
	only := func(ok func(item) bool) *variable {
		if ok(item{x, a, true}) {
			return x
		}
		return nil
	}
	kinds := []func(picker) *variable{g.reduce, g.dimShuffle, g.subtensor, g.cast, g.join, g.reshape, g.unary}
	for range 100 {
		v, err := tensor.Try(func() *variable { return kinds[g.rng.IntN(len(kinds))](only) })
		if err == nil && v != nil && v.Owner() != nil && match(v.Owner().Op()) {
			return v.Owner()
		}
	}
	return other
}
