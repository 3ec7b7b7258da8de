package rulefind

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// A candidate is a pair as a rewrite.
type candidate struct {
	left, right   *term
	rewrite       pattern.Rewrite
	text          string
	cond          bool
	size          int
	literals      int
	before, after float64
	vars          []*fgraph.Variable // of the left side, by their new names
	theorem                          // as it is chosen
	guarded       uint64             // the variables for which the guard of run 0 must hold
	weight        float64            // how many it stands for
	same          bool               // known by Options.Same
	occurs        int                // as Options.Occurs says
	conditions    []pattern.Guard    // of a general form
	found         *Found             // what judge says: a rule,
	wrong         map[string]any     // or values for which it is none
}

// candidates makes rewrites of pairs, the small and general ones first. Those that differ by names only
// are one.
func (s *space) candidates() []*candidate {
	var list []*candidate
	seen := make(map[string]bool)
	add := func(pairs []pair, weight float64) {
		for _, p := range pairs {
			c := s.candidate(p)
			if c != nil && !seen[c.text] {
				seen[c.text] = true
				if s.occurs != nil {
					if c.occurs = s.occurrences(c.rewrite); c.occurs == 0 {
						continue
					}
				}
				c.weight = weight
				list = append(list, c)
			}
		}
	}
	add(s.pairs, 1)
	add(s.drawn, float64(s.of)/float64(max(len(s.drawn), 1)))
	slices.SortStableFunc(list, compare)
	return list
}

// occurrences returns how often a rewrite occurs, an equation in either direction.
func (s *space) occurrences(w pattern.Rewrite) int {
	if !w.Equation {
		return s.occurs(w)
	}
	w.Equation = false
	back := w
	back.In.Expr, back.Out = w.Out, w.In.Expr
	return s.occurs(w) + s.occurs(back)
}

// candidate turns a pair the way that saves, or makes an equation of it. It returns nil if there is
// none: a replacement has no names of its own.
func (s *space) candidate(p pair) *candidate {
	l, r := p.a, p.b
	if r.cost > l.cost || r.cost == l.cost && (r.size > l.size || r.size == l.size && l.names&^r.names == 0 && l.names != r.names) {
		l, r = r, l
	}
	if _, ok := l.expr.(*pattern.Call); !ok || r.names&^l.names != 0 {
		return nil
	}
	c := &candidate{left: l, right: r, cond: p.cond, size: l.size + r.size, before: l.cost, after: r.cost}
	_, call := r.expr.(*pattern.Call)
	c.rewrite.Equation = call && l.cost == r.cost && l.size == r.size && l.names == r.names
	s.rename(c, l, r)
	if c.rewrite.Equation {
		d := *c
		s.rename(&d, r, l)
		if d.left, d.right = r, l; d.text < c.text {
			*c = d
		}
	}
	c.literals = len(literals(c.rewrite.In.Expr)) + len(literals(c.rewrite.Out))
	return c
}

// compare orders candidates: small ones first, of those with few numbers, of those with many variables. A number
// counts as an op more, since what two terms with numbers say often follows from what two with one more variable do:
// max(0, x+1) = 1 + max(x, -1) from max(x+z, y+z) = max(x, y) + z.
func compare(a, b *candidate) int {
	for _, d := range []int{a.size + a.literals - b.size - b.literals, a.literals - b.literals, len(b.vars) - len(a.vars)} {
		if d != 0 {
			return d
		}
	}
	return strings.Compare(a.text, b.text)
}

// rename names variables and parameters in the order in which they occur.
func (s *space) rename(c *candidate, l, r *term) {
	names, params := make(map[string]string), make(map[string]string)
	c.vars = nil
	var namer rulecheck.Namer
	var expr func(e pattern.Expr) pattern.Expr
	expr = func(e pattern.Expr) pattern.Expr {
		switch e := e.(type) {
		case pattern.Name:
			if names[string(e)] == "" {
				names[string(e)] = namer.Next()
				c.vars = append(c.vars, s.leaf(string(e)))
			}
			return pattern.Name(names[string(e)])
		case *pattern.Call:
			call := &pattern.Call{Op: e.Op}
			if base, param, ok := strings.Cut(e.Op, "{#"); ok {
				if params[param] == "" {
					params[param] = string(rune('p' + len(params)%8))
				}
				call.Op = base + "{" + params[param] + "}"
			}
			for _, a := range e.Args {
				call.Args = append(call.Args, expr(a))
			}
			return call
		}
		return e
	}
	c.rewrite.In = pattern.Pattern{Expr: expr(l.expr)}
	c.rewrite.Out = expr(r.expr)
	c.sides = [2]*fgraph.Variable{l.v, r.v}
	c.text = c.rewrite.String()
}

func (s *space) leaf(name string) *fgraph.Variable {
	i := slices.IndexFunc(s.Leaves, func(v *fgraph.Variable) bool { return v.Name() == name })
	return s.Leaves[i]
}
