package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/rulecheck"
)

//go:embed relalg.rules
var rules string

// Database returns the passes of plans.
func Database() (*optdb.SequenceDB, error) {
	db, push := optdb.NewSequenceDB("relalg"), optdb.NewEquilibriumDB("pushdown")
	joins := saturate.NewDB("saturate").Configure(saturate.Pass{Nodes: 100000, Laps: 100, Patience: 100, Matches: 100000})
	var errs []error
	add := func(position float64, name string, rewriter any, doc string, tags ...string) {
		errs = append(errs, db.Add(optdb.Entry{Name: name, Rewriter: rewriter, Doc: doc, Position: position, Tags: tags, Dialect: "relalg"}))
	}
	add(0, "merge1", new(rewrite.Merge), "merges equal tables, at the start", "fast_run", "fast_compile", "merge")
	add(1, "pushdown", push, "filters early, and removes what has no effect", "fast_run", "fast_compile")
	add(2, "saturate", joins, "orders joins by what they cost")
	add(3, "prune_columns", rewrite.Global{Name: "prune_columns", Fn: pruneColumns}, "leaves out columns that nothing needs, behind each scan", "fast_run")
	add(4, "merge2", new(rewrite.Merge), "merges equal tables, at the end", "fast_run", "merge")
	add(49.5, "add_destroy_handler", rewrite.AddDestroyHandler(), "", "fast_run", "fast_compile")
	add(50, "sort_in_place", rewrite.In2Out("sort_in_place", sortInPlace), sortInPlace.Doc, "fast_run", "inplace")
	list, err := pattern.ParseRules("relalg.rules", rules)
	errs = append(errs, push.Register("drop_sort", dropSort, "fast_run", "fast_compile"), err, optdb.AddRules(db, Dialect{}, list))
	return db, errors.Join(errs...)
}

// dropSort looks at the readers of a table, which patterns don't.
var dropSort = rewrite.Rule{
	Name: "drop_sort", Doc: "a sort has no effect if nothing that reads it has an order: Union(Sort{a}(x), y) → Union(x, y)", On: onOps,
	Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
		for _, r := range a.Out().Clients() {
			if a.Op().(Op).Kind != Sort || r.Apply == nil || r.Apply.Op().(Op).Kind == Filter || r.Apply.Op().(Op).Kind == Project {
				return c.Miss("it is no sort, or its order counts"), nil
			}
		}
		return rewrite.Replace(a.Inputs()[0]), nil
	},
}

// sortInPlace proposes. The DestroyHandler of the graph finds out whether other readers can come first.
var sortInPlace = rewrite.Rule{
	Name: "sort_in_place", Doc: "a sort overwrites a table that nothing reads later: Sort{a}(x) → SortInPlace{a}(x)", On: onOps, Destroys: true,
	Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
		op, x := a.Op().(Op), a.Inputs()[0]
		if h, ok := fgraph.FeatureOf[*fgraph.DestroyHandler](c.Graph()); op.Kind != Sort || !ok || !h.MayDestroy(x) {
			return c.Miss("it is no sort, or %s must not be overwritten", x), nil
		}
		v, err := Make(Op{SortInPlace, op.Param}, x)
		return rewrite.Replace(v), err
	},
}

// pruneColumns makes a plan again, and leaves out columns of scans that nothing names. Columns keep
// their names on the way through a plan.
func pruneColumns(_ context.Context, h *rewrite.Handle) error {
	applies, err := h.Graph().Toposort()
	used, made := columnsOf(h.Graph().Outputs()...).Columns(), make(map[*fgraph.Variable]*fgraph.Variable)
	for _, a := range applies {
		used = append(used, names(a.Op().(Op).Param)...)
	}
	pruned := false
	for _, a := range applies {
		in := slices.Clone(a.Inputs())
		for i, x := range in {
			in[i] = cmp.Or(made[x], x)
		}
		v, no := Make(a.Op().(Op), in...)
		left := slices.DeleteFunc(columnsOf(a.Out()).Columns(), func(c string) bool { return !slices.Contains(used, c) })
		unpruned := func(c fgraph.Client) bool { return c.Apply != nil && c.Apply.Op().(Op).Kind != Project }
		if a.Op().(Op).Kind == Scan && NewSchema(left...) != a.Out().Type() && slices.ContainsFunc(a.Out().Clients(), unpruned) {
			pruned = true
			v, no = Make(Op{Project, joined(left, ", ")}, v)
		}
		if no != nil {
			return no
		}
		made[a.Out()] = v
		v.Owner().SetOrigin(a.Origin())
	}
	if !pruned {
		return err
	}
	var pairs []fgraph.Replacement
	for _, v := range h.Graph().Outputs() {
		if made[v] != nil {
			pairs = append(pairs, fgraph.Replacement{Old: v, New: made[v]})
			delete(made, v) // it may be another output, too
		}
	}
	_, err = h.Replace("", nil, pairs...)
	return err
}

// Dialect is the text of plans in files (graphfile.Dialect), and what names in rules mean
// (pattern.Vocabulary): kinds of ops, with their parameters in braces, and functions of those.
type Dialect struct{}

var onOps = []rewrite.Track{rewrite.TrackType[Op]()}

func (Dialect) OpText(op fgraph.Op) (string, error)          { return op.String(), nil }
func (Dialect) ParseOp(text string) (fgraph.Op, error)       { return ParseOp(text) }
func (Dialect) DataText(fgraph.Type, any) (string, error)    { return "", errors.ErrUnsupported }
func (Dialect) ParseData(fgraph.Type, string) (any, error)   { return nil, errors.ErrUnsupported }
func (Dialect) Equal(pattern.Literal, *fgraph.Variable) bool { return false }
func (Dialect) Constant(pattern.Literal, *fgraph.Variable) (*fgraph.Variable, error) {
	return nil, errors.ErrUnsupported
}

// ParseType reads the text of a type.
func (Dialect) ParseType(text string) (fgraph.Type, error) {
	if s := NewSchema(names(text)...); s.String() == text && text != "[]" {
		return s, nil
	}
	return nil, fmt.Errorf("%q is no sorted list of columns, such as [a, b]", text)
}

// Check returns an error if an apply can't have its inputs or outputs.
func (Dialect) Check(a *fgraph.Apply) error {
	v, err := Make(a.Op().(Op), a.Inputs()...)
	if err == nil && (len(a.Outputs()) != 1 || v.Type() != a.Out().Type()) {
		err = fmt.Errorf("its result is a table of type %s", v.Type())
	}
	return err
}

// Operator returns the only op of a kind, and Family all ops of one.
func (Dialect) Operator(kind string) (pattern.Operator, bool) { return operator(kind), kind == Union }
func (Dialect) Family(kind string) (pattern.Operator, bool) {
	return operator(kind), arity[kind] > 0 && kind != Union && kind != SortInPlace
}

func operator(kind string) pattern.Operator {
	return pattern.Operator{
		MinInputs: arity[kind], MaxInputs: arity[kind], Commutes: Op{Kind: kind}.Commutes(), Tracks: onOps,
		Match: func(op fgraph.Op) bool { o, ok := op.(Op); return ok && o.Kind == kind },
		Param: func(op fgraph.Op) any { return op.(Op).Param },
		Make: func(m pattern.Making) (*fgraph.Variable, error) {
			param, _ := m.Param.(string)
			if kind == Filter && param == "" { // a rule has left no comparison
				return m.Inputs[0], nil
			}
			return Make(Op{kind, param}, m.Inputs...)
		},
	}
}

// Functions returns the functions of rules.
func (Dialect) Functions() []pattern.Function {
	within := func(a pattern.Args) (any, error) { return comparisons(a, true), nil }
	without := func(a pattern.Args) (any, error) { return comparisons(a, false), nil }
	return []pattern.Function{
		pattern.NewGuard("some({p}, x)", 1, "a comparison in p needs only columns of x", func(a pattern.Args) bool { return comparisons(a, true) != "" }),
		pattern.NewGuard("uses({p}, x)", 1, "p names a column of x", func(a pattern.Args) bool {
			return slices.ContainsFunc(names(a.Params[0].(string)), func(c string) bool { return columnsOf(a.Vars...).Check(c) == nil })
		}),
		{Name: "covers", Doc: "c, or what c groups by, has all names in p and all columns of x", Depth: 1, Holds: func(a pattern.Args) bool {
			return NewSchema(names(by(a.Params[0].(string)))...).Check(append(columnsOf(a.Vars...).Columns(), names(fmt.Sprint(a.Params[1:]))...)...) == nil
		}},
		{Name: "within", Doc: "the comparisons in p that need only columns of x", Depth: 1, Param: within},
		{Name: "without", Doc: "the other comparisons in p", Depth: 1, Param: without},
		{Name: "and", Doc: "the comparisons in p and q", Depth: 1, Param: without},
	}
}

// comparisons returns those in parameters that need only columns of some tables, or the others.
func comparisons(a pattern.Args, within bool) string {
	var list []string
	for _, p := range a.Params {
		for _, c := range comparison.FindAllString(p.(string), -1) {
			if within == (columnsOf(a.Vars...).Check(names(c)...) == nil) {
				list = append(list, c)
			}
		}
	}
	return joined(list, " & ")
}

// Cost returns what an apply costs in saturation: the rows that a join makes.
func (Dialect) Cost(a *fgraph.Apply) float64 {
	if op := a.Op().(Op); op.Kind == Join || op.Kind == LeftJoin {
		return Rows(a.Out())
	}
	return 0
}

// Rows estimates how many rows a table has: each comparison leaves a third of them, or a tenth if it is
// for equality. So it does not depend on the order of joins.
func Rows(v *fgraph.Variable) float64 {
	known := make(map[*fgraph.Variable]float64)
	for _, in := range fgraph.InputsOf(v) {
		known[in] = 1000
	}
	stop := func(v *fgraph.Variable) bool { _, ok := known[v]; return ok }
	fgraph.Walk([]*fgraph.Variable{v}, stop, func(a *fgraph.Apply) {
		known[a.Out()] = a.Op().(Op).rows(known[a.Inputs()[0]], known[a.Inputs()[arity[a.Op().(Op).Kind]-1]])
	})
	return known[v]
}

func (op Op) rows(x, y float64) float64 {
	rows := map[string]float64{Union: x + y, Join: x * y, LeftJoin: x * y}[op.Kind]
	if op.Kind == Scan {
		rows, _ = strconv.ParseFloat(op.Param, 64)
	} else if arity[op.Kind] == 1 {
		rows = x
	}
	for _, m := range comparison.FindAllStringSubmatch(op.Param, -1) {
		rows /= map[bool]float64{true: 10, false: 3}[m[2] == "="]
	}
	return max(rows, map[string]float64{LeftJoin: x}[op.Kind])
}

func main() { tool.Main(program) }

// program is the command line over plans: all verbs of nnopt that are not about its own dialects.
var program = tool.Config{Name: "relalg", Doc: "relalg optimizes plans of the relational algebra.", Database: Database, Group: "pushdown", Dialects: []*tool.Dialect{{
	Name:       "relalg",
	Open:       func(*tool.Console, string, *graphfile.File) (repro.World, error) { return Dialect{}, nil },
	Vocabulary: func() pattern.Vocabulary { return Dialect{} },
	Domain:     func(string) (rulecheck.Domain, error) { return domain, nil },
}}}

// domain draws tables of two or three columns, and parameters that fit them.
var domain = rulecheck.World{
	Rules: Dialect{}, Types: []fgraph.Type{Schema("[a, b]"), Schema("[c, d]"), Schema("[e]"), Schema("[a, b, f]")},
	Params:     func(family string) []any { return params[family] },
	Conditions: []string{"uses(p, x)", "!uses(p, x)", "covers(p, p)", "covers(p, x)"}, // that a search tries
	Random:     func(t fgraph.Type, _ bool, r *rand.Rand) any { return Random(r, t.(Schema)) },
	Evaluate:   Dialect{}.Evaluate,
	Compare:    func(left, right any) rulecheck.Class { return classes[Difference(left.(*Table), right.(*Table)) == ""] },
	Smaller:    func(_ fgraph.Type, v any) iter.Seq[any] { return slices.Values(v.(*Table).Smaller()) },
}.Domain()

var classes = map[bool]rulecheck.Class{true: rulecheck.Exact, false: rulecheck.Wrong}

var params = map[string][]any{
	Filter:    {"a=1", "b<2", "a=b", "c>0", "d=1", "a=c", "e<>0", "a<2 & b=1", "b=1 & d=1", "n=1"},
	Project:   {"a", "a, b", "b", "c", "a, c", "c, d"},
	Join:      {"a=c", "a=c & b<d", "c=e", "a=e", "b=d"},
	LeftJoin:  {"a=c", "b<d", "a=e", "c=e"},
	Aggregate: {"a; count as n", "a; sum(b) as n", "a, b; count as n", "c; count as n"},
	Sort:      {"a", "b", "a, b", "c"},
}

func (Dialect) Dialect() graphfile.Dialect { return Dialect{} }

func (Dialect) Random(_ context.Context, g *fgraph.FunctionGraph, seed uint64) (tables []any, err error) {
	for _, v := range g.Inputs() {
		tables = append(tables, Random(rand.New(rand.NewPCG(seed, uint64(len(tables)))), v.Type().(Schema)))
	}
	return tables, nil
}

// Evaluate computes a plan of tables, which stay as they are.
func (Dialect) Evaluate(_ context.Context, g *fgraph.FunctionGraph, tables []any) ([]any, error) {
	return repro.Interpret(g, tables, func(a *fgraph.Apply, in []any) ([]any, error) {
		return []any{Apply(a, in[0].(*Table), in[len(in)-1].(*Table))}, nil
	})
}

func (Dialect) Differ(tables, right []any) (text string) {
	for i := range right {
		text = cmp.Or(text, Difference(right[i].(*Table), tables[i].(*Table)))
	}
	return text
}

func (Dialect) FormatValue(_ fgraph.Type, v any) (string, error) { return v.(*Table).String(), nil }
