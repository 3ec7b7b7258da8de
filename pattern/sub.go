package pattern

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/errlist"
	"github.com/nnopt/nnopt/internal/fileio"
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
	return New(v, Rule{Cases: []Rewrite{{In: in, Out: out}}}, list...)
}

// Must is like Sub, but panics on an error. It is for rules that are part of a program.
func Must(v Vocabulary, pattern, replacement string, list ...Option) *Substitution {
	s, err := Sub(v, pattern, replacement, list...)
	if err != nil {
		panic(err)
	}
	return s
}

// Compile is like Sub for a rewrite in one text: "(true_div (mul x y) y) => x".
func Compile(v Vocabulary, text string, list ...Option) (*Substitution, error) {
	r, err := ParseRewrite(text)
	if err != nil {
		return nil, err
	}
	return New(v, Rule{Cases: []Rewrite{r}}, list...)
}

// New is like Sub for a rule that was parsed, or built in Go. Name and documentation are those of
// the rule, unless options say otherwise. It uses equations from left to right, and reports
// mistakes of both directions, with file and line if the rule was read from a file.
func New(v Vocabulary, r Rule, list ...Option) (*Substitution, error) {
	s := &Substitution{rule: r, opts: newOptions(v, list)}
	var faults []error
	fault := func(line int, list ...error) {
		for _, err := range list {
			if r.File != "" {
				err = r.locate(line, err)
			}
			faults = append(faults, err)
		}
	}
	switch {
	case r.Go != "":
		fault(r.Line, fmt.Errorf("pattern: %w: it is a Go function", ErrForm))
	case len(r.Cases) == 0:
		fault(r.Line, fmt.Errorf("pattern: %w: a rule without rewrites", ErrForm))
	}
	for _, w := range r.Cases {
		if w.In.Expr == nil || w.Out == nil {
			return nil, fmt.Errorf("pattern: %w: a rule without pattern or replacement", ErrForm)
		}
		s.texts = append(s.texts, w.String())
		// What follows from such alternatives would be several mistakes, or none, and none would say what
		// is wrong.
		if err := reserved(v, w.In.Expr, w.Out); err != nil {
			faults = nil
			fault(w.Line, fmt.Errorf("pattern %q: %w", fileio.Excerpt(w.String(), 0), err))
			break
		}
		// The other direction of an equation is compiled for those who use it, as saturation does,
		// and for its mistakes. Transform uses the first one only: with both, a rewrite would be
		// undone by the next one.
		for i, d := range w.Directions() {
			c := compiler{vocab: v, text: w.String(), backward: i > 0, opts: s.opts, used: make(map[string]bool)}
			compiled := c.rewrite(d)
			if i == 0 {
				s.cases = append(s.cases, compiled)
			}
			s.both = append(s.both, Case{compiled, d})
			fault(w.Line, c.faults...)
		}
	}
	if err := errlist.Join(faults); err != nil {
		return nil, err
	}
	s.tracks = tracks(v, s.cases)
	for _, k := range s.cases {
		d := k.depth()
		// Depth 0 means that a rule may look anywhere, so it outdoes all other depths.
		if d == 0 {
			s.depth = 0
			break
		}
		s.depth = max(s.depth, d)
	}
	text := s.String()
	s.opts.name = cmp.Or(s.opts.name, r.Name, text)
	s.opts.doc = cmp.Or(s.opts.doc, r.Doc, text)
	return s, nil
}

// reserved returns an error if expressions have alternatives, "(or x y)", although the vocabulary has an
// op of that name, which it could not be told from.
func reserved(v Vocabulary, exprs ...Expr) error {
	alternatives := false
	for _, e := range exprs {
		Walk(e, func(e Expr) {
			if _, ok := e.(Or); ok {
				alternatives = true
			}
		})
	}
	if !alternatives || !names(v, "or") {
		return nil
	}
	return fmt.Errorf("%w: \"(or x y)\" are alternatives, \"what x matches, or else what y does\", and never an op. "+
		"The vocabulary has an op with the name \"or\"; give it another one in rules, such as \"or_\"", ErrReserved)
}

// names reports whether a vocabulary has an op or a family of that name, but not one of any name.
func names(v Vocabulary, name string) bool {
	has := func(name string) bool {
		if _, ok := v.Operator(name); ok {
			return true
		}
		f, ok := v.(Families)
		if ok {
			_, ok = f.Family(name)
		}
		return ok
	}
	return has(name) && !has("no op has this name")
}

// A rewriting is a compiled [Rewrite].
type rewriting struct {
	in  *Matcher
	out *node
}

func (c *compiler) rewrite(r Rewrite) rewriting {
	// Names of the replacement are collected first: the applies of a pattern that are bound to one
	// of them are kept, and may have other clients.
	Walk(r.Out, func(e Expr) {
		if n, ok := e.(Name); ok {
			c.used[string(n)] = true
		}
	})
	in := c.matcher(r.In)
	out := c.replacement(r.Out)
	// A rule that replaces something by itself would be applied for ever.
	if c.same(r.In.Expr, r.Out) {
		c.fault(0, ErrNoChange, "%s", r.Out)
	}
	return rewriting{in, out}
}

// depth returns how many levels of applies a rewriting inspects, 0 if there is no bound.
func (w rewriting) depth() int {
	beyond := 0
	for _, g := range w.in.guards {
		if g.depth == 0 {
			return 0
		}
		beyond = max(beyond, g.depth-1)
	}
	if w.out.calls() {
		return 0
	}
	return depth(w.in.root) + beyond
}

// calls reports whether a replacement calls a function that may look anywhere.
func (n *node) calls() bool {
	return n.fn != nil && n.fn.Depth == 0 || slices.ContainsFunc(n.args, (*node).calls)
}

// tracks returns the tracks of all ops that can be the root of a case, or nil if one of them has
// none.
func tracks(v Vocabulary, cases []rewriting) []rewrite.Track {
	var list []rewrite.Track
	c := compiler{vocab: v}
	for _, k := range cases {
		calls, _ := rootCall(k.in.pattern.Expr)
		for _, call := range calls {
			op, _, _ := c.operator(call.Op)
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

// A Substitution is the node rewriter of a [Rule], Theano's PatternSub. It is safe for concurrent
// use.
type Substitution struct {
	rule   Rule
	cases  []rewriting
	both   []Case   // with the other directions of equations
	texts  []string // of the cases
	tracks []rewrite.Track
	depth  int
	opts   *options
}

// Rule returns the rule.
func (s *Substitution) Rule() Rule { return s.rule }

// String returns the cases of the rule as text, a line each.
func (s *Substitution) String() string { return strings.Join(s.texts, "\n") }

// Describe describes the rewriter. The depth is that of the pattern and its functions. Whether the
// replacement destroys an input follows from the tracks of its operators.
func (s *Substitution) Describe() rewrite.Description {
	d := rewrite.Description{Name: s.opts.name, Doc: s.opts.doc, Depth: s.depth, Cases: s.texts}
	if s.rule.File != "" {
		d.Place = fmt.Sprintf("%s:%d", s.rule.File, s.rule.Line)
	}
	for _, k := range s.cases {
		d.Destroys = d.Destroys || k.out.destroys()
	}
	return d
}

// Tracks lists the ops at the root of the pattern.
func (s *Substitution) Tracks() []rewrite.Track { return s.tracks }

// destroys reports whether a replacement has an op that destroys an input.
func (n *node) destroys() bool {
	return slices.ContainsFunc(n.op.Tracks, func(t rewrite.Track) bool { return fgraph.Destroys(t.Op()) }) || slices.ContainsFunc(n.args, (*node).destroys)
}

// Transform proposes the replacement of the first case that matches with n as its root.
func (s *Substitution) Transform(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
	// If no case matches, the reason is that of the case that got furthest. Searches are kept until
	// a deeper one replaces them, because the reason refers to their memory.
	var deepest *search // among those that failed
	for i, k := range s.cases {
		if root := k.in.root; root.kind == isCall && !root.op.Match(n.Op()) && (deepest != nil || i+1 < len(s.cases) || !c.Explains()) {
			continue
		}
		m := k.in.begin(c, n)
		if m.run() {
			if v := m.replace(k.out); v != nil {
				m.end()
				deepest.end()
				return rewrite.Result{Outputs: []*fgraph.Variable{v}}, nil
			}
		}
		if deepest != nil && deepest.failed.depth >= m.failed.depth {
			m, deepest = deepest, m
		}
		deepest.end()
		deepest = m
	}
	if deepest == nil {
		return rewrite.Result{}, nil
	}
	result := c.Miss("%v", deepest.reason...)
	deepest.end()
	return result, nil
}

// replace returns the replacement of the root, with its type, or nil.
func (s *search) replace(out *node) *fgraph.Variable {
	old := s.root.Out()
	// The replacement takes the type of what it replaces before types are compared: rules say
	// algebra only, and conversions are up to the vocabulary.
	v, err := s.make(out, old)
	if conformer, ok := s.m.vocab.(Conformer); ok && err == nil && v != nil {
		v, err = conformer.Conform(s.root, old, v)
	}
	s.failed = failure{depth: maxDepth}
	switch {
	case err != nil:
		s.failed.why, s.failed.err = whyUnmade, err
	// A function may decide against a replacement, and a commutative pattern may match so that the
	// replacement is the variable itself. Proposing that would be counted as a rewrite, and never
	// end.
	case v == nil || v == old:
		s.failed.why = whyUnchanged
	case !old.Type().Accepts(v.Type()):
		s.failed.why, s.failed.err = whyType, fmt.Errorf("the replacement has type %v, not %v", v.Type(), old.Type())
	default:
		return v
	}
	return nil
}

// make builds a replacement. The result is nil if a function returned nil.
func (s *search) make(n *node, like *fgraph.Variable) (*fgraph.Variable, error) {
	switch n.kind {
	case isName:
		return s.b.vars[n.slot], nil
	case isLiteral:
		if n.like != none {
			like = s.b.vars[n.like]
		}
		return s.m.vocab.Constant(n.lit, like)
	case isCalc:
		return s.compute(n, like)
	case isElement:
		return s.b.rests[n.rest][s.element], nil
	}
	// Rests are spliced in before the argument that they preceded in the text.
	args := make([]*fgraph.Variable, 0, len(n.args))
	next := 0
	splice := func(at int) {
		for ; next < len(n.splice) && n.splice[next].at == at; next++ {
			args = append(args, s.b.rests[n.splice[next].slot]...)
		}
	}
	for i, arg := range n.args {
		splice(i)
		part, times, err := s.repeated(arg)
		if err != nil {
			return nil, err
		}
		for k := range times {
			if part != arg {
				s.element = k
			}
			v, err := s.make(part, like)
			if v == nil || err != nil {
				return nil, err
			}
			args = append(args, v)
		}
	}
	splice(len(n.args))
	return s.apply(n, args, like)
}

// repeated returns what to make for an argument, and how often: an Each is an expression for every
// variable of its rests.
func (s *search) repeated(n *node) (part *node, times int, err error) {
	if n.kind != isEach {
		return n, 1, nil
	}
	times = len(s.b.rests[n.order[0]])
	for _, slot := range n.order[1:] {
		if len(s.b.rests[slot]) != times {
			err = fmt.Errorf("%w: the rests in %s differ in length", ErrArity, n.expr)
		}
	}
	return n.args[0], times, err
}

// compute returns the constant of a formula.
func (s *search) compute(n *node, like *fgraph.Variable) (*fgraph.Variable, error) {
	var unknown string
	value, ok := n.calc.eval(n.calc.root, func(name int) (float64, bool) {
		x, ok := s.m.numberer.Number(s.b.vars[n.order[name]])
		if !ok {
			unknown = n.calc.names[name]
		}
		return x, ok
	})
	if !ok {
		return nil, fmt.Errorf("the value of %s is not known", unknown)
	}
	return s.m.vocab.Constant(Literal(strconv.FormatFloat(value, 'g', -1, 64)), like)
}

func (s *search) apply(n *node, args []*fgraph.Variable, like *fgraph.Variable) (*fgraph.Variable, error) {
	if n.fn != nil && n.fn.Build != nil {
		return n.fn.Build(Args{Context: s.c, Root: s.root, Vars: args})
	}
	op := n.op
	if len(args) < op.MinInputs || op.MaxInputs >= 0 && len(args) > op.MaxInputs {
		return nil, fmt.Errorf("%w: %d for %s, which has %s", ErrArity, len(args), n.expr, inputsText(*op))
	}
	m := Making{Inputs: args, Like: like}
	if n.param != none {
		m.Param = s.b.params[n.param]
	} else if n.fn != nil {
		p, err := n.fn.Param(s.args(n.fn.args, Args{}))
		if err != nil {
			return nil, err
		}
		m.Param = p
	}
	v, err := op.Make(m)
	if v == nil || err != nil || n.output == 0 {
		return v, err
	}
	outputs := v.Owner().Outputs()
	if n.output >= len(outputs) {
		return nil, fmt.Errorf("%w: %s, which has %d outputs", ErrForm, n.expr, len(outputs))
	}
	return outputs[n.output], nil
}
