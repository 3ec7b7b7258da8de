package tensorpass_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// TestSaturateSteps saturates random expressions with a trace. Each step must be what plain rewriting by its
// rule makes, in one of the two directions, and the result what saturation without a trace makes.
func TestSaturateSteps(t *testing.T) {
	r := newStepReplay(t)
	seeds := 300
	if !longtest.Enabled() {
		seeds = 20
	}
	steps := 0
	for seed := range seeds {
		gen := tensortest.NewGenerator(uint64(seed))
		gen.Vocabulary, gen.Patterns = tensorpass.Vocabulary(), r.patterns
		gen.Grow(3 + seed%8)
		inputs, _ := gen.Inputs()
		g, err := tensor.NewGraph(inputs, gen.Outputs(1+seed%3))
		if err != nil {
			t.Fatal(err)
		}
		before := g.String()
		plain, _ := g.Clone()
		if err := rewrite.Run(t.Context(), r.pass, plain, nil); err != nil {
			t.Fatal(err)
		}
		r.ctx = rewrite.NewContext(t.Context(), g)
		opts := rewrite.Options{Trace: func(e rewrite.Event) {
			steps++
			r.texts = make(map[*fgraph.Variable]string)
			if e.Rule == "" && !slices.ContainsFunc(e.Pairs, func(p fgraph.Replacement) bool { return r.text(p.Old) != r.text(p.New) }) {
				return // equal variables are merged
			}
			if len(e.Pairs) != 1 || !r.holds(e.Rule, e.Pairs[0].Old, e.Pairs[0].New) {
				t.Errorf("%s: %s does not make %s of %s", before, e.Rule, e.After, e.Before)
			}
		}}
		if err := rewrite.Run(rewrite.WithOptions(t.Context(), opts), r.pass, g, nil); err != nil {
			t.Fatal(err)
		}
		if got, want := g.String(), plain.String(); got != want {
			t.Errorf("%s becomes %s with a trace, and %s without", before, got, want)
		}
	}
	if t.Logf("%d steps", steps); steps < seeds/5 {
		t.Errorf("only %d steps", steps)
	}
}

// stepReplay checks steps by plain rewriting. In contrast to the matcher of package pattern, it tries
// all matches of a pattern, and leaves guards out: they hold for classes.
type stepReplay struct {
	pass     *saturate.Pass
	rules    map[string]*pattern.Substitution
	patterns []pattern.Expr
	ctx      *rewrite.Context
	texts    map[*fgraph.Variable]string
}

func newStepReplay(t *testing.T) *stepReplay {
	r := &stepReplay{pass: &saturate.Pass{Name: "saturate", Nodes: 2000}, rules: make(map[string]*pattern.Substitution)}
	for _, l := range tensorpass.In(tensorpass.Saturate) {
		r.pass.Rules = append(r.pass.Rules, l.Rule)
		s := rewrite.Undescribed(l.Rule).(*pattern.Substitution)
		r.rules[rewrite.Describe(l.Rule).Name] = s
		for _, c := range s.Cases() {
			r.patterns = append(r.patterns, c.Rewrite().In.Expr)
		}
	}
	if len(r.rules) == 0 {
		t.Fatal("no rules")
	}
	return r
}

// holds reports whether a rule makes to of from, or from of to, at one place.
func (r *stepReplay) holds(rule string, from, to *fgraph.Variable) bool {
	r.texts = make(map[*fgraph.Variable]string)
	for {
		if r.text(from) == r.text(to) || r.makes(rule, from, to) || r.makes(rule, to, from) {
			return true
		}
		a, b := from.Owner(), to.Owner()
		if a == nil || b == nil || !fgraph.OpsEqual(a.Op(), b.Op()) || len(a.Inputs()) != len(b.Inputs()) {
			return false
		}
		x, y := slices.Clone(a.Inputs()), slices.Clone(b.Inputs())
		for i := 0; i < len(x); i++ { // what is equal on both sides is no place
			k := slices.IndexFunc(y, func(v *fgraph.Variable) bool { return r.text(v) == r.text(x[i]) })
			if !commutes(a.Op()) {
				k = i
			}
			if k >= 0 && r.text(y[k]) == r.text(x[i]) {
				x, y = slices.Delete(x, i, i+1), slices.Delete(y, k, k+1)
				i--
			}
		}
		if len(x) != 1 {
			return false
		}
		from, to = x[0], y[0]
	}
}

func commutes(op fgraph.Op) bool {
	c, ok := op.(tensor.Commutative)
	return ok && c.Commutes()
}

// text returns a variable as text, with inputs in a certain order where that does not matter.
func (r *stepReplay) text(v *fgraph.Variable) string {
	if s, ok := r.texts[v]; ok {
		return s
	}
	var s string
	switch a := v.Owner(); {
	case a != nil:
		args := make([]string, len(a.Inputs()))
		for i, in := range a.Inputs() {
			args[i] = r.text(in)
		}
		if commutes(a.Op()) {
			slices.Sort(args)
		}
		s = fmt.Sprintf("%v(%s).%d:%v", a.Op(), strings.Join(args, ", "), v.Index(), v.Type())
	case v.IsConstant():
		s = fmt.Sprintf("%v:%v", v.Data(), v.Type())
	default:
		s = v.Name()
	}
	r.texts[v] = s
	return s
}

// makes reports whether a case of a rule makes to of from.
func (r *stepReplay) makes(rule string, from, to *fgraph.Variable) bool {
	s, ok := r.rules[rule]
	if !ok || from.Owner() == nil {
		return false
	}
	for _, c := range s.Cases() {
		m := &stepMatch{r: r, v: s.Vocabulary(), vars: map[string]*fgraph.Variable{}, rests: map[string][]*fgraph.Variable{}, params: map[string]any{}}
		found := m.match(c.Rewrite().In.Expr, from, func() bool {
			b := pattern.Binding{Root: from.Owner()}
			vars, rests, params := c.Names()
			for _, name := range vars {
				b.Vars = append(b.Vars, m.vars[name])
			}
			for _, name := range rests {
				b.Rests = append(b.Rests, m.rests[name])
			}
			for _, name := range params {
				b.Params = append(b.Params, m.params[name])
			}
			v, err := c.Replace(r.ctx, b)
			return err == nil && r.text(v) == r.text(to)
		})
		if found {
			return true
		}
	}
	return false
}

// stepMatch is a match in the making.
type stepMatch struct {
	r      *stepReplay
	v      pattern.Vocabulary
	vars   map[string]*fgraph.Variable
	rests  map[string][]*fgraph.Variable
	params map[string]any
}

// match calls then for the ways to match, until it returns true.
func (m *stepMatch) match(e pattern.Expr, v *fgraph.Variable, then func() bool) bool {
	switch e := e.(type) {
	case pattern.Any:
		return then()
	case pattern.Literal:
		return m.v.Equal(e, v) && then()
	case pattern.Name:
		if have, ok := m.vars[string(e)]; ok {
			return m.r.text(have) == m.r.text(v) && then()
		}
		m.vars[string(e)] = v
		defer delete(m.vars, string(e))
		return then()
	case *pattern.Bind:
		return m.match(pattern.Name(e.Name), v, func() bool { return m.match(e.Expr, v, then) })
	case pattern.Or:
		return slices.ContainsFunc(e, func(alt pattern.Expr) bool { return m.match(alt, v, then) })
	}
	c := e.(*pattern.Call)
	a := v.Owner()
	if a == nil || v.Index() != c.Output {
		return false
	}
	op, ok := m.v.Operator(c.Op)
	if !ok {
		name, param, _ := strings.Cut(strings.TrimSuffix(c.Op, "}"), "{")
		if op, ok = m.v.(pattern.Families).Family(name); !ok || !op.Match(a.Op()) {
			return false
		}
		if param != "" {
			p := op.Param(a.Op())
			if have, ok := m.params[param]; ok && fmt.Sprint(have) != fmt.Sprint(p) {
				return false
			} else if !ok {
				m.params[param] = p
				defer delete(m.params, param)
			}
		}
	}
	return op.Match(a.Op()) && m.list(c.Args, a.Inputs(), op.Commutes || commutes(a.Op()), then)
}

func (m *stepMatch) list(args []pattern.Expr, in []*fgraph.Variable, any bool, then func() bool) bool {
	if len(args) == 0 {
		return len(in) == 0 && then()
	}
	if rest, ok := args[0].(pattern.Rest); ok {
		old, twice := m.rests[string(rest)]
		if twice && rest != "" {
			return slices.EqualFunc(old, in, func(x, y *fgraph.Variable) bool { return m.r.text(x) == m.r.text(y) }) && then()
		}
		saved := maps.Clone(m.rests)
		m.rests[string(rest)] = in
		ok := then()
		m.rests = saved
		return ok
	}
	for i := range in {
		others := slices.Delete(slices.Clone(in), i, i+1)
		if m.match(args[0], in[i], func() bool { return m.list(args[1:], others, any, then) }) {
			return true
		}
		if !any {
			break
		}
	}
	return false
}
