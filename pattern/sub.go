package pattern

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// Sub returns the rewriter that replaces matches of pattern with replacement:
//
//	pattern.Sub(vocab, "(true_div (mul x y) y)", "x")
//
// It reports all mistakes together; each is one of the errors of this package according to
// [errors.Is].
//
// The rewriter proposes nothing if the replacement can't be made or has an incompatible type.
func Sub(v Vocabulary, pattern, replacement string, list ...Option) (*Substitution, error) {
	in, err := Parse(pattern)
	if err != nil {
		return nil, err
	}
	out, err := ParseExpr(replacement)
	if err != nil {
		return nil, err
	}
	return New(v, Rewrite{in, out}, list...)
}

// Must is like Sub, but panics on an error. It is for rules that are part of a program.
func Must(v Vocabulary, pattern, replacement string, list ...Option) *Substitution {
	s, err := Sub(v, pattern, replacement, list...)
	if err != nil {
		panic(err)
	}
	return s
}

// Compile is like Sub for a rule in one text: "(true_div (mul x y) y) => x".
func Compile(v Vocabulary, rule string, list ...Option) (*Substitution, error) {
	r, err := ParseRewrite(rule)
	if err != nil {
		return nil, err
	}
	return New(v, r, list...)
}

// New is like Sub for a rewrite that was parsed, or built in Go.
func New(v Vocabulary, r Rewrite, list ...Option) (*Substitution, error) {
	if r.In.Expr == nil || r.Out == nil {
		return nil, fmt.Errorf("pattern: %w: a rule without pattern or replacement", ErrForm)
	}
	c := compiler{vocab: v, text: r.String(), opts: newOptions(list), used: make(map[string]bool)}
	walk(r.Out, func(e Expr) {
		if n, ok := e.(Name); ok {
			c.used[string(n)] = true
		}
	})
	s := &Substitution{rewrite: r, matcher: c.matcher(r.In), opts: c.opts}
	s.out = c.replacement(r.Out)
	if c.same(r.In.Expr, r.Out) {
		c.fault(0, ErrNoChange, "%s", r.Out)
	}
	if err := joined(c.faults); err != nil {
		return nil, err
	}
	s.tracks = tracks(v, r.In.Expr)
	if len(r.In.Guards) == 0 && len(s.opts.builders) == 0 {
		s.depth = depth(s.matcher.root)
	}
	return s, nil
}

// tracks returns the tracks of all ops that can be the root of a pattern, or nil if one of them
// has none.
func tracks(v Vocabulary, e Expr) []rewrite.Track {
	var list []rewrite.Track
	calls, _ := rootCall(e)
	for _, call := range calls {
		op, _ := v.Operator(call.Op)
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

// depth returns how many levels of applies a pattern inspects, which is the distance of its
// leaves from the root.
func depth(n *node) int {
	if n.kind != isCall && n.kind != isOr {
		return 0
	}
	deepest := 0
	for _, arg := range n.args {
		deepest = max(deepest, depth(arg))
	}
	if n.kind == isOr {
		return deepest
	}
	return deepest + 1
}

// A Substitution is the node rewriter of a [Rewrite], Theano's PatternSub. It is safe for
// concurrent use.
type Substitution struct {
	rewrite Rewrite
	matcher *Matcher
	out     *node
	tracks  []rewrite.Track
	depth   int
	opts    *options
}

// Rewrite returns the pattern and the replacement.
func (s *Substitution) Rewrite() Rewrite { return s.rewrite }

// String returns the rewrite as text.
func (s *Substitution) String() string { return s.rewrite.String() }

// Describe describes the rewriter. The depth is that of the pattern, but unbounded if the rule
// has Go functions, which may look anywhere. Whether the replacement destroys an input follows
// from the tracks of its operators.
func (s *Substitution) Describe() rewrite.Description {
	d := rewrite.Description{Name: s.opts.name, Doc: s.opts.doc, Destroys: s.out.destroys(), Depth: s.depth}
	if d.Name == "" || d.Doc == "" {
		text := s.rewrite.String()
		d.Name, d.Doc = cmp.Or(d.Name, text), cmp.Or(d.Doc, text)
	}
	return d
}

// Tracks lists the ops at the root of the pattern.
func (s *Substitution) Tracks() []rewrite.Track { return s.tracks }

// destroys reports whether a replacement has an op that destroys an input.
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
	m := s.matcher.begin(c, n)
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

// make builds a replacement. The result is nil if a builder returned nil.
func (s *search) make(n *node, like *fgraph.Variable) (*fgraph.Variable, error) {
	switch n.kind {
	case isName:
		return s.b.vars[n.slot], nil
	case isLiteral:
		return s.m.vocab.Constant(n.lit, like)
	}
	args := make([]*fgraph.Variable, 0, len(n.args))
	next := 0
	splice := func(at int) {
		for ; next < len(n.splice) && n.splice[next].at == at; next++ {
			args = append(args, s.b.rests[n.splice[next].slot]...)
		}
	}
	for i, arg := range n.args {
		splice(i)
		v, err := s.make(arg, like)
		if v == nil || err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	splice(len(n.args))
	return s.apply(n, args)
}

func (s *search) apply(n *node, args []*fgraph.Variable) (*fgraph.Variable, error) {
	if n.build != nil {
		return n.build(s.c, s.root, args)
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
