package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool"
)

// text is a plan as a file.
const text = `graph {
    input %people : [age, city, name, zip]
    input %cities : [country, place]
    %0 = Scan{1000}(%people) : [age, city, name, zip]
    %1 = Scan{50}(%cities) : [country, place]
    %2 = LeftJoin{city=place}(%0, %1) : [age, city, country, name, place, zip]
    %3 = Sort{name}(%2) : [age, city, country, name, place, zip]
    %4 = Filter{age>=2 & country=1}(%3) : [age, city, country, name, place, zip]
    %5 = Project{name}(%4) : [name]
    return %5
}
`

// call runs the program, which must end with a status, and returns what it prints.
func call(t *testing.T, cfg tool.Config, status int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if got := cfg.Run(t.Context(), args, nil, &out, &out); got != status {
		t.Fatalf("%q: status %d, want %d: %s", args, got, status, out.String())
	}
	return out.String()
}

// planted is the program with a rule more.
func planted(rule rewrite.NodeRewriter, position float64) tool.Config {
	cfg := program
	cfg.Database = func() (*optdb.SequenceDB, error) {
		db, err := Database()
		return db, errors.Join(err, db.Register("planted", rewrite.In2Out("planted", rule), position, "fast_run"))
	}
	return cfg
}

// TestVerbs: every verb works on plans.
func TestVerbs(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("plan.graph", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"opt|plan.graph", "SortInPlace{name}"},
		{"opt|--query=+fast_run -inplace|plan.graph", " = Sort{name}"},
		{"opt|--query=+fast_run +saturate|plan.graph", "Join{city=place}"},
		{"opt|--query=debug|plan.graph", "SortInPlace{name}"},
		{"opt|--trace=left_join_to_join|plan.graph", "pushdown/left_join_to_join: Filter{"},
		{"opt|--why-not=merge_projects|plan.graph", "why not: pushdown/merge_projects: at "},
		{"opt|--max-rewrites=1|plan.graph", "LeftJoin{"},
		{"opt|--rule=(Sort{a} x) => x|--trace=rule1|plan.graph", "pushdown/rule1: Sort{name}"},
		{"graph|--every|plan.graph", "# after prune_columns: "},
		{"graph|--format=dot|plan.graph", "digraph"},
		{"passes|--query=+fast_run", "prune_columns"},
		{"passes|--rules", "(Filter{p} (Union x y)) => (Union (Filter{p} x) (Filter{p} y))"},
		{"profile|plan.graph", "pushdown"},
		{"profile|--format=json|plan.graph", `"pushdown"`},
		{"profile|--format=html|plan.graph", "<!DOCTYPE html>"},
		{"profile|--format=trace|plan.graph", "traceEvents"},
		{"profile|--format=pprof|--output=p.pb.gz|plan.graph", ""},
		{"view|--output=page.html|plan.graph", ""},
		{"rule|check|--all", "17 of 17 rules are what their tags promise"},
	} {
		args := strings.Split(c.args, "|")
		if out := call(t, program, 0, args...); !strings.Contains(out, c.want) {
			t.Errorf("%s prints\n%s\nwithout %q", c.args, out, c.want)
		}
	}
	for _, name := range []string{"page.html", "p.pb.gz"} {
		if info, err := os.Stat(name); err != nil || info.Size() < 100 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServer: the page is served, and optimizes a plan that is typed, with other passes and rules.
func TestServer(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("plan.graph", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	go program.Run(t.Context(), []string{"view", "--listen", "plan.graph"}, nil, w, io.Discard)
	buf := make([]byte, 100)
	n, err := r.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(string(buf[:n]))
	for _, c := range []struct{ path, body, want string }{
		{"", "", "<title>plan.graph</title>"},
		{"api/optimize", `{"expr": "input %x : [a]; %0 = Scan{9}(%x) : [a]; %1 = Sort{a}(%0) : [a]; return %1", "query": "+fast_run -merge1", "rules": "(Sort{a} x) => x"}`, `"rule":"rule1"`},
		{"api/check", `{"rules": "(Sort{a} x) => x"}`, `"class":"wrong","ok":false,"counterexample":"x: [`},
	} {
		var answer *http.Response
		if c.body == "" {
			answer, err = http.Get(url)
		} else {
			answer, err = http.Post(url+c.path, "application/json", strings.NewReader(c.body))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		page, err := io.ReadAll(answer.Body)
		if err != nil || !bytes.Contains(page, []byte(c.want)) {
			t.Errorf("%s: no %s: %v %v %.300s", c.path, c.want, err, answer.Status, page)
		}
	}
}

// TestFind: of the rules in relalg.rules, the search finds those that formulas of parameters are not needed for, and
// some that nobody wrote.
func TestFind(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 20 seconds")
	}
	for _, c := range []struct{ flags, want string }{
		{"--ops=Project,Sort,Aggregate|--types=[a, b, f]", `
(Aggregate{p} (Project{q} x)) => (Aggregate{p} x) # drop_project_before_aggregate
(Project{p} (Project{q} x)) => (Project{p} x) # merge_projects
(Project{p} (Sort{q} x)) <=> (Sort{q} (Project{p} x)) # project_before_sort
(Aggregate{p} (Sort{q} x)) => (Aggregate{p} x)`},
		{"--ops=Filter,Sort,Project|--types=[a, b]", `
(Project{p} x) => x # drop_project
(Filter{p} (Project{q} x)) <=> (Project{q} (Filter{p} x)) # filter_before_project
(Filter{p} (Sort{q} x)) <=> (Sort{q} (Filter{p} x)) # filter_before_sort
(Sort{p} (Sort{q} x)) => (Sort{p} x)`},
		{"--ops=Filter,Aggregate|--types=[a, b]", `
(Aggregate{p} (Filter{q} x)) <=> (Filter{q} (Aggregate{p} x)) # filter_before_aggregate`},
		{"--ops=Filter,Join,LeftJoin|--types=[a, b]; [c, d]", `
(Filter{p} (LeftJoin{q} x y)) => (LeftJoin{q} (Filter{p} x) y) # filter_into_left_join
(Filter{p} (Join{q} x y)) && uses(p, y) <=> (Filter{p} (LeftJoin{q} x y)) && uses(p, y) # left_join_to_join
(Filter{p} (LeftJoin{p} x y)) => (Join{p} x y)`},
		{"--ops=Join,LeftJoin|--types=[a, b]; [c, d]; [e]", `
(Join{p} x (Join{q} y z)) <=> (Join{q} y (Join{p} z x)) # associate_joins
(Join{p} x (LeftJoin{q} y z)) <=> (LeftJoin{q} (Join{p} x y) z) # join_before_left_join, join_after_left_join
(LeftJoin{p} (LeftJoin{q} x y) z) <=> (LeftJoin{q} (LeftJoin{p} x z) y)`},
	} {
		t.Run(c.flags, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"rule", "find", "--known=none", "--vars=1", "--time=0"}, strings.Split(c.flags, "|")...)
			out := call(t, program, 0, args...)
			for line := range strings.Lines(strings.TrimSpace(c.want)) {
				if rule, _, _ := strings.Cut(strings.TrimSpace(line), " # "); !strings.Contains(out, "    "+rule+"\n") {
					t.Errorf("no %s in\n%s", rule, out)
				}
			}
		})
	}
}

// TestWrongRules: the machine finds rules that are wrong, and shows tables.
func TestWrongRules(t *testing.T) {
	for _, rule := range []string{
		// The filter of a right table does not pass an outer join.
		"(Filter{p} (LeftJoin{j} x y)) && some(p, y) => (Filter{without(p, y)} (LeftJoin{j} x (Filter{within(p, y)} y)))",
		"(LeftJoin{j} x y) => (Join{j} x y)",
		"(LeftJoin{j} x y) => (LeftJoin{j} y x)",
		"(Filter{p} (Filter{q} x)) => (Filter{p} x)",
		"(Filter{p} (Join{j} x y)) && some(p, x) => (Join{j} (Filter{within(p, x)} x) y)",
		"(Filter{p} (Aggregate{g} x)) && !covers(g, p) => (Aggregate{g} x)",
		"(Project{c} (Union x y)) => (Project{c} x)",
		"(Union x x) => x",
		"(Aggregate{g} (Union x x)) => (Aggregate{g} x)",
		"(Aggregate{g} (Union x y)) => (Union (Aggregate{g} x) (Aggregate{g} y))",
		"(Sort{a} (Sort{b} x)) => (Sort{b} x)",
		"(Sort{a} x) => x",
	} {
		out := call(t, program, 1, "rule", "check", rule)
		if !strings.Contains(out, "! wrong       rule1\n    ") || !regexp.MustCompile(`x: \[.*\] = \[.*; left: .* = \[.*; right: .* = \[`).MatchString(out) {
			t.Errorf("%s: %s", rule, out)
		}
	}
}

// TestWrongRule: a wrong rule is found in debug mode, made small, and to blame.
func TestWrongRule(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg := planted(rewrite.Rule{Name: "drop_filter", Doc: "is wrong", On: onOps, Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
		if a.Op().(Op).Kind != Filter {
			return c.Miss("it is no filter"), nil
		}
		return rewrite.Replace(a.Inputs()[0]), nil
	}}, 1.5)
	if err := os.WriteFile("plan.graph", []byte("seed: 1\n\n"+text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out := call(t, cfg, 1, "opt", "--query=debug", "plan.graph"); !strings.Contains(out, "relalg-failure-1.graph (values in planted/drop_filter)") {
		t.Error(out)
	}
	call(t, cfg, 1, "reproduce", "relalg-failure-1.graph")
	if out := call(t, cfg, 0, "reduce", "--output=small.graph", "relalg-failure-1.graph"); !strings.Contains(out, "1 applies instead of 6") {
		t.Error(out)
	}
	if out := call(t, cfg, 0, "bisect", "small.graph"); !strings.Contains(out, "to blame: rewrite 1: planted/drop_filter") {
		t.Error(out)
	}
	if out := call(t, cfg, 1, "reproduce", "small.graph"); !strings.Contains(out, "it still fails: values in planted/drop_filter") {
		t.Error(out)
	}
}

// TestInPlaceFault: a sort that overwrites what is read later is refused.
func TestInPlaceFault(t *testing.T) {
	t.Chdir(t.TempDir())
	careless := rewrite.Rule{Name: "careless", Doc: "is wrong", On: onOps, Destroys: true, Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
		if a.Op().(Op).Kind != Sort {
			return c.Miss("it is no sort"), nil
		}
		v, err := Make(Op{SortInPlace, a.Op().(Op).Param}, a.Inputs()...)
		return rewrite.Replace(v), err
	}}
	const plan = "graph {\ninput %t : [a, b]\n%0 = Filter{a>0}(%t) : [a, b]\n%1 = Sort{a}(%0) : [a, b]\n%2 = Sort{b}(%0) : [a, b]\nreturn %1, %2\n}\n"
	if err := os.WriteFile("plan.graph", []byte(plan), 0o666); err != nil {
		t.Fatal(err)
	}
	out := call(t, planted(careless, 60), 0, "opt", "--query=+fast_run -sort_in_place", "--why-not=careless", "plan.graph")
	for _, want := range []string{
		"why not: planted/careless: at Sort{b}(Filter{a>0}(t)): refused: planted/careless: inconsistent graph: multiple destroyers of Filter{a>0}(t): ",
		"= Sort{b}(%0)", "= SortInPlace{a}(%0)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nwithout %q", out, want)
		}
	}
}
