package pattern

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// Sub returns the rewriter that puts replacement in the place of what pattern
// matches:
//
//	pattern.Sub(vocab, "(true_div (mul x y) y)", "x")
//
// Everything that is wrong with the two is reported together, each error is
// found by [errors.Is] as one of those of this package.
//
// The rewriter proposes nothing where the replacement can't be made, or its type
// is not accepted by that of what it replaces.
func Sub(v Vocabulary, pattern, replacement string, list ...Option) (*Substitution, error) {
	in, err := Parse(pattern)
	if err != nil {
		return nil, err
	}
	out, err := ParseExpr(replacement)
	if err != nil {
		return nil, err
	}
	return New(v, Rule{in, out}, list...)
}

// Must is Sub for rules that are part of the program: it panics on an error.
func Must(v Vocabulary, pattern, replacement string, list ...Option) *Substitution {
	s, err := Sub(v, pattern, replacement, list...)
	if err != nil {
		panic(err)
	}
	return s
}

// Compile is Sub for a rule in one text: "(true_div (mul x y) y) => x".
func Compile(v Vocabulary, rule string, list ...Option) (*Substitution, error) {
	r, err := ParseRule(rule)
	if err != nil {
		return nil, err
	}
	return New(v, r, list...)
}

// New is Sub for a rule that was parsed, or built in Go.
func New(v Vocabulary, r Rule, list ...Option) (*Substitution, error) {
	if r.In.Expr == nil || r.Out == nil {
		return nil, fmt.Errorf("pattern: %w: a rule without pattern or replacement", ErrForm)
	}
	c := compiler{vocab: v, text: r.String(), opts: newOptions(list), used: make(map[string]bool)}
	walk(r.Out, func(e Expr) {
		if n, ok := e.(Name); ok {
			c.used[string(n)] = true
		}
	})
	s := &Substitution{rule: r, matcher: c.matcher(r.In), opts: c.opts}
	s.out = c.replacement(r.Out)
	if c.same(r.In.Expr, r.Out) {
		c.fault(0, ErrNoChange, "%s", r.Out)
	}
	if err := joined(c.faults); err != nil {
		return nil, err
	}
	s.tracks = tracks(v, r.In.Expr)
	if len(r.In.Guards) == 0 && len(s.opts.builders) == 0 {
		s.reach = reach(s.matcher.root)
	}
	return s, nil
}

// tracks returns the tracks of all ops that a pattern can begin with, or nil if
// one of them has none.
func tracks(v Vocabulary, e Expr) []rewrite.Track {
	var list []rewrite.Track
	calls, _ := rootCall(e)
	for _, call := range calls {
		op, _ := v.Op(call.Op)
		if len(op.Tracks) == 0 {
			return nil
		}
		for _, t := range op.Tracks {
			if !slices.ContainsFunc(list, func(have rewrite.Track) bool {
				return have.String() == t.String() && have.Op() == nil == (t.Op() == nil)
			}) {
				list = append(list, t)
			}
		}
	}
	return list
}

// reach returns how many levels of applies a pattern looks at, which is the
// distance of its leaves from the root.
func reach(n *node) int {
	if n.kind != isCall && n.kind != isOr {
		return 0
	}
	deepest := 0
	for _, arg := range n.args {
		deepest = max(deepest, reach(arg))
	}
	if n.kind == isOr {
		return deepest
	}
	return deepest + 1
}

// A Substitution is the node rewriter of a rule, Theano's PatternSub. It may be
// used by several goroutines.
type Substitution struct {
	rule    Rule
	matcher *Matcher
	out     *node
	tracks  []rewrite.Track
	reach   int
	opts    *options
}

// Rule returns the rule.
func (s *Substitution) Rule() Rule { return s.rule }

// String returns the rule as text.
func (s *Substitution) String() string { return s.rule.String() }

// RewriterName returns the name given by [Named] or, without one, the text.
func (s *Substitution) RewriterName() string {
	if s.opts.name != "" {
		return s.opts.name
	}
	return s.rule.String()
}

// RewriterDoc returns the sentence given by the option [Doc] or, without one, the text.
func (s *Substitution) RewriterDoc() string {
	if s.opts.doc != "" {
		return s.opts.doc
	}
	return s.rule.String()
}

// Tracks lists the ops at the root of the pattern.
func (s *Substitution) Tracks() []rewrite.Track { return s.tracks }

// Reach bounds how far from the root the rule looks: as deep as the pattern. It
// is 0, no bound, for a rule with Go functions, which may look anywhere.
func (s *Substitution) Reach() int { return s.reach }

// Inplace reports whether the replacement has an op that destroys an input, as far
// as the vocabulary tells which op a name stands for.
func (s *Substitution) Inplace() bool { return s.out.destroys() }

// destroys recurses as deep as the author of the replacement wrote it.
func (n *node) destroys() bool {
	for _, t := range n.op.Tracks {
		if destroys(t.Op()) {
			return true
		}
	}
	return slices.ContainsFunc(n.args, (*node).destroys)
}

func destroys(op fgraph.Op) bool {
	d, ok := op.(fgraph.Destroyer)
	return ok && len(d.DestroyMap()) > 0
}

// Transform proposes the replacement if n is the root of a match.
func (s *Substitution) Transform(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
	m := s.matcher.search(c, n)
	defer s.matcher.release(m)
	if !m.run() {
		return c.Miss("%v", m.reason...), nil
	}
	old := n.Out()
	made, err := m.make(s.out, old)
	switch {
	case err != nil:
		return c.Miss("the replacement can't be made: %v", err), nil
	case made == nil || made == old:
		return c.Miss("the replacement changes nothing"), nil
	case !old.Type().Accepts(made.Type()):
		return c.Miss("the replacement has type %v, not %v", made.Type(), old.Type()), nil
	}
	return rewrite.Result{Outputs: []*fgraph.Variable{made}}, nil
}

// make builds a replacement. It recurses as deep as its author wrote it. The
// result is nil where a builder did not want to.
func (m *matcher) make(n *node, like *fgraph.Variable) (*fgraph.Variable, error) {
	switch n.kind {
	case isName:
		return m.b.vars[n.slot], nil
	case isLiteral:
		return m.m.vocab.Constant(n.lit, like)
	}
	args := make([]*fgraph.Variable, 0, len(n.args))
	next := 0
	splice := func(at int) {
		for ; next < len(n.splice) && n.splice[next].at == at; next++ {
			args = append(args, m.b.rests[n.splice[next].slot]...)
		}
	}
	for i, arg := range n.args {
		splice(i)
		v, err := m.make(arg, like)
		if v == nil || err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	splice(len(n.args))
	return m.apply(n, args)
}

func (m *matcher) apply(n *node, args []*fgraph.Variable) (*fgraph.Variable, error) {
	if n.build != nil {
		return n.build(m.c, m.root, args)
	}
	op := &n.op
	if len(args) < op.MinInputs || op.MaxInputs >= 0 && len(args) > op.MaxInputs {
		return nil, fmt.Errorf("%w: %d for %s, which has %s", ErrArity, len(args), n.expr, inputsText(*op))
	}
	v, err := op.Make(args)
	if v == nil || err != nil || n.output == 0 {
		return v, err
	}
	outputs := v.Owner().Outputs()
	if n.output >= len(outputs) {
		return nil, fmt.Errorf("%w: %s, which has %d outputs", ErrForm, n.expr, len(outputs))
	}
	return outputs[n.output], nil
}
