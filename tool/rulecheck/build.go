package rulecheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A builder makes an expression that a pattern matches, as choices say.
type builder struct {
	vocab    pattern.Vocabulary
	opts     *Options
	ops      *opTable
	tape     *tape
	binds    map[string]pattern.Expr
	known    map[string]bool // names that guards and formulas look at
	vars     map[string]*variable
	rests    map[string][]*variable
	params   map[string]any
	consts   []*variable
	dtype    array.DType
	shape    []int
	scatters int // 1: element types differ; 2: shapes do
}

func newBuilder(v pattern.Vocabulary, o *Options, ops *opTable, w pattern.Rewrite) *builder {
	b := &builder{vocab: v, opts: o, ops: ops, binds: make(map[string]pattern.Expr), known: make(map[string]bool)}
	for _, g := range w.In.Guards {
		for _, name := range g.Args {
			b.known[name] = true
		}
	}
	walk(w.Out, func(e pattern.Expr) {
		if f, ok := e.(pattern.Calc); ok {
			for _, name := range strings.FieldsFunc(string(f), func(r rune) bool { return strings.ContainsRune("+-*/() ", r) }) {
				b.known[name] = true
			}
		}
	})
	walk(w.In.Expr, func(e pattern.Expr) {
		if bind, ok := e.(*pattern.Bind); ok {
			b.binds[bind.Name] = bind.Expr
		}
	})
	return b
}

// walk calls f for every part of an expression.
func walk(e pattern.Expr, f func(pattern.Expr)) {
	f(e)
	switch e := e.(type) {
	case *pattern.Call:
		for _, a := range e.Args {
			walk(a, f)
		}
	case pattern.Or:
		for _, a := range e {
			walk(a, f)
		}
	case *pattern.Bind:
		walk(e.Expr, f)
	}
}

// build makes an expression in a graph of its own.
func (b *builder) build(e pattern.Expr, t *tape) (in *instance, err error) {
	defer recovered(&err, errUnfit)
	b.tape, b.consts = t, nil
	b.vars, b.rests, b.params = make(map[string]*variable), make(map[string][]*variable), make(map[string]any)
	b.dtype, b.shape = dtypes[t.draw(len(dtypes))], baseShapes[t.draw(len(baseShapes))]
	b.scatters = t.draw(4)
	v, err := b.expr(e)
	if err != nil {
		return nil, err
	}
	if v.Owner() == nil {
		return nil, errUnfit
	}
	g, err := tensor.NewGraph(tensor.InputsOf(v), []*variable{v})
	if err == nil {
		err = g.Attach(tensor.NewShapes())
	}
	if err != nil {
		return nil, err
	}
	return &instance{graph: g, consts: b.consts, choices: slices.Clone(t.choices[:t.at])}, nil
}

// expr makes a part of a pattern.
func (b *builder) expr(e pattern.Expr) (*variable, error) {
	switch e := e.(type) {
	case pattern.Name:
		return b.name(string(e))
	case pattern.Any:
		return b.argument(fmt.Sprintf("any%d", len(b.vars)+1))
	case pattern.Literal:
		return b.literal(e)
	case *pattern.Bind:
		return b.name(e.Name)
	case pattern.Or:
		return b.expr(e[b.tape.draw(len(e))])
	case *pattern.Call:
		return b.call(e)
	}
	return nil, fmt.Errorf("%w: %v", errUnfit, e)
}

// name returns the variable that replaces a name.
func (b *builder) name(name string) (v *variable, err error) {
	if v := b.vars[name]; v != nil {
		return v, nil
	}
	if e, ok := b.binds[name]; ok {
		v, err = b.expr(e)
	} else {
		v, err = b.argument(name)
	}
	if err == nil {
		b.vars[name] = v
	}
	return v, err
}

// argument makes an input or a constant.
func (b *builder) argument(name string) (*variable, error) {
	t, given := b.opts.Types[name]
	if !given {
		t = b.chooseType()
	}
	// Most names are inputs. One that a guard or a formula looks at is a constant half of the time,
	// because guards mostly ask for its value; or it is the size of a dimension, because guards
	// also ask for shapes.
	odds := 16
	if b.known[name] {
		odds = 2
		if !given && b.tape.maybe(8) {
			return b.size(name)
		}
	}
	if !b.tape.maybe(odds) || t.IsCSR() {
		v := newInput(t, name)
		b.vars[name] = v
		return v, nil
	}
	v := b.constant(t, given)
	b.consts = append(b.consts, v)
	return v, nil
}

// size makes the size of a dimension, if the vocabulary has an op for it.
func (b *builder) size(name string) (*variable, error) {
	op, ok := b.vocab.Operator("Shape_i{0}")
	if !ok {
		return nil, errUnfit
	}
	of := newInput(tensor.NewType(b.dtype, tensor.Unknown), name+"_of")
	v, err := apply(op, nil, []*variable{of}, nil)
	if err == nil {
		b.vars[name] = v
	}
	return v, err
}

// call applies an op.
func (b *builder) call(e *pattern.Call) (*variable, error) {
	var args []*variable
	fixed := e.Args
	if n := len(fixed); n > 0 {
		if _, ok := fixed[n-1].(pattern.Rest); ok {
			fixed = fixed[:n-1]
		}
	}
	// Arguments are made before the op, because names in them may bind its parameters.
	for _, a := range fixed {
		v, err := b.expr(a)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	op, family, param, err := b.operator(e)
	if err != nil {
		return nil, err
	}
	// The parameters of an op of a family, such as the axes of a sum, fit few arguments. Another op
	// for the same arguments is much cheaper than another expression. A rest was made for the first
	// op and its number of inputs, so there is no retry with one.
	retries := 0
	if family != nil && param == nil {
		retries = 6
	}
	if len(fixed) < len(e.Args) {
		args = append(args, b.rest(string(e.Args[len(fixed)].(pattern.Rest)), op, len(args))...)
		retries = 0
	}
	// A matcher finds operands of a commutative op in any order, so the expression has them as
	// written or rotated.
	if op.Commutes && len(args) > 1 {
		if k := b.tape.draw(3) * (len(args) - 1) / 2; k > 0 {
			args = append(slices.Clone(args[k:]), args[:k]...)
		}
	}
	v, err := apply(op, family, args, param)
	for ; err != nil && retries > 0; retries-- {
		if op, _, _, err = b.operator(e); err == nil {
			v, err = apply(op, family, args, param)
		}
	}
	if err != nil {
		return nil, err
	}
	if name, ok := captured(e); ok && family != nil && b.params[name] == nil {
		b.params[name] = family.Param(v.Owner().Op())
	}
	if outs := v.Owner().Outputs(); e.Output < len(outs) {
		return outs[e.Output], nil
	}
	return nil, errUnfit
}

// apply applies an op, which is one of a family unless that is nil.
func apply(op pattern.Operator, family *pattern.Operator, args []*variable, param any) (*variable, error) {
	if len(args) < op.MinInputs || op.MaxInputs >= 0 && len(args) > op.MaxInputs || op.Make == nil {
		return nil, errUnfit
	}
	making := pattern.Making{Inputs: args, Param: param}
	if len(args) > 0 {
		making.Like = args[0]
	}
	v, err := op.Make(making)
	if err == nil && (v == nil || v.Owner() == nil || family != nil && !family.Match(v.Owner().Op())) {
		err = errUnfit
	}
	return v, err
}

// captured returns the name to which a call binds parameters.
func captured(e *pattern.Call) (string, bool) {
	_, name, ok := strings.Cut(e.Op, "{")
	return strings.TrimSuffix(name, "}"), ok
}

// operator returns the operator of a call: of a family, one that is in the list of ops, or the
// family itself if the parameters are bound.
func (b *builder) operator(e *pattern.Call) (op pattern.Operator, family *pattern.Operator, param any, err error) {
	op, ok := b.vocab.Operator(e.Op)
	if ok {
		return op, nil, nil, nil
	}
	name, _ := captured(e)
	base, _, _ := strings.Cut(e.Op, "{")
	members, f := b.ops.members(b.vocab, base)
	if f == nil {
		return op, nil, nil, fmt.Errorf("%w: %s", pattern.ErrUnknownOp, e.Op)
	}
	if p := b.params[name]; p != nil {
		return *f, f, p, nil
	}
	if len(members) == 0 {
		return op, nil, nil, fmt.Errorf("rulecheck: no op of the family %s is known; see Options.Ops", base)
	}
	return members[b.tape.draw(len(members))], f, nil, nil
}

// maxRest bounds the arguments that replace a rest, unless they are indexes.
const maxRest = 3

// rest makes the remaining arguments of an op, of which there are some already. If the op has
// inputs that are indexes, which print as underscores, they are those.
func (b *builder) rest(name string, op pattern.Operator, have int) []*variable {
	if list, ok := b.rests[name]; ok && name != "" {
		return list
	}
	count, indexes := b.tape.draw(maxRest+1), false
	if len(op.Tracks) == 1 && op.Tracks[0].Op() != nil {
		if _, parameters, ok := strings.Cut(op.Tracks[0].Op().String(), "{"); ok && have == 1 && !op.Commutes {
			count, indexes = strings.Count(parameters, "_"), true
		}
	}
	if op.MaxInputs >= 0 {
		count = min(count, op.MaxInputs-have)
	}
	list := make([]*variable, 0, max(count, 0))
	for i := range count {
		label := name
		if label == "" {
			label = "any"
		}
		label = fmt.Sprintf("%s%d", label, i+1)
		for b.vars[label] != nil || b.binds[label] != nil {
			label += "_"
		}
		t, given := b.opts.Types[label]
		switch {
		case given:
		case indexes:
			t = tensor.ScalarType(array.Int64)
		default:
			t = b.chooseType()
		}
		v := newInput(t, label)
		b.vars[label] = v
		list = append(list, v)
	}
	if name != "" {
		b.rests[name] = list
	}
	return list
}
