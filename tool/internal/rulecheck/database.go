package rulecheck

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// An Entry is a rule of a database.
type Entry struct {
	Rule   rewrite.NodeRewriter // a *pattern.Substitution is checked as text
	Groups []string
	Tags   []string
	Cases  []Case
}

// CheckDatabase checks the rules of a database on all processors. The reports have the order of the
// entries. It also returns the rules that undo each other.
func CheckDatabase(ctx context.Context, d Domain, entries []Entry, o Options) ([]Report, []Undone, error) {
	if err := used(d, entries); err != nil {
		return nil, nil, err
	}
	reports, err := ForAll(entries, func(e Entry) (Report, error) {
		o := o
		o.Cases = e.Cases
		if s, ok := rewrite.Undescribed(e.Rule).(*pattern.Substitution); ok {
			r := s.Rule()
			r.Tags = e.Tags
			return Check(ctx, d, r, o)
		}
		return CheckRewriter(ctx, d, e.Rule, e.Tags, o)
	})
	if err != nil {
		return nil, nil, err
	}
	undone, err := undoing(ctx, d, entries, reports)
	return reports, undone, err
}

// used returns an error if a type is given to a name that no pattern has.
func used(d Domain, entries []Entry) error {
	names := make(map[string]bool)
	for _, e := range entries {
		s, ok := rewrite.Undescribed(e.Rule).(*pattern.Substitution)
		if !ok {
			continue
		}
		for _, w := range s.Rule().Cases {
			for _, w := range w.Directions() {
				pattern.Walk(w.In.Expr, func(e pattern.Expr) {
					switch e := e.(type) {
					case pattern.Name:
						names[string(e)] = true
					case pattern.Rest:
						for i := range maxRest {
							names[fmt.Sprintf("%s%d", e, i+1)] = true
						}
					}
				})
			}
		}
	}
	for _, name := range slices.Sorted(slices.Values(d.Names())) {
		if !names[name] {
			return fmt.Errorf("rulecheck: %s has a type, but no pattern has that name", name)
		}
	}
	return nil
}

// Undone says that a rule undoes what another one of its group, or the rule itself, has done. A
// group that has both may not terminate.
type Undone struct {
	Group  string `json:"group"`
	First  string `json:"first"`
	Second string `json:"second"`
	Before string `json:"before"` // what the first rule replaces, and the second one makes again
	After  string `json:"after"`
}

// maxUndone bounds how many of the expressions that a rule replaced others are tried on.
const maxUndone = 12

// undoing lets every rule of a group fire on what the others have made, and looks for what was
// there before.
func undoing(ctx context.Context, d Domain, entries []Entry, reports []Report) ([]Undone, error) {
	numbers := make([]int, len(entries))
	for i := range numbers {
		numbers[i] = i
	}
	lists, err := ForAll(numbers, func(i int) ([]Undone, error) {
		var list []Undone
		for n, f := range reports[i].fired {
			if n == maxUndone {
				break
			}
			list = append(list, undoers(ctx, d, entries, reports, i, f)...)
		}
		return list, ctx.Err()
	})
	var all []Undone
	for _, u := range slices.Concat(lists...) {
		if !slices.ContainsFunc(all, func(v Undone) bool { return v.Group == u.Group && v.pair() == u.pair() }) {
			all = append(all, u)
		}
	}
	return all, err
}

// pair names both rules in an order that does not depend on which one is first.
func (u Undone) pair() string { return min(u.First, u.Second) + " " + max(u.First, u.Second) }

// undoers returns the rules that undo a replacement by rule first.
func undoers(ctx context.Context, d Domain, entries []Entry, reports []Report, first int, f fired) (list []Undone) {
	before := Canonical(f.left)
	if before == Canonical(f.right) {
		return nil
	}
	for k, e := range entries {
		if ctx.Err() != nil {
			return nil
		}
		i := slices.IndexFunc(e.Groups, func(name string) bool { return slices.Contains(entries[first].Groups, name) })
		if i < 0 {
			continue
		}
		// A rule undoes another one if it makes of the replacement what was there before. Comparing
		// texts of patterns would miss rules that undo each other only for some types, and those
		// that are Go functions.
		g, err := d.Graph([]*fgraph.Variable{f.right}, f.left)
		if err != nil || !mayFire(e.Rule, g) {
			continue
		}
		if err := rewrite.In2Out("undo", e.Rule).Apply(ctx, g, nil); err != nil || g.Commits() == 0 || Canonical(g.Outputs()[0]) != before {
			continue
		}
		list = append(list, Undone{e.Groups[i], reports[first].Name, reports[k].Name, fgraph.Text(0, f.left), fgraph.Text(0, f.right)})
	}
	return list
}

// mayFire reports whether a rule looks at an op of a graph.
func mayFire(r rewrite.NodeRewriter, g *fgraph.FunctionGraph) bool {
	for a := range g.Applies() {
		if rewrite.Wants(r, a.Op()) {
			return true
		}
	}
	return false
}

// Canonical returns a text that is the same for equal expressions of inputs with equal names, in
// any order of operands that commute.
func Canonical(v *fgraph.Variable) string {
	texts := make(map[*fgraph.Variable]string)
	leaf := func(v *fgraph.Variable) string { return fmt.Sprintf("%v:%v", fgraph.Text(0, v), v.Type()) }
	known := func(v *fgraph.Variable) bool { return texts[v] != "" }
	fgraph.Walk([]*fgraph.Variable{v}, known, func(a *fgraph.Apply) {
		args := make([]string, len(a.Inputs()))
		for i, in := range a.Inputs() {
			if args[i] = texts[in]; args[i] == "" {
				args[i] = leaf(in)
			}
		}
		if c, ok := a.Op().(interface{ Commutes() bool }); ok && c.Commutes() {
			slices.Sort(args)
		}
		for i, out := range a.Outputs() {
			// A digest, because the text of an expression whose parts are shared may have
			// exponential length: add(x, x) contains that of x twice, and add(add(x, x), add(x, x))
			// four times.
			digest := sha256.Sum256(fmt.Appendf(nil, "%v(%s).%d", a.Op(), strings.Join(args, ", "), i))
			texts[out] = string(digest[:])
		}
	})
	if texts[v] == "" {
		return leaf(v)
	}
	return texts[v]
}
