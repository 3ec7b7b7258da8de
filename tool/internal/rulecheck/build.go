package rulecheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
)

// A builder makes an expression that a pattern matches, as choices say.
type builder struct {
	domain Domain
	vocab  pattern.Vocabulary
	tape   *Tape
	draw   Drawer
	binds  map[string]pattern.Expr
	asked  map[string]bool // names that guards and formulas look at
	vars   map[string]*fgraph.Variable
	rests  map[string][]*fgraph.Variable
	params map[string]any
	consts []*fgraph.Variable
}

func newBuilder(d Domain, v pattern.Vocabulary, w pattern.Rewrite) *builder {
	b := &builder{domain: d, vocab: v, binds: make(map[string]pattern.Expr), asked: make(map[string]bool)}
	for _, g := range w.In.Guards {
		for _, name := range g.Args {
			b.asked[name] = true
		}
	}
	pattern.Walk(w.Out, func(e pattern.Expr) {
		if f, ok := e.(pattern.Calc); ok {
			for _, name := range strings.FieldsFunc(string(f), func(r rune) bool { return strings.ContainsRune("+-*/() ", r) }) {
				b.asked[name] = true
			}
		}
	})
	pattern.Walk(w.In.Expr, func(e pattern.Expr) {
		if bind, ok := e.(*pattern.Bind); ok {
			b.binds[bind.Name] = bind.Expr
		}
	})
	return b
}

// ErrUnfit says that an op can't have the inputs that were drawn.
var ErrUnfit = errors.New("rulecheck: the types do not fit")

// build makes an expression in a graph of its own.
func (b *builder) build(e pattern.Expr, t *Tape) (in *Instance, err error) {
	defer recovered(&err, ErrUnfit)
	b.tape, b.consts = t, nil
	b.vars, b.rests, b.params = make(map[string]*fgraph.Variable), make(map[string][]*fgraph.Variable), make(map[string]any)
	b.draw = b.domain.Begin(t)
	v, err := b.expr(e)
	if err != nil {
		return nil, err
	}
	if v.Owner() == nil {
		return nil, ErrUnfit
	}
	g, err := b.domain.Graph([]*fgraph.Variable{v})
	if err != nil {
		return nil, err
	}
	return &Instance{Graph: g, Constants: b.consts, choices: slices.Clone(t.choices[:t.at])}, nil
}

// expr makes a part of a pattern.
func (b *builder) expr(e pattern.Expr) (*fgraph.Variable, error) {
	switch e := e.(type) {
	case pattern.Name:
		return b.name(string(e))
	case pattern.Any:
		return b.argument(fmt.Sprintf("any%d", len(b.vars)+1))
	case pattern.Literal:
		return b.draw.Literal(e)
	case *pattern.Bind:
		return b.name(e.Name)
	case pattern.Or:
		return b.expr(e[b.tape.Draw(len(e))])
	case *pattern.Call:
		return b.call(e)
	}
	return nil, fmt.Errorf("%w: %v", ErrUnfit, e)
}

// name returns the variable that replaces a name.
func (b *builder) name(name string) (v *fgraph.Variable, err error) {
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
func (b *builder) argument(name string) (*fgraph.Variable, error) {
	v, err := b.draw.Argument(name, b.asked[name])
	switch {
	case err != nil:
	case v.IsConstant():
		b.consts = append(b.consts, v)
	default:
		b.vars[name] = v
	}
	return v, err
}

// call applies an op.
func (b *builder) call(e *pattern.Call) (*fgraph.Variable, error) {
	var args []*fgraph.Variable
	fixed := e.Args
	if n := len(fixed); n > 0 {
		if _, ok := fixed[n-1].(pattern.Rest); ok {
			fixed = fixed[:n-1]
		}
	}
	// Arguments are made before the op, because names in them may bind its parameters.
	placer, _ := b.draw.(Placer)
	base, _, _ := strings.Cut(e.Op, "{")
	for _, a := range fixed {
		if placer != nil {
			placer.Place(base, args)
		}
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
		args = append(args, b.rest(string(e.Args[len(fixed)].(pattern.Rest)), op, base, args)...)
		retries = 0
	}
	// A matcher finds operands of a commutative op in any order, so the expression has them as
	// written or rotated.
	if op.Commutes && len(args) > 1 {
		if k := b.tape.Draw(3) * (len(args) - 1) / 2; k > 0 {
			args = append(slices.Clone(args[k:]), args[:k]...)
		}
	}
	v, err := Apply(op, family, args, param)
	for ; err != nil && retries > 0; retries-- {
		if op, _, _, err = b.operator(e); err == nil {
			v, err = Apply(op, family, args, param)
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
	return nil, ErrUnfit
}

// Apply applies an op, which is one of a family unless that is nil.
func Apply(op pattern.Operator, family *pattern.Operator, args []*fgraph.Variable, param any) (*fgraph.Variable, error) {
	if len(args) < op.MinInputs || op.MaxInputs >= 0 && len(args) > op.MaxInputs || op.Make == nil {
		return nil, ErrUnfit
	}
	making := pattern.Making{Inputs: args, Param: param}
	if len(args) > 0 {
		making.Like = args[0]
	}
	v, err := op.Make(making)
	if err == nil && (v == nil || v.Owner() == nil || family != nil && !family.Match(v.Owner().Op())) {
		err = ErrUnfit
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
	op, known := b.vocab.Operator(e.Op)
	if known && op.Make != nil {
		return op, nil, nil, nil
	}
	// A name can stand for ops that it does not tell apart, such as all components of a type. Rules
	// match them without a parameter; to make one takes the family.
	name, _ := captured(e)
	base, _, _ := strings.Cut(e.Op, "{")
	var f pattern.Operator
	families, ok := b.vocab.(pattern.Families)
	if ok {
		f, ok = families.Family(base)
	}
	switch {
	case !ok && known:
		return op, nil, nil, nil // which Apply refuses
	case !ok:
		return op, nil, nil, fmt.Errorf("%w: %s", pattern.ErrUnknownOp, e.Op)
	}
	if p := b.params[name]; p != nil {
		return f, &f, p, nil
	}
	members := b.domain.Members(base)
	if len(members) == 0 {
		return op, nil, nil, fmt.Errorf("rulecheck: no op of the family %s is known", base)
	}
	return members[b.tape.Draw(len(members))], &f, nil, nil
}

// maxRest bounds the arguments that replace a rest, unless they are indexes.
const maxRest = 3

// rest makes the remaining arguments of an op, of which there are some already. If the op has
// inputs that are indexes, which print as underscores, they are those.
func (b *builder) rest(name string, op pattern.Operator, base string, inputs []*fgraph.Variable) []*fgraph.Variable {
	have := len(inputs)
	if list, ok := b.rests[name]; ok && name != "" {
		return list
	}
	count := b.tape.Draw(maxRest + 1)
	indexes := b.draw.Indexes(op, have)
	if indexes >= 0 {
		count = indexes
	}
	if op.MaxInputs >= 0 {
		count = min(count, op.MaxInputs-have)
	}
	list := make([]*fgraph.Variable, 0, max(count, 0))
	for i := range count {
		label := name
		if label == "" {
			label = "any"
		}
		label = fmt.Sprintf("%s%d", label, i+1)
		for b.vars[label] != nil || b.binds[label] != nil {
			label += "_"
		}
		if placer, ok := b.draw.(Placer); ok {
			placer.Place(base, slices.Concat(inputs, list))
		}
		v := b.draw.Rest(label, indexes >= 0)
		b.vars[label] = v
		list = append(list, v)
	}
	if name != "" {
		b.rests[name] = list
	}
	return list
}
