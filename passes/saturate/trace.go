package saturate

import (
	"errors"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/rewrite"
)

// watched reports whether single rewrites are traced or allowed. If not, a saturation is one
// change.
func watched(o rewrite.Options) bool {
	return o.Steps || o.Trace != nil || o.Allow != nil
}

// show returns what the last replacement built for a variable.
func (b *bridge) show(f *form, v *fgraph.Variable) *egraph.Built {
	names := make(map[*fgraph.Variable]string)
	for i, v := range b.binding.Vars {
		if slices.Contains(f.used, f.vars[i]) {
			names[v] = f.vars[i]
		}
	}
	shown := make(map[*fgraph.Apply]*egraph.Built)
	var show func(v *fgraph.Variable) *egraph.Built
	show = func(v *fgraph.Variable) *egraph.Built {
		a := v.Owner()
		n, ok := b.built[a]
		if name := names[v]; !ok || name != "" {
			return &egraph.Built{Node: b.nodes[v], Name: name}
		}
		x := shown[a]
		if x == nil {
			x = &egraph.Built{Node: n}
			for _, in := range a.Inputs() {
				x.Inputs = append(x.Inputs, show(in))
			}
			shown[a] = x
		}
		if len(a.Outputs()) > 1 {
			x = &egraph.Built{Node: b.nodes[v], Inputs: []*egraph.Built{x}}
		}
		return x
	}
	return show(v)
}

// errUntraced means that the steps of an explanation can't be made in the graph one by one.
var errUntraced = errors.New("saturate: no steps")

// tracer changes the graph by the steps of an explanation, one after the other: those of each part
// replace the variable that represents a term by that of the next one.
type tracer struct {
	b     *bridge
	h     *rewrite.Handle
	parts *egraph.Parts

	given  map[egraph.Term]value // the variables of the graph before
	leaves map[egraph.Op]*fgraph.Variable
	terms  map[*fgraph.Variable]egraph.Term // of variables that represent terms
	now    map[egraph.Node]value            // what represents the term of a node that has a part
	final  map[egraph.Class]value

	local map[egraph.Term]value // those made for a part
	start egraph.Term           // of the part: what was made before for later terms may contain it
	todo  []egraph.Term
}

// value is a variable, or an apply with several outputs.
type value struct {
	v *fgraph.Variable
	a *fgraph.Apply
}

func (x value) owner() *fgraph.Apply {
	if x.a != nil {
		return x.a
	}
	return x.v.Owner()
}

// step replaces the roots as trace does, and by the results at once where trace gives up. It
// returns false if a feature objects, or a step is not allowed: then the graph keeps the steps
// before.
func (s *run) step(f *candidate) (bool, error) {
	now, err := s.trace(f.choice, s.first)
	// Some explanations have steps that the graph can't make one by one, for example through a term
	// of another type. The result is the same, so the rest is done at once.
	if !errors.Is(err, errUntraced) {
		return err == nil, err
	}
	if s.h.Denied() > 0 {
		return false, nil
	}
	roots := slices.Clone(s.in.roots)
	for i, v := range roots {
		if x, ok := now[s.b.nodes[v]]; ok {
			roots[i] = x.v
		}
	}
	return s.h.Replace("", nil, replacements(roots, f.results)...)
}

// trace replaces what represents the roots step by step. It returns what represents them now, and
// errUntraced if it gives up on the way.
func (s *run) trace(choice *egraph.Choice, first int) (map[egraph.Node]value, error) {
	b := s.b
	from := lists.Map(s.in.roots, func(v *fgraph.Variable) egraph.Node { return b.nodes[v] })
	parts, err := b.g.ExplainParts(s.p.program.rules, choice, from...)
	if err != nil {
		return nil, errUntraced
	}
	t := &tracer{
		b: b, h: s.h, parts: parts,
		given: make(map[egraph.Term]value), leaves: make(map[egraph.Op]*fgraph.Variable), terms: make(map[*fgraph.Variable]egraph.Term),
		now: make(map[egraph.Node]value), final: make(map[egraph.Class]value),
	}
	for n, source := range b.sources {
		op := b.g.Op(egraph.Node(n))
		if source.apply == nil && b.g.Arity(egraph.Node(n)) == 0 {
			t.leaves[op] = source.out
		}
		// Nodes below first are those of the graph: their variables represent their terms before
		// anything changes.
		if n < first {
			x := value{v: source.out}
			if source.out == nil {
				x.a = source.apply
			}
			t.given[parts.Term(egraph.Node(n))] = x
			if source.out != nil {
				t.terms[source.out] = parts.Term(egraph.Node(n))
			}
		}
	}
	if err := t.merge(); err != nil {
		return nil, err
	}
	for _, n := range from {
		t.now[n] = t.given[parts.Term(n)]
	}
	for i := range parts.List {
		if err := t.part(&parts.List[i]); err != nil {
			return t.now, err
		}
	}
	return t.now, nil
}

// merge replaces variables that are the same term as another one.
func (t *tracer) merge() error {
	var pairs []fgraph.Replacement
	for a := range t.b.fg.Ordered() {
		for _, v := range a.Outputs() {
			if n, ok := t.b.nodes[v]; ok && t.b.sources[n].out != v {
				pairs = append(pairs, fgraph.Replacement{Old: v, New: t.b.sources[n].out})
			}
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return t.replace(change{}, pairs...)
}

// A change is a step at its place in the term of a part.
type change struct {
	rule  string
	path  []int
	after egraph.Term        // of the whole part
	way   []*fgraph.Variable // what represented the terms on the way to the place before, the whole first
}

// replace makes the replacements of a change. What it shows of them is the term that has changed, and
// not the whole part, of which it may be a hundredth.
func (t *tracer) replace(c change, pairs ...fgraph.Replacement) error {
	if len(c.way) == 0 || len(pairs) != 1 {
		return t.done(t.h.Replace(c.rule, t.place(c.way), pairs...))
	}
	// Below the last place that is known in both, only the terms above can be shown.
	after := t.way(pairs[0].New, c.after, c.path)
	at := min(len(c.way), len(after)) - 1
	return t.done(t.h.ReplacePart(c.rule, fgraph.Replacement{Old: c.way[at], New: after[at]}, pairs...))
}

func (t *tracer) done(made bool, err error) error {
	if err == nil && !made {
		return errUntraced
	}
	return err
}

// part makes the steps of a part.
func (t *tracer) part(p *egraph.Part) error {
	x := t.now[p.From]
	t.local, t.start = make(map[egraph.Term]value), p.Start
	if len(p.Steps) > 0 && (x.v == nil || x.v.Owner() == nil) {
		return errUntraced
	}
	var c change
	for i := 0; i < len(p.Steps); i++ {
		s, before := p.Steps[i], p.Start
		if i > 0 {
			before = p.Steps[i-1].After
		}
		if s.Rule != "commutes" {
			c = change{s.Rule, s.Path, s.After, t.way(x.v, before, s.Path)}
		}
		for i+1 < len(p.Steps) && p.Steps[i+1].Rule == "commutes" { // vocabularies may look at the order
			i++
			s.After = p.Steps[i].After
		}
		if i == len(p.Steps)-1 {
			break
		}
		args := t.parts.Terms.Args(s.After)
		if s.Rule == "commutes" || len(args) == 0 {
			continue // the next step makes a difference
		}
		next := t.apply(s.After)
		if err := t.replace(c, fgraph.Replacement{Old: x.v, New: next.v}); err != nil {
			return err
		}
		x = next
		t.now[p.From] = x
	}
	return t.finish(p, x, c)
}

// finish replaces what represents a part by what is chosen.
func (t *tracer) finish(p *egraph.Part, x value, c change) error {
	class := t.b.g.Class(p.From)
	last, ok := t.final[class]
	if !ok {
		last = t.chosen(p, x)
		t.final[class] = last
	}
	t.now[p.From] = last
	// What nothing reads any more has left the graph with an earlier step.
	if x.owner() == nil || !t.b.fg.Contains(x.owner()) {
		return nil
	}
	var pairs []fgraph.Replacement
	if x.v != nil && x.v != last.v {
		pairs = append(pairs, fgraph.Replacement{Old: x.v, New: last.v})
	} else if x.a != nil && x.a != last.a {
		for i, v := range x.a.Outputs() {
			pairs = append(pairs, fgraph.Replacement{Old: v, New: last.a.Outputs()[i]})
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return t.replace(c, pairs...)
}

// chosen returns what is chosen for the class of a part, applied to what represents the inputs now,
// which have parts of their own. It is x if that is the same.
func (t *tracer) chosen(p *egraph.Part, x value) value {
	b := t.b
	n, from := p.Chosen, t.parts.Inputs(p.Chosen)
	for _, k := range from {
		if _, ok := t.now[k]; !ok {
			t.now[k] = t.input(p, x, k)
		}
	}
	source := b.sources[n]
	switch {
	case source.apply == nil && b.g.Arity(n) == 0:
		return value{v: source.out}
	case source.apply == nil:
		return value{v: t.now[from[0]].a.Outputs()[source.out.Index()]}
	}
	a := source.apply
	inputs := t.inputs(a, from, func(k egraph.Node) value { return t.now[k] })
	switch have := x.owner(); {
	case have != nil && slices.Equal(have.Inputs(), inputs) && fgraph.OpsEqual(have.Op(), a.Op()):
		return x
	case !slices.Equal(a.Inputs(), inputs):
		a = newApply(a, inputs)
	}
	if source.out == nil {
		return value{a: a}
	}
	return value{v: a.Out()}
}

// inputs returns what represents nodes, in the order of the inputs of an apply.
func (t *tracer) inputs(a *fgraph.Apply, nodes []egraph.Node, of func(egraph.Node) value) []*fgraph.Variable {
	g := t.b.g
	// A commutative op keeps its inputs sorted in the e-graph, so they are assigned by class; each
	// node is used up once, because two inputs may be of one class.
	left := slices.Clone(nodes)
	inputs := make([]*fgraph.Variable, len(a.Inputs()))
	for i, in := range a.Inputs() {
		class := g.Class(t.b.nodes[in])
		k := slices.IndexFunc(left, func(k egraph.Node) bool { return g.Class(k) == class })
		inputs[i] = of(left[k]).v
		left = slices.Delete(left, k, k+1)
	}
	return inputs
}

// input returns what represents a node that what is chosen for a part takes, in x if that was there
// before.
func (t *tracer) input(p *egraph.Part, x value, n egraph.Node) value {
	a, term := x.owner(), t.parts.Term(n)
	if len(p.Steps) > 0 || a == nil {
		return t.node(n)
	}
	if x.v != nil && t.b.g.Symbol(t.parts.Terms.Op(p.Start)) == t.b.p.output {
		return value{a: a}
	}
	// A variable that represents the term already is better than a new one, because readers then
	// see that nothing changed there.
	for _, in := range a.Inputs() {
		if have, ok := t.terms[in]; ok && have == term {
			return value{v: in}
		}
	}
	return t.node(n)
}

// node returns what represents the term of a node, with inputs in the order of the apply that it
// was made for.
func (t *tracer) node(n egraph.Node) value {
	term, source := t.parts.Term(n), t.b.sources[n]
	if x, ok := t.known(term); ok || source.apply == nil || source.out == nil {
		if ok {
			return x
		}
		return t.value(term)
	}
	a := newApply(source.apply, t.inputs(source.apply, t.parts.Inputs(n), func(k egraph.Node) value { return t.value(t.parts.Term(k)) }))
	t.terms[a.Out()] = term
	t.local[term] = value{v: a.Out()}
	return t.local[term]
}

// place returns the last apply on the way to a place, or nil.
func (t *tracer) place(way []*fgraph.Variable) *fgraph.Apply {
	for _, v := range slices.Backward(way) {
		if v.Owner() != nil {
			return v.Owner()
		}
	}
	return nil
}

// way returns the variables on the way to a place of a term that v represents, v first, as far as they
// are known.
func (t *tracer) way(v *fgraph.Variable, term egraph.Term, path []int) []*fgraph.Variable {
	way := []*fgraph.Variable{v}
	for _, k := range path {
		arg := t.parts.Terms.Args(term)[k]
		if t.b.g.Symbol(t.parts.Terms.Op(term)) == t.b.p.output {
			term = arg
			continue
		}
		is := func(in *fgraph.Variable) bool { x, ok := t.terms[in]; return ok && x == arg }
		if v.Owner() == nil {
			break
		}
		inputs := v.Owner().Inputs()
		if k >= len(inputs) || !is(inputs[k]) {
			k = slices.IndexFunc(inputs, is)
		}
		if k < 0 {
			break
		}
		v, term = inputs[k], arg
		way = append(way, v)
	}
	return way
}

// apply returns a new apply for a term.
func (t *tracer) apply(x egraph.Term) value {
	for _, arg := range t.parts.Terms.Args(x) {
		t.value(arg)
	}
	return t.make(x)
}

// value returns what represents a term, with all that computes it. What was there before is used if
// the term of the part can't be in it.
func (t *tracer) value(x egraph.Term) value {
	t.todo = append(t.todo[:0], x)
next:
	for len(t.todo) > 0 {
		top := t.todo[len(t.todo)-1]
		if _, ok := t.known(top); !ok {
			for _, arg := range t.parts.Terms.Args(top) {
				if _, ok := t.known(arg); !ok {
					t.todo = append(t.todo, arg)
					continue next
				}
			}
			t.local[top] = t.make(top)
		}
		t.todo = t.todo[:len(t.todo)-1]
	}
	v, _ := t.known(x)
	return v
}

func (t *tracer) known(x egraph.Term) (value, bool) {
	if v, ok := t.given[x]; ok && (x < t.start || v.v != nil && v.v.Owner() == nil) {
		return v, true
	}
	v, ok := t.local[x]
	return v, ok
}

// make makes what represents a term whose arguments are known.
func (t *tracer) make(x egraph.Term) value {
	g, op, args := t.b.g, t.parts.Terms.Op(x), t.parts.Terms.Args(x)
	switch {
	case g.Symbol(op) == t.b.p.output:
		tuple, _ := t.known(args[0])
		v := tuple.a.Outputs()[g.Param(op).(int)]
		t.terms[v] = x
		return value{v: v}
	case len(args) == 0 && t.leaves[op] != nil:
		return value{v: t.leaves[op]}
	}
	info := t.b.ops[g.Param(op).(int32)]
	inputs := make([]*fgraph.Variable, len(args))
	for i, arg := range args {
		in, _ := t.known(arg)
		inputs[i] = in.v
	}
	a := fgraph.NewApply(info.op, inputs, info.types...)
	if len(info.types) > 1 {
		return value{a: a}
	}
	t.terms[a.Out()] = x
	return value{v: a.Out()}
}
