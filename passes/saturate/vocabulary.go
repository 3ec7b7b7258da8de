package saturate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// A Coster is a vocabulary that knows what an apply costs: at least 0, without its inputs. It is
// asked about applies outside of the graph, too. Otherwise each costs 1.
type Coster interface {
	Cost(a *fgraph.Apply) float64
}

// A Fuser is a [Coster] that knows what an apply adds to the cost of another one that later passes
// make of both, and what it costs if they do not.
type Fuser interface {
	FusedCost(a *fgraph.Apply) float64
}

// A Ranker is a vocabulary that knows more of some variables than of others that are equal, such as
// their signs. The witness of a class, which guards see, is the first variable of the highest rank.
// A variable that is known to be a number, see [pattern.Numberer], outranks all others.
type Ranker interface {
	// Rank returns a number from 0 on.
	Rank(v *fgraph.Variable) int
}

// A Bounder is a vocabulary that knows numbers between which the elements of a variable are, where they
// are numbers, by those of the inputs of the apply that computes it. If least is above most, none is a
// number. Saturation knows more of a class than of any variable in it: what guards of [ClassFunctions]
// see as [pattern.Args.Bounds] holds by all of them.
type Bounder interface {
	Bounds(v *fgraph.Variable, of func(*fgraph.Variable) (least, most float64)) (least, most float64)
}

// ClassFunctions is a vocabulary with guards that replace others of the same name in saturation,
// because these ask for the clients of a variable.
type ClassFunctions interface {
	ClassFunctions() []pattern.Function
}

// A symbol is the op of a pattern, or a family of ops.
type symbol struct {
	name     string
	sym      egraph.Symbol
	operator pattern.Operator
	family   bool
	only     fgraph.Op // the op, if the operator names it
	outputs  int       // if patterns ask for other outputs than the first
}

// label returns the name without braces, behind which rules of package egraph have parameters.
func (x *symbol) label() string { return strings.NewReplacer("{", "[", "}", "]").Replace(x.name) }

// symbols are the ops in patterns. An op of a graph has the first symbol that matches it.
type symbols struct {
	list   []*symbol
	byName map[string]*symbol
}

// add collects the ops of a pattern.
func (s *symbols) add(v pattern.Vocabulary, e pattern.Expr) error {
	switch e := e.(type) {
	case *pattern.Bind:
		return s.add(v, e.Expr)
	case pattern.Or:
		for _, alt := range e {
			if err := s.add(v, alt); err != nil {
				return err
			}
		}
	case *pattern.Call:
		sym, err := s.resolve(v, e.Op)
		if err != nil {
			return err
		}
		if e.Output > 0 {
			sym.outputs = max(sym.outputs, e.Output+1)
		}
		for _, a := range e.Args {
			if err := s.add(v, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve returns the symbol of an op in a pattern.
func (s *symbols) resolve(v pattern.Vocabulary, name string) (*symbol, error) {
	op, ok := v.Operator(name)
	next := &symbol{name: name, operator: op}
	if !ok {
		base, _, _ := strings.Cut(name, "{")
		families, _ := v.(pattern.Families)
		if families == nil {
			return nil, fmt.Errorf("%w: %s", pattern.ErrUnknownOp, name)
		}
		if op, ok = families.Family(base); !ok {
			return nil, fmt.Errorf("%w: %s", pattern.ErrUnknownOp, name)
		}
		next = &symbol{name: base + "{}", operator: op, family: true} // there may be an op of the name, too
	} else if len(op.Tracks) == 1 {
		next.only = op.Tracks[0].Op()
	}
	// All rules share one language, so a name must mean one op. Rules of several vocabularies could
	// disagree.
	if have, ok := s.byName[next.name]; ok {
		if !sameTracks(have.operator.Tracks, op.Tracks) {
			return nil, fmt.Errorf("the op %s is another one in another rule", next.name)
		}
		return have, nil
	}
	if next.only != nil { // another name of the same op
		for _, have := range s.list {
			if have.only != nil && fgraph.OpsEqual(have.only, next.only) {
				s.byName[next.name] = have
				return have, nil
			}
		}
	}
	s.byName[next.name] = next
	s.list = append(s.list, next)
	return next, nil
}

func sameTracks(a, b []rewrite.Track) bool {
	return slices.EqualFunc(a, b, func(x, y rewrite.Track) bool { return x.String() == y.String() && x.Type() == y.Type() })
}

// declare orders the symbols, ops before families and families of certain ops before others, and
// declares them.
func (s *symbols) declare(l *egraph.Language) error {
	rank := func(x *symbol) int {
		switch {
		case !x.family:
			return 0
		case len(x.operator.Tracks) > 0 && !slices.ContainsFunc(x.operator.Tracks, func(t rewrite.Track) bool { return t.Op() == nil }):
			return 1
		case len(x.operator.Tracks) > 0:
			return 2
		}
		return 3
	}
	// An op of a graph takes the first symbol that matches it. Were a family asked first, it would
	// take the ops that patterns name, and their rules would never fire.
	slices.SortStableFunc(s.list, func(a, b *symbol) int { return rank(a) - rank(b) })
	for _, x := range s.list {
		in := [2]int{x.operator.MinInputs, x.operator.MaxInputs}
		if in == [2]int{} {
			in[1] = -1 // a symbol without inputs would be a leaf without parameters
		}
		var err error
		if x.sym, err = l.Declare(egraph.Signature{Name: x.label(), Inputs: in, Commutes: x.operator.Commutes, Outputs: x.outputs}); err != nil {
			return err
		}
	}
	return nil
}

// of returns the symbol of an op that is applied to n inputs and has a number of outputs, or nil.
func (s *symbols) of(op fgraph.Op, inputs, outputs int) *symbol {
	for _, x := range s.list {
		if x.operator.Match(op) {
			o := &x.operator
			if inputs < o.MinInputs || o.MaxInputs >= 0 && inputs > o.MaxInputs || outputs != max(x.outputs, 1) {
				return nil
			}
			return x
		}
	}
	return nil
}

// matched returns the symbols of ops that a call of a symbol in a pattern may mean: itself, and
// those before it that a family includes.
func (s *symbols) matched(x *symbol) []*symbol {
	list := []*symbol{x}
	if !x.family {
		return list
	}
	for _, y := range s.list {
		if y == x {
			break
		}
		ops := y.operator.Tracks
		if y.outputs == x.outputs && slices.ContainsFunc(ops, func(t rewrite.Track) bool { return t.Op() != nil && x.operator.Match(t.Op()) }) {
			list = append(list, y)
		}
	}
	return list
}
