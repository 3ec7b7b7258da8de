package pattern

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// A Case is a compiled [Rewrite] of a [Substitution], for programs that find matches in a way of
// their own. It is immutable.
type Case struct {
	k       rewriting
	rewrite Rewrite
}

// Cases returns the compiled rewrites of the rule, in order. Equations are two, see
// [Rewrite.Directions].
func (s *Substitution) Cases() []Case { return slices.Clone(s.both) }

// Configured returns the rule compiled with further options, in the same vocabulary.
func (s *Substitution) Configured(list ...Option) (*Substitution, error) {
	all := func(o *options) { *o = options{s.opts.name, s.opts.doc, s.opts.shared, slices.Clip(s.opts.functions)} }
	return New(s.Vocabulary(), s.rule, append([]Option{all}, list...)...)
}

// Vocabulary returns the vocabulary of the rule.
func (s *Substitution) Vocabulary() Vocabulary { return s.cases[0].in.vocab }

// A Binding is what a match binds to the names of a [Case], in the order of [Case.Names].
type Binding struct {
	Root   *fgraph.Apply // what the whole pattern matches
	Vars   []*fgraph.Variable
	Rests  [][]*fgraph.Variable
	Params []any // captured parameters
}

// Rewrite returns the rewrite as text has it.
func (c Case) Rewrite() Rewrite { return c.rewrite }

// Names returns the names that the pattern binds to variables, to rests and to parameters. The
// caller must not change them.
func (c Case) Names() (vars, rests, params []string) {
	return c.k.in.slots, c.k.in.rests, c.k.in.params
}

// Holds reports whether guard number i of the pattern holds for what its names are bound to: all
// variables and parameters in order.
func (c Case) Holds(i int, a Args) bool {
	g := &c.k.in.guards[i]
	return g.fn(a) != g.not
}

// Replace makes the replacement of a match, with the type that the vocabulary gives it. The error
// says why there is none.
func (c Case) Replace(ctx *rewrite.Context, b Binding) (*fgraph.Variable, error) {
	s := c.begin(ctx, b)
	defer s.end()
	if v := s.replace(c.k.out); v != nil {
		return v, nil
	}
	return nil, errNone(s.failed)
}

// errNone says why there is no replacement.
type errNone failure

func (e errNone) Error() string { return "pattern: " + failure(e).String() }

func (c Case) begin(ctx *rewrite.Context, b Binding) *search {
	s := c.k.in.begin(ctx, b.Root)
	copy(s.b.vars, b.Vars)
	copy(s.b.rests, b.Rests)
	copy(s.b.params, b.Params)
	return s
}
