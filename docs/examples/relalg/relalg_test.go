package main

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// must returns a value that comes without an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// base are the columns of base tables.
var base = []string{"[a0, a1]", "[b0, b1, b2]", "[c0]", "[d0, d1]", "[a0, a1]"}

// A plan is made anew for each query, with the tables on which it runs.
type plan struct {
	inputs, outputs []*fgraph.Variable
	tables          []*Table
}

// randomPlan makes a plan from a seed.
func randomPlan(seed int64) plan {
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	var p plan
	var pool []*fgraph.Variable
	values := make(map[*fgraph.Variable]*Table)
	add := func(op Op, in ...*fgraph.Variable) {
		v, err := Make(op, in...)
		if err != nil {
			return
		}
		if values[v] = Apply(v.Owner(), values[in[0]], values[in[len(in)-1]]); len(values[v].Rows) <= 150 {
			pool = append(pool, v)
		}
	}
	for i, s := range base {
		v := fgraph.NewInput(Schema(s), fmt.Sprintf("t%d", i))
		p.inputs = append(p.inputs, v)
		values[v] = Random(r, Schema(s))
		p.tables = append(p.tables, values[v])
		add(Op{Scan, fmt.Sprint(1 + r.IntN(1000))}, v)
	}
	pick := func() *fgraph.Variable {
		if r.IntN(3) > 0 {
			return pool[len(pool)-1-r.IntN(min(3, len(pool)))]
		}
		return pool[r.IntN(len(pool))]
	}
	some := func(v *fgraph.Variable) string { c := v.Type().(Schema).Columns(); return c[r.IntN(len(c))] }
	list := func(v *fgraph.Variable) string {
		text := some(v)
		for range r.IntN(3) {
			if c := some(v); !slices.Contains(names(text), c) {
				text += ", " + c
			}
		}
		return text
	}
	comparison := func(x, y *fgraph.Variable) string {
		return some(x) + []string{"=", "=", "=", "<>", "<", ">="}[r.IntN(6)] + some(y)
	}
	for i := range 4 + r.IntN(14) {
		x, y := pick(), pick()
		switch r.IntN(10) {
		case 0, 1, 2:
			p := fmt.Sprint(some(x), []string{"=", "<>", "<", ">="}[r.IntN(4)], r.IntN(4)-1)
			for range r.IntN(3) {
				p += " & " + comparison(x, x)
			}
			add(Op{Filter, p}, x)
		case 3, 4:
			j := comparison(x, y)
			for range r.IntN(2) {
				j += " & " + comparison(y, x)
			}
			add(Op{[]string{Join, Join, LeftJoin}[r.IntN(3)], j}, x, y)
		case 5:
			add(Op{Project, list(x)}, x)
		case 6:
			for _, y := range pool[r.IntN(len(pool)):] {
				if x.Type() == y.Type() {
					add(Op{Union, ""}, x, y)
					break
				}
			}
		case 7:
			add(Op{Aggregate, list(x) + []string{fmt.Sprintf("; count as n%d", i), fmt.Sprintf("; sum(%s) as n%d", some(x), i)}[r.IntN(2)]}, x)
		case 8, 9:
			add(Op{Sort, list(x)}, x)
		}
	}
	p.outputs = append(p.outputs, pool[len(pool)-1])
	if r.IntN(3) == 0 {
		p.outputs = append(p.outputs, pick())
	}
	return p
}

func (p plan) graph() *fgraph.FunctionGraph { return must(fgraph.New(p.inputs, p.outputs)) }

func build(query string) *optdb.Optimizer {
	return must(must(Database()).Build(must(optdb.ParseQuery(query))))
}

// optimize runs an optimizer, and fails on any fault.
func optimize(t *testing.T, o *optdb.Optimizer, g *fgraph.FunctionGraph, options rewrite.Options) {
	t.Helper()
	options.Check = true
	if err := o.Rewrite(rewrite.WithOptions(t.Context(), options), g, nil); err != nil {
		t.Fatal(err)
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
}

// TestRandomPlans: whatever the passes do, a plan makes the same tables.
func TestRandomPlans(t *testing.T) {
	optimizers := make(map[string]*optdb.Optimizer)
	for _, q := range []string{"none", "fast_run", "fast_compile", "debug", "+saturate", "+fast_run +saturate"} {
		optimizers[q] = build(q)
	}
	fired := make(map[string]int)
	for seed := range int64(1000) {
		p := randomPlan(seed)
		text := must(graphfile.Format(&graphfile.File{Graph: p.graph()}, Dialect{}))
		var want []*Table
		for _, q := range []string{"none", "fast_run", "fast_compile", "debug", "+saturate", "+fast_run +saturate"} {
			f := must(graphfile.Parse("plan", text, Dialect{}))
			if again := must(graphfile.Format(f, Dialect{})); again != text {
				t.Fatalf("%s\nbecomes\n%s", text, again)
			}
			optimize(t, optimizers[q], f.Graph, rewrite.Options{Trace: func(e rewrite.Event) {
				if e.Err == nil {
					fired[fgraph.Reason{Pass: e.Pass, Rule: e.Rule}.String()]++
				}
			}})
			var in []*Table
			for _, table := range p.tables {
				in = append(in, must(parseTable(table.Schema, table.String())))
			}
			got := must(run(f.Graph, in))
			if want == nil {
				want = got
			}
			for i := range want {
				if d := Difference(want[i], got[i]); d != "" {
					t.Fatalf("seed %d, %s, output %d: %s\n%s\n%s", seed, q, i, d, text, must(graphfile.Format(f, Dialect{})))
				}
			}
			for i, table := range p.tables {
				if table.String() != in[i].String() {
					t.Fatalf("seed %d, %s: input %d was overwritten\n%s", seed, q, i, text)
				}
			}
		}
	}
	for _, e := range build("fast_run").Entries() {
		if e.Class == "rule" && fired[e.Path] == 0 {
			t.Errorf("%s never fired", e.Path)
		}
	}
	if fired["saturate/associate_joins"] == 0 || fired["prune_columns"] == 0 || fired["sort_in_place"] == 0 {
		t.Error(fired)
	}
}

// TestJoinOrder: saturation finds the order of joins that dynamic programming over sets of tables
// finds.
func TestJoinOrder(t *testing.T) {
	o, r := build("+saturate"), rand.New(rand.NewPCG(1, 0))
	changed := 0
	for n := 3; n <= 7; n++ {
		for _, shape := range []string{"chain", "star", "tree", "cycle"} {
			for range 3 {
				q := randomQuery(r, shape, n)
				g := q.plan(r)
				before, want := planCost(g), q.best()
				optimize(t, o, g, rewrite.Options{})
				if after := planCost(g); math.Abs(after-want) > 1e-6*want {
					t.Errorf("a %s of %d tables costs %g, then %g, at best %g\n%s", shape, n, before, after, want, g)
				} else if after < before*0.999 {
					changed++
				}
			}
		}
	}
	if changed < 30 {
		t.Errorf("only %d of 60 plans got cheaper", changed)
	}
}

// A query joins tables t0, t1 and so on, of which table i has the column c<i>_<k> for the comparison
// with table k.
type query struct {
	rows  []int
	edges [][2]int
}

func randomQuery(r *rand.Rand, shape string, n int) query {
	var q query
	for i := range n {
		q.rows = append(q.rows, 1+r.IntN(1000))
		if i > 0 {
			other := map[string]int{"chain": i - 1, "cycle": i - 1, "tree": r.IntN(i)}[shape] // star: 0
			q.edges = append(q.edges, [2]int{other, i})
		}
	}
	if shape == "cycle" {
		q.edges = append(q.edges, [2]int{0, n - 1})
	}
	return q
}

// between returns the comparisons between sets of tables.
func (q query) between(x, y uint) (list []string) {
	for _, e := range q.edges {
		a, b := uint(1)<<e[0], uint(1)<<e[1]
		if x&a != 0 && y&b != 0 || x&b != 0 && y&a != 0 {
			list = append(list, fmt.Sprintf("c%d_%d=c%d_%d", e[0], e[1], e[1], e[0]))
		}
	}
	slices.Sort(list)
	return list
}

// plan joins the tables one by one in a random order.
func (q query) plan(r *rand.Rand) *fgraph.FunctionGraph {
	var inputs, tables []*fgraph.Variable
	for i, n := range q.rows {
		var columns []string
		for _, e := range q.edges {
			for k := range 2 {
				if e[k] == i {
					columns = append(columns, fmt.Sprintf("c%d_%d", i, e[1-k]))
				}
			}
		}
		inputs = append(inputs, fgraph.NewInput(NewSchema(columns...), fmt.Sprint("t", i)))
		tables = append(tables, must(Make(Op{Scan, fmt.Sprint(n)}, inputs[i])))
	}
	first := r.IntN(len(tables))
	v, have := tables[first], uint(1)<<first
	for bits.OnesCount(have) < len(tables) {
		i := r.IntN(len(tables))
		if c := q.between(have, 1<<i); have>>i&1 == 0 && len(c) > 0 {
			v, have = must(Make(Op{Join, strings.Join(c, " & ")}, v, tables[i])), have|1<<i
		}
	}
	return must(fgraph.New(inputs, []*fgraph.Variable{v}))
}

// best returns the lowest cost, by dynamic programming over sets of tables.
func (q query) best() float64 {
	cost := make([]float64, 1<<len(q.rows))
	for s := uint(1); s < uint(len(cost)); s++ {
		if bits.OnesCount(s) == 1 {
			continue
		}
		rows, best := 1.0, math.Inf(1)
		for i, n := range q.rows {
			if s>>i&1 != 0 {
				rows *= float64(n)
			}
		}
		for _, e := range q.edges {
			if s>>e[0]&1 != 0 && s>>e[1]&1 != 0 {
				rows /= 10
			}
		}
		for x := (s - 1) & s; x > 0; x = (x - 1) & s {
			if len(q.between(x, s&^x)) > 0 {
				best = min(best, cost[x]+cost[s&^x]+rows)
			}
		}
		cost[s] = best
	}
	return cost[len(cost)-1]
}

// TestSortInPlace: a sort overwrites what nothing reads later, and nothing else.
func TestSortInPlace(t *testing.T) {
	for _, c := range []struct{ outputs, want, refused string }{
		{"return %s", "[SortInPlace{a}(Filter{a>0}(Scan{9}(x)))]", ""},
		// Another reader can come first.
		{"%p = Project{a}(%f) : [a]\n return %s, %p", "[SortInPlace{a}(*1 -> Filter{a>0}(Scan{9}(x))), Project{a}(*1)]", ""},
		// A reader of both must come later.
		{"%u = Union(%f, %s) : [a]\n return %u", "[Union(*1 -> Filter{a>0}(Scan{9}(x)), Sort{a}(*1))]",
			"sort_in_place: inconsistent graph: SortInPlace{a}(Filter{a>0}(…)), which overwrites its input 0 (by sort_in_place): Union(Filter{a>0}(…), SortInPlace{a}(…)) reads it, but has to come later"},
		// An output stays as it is, and so does the input of the plan, which the scan shows.
		{"return %f, %s", "[*1 -> Filter{a>0}(Scan{9}(x)), Sort{a}(*1)]", ""},
		{"%t = Sort{a}(%0) : [a]\n return %t", "[Sort{a}(Scan{9}(x))]", ""},
	} {
		text := "graph {\n input %x : [a]\n %0 = Scan{9}(%x) : [a]\n %f = Filter{a>0}(%0) : [a]\n %s = Sort{a}(%f) : [a]\n " + c.outputs + "\n}\n"
		f := must(graphfile.Parse("f", text, Dialect{}))
		var refused string
		optimize(t, build("[add_destroy_handler, sort_in_place]"), f.Graph, rewrite.Options{
			Trace: func(e rewrite.Event) {
				if e.Err != nil {
					refused = e.Err.Error()
				}
			},
		})
		if got := f.Graph.String(); got != c.want || refused != c.refused {
			t.Errorf("%s\n%s", got, refused)
		}
	}
}

// TestFaults: texts and inputs that are wrong.
func TestFaults(t *testing.T) {
	x, y := fgraph.NewInput(Schema("[a, b]"), "x"), fgraph.NewInput(Schema("[c]"), "y")
	for text, want := range map[string]string{
		"Filter{z<3}":               "Filter{z<3}: there is no column z in [a, b]",
		"Project{a, z}":             "there is no column z in [a, b]",
		"Sort{z}":                   "there is no column z in [a, b]",
		"Aggregate{a; sum(z) as n}": "there is no column z in [a, b]",
		"Aggregate{a; count as a}":  "a column occurs twice",
		"Join{a=z}":                 "there is no column z in [a, b, c]",
		"Join{a=b}":                 "a=b does not compare a column of [a, b] with one of [c]",
		"LeftJoin{a=3}":             "a=3 does not compare a column of",
		"Union":                     "there is no column a in [c]",
		"Filter":                    "is no op",
		"Filter{}":                  "is no op",
		"Filter{a=3":                "is no op",
		"Filter{a==3}":              "is no op",
		"Filter{a=b & }":            "is no op",
		"Filter{3<a}":               "is no op",
		"Union{a}":                  "is no op",
		"Scan{x}":                   "is no op",
		"Aggregate{a; sum as n}":    "is no op",
		"Aggregate{a}":              "is no op",
		"Select{a}":                 "is no op",
	} {
		op, err := ParseOp(text)
		if err == nil {
			in := []*fgraph.Variable{x, y}[:arity[op.Kind]]
			_, err = Make(op, in...)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Make(Op{Join, "a=c"}, x, x); err == nil {
		t.Error("a table joined with itself")
	}
	for _, text := range []string{"", "x", `[{"c":1}]`, `[{"a":1.5}]`, `[{"a":"1"}]`} {
		if table, err := parseTable("[a, b]", text); err == nil {
			t.Errorf("%q is %v", text, table)
		}
	}
	for _, text := range []string{"", "[]", "[b, a]", "a", "[a,b]"} {
		if s, err := (Dialect{}).ParseType(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
}

// table reads a table such as "a b; 1 2; 3 NULL".
func table(text string) *Table {
	lines := strings.Split(text, "; ")
	columns := strings.Fields(lines[0])
	t := &Table{Schema: NewSchema(columns...)}
	for _, line := range lines[1:] {
		row := Row{}
		for i, word := range strings.Fields(line) {
			if n, err := strconv.ParseInt(word, 10, 64); err == nil {
				row[columns[i]] = n
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// TestApply: what ops do with NULLs.
func TestApply(t *testing.T) {
	for _, c := range []struct{ op, x, y, want string }{
		{"Filter{a<>1}", "a b; 1 2; 2 3; NULL 4", "", "a b; 2 3"},
		{"Filter{a=a & b>=-3}", "a b; NULL 2; 1 -3; 2 -4", "", "a b; 1 -3"},
		{"Project{b}", "a b; 1 2; 3 2", "", "b; 2; 2"},
		{"Join{b=c}", "a b; 1 2; 3 NULL; 4 2", "c; 2; NULL; 2", "a b c; 1 2 2; 1 2 2; 4 2 2; 4 2 2"},
		{"LeftJoin{b=c}", "a b; 1 2; 3 NULL", "c; 2; NULL", "a b c; 1 2 2; 3 NULL NULL"},
		{"Join{b=c & a<=d}", "a b; 1 2; 2 2", "c d; 2 1; 3 9", "a b c d; 1 2 2 1"},
		{"Union", "a; 1; 2", "a; 2; NULL", "a; 1; 2; 2; NULL"},
		{"Sort{b, a}", "a b; 2 1; 1 1; 5 NULL", "", "a b; 5 NULL; 1 1; 2 1"},
		{"Aggregate{a; count as n, sum(b) as m}", "a b; 1 -2; NULL 3; 1 NULL; NULL 4; 2 NULL", "", "a m n; NULL 7 2; 1 -2 2; 2 NULL 1"},
		{"Aggregate{a; count as n}", "a", "", "a n"},
	} {
		x, y := table(c.x), table(c.y)
		in := []*fgraph.Variable{fgraph.NewInput(x.Schema, "x"), fgraph.NewInput(y.Schema, "y")}
		op := must(ParseOp(c.op))
		got := Apply(must(Make(op, in[:arity[op.Kind]]...)).Owner(), x, y)
		want := table(c.want)
		want.Order = got.Order
		if d := Difference(want, got); d != "" || want.Schema != got.Schema {
			t.Errorf("%s: %s, %v", c.op, d, got.Schema)
		}
	}
	if d := Difference(&Table{Schema: "[a]", Rows: []Row{{"a": 1}, {"a": 2}}, Order: []string{"a"}}, &Table{Schema: "[a]", Rows: []Row{{"a": 2}, {"a": 1}}}); !strings.Contains(d, "not sorted") {
		t.Error(d)
	}
	big := table("a b; 1 NULL; 0 0")
	for _, s := range big.Smaller() {
		if len(s.(*Table).Rows) > 2 || Difference(big, s.(*Table)) == "" {
			t.Error(s)
		}
	}
}

// TestLeftJoins: a join that needs the left table of a left join moves to where it costs least.
func TestLeftJoins(t *testing.T) {
	for _, c := range []struct{ plan, want string }{
		{"%3 = LeftJoin{a=b}(%0, %1) : [a, b]\n %4 = Join{a=c}(%3, %2) : [a, b, c]", "[LeftJoin{a=b}(Join{a=c}(*, *), *)]"},
		{"%3 = Join{a=c}(%0, %2) : [a, c]\n %4 = LeftJoin{a=b}(%3, %1) : [a, b, c]", "[LeftJoin{a=b}(Join{a=c}(*, *), *)]"},
		{"%3 = Join{a=b}(%0, %1) : [a, b]\n %4 = LeftJoin{a=c}(%3, %2) : [a, b, c]", "[Join{a=b}(LeftJoin{a=c}(*, *), *)]"},
		{"%3 = LeftJoin{a=b}(%0, %1) : [a, b]\n %4 = Join{b=c}(%3, %2) : [a, b, c]", "[Join{b=c}(LeftJoin{a=b}(*, *), *)]"},
	} {
		f := must(graphfile.Parse("f", "graph {\n input %x : [a]\n input %y : [b]\n input %z : [c]\n"+
			"%0 = Scan{1000}(%x) : [a]\n %1 = Scan{500}(%y) : [b]\n %2 = Scan{2}(%z) : [c]\n "+c.plan+"\n return %4\n}\n", Dialect{}))
		optimize(t, build("+saturate"), f.Graph, rewrite.Options{})
		got := regexp.MustCompile(`Scan{\d+}\(.\)`).ReplaceAllString(f.Graph.String(), "*")
		if got != c.want {
			t.Errorf("%s, not %s", f.Graph, c.want)
		}
	}
}

// run computes the outputs of a plan from the tables that are its inputs.
func run(g *fgraph.FunctionGraph, inputs []*Table) (outputs []*Table, err error) {
	var tables []any
	for _, t := range inputs {
		tables = append(tables, t)
	}
	values, err := Dialect{}.Evaluate(context.Background(), g, tables)
	for _, v := range values {
		outputs = append(outputs, v.(*Table))
	}
	return outputs, err
}

// planCost returns what the joins of a plan cost.
func planCost(g *fgraph.FunctionGraph) (sum float64) {
	for a := range g.Applies() {
		sum += Dialect{}.Cost(a)
	}
	return sum
}

// parseTable reads the rows of a table.
func parseTable(s Schema, text string) (*Table, error) {
	v, err := Dialect{}.ParseValue(s, text)
	return v.(*Table), err
}
