package pattern

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// A Predicate is the Go function behind a guard. It is given the variables that
// the guard names. c is that of the rewriter, nil for a bare [Matcher].
type Predicate func(c *rewrite.Context, args []*fgraph.Variable) bool

// A Builder is a Go function that stands in a replacement like an op: it is
// given the arguments, already made, and the apply that is being replaced. It
// returns nil where it does not want to.
type Builder func(c *rewrite.Context, root *fgraph.Apply, args []*fgraph.Variable) (*fgraph.Variable, error)

// An Option changes how a pattern is compiled.
type Option func(*options)

type options struct {
	name, doc string
	shared    bool
	guards    map[string]Predicate
	builders  map[string]Builder
}

// Named gives the rewriter a name. Without one it is called by its text, as
// unnamed pattern rewriters are in Theano's profile.
func Named(name string) Option { return func(o *options) { o.name = name } }

// Doc documents the rewriter with a sentence, in place of its text.
func Doc(doc string) Option { return func(o *options) { o.doc = doc } }

// Shared lets the rule match although applies below the root have other clients,
// and will thus be computed still.
func Shared() Option { return func(o *options) { o.shared = true } }

// WithGuard gives a guard its meaning.
func WithGuard(name string, f Predicate) Option {
	return func(o *options) { o.guards[name] = f }
}

// WithBuilder gives a name that replacements use like an op its meaning. It comes
// before an op of the vocabulary with that name.
func WithBuilder(name string, f Builder) Option {
	return func(o *options) { o.builders[name] = f }
}

// WithFuncs gives several guards their meanings.
func WithFuncs(guards map[string]Predicate) Option {
	return func(o *options) { maps.Copy(o.guards, guards) }
}

func newOptions(list []Option) *options {
	o := &options{guards: make(map[string]Predicate), builders: make(map[string]Builder)}
	for _, option := range list {
		option(o)
	}
	return o
}

// A Matcher finds a pattern in graphs. It may be used by several goroutines.
type Matcher struct {
	pattern Pattern
	vocab   Vocabulary
	opts    *options
	root    *node
	guards  []guard
	slots   []string
	rests   []string
	pool    sync.Pool
}

// NewMatcher returns the matcher of a pattern. Everything that is wrong with the
// pattern is reported together.
func NewMatcher(v Vocabulary, text string, list ...Option) (*Matcher, error) {
	p, err := Parse(text)
	if err != nil {
		return nil, err
	}
	c := compiler{vocab: v, text: text, opts: newOptions(list)}
	m := c.matcher(p)
	if err := joined(c.faults); err != nil {
		return nil, err
	}
	return m, nil
}

// matcher compiles a pattern; c.used has to be known before.
func (c *compiler) matcher(p Pattern) *Matcher {
	m := &Matcher{pattern: p, vocab: c.vocab, opts: c.opts}
	if _, ok := rootCall(p.Expr); !ok {
		c.fault(0, ErrForm, "the pattern is not an op applied to arguments")
	}
	m.root = c.pattern(p.Expr, false)
	m.guards = c.guards(p.Guards)
	m.slots, m.rests = c.slots, c.rests
	c.clashes()
	m.pool.New = func() any {
		s := &matcher{m: m, b: bindings{make([]*fgraph.Variable, len(m.slots)), make([][]*fgraph.Variable, len(m.rests))}}
		s.reason = []any{&s.failed}
		return s
	}
	return m
}

// rootCall returns the calls that a pattern can begin with.
func rootCall(e Expr) ([]*Call, bool) {
	switch e := e.(type) {
	case *Call:
		return []*Call{e}, true
	case *Bind:
		return rootCall(e.Expr)
	case Or:
		var calls []*Call
		for _, alt := range e {
			list, ok := rootCall(alt)
			if !ok {
				return nil, false
			}
			calls = append(calls, list...)
		}
		return calls, len(calls) > 0
	}
	return nil, false
}

// Pattern returns what the matcher looks for.
func (m *Matcher) Pattern() Pattern { return m.pattern }

// Bindings is what the names of a pattern stand for in a match.
type Bindings struct {
	m *Matcher
	b bindings
}

// Variable returns the variable of a name, or nil.
func (b Bindings) Variable(name string) *fgraph.Variable {
	if i := slices.Index(b.m.slots, name); i >= 0 {
		return b.b.vars[i]
	}
	return nil
}

// Rest returns the variables that "...name" stands for.
func (b Bindings) Rest(name string) []*fgraph.Variable {
	if i := slices.Index(b.m.rests, name); i >= 0 {
		return b.b.rests[i]
	}
	return nil
}

// Match matches the pattern with the only output of an apply at its root.
func (m *Matcher) Match(a *fgraph.Apply) (Bindings, bool) {
	s := m.search(nil, a)
	defer m.release(s)
	if !s.run() {
		return Bindings{}, false
	}
	return Bindings{m, bindings{slices.Clone(s.b.vars), slices.Clone(s.b.rests)}}, true
}

// All yields the applies of a graph that are roots of a match, in the order of
// their numbers.
func (m *Matcher) All(g *fgraph.FunctionGraph) iter.Seq2[*fgraph.Apply, Bindings] {
	return func(yield func(*fgraph.Apply, Bindings) bool) {
		for a := range g.Applies() {
			if b, ok := m.Match(a); ok && !yield(a, b) {
				return
			}
		}
	}
}

// search returns a matcher for the apply, to be released after use.
func (m *Matcher) search(c *rewrite.Context, root *fgraph.Apply) *matcher {
	s := m.pool.Get().(*matcher)
	s.c, s.root = c, root
	return s
}

func (m *Matcher) release(s *matcher) {
	clear(s.b.vars)
	clear(s.b.rests)
	clear(s.inner)
	clear(s.goals)
	s.trail, s.inner, s.goals = s.trail[:0], s.inner[:0], s.goals[:0]
	s.c, s.root, s.depth, s.steps, s.failed = nil, nil, 0, 0, failure{}
	m.pool.Put(s)
}

func (m *matcher) run() bool {
	if len(m.root.Outputs()) != 1 {
		m.failed = failure{why: whyOutputs, v: m.root.Out()}
		return false
	}
	return m.solve(m.goal(goal{n: m.m.root, v: m.root.Out()}))
}

// joined reports several faults as one error, and none as nil.
func joined(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	if len(faults) == 1 {
		return faults[0]
	}
	return &multierror.Error{Errors: faults, ErrorFormat: func(list []error) string {
		s := fmt.Sprintf("%d faults:", len(list))
		for _, e := range list {
			s += "\n\t" + e.Error()
		}
		return s
	}}
}
