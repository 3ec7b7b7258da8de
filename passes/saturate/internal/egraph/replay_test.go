package egraph

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/pattern"
)

// replayer checks explanations by plain rewriting of terms.
type replayer struct {
	r    *Rules
	t    *Terms
	fold func(t *Terms, x Term) (Term, bool)
}

// check replays an explanation.
func (p *replayer) check(tb testing.TB, e *Explanation) {
	tb.Helper()
	p.t = e.Terms
	now := e.Start
	for i, s := range e.Steps {
		from, to := p.t.at(now, s.Path), p.t.at(s.After, s.Path)
		if p.t.Replace(now, s.Path, to) != s.After {
			tb.Fatalf("step %d (%s) changes more than the place %v", i, s.Rule, s.Path)
		}
		if s.Backward {
			from, to = to, from
		}
		ok := false
		switch {
		case s.Case >= 0:
			ok = p.rewrites(s.Case, from, to)
		case s.Rule == "commutes":
			ok = p.t.equal(from, to)
		case s.Rule == "fold":
			v, folds := p.fold(p.t, from)
			ok = folds && v == to
		}
		if !ok {
			tb.Fatalf("step %d: %s does not make %s of %s", i, s.Rule, p.t.String(to), p.t.String(from))
		}
		now = s.After
	}
}

type binding struct {
	names  map[string]Term
	rests  map[string][]Term
	params map[string]any
}

// rewrites reports whether a case makes a term of another one, up to the order of arguments.
func (p *replayer) rewrites(id int, from, to Term) bool {
	c := &p.r.cases[id]
	return p.match(c.in, from, binding{map[string]Term{}, map[string][]Term{}, map[string]any{}}, func(b binding) bool {
		return p.t.equal(p.make(c.out, b), to)
	})
}

func (p *replayer) match(e pattern.Expr, x Term, b binding, then func(binding) bool) bool {
	switch e := e.(type) {
	case pattern.Any:
		return then(b)
	case pattern.Name:
		if y, ok := b.names[string(e)]; ok {
			return p.t.equal(x, y) && then(b)
		}
		b.names[string(e)] = x
		ok := then(b)
		delete(b.names, string(e))
		return ok
	case *pattern.Bind:
		return p.match(pattern.Name(e.Name), x, b, func(b binding) bool { return p.match(e.Expr, x, b, then) })
	case pattern.Literal:
		return p.t.Op(x) == p.r.lang.number(p.t.g, e.Float()) && then(b)
	}
	c := e.(*pattern.Call)
	if op, ok := p.r.leafOp(c); ok {
		return p.t.Op(x) == op && then(b)
	}
	sym, param, _ := p.r.symbolOf(c.Op)
	if p.r.lang.sigs[sym].Outputs > 0 {
		if p.t.Op(x) != p.r.lang.Output(c.Output) {
			return false
		}
		x = p.t.Args(x)[0]
	}
	if p.t.g.Symbol(p.t.Op(x)) != sym {
		return false
	}
	if param != "" {
		v := p.t.g.Param(p.t.Op(x))
		if old, ok := b.params[param]; ok && old != v {
			return false
		} else if !ok {
			b.params[param] = v
			defer delete(b.params, param)
		}
	}
	return p.list(c.Args, slices.Clone(p.t.Args(x)), p.r.lang.sigs[sym].Commutes, b, then)
}

func (p *replayer) list(args []pattern.Expr, kids []Term, commutes bool, b binding, then func(binding) bool) bool {
	if len(args) == 0 {
		return len(kids) == 0 && then(b)
	}
	if r, ok := args[0].(pattern.Rest); ok {
		if old, ok := b.rests[string(r)]; ok && r != "" {
			return p.equalLists(old, kids, commutes) && then(b)
		}
		b.rests[string(r)] = kids
		defer delete(b.rests, string(r))
		return then(b)
	}
	for i := range kids {
		others := append(slices.Clone(kids[:i]), kids[i+1:]...)
		if p.match(args[0], kids[i], b, func(b binding) bool { return p.list(args[1:], others, commutes, b, then) }) {
			return true
		}
		if !commutes {
			break
		}
	}
	return false
}

func (p *replayer) equalLists(x, y []Term, commutes bool) bool {
	sorted := map[Term]Term{}
	a, b := make([]Term, len(x)), make([]Term, len(y))
	for i, t := range x {
		a[i] = p.t.sorted(t, sorted)
	}
	for i, t := range y {
		b[i] = p.t.sorted(t, sorted)
	}
	if commutes {
		slices.Sort(a)
		slices.Sort(b)
	}
	return slices.Equal(a, b)
}

// make instantiates a replacement.
func (p *replayer) make(e pattern.Expr, b binding) Term {
	switch e := e.(type) {
	case pattern.Name:
		return b.names[string(e)]
	case pattern.Literal:
		return p.t.Make(p.r.lang.number(p.t.g, e.Float()))
	}
	c := e.(*pattern.Call)
	if op, ok := p.r.leafOp(c); ok {
		return p.t.Make(op)
	}
	sym, param, _ := p.r.symbolOf(c.Op)
	var args []Term
	for _, a := range c.Args {
		if r, ok := a.(pattern.Rest); ok {
			args = append(args, b.rests[string(r)]...)
		} else {
			args = append(args, p.make(a, b))
		}
	}
	op := p.t.g.Intern(sym, nil)
	if param != "" {
		op = p.t.g.Intern(sym, b.params[param])
	}
	x := p.t.Make(op, args...)
	if p.r.lang.sigs[sym].Outputs > 0 {
		x = p.t.Make(p.r.lang.Output(c.Output), x)
	}
	return x
}

// randomMath returns a random expression of a certain depth.
func randomMath(rnd *rand.Rand, depth int) string {
	if depth == 0 || rnd.IntN(6) == 0 {
		return []string{"x", "y", "0", "1", "2", "3", "-1", "z"}[rnd.IntN(8)]
	}
	sub := func() string { return randomMath(rnd, depth-1) }
	switch k := rnd.IntN(14); {
	case k < 3:
		return "(add " + sub() + " " + sub() + ")"
	case k < 6:
		return "(mul " + sub() + " " + sub() + ")"
	case k < 8:
		return "(sub " + sub() + " " + sub() + ")"
	case k == 8:
		return "(div " + sub() + " " + sub() + ")"
	case k == 9:
		return "(pow " + sub() + " 2)"
	case k == 10:
		return "(d x " + sub() + ")"
	case k == 11:
		return "(i " + sub() + " x)"
	case k == 12:
		return "(sin " + sub() + ")"
	}
	return "(ln " + sub() + ")"
}

func treeSize(*Graph, Node) float64 { return 1 }

func (w *mathWorld) foldTerm(t *Terms, x Term) (Term, bool) {
	args := t.Args(x)
	if len(args) != 2 {
		return 0, false
	}
	p, ok := t.g.Param(t.Op(args[0])).(float64)
	q, ok2 := t.g.Param(t.Op(args[1])).(float64)
	if !ok || !ok2 {
		return 0, false
	}
	v, ok := evaluate(t.g.Name(t.Op(x)), p, q)
	return t.Make(t.g.Intern(w.num, v)), ok
}

// TestReplay replays the explanations of random results, and compares two runs.
func TestReplay(t *testing.T) {
	w := newMath(t)
	rules := w.rules(t, nil)
	rnd := rand.New(rand.NewPCG(1, 2))
	cases := 1000
	if !longtest.Enabled() {
		cases = 100
	}
	steps := 0
	for range cases {
		text := randomMath(rnd, 3+rnd.IntN(2))
		run := func() (*Explanation, float64, *Report) {
			g := New(w.lang, WithAnalysis(w.analysis()), WithExplanations())
			start := w.add(t, g, text)
			report, err := g.Saturate(t.Context(), rules, Options{Limits: Limits{Nodes: 1500, Laps: 8}, Backoff: Backoff{Matches: 200, Laps: 2}})
			if err != nil {
				t.Fatal(err)
			}
			choice, err := g.Extract(t.Context(), treeSize, start)
			if err != nil {
				t.Fatal(err)
			}
			e, err := g.ExplainChoice(rules, start, choice)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return e, choice.Cost, report
		}
		e, cost, report := run()
		(&replayer{r: rules, fold: w.foldTerm}).check(t, e)
		if nodes := dagSize(e.Terms, e.Start); cost > float64(nodes) {
			t.Errorf("%s: %v nodes of %d", text, cost, nodes)
		}
		if nodes := dagSize(e.Terms, e.End()); cost != float64(nodes) {
			t.Errorf("%s: the result %s has %d nodes, not %v", text, e.Terms.String(e.End()), nodes, cost)
		}
		steps += len(e.Steps)
		again, _, report2 := run()
		if again.String() != e.String() || report.Nodes != report2.Nodes {
			t.Fatalf("%s: two runs differ", text)
		}
	}
	if steps < 10*cases {
		t.Errorf("only %d steps", steps)
	}
}

// dagSize counts the different parts of a term.
func dagSize(t *Terms, x Term) int {
	seen := map[Term]bool{x: true}
	todo := []Term{x}
	for len(todo) > 0 {
		top := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, k := range t.Args(top) {
			if !seen[k] {
				seen[k] = true
				todo = append(todo, k)
			}
		}
	}
	return len(seen)
}

// at returns the term at a place.
func (t *Terms) at(x Term, path []int) Term {
	for _, k := range path {
		x = t.kids[x][k]
	}
	return x
}

// equal reports whether two terms differ only in the order of arguments of ops that commute.
func (t *Terms) equal(x, y Term) bool {
	sorted := map[Term]Term{}
	return t.sorted(x, sorted) == t.sorted(y, sorted)
}

// sorted returns a term with the arguments of ops that commute in a certain order.
func (t *Terms) sorted(x Term, done map[Term]Term) Term {
	stack := []Term{x}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		if _, ok := done[top]; ok {
			stack = stack[:len(stack)-1]
			continue
		}
		args, ready := make([]Term, len(t.kids[top])), true
		for i, k := range t.kids[top] {
			s, ok := done[k]
			if args[i] = s; !ok {
				stack, ready = append(stack, k), false
			}
		}
		if !ready {
			continue
		}
		if op := t.ops[top]; t.g.lang.sigs[t.g.ops[op].sym].Commutes {
			slices.Sort(args)
		}
		done[top] = t.Make(t.ops[top], args...)
		stack = stack[:len(stack)-1]
	}
	return done[x]
}
