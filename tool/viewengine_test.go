package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/service"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/standard"
)

// TestViewEngineOfCircuits: a dialect that has no text of its own takes that of graph files.
func TestViewEngineOfCircuits(t *testing.T) {
	e := tool.NewViewEngine(circuitTool)
	s, err := e.Optimize(t.Context(), view.Input{Expr: "input %x : wire; input %y : wire; %0 = Not(%x) : wire; %1 = Not(%y) : wire; %2 = And(%0, %1) : wire; %3 = Not(%2) : wire; return %3"})
	if err != nil || s.Recording.Query != "+fast_run" {
		t.Fatal(err)
	}
	if _, err := e.Optimize(t.Context(), view.Input{Expr: "input %x; nonsense"}); err == nil {
		t.Error("nonsense is a circuit")
	}
	if list, err := e.Check(t.Context(), "(And x (Or x y)) => y", ""); err != nil || len(list) != 1 || list[0].Class != "wrong" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestViewEngine: what is typed can't hang the server, take much memory or make a long answer; its
// errors say what is wrong.
func TestViewEngine(t *testing.T) {
	t.Parallel()
	e := tool.NewViewEngine(standard.Program{}.Config())
	for _, in := range []view.Input{
		{Expr: "zeros(100000, 100000) + 1"},
		{Expr: "sum(ones((30000, 30000)))"},
		{Expr: strings.Repeat("x+", 20000) + "x"},
		{Expr: "alloc(1.0, 1000000000, 1000)"},
	} {
		if _, err := e.Optimize(t.Context(), in); err != nil {
			t.Errorf("%.60s: %v", in.Expr, err)
		}
	}
	for _, c := range []struct {
		in   view.Input
		want string
	}{
		{view.Input{Expr: strings.Repeat("(", 60000)}, "nested"},
		{view.Input{Expr: "x", Query: strings.Repeat("+", 60000)}, "bad query"},
		{view.Input{Expr: "tanh(x)", Rules: "(tanh x) => (add (tanh x) (tanh x))"}, "each round of 1 rewrite makes the graph larger"},
		{view.Input{Expr: "x", Rules: "(tanh x) =>"}, "bad pattern"},
		{view.Input{Expr: "x", Variables: "x: nothing"}, "nothing"},
		{view.Input{Expr: "x", Grad: "y"}, "no variable y"},
	} {
		_, err := e.Optimize(t.Context(), c.in)
		var f *service.Fault
		if !errors.As(err, &f) || !strings.Contains(f.Text, c.want) || len(f.Text) > 2000 {
			t.Errorf("%.60q: %.300v, want %q", c.in, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Check(ctx, "(add x y) => (mul x y)", ""); err == nil {
		t.Error("a check continues after its request has ended")
	}
	if _, err := e.Choices("+nonsense("); err == nil {
		t.Error("a wrong query has choices")
	}
}

// TestViewEngineFind: each rule that is left at the end was told before, and can be used as it is.
func TestViewEngineFind(t *testing.T) {
	t.Parallel()
	e := tool.NewViewEngine(standard.Program{}.Config())
	told := make(map[string]service.Discovery)
	end, err := e.Find(t.Context(), service.Search{Ops: "and, xor", Types: "bool", Constants: "1", Size: 1, Query: "none"}, func(d service.Discovery) { told[d.Name] = d })
	if err != nil || len(end.Names) < 2 {
		t.Fatalf("%+v, %v", end, err)
	}
	for _, name := range end.Names {
		if list, err := e.Check(t.Context(), told[name].File, ""); err != nil || len(list) != 1 || !list[0].Kept {
			t.Errorf("%s: %+v, %v", told[name].File, list, err)
		}
	}
	for _, in := range []service.Search{{}, {Ops: "nonsense"}, {Ops: "add", Size: 4}, {Ops: "add", Constants: "x"}, {Ops: "add", Query: "+("}} {
		var f *service.Fault
		if _, err := e.Find(t.Context(), in, func(service.Discovery) {}); !errors.As(err, &f) {
			t.Errorf("%+v: %v", in, err)
		}
	}
}

// TestViewService: a page without a server has its questions answered, and what is wrong as JSON.
func TestViewService(t *testing.T) {
	ask := tool.NewViewService(standard.Program{}.Config(), t.TempDir())
	for _, c := range []struct {
		question, body, want string
		ok                   bool
	}{
		{"optimize", `{"expr": "x*y/y", "variables": "x y: vector"}`, `"format":`, true},
		{"optimize", `{"expr": "x*"}`, `"error":`, false},
		{"sing", "", "there is no question", false},
	} {
		answer, ok := ask(t.Context(), c.question, []byte(c.body), nil)
		if ok != c.ok || !strings.Contains(string(answer), c.want) {
			t.Errorf("%s %s: %v, %.200s", c.question, c.body, ok, answer)
		}
	}
}
