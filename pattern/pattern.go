package pattern

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/errlist"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/rewrite"
)

// An Option changes how a pattern is compiled.
type Option func(*options)

type options struct {
	name, doc string
	shared    bool
	functions []Function
}

// Named sets the name of the rewriter. The default is its text, as in Theano's profile.
func Named(name string) Option { return func(o *options) { o.name = name } }

// Doc sets the documentation of the rewriter, one sentence. The default is its text.
func Doc(doc string) Option { return func(o *options) { o.doc = doc } }

// Shared lets the rule match even if applies below the root have other clients, and will
// therefore still be computed.
func Shared() Option { return func(o *options) { o.shared = true } }

// With defines functions. They take precedence over those of the vocabulary, and over an op of the
// same name.
func With(list ...Function) Option {
	return func(o *options) { o.functions = append(o.functions, list...) }
}

// WithGuard defines the function of a guard, which may look anywhere in the graph.
func WithGuard(name string, holds func(Args) bool) Option {
	return With(Function{Name: name, Holds: holds})
}

func newOptions(v Vocabulary, list []Option) *options {
	o := new(options)
	if lib, ok := v.(Library); ok {
		o.functions = slices.Clip(lib.Functions())
	}
	for _, option := range list {
		option(o)
	}
	return o
}

// function returns the function of a name. Those of options come after those of the vocabulary, and
// override them.
func (o *options) function(name string) (Function, bool) {
	for _, f := range slices.Backward(o.functions) {
		if f.Name == name {
			return f, true
		}
	}
	return Function{}, false
}

// functionHint returns which function the name of an unknown one may have been meant to be.
func (o *options) functionHint(name string) string {
	names := lists.Map(o.functions, func(f Function) string { return f.Name })
	return spell.Hint(name, names)
}

// A Matcher finds matches of a pattern in graphs. It is safe for concurrent use.
type Matcher struct {
	pattern  Pattern
	vocab    Vocabulary
	numberer Numberer // the vocabulary, if it is one
	opts     *options
	root     *node
	guards   []guard
	slots    []string
	rests    []string
	params   []string
}

// NewMatcher returns the matcher of a pattern. It reports all mistakes in the pattern together.
func NewMatcher(v Vocabulary, text string, list ...Option) (*Matcher, error) {
	p, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if err := reserved(v, p.Expr); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", fileio.Excerpt(text, 0), err)
	}
	c := compiler{vocab: v, text: text, opts: newOptions(v, list)}
	m := c.matcher(p)
	if err := errlist.Join(c.faults); err != nil {
		return nil, err
	}
	return m, nil
}

// matcher compiles a pattern. c.used must be set before.
func (c *compiler) matcher(p Pattern) *Matcher {
	m := &Matcher{pattern: p, vocab: c.vocab, opts: c.opts}
	m.numberer, _ = c.vocab.(Numberer)
	if _, ok := rootCall(p.Expr); !ok {
		c.fault(0, ErrForm, "the pattern is not an op applied to arguments")
	}
	m.root = c.pattern(p.Expr, false)
	m.guards = c.guards(p.Guards)
	m.slots, m.rests, m.params = c.slots, c.rests, c.params
	c.clashes()
	return m
}

// rootCall returns the calls that can be the root of a pattern.
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

// Pattern returns the pattern.
func (m *Matcher) Pattern() Pattern { return m.pattern }

// Bindings are the variables to which a match binds names.
type Bindings struct {
	m *Matcher
	b bindings
}

// Variable returns the variable bound to a name, or nil.
func (b Bindings) Variable(name string) *fgraph.Variable {
	if i := slices.Index(b.m.slots, name); i >= 0 {
		return b.b.vars[i]
	}
	return nil
}

// Rest returns the variables bound to "...name".
func (b Bindings) Rest(name string) []*fgraph.Variable {
	if i := slices.Index(b.m.rests, name); i >= 0 {
		return b.b.rests[i]
	}
	return nil
}

// Param returns the parameters bound to a name, or nil.
func (b Bindings) Param(name string) any {
	if i := slices.Index(b.m.params, name); i >= 0 {
		return b.b.params[i]
	}
	return nil
}

// Match matches the pattern with a, which must have a single output, at its root.
func (m *Matcher) Match(a *fgraph.Apply) (Bindings, bool) {
	s := m.begin(nil, a)
	defer s.end()
	if !s.run() {
		return Bindings{}, false
	}
	return Bindings{m, bindings{slices.Clone(s.b.vars), slices.Clone(s.b.rests), slices.Clone(s.b.params)}}, true
}

// All yields the applies of a graph that are roots of a match, by increasing number.
func (m *Matcher) All(g *fgraph.FunctionGraph) iter.Seq2[*fgraph.Apply, Bindings] {
	return func(yield func(*fgraph.Apply, Bindings) bool) {
		for a := range g.Applies() {
			if b, ok := m.Match(a); ok && !yield(a, b) {
				return
			}
		}
	}
}

// searches are the memory of searches for any matcher, so that it is warm.
var searches = sync.Pool{New: func() any {
	s := new(search)
	s.reason = []any{&s.failed}
	return s
}}

// begin returns a search at an apply, to be released after use.
func (m *Matcher) begin(c *rewrite.Context, root *fgraph.Apply) *search {
	s := searches.Get().(*search)
	// The slices are as long as the pattern has names, and clear: end has cleared them.
	s.m, s.c, s.root = m, c, root
	s.b = bindings{sized(s.b.vars, len(m.slots)), sized(s.b.rests, len(m.rests)), sized(s.b.params, len(m.params))}
	return s
}

// sized returns a cleared slice with another length.
func sized[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, n, max(n, 8))
	}
	return s[:n]
}

// end releases a search. s may be nil.
func (s *search) end() {
	if s == nil {
		return
	}
	// The memory goes back to the pool, and must not keep graphs alive.
	clear(s.b.vars)
	clear(s.b.rests)
	clear(s.b.params)
	clear(s.inner)
	clear(s.scratch.Vars[:cap(s.scratch.Vars)])
	clear(s.scratch.Params[:cap(s.scratch.Params)])
	clear(s.goals)
	s.trail, s.inner, s.goals = s.trail[:0], s.inner[:0], s.goals[:0]
	s.m, s.c, s.root, s.depth, s.steps, s.failed = nil, nil, nil, 0, 0, failure{}
	searches.Put(s)
}

func (s *search) run() bool {
	if len(s.root.Outputs()) != 1 {
		s.failed = failure{why: whyOutputs, v: s.root.Out()}
		return false
	}
	return s.solve(s.goal(goal{n: s.m.root, v: s.root.Out()}))
}
