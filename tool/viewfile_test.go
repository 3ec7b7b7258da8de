package tool_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/service"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/standard"
)

// TestViewEngineFiles: files of all dialects are optimized, run and exported.
func TestViewEngineFiles(t *testing.T) {
	t.Parallel()
	e := tool.NewViewEngine(standard.Program{}.Config())
	graph, err := e.Export(t.Context(), view.Input{Expr: "tanh(x*y/y) + tanh(x)", Variables: "x y: vector", Query: "none"}, "graph")
	if err != nil || strings.Count(string(graph), "tanh") != 2 {
		t.Fatalf("%s, %v", graph, err)
	}
	file := filepath.Join(t.TempDir(), "my.graph")
	if err := os.WriteFile(file, graph, 0o666); err != nil {
		t.Fatal(err)
	}
	network := "networks/demo/tdnnf.config"
	for _, in := range []view.Input{
		{Expr: "tanh(x)*0 + x", Variables: "x: float32[3]", Rules: "(mul 0 x) => (sub x x)"},
		{Expr: "sum(tanh(x))", Variables: "x: vector", Grad: "x"},
		{File: file},
		{File: file, Rules: "(add x x) => (mul 2 x)"},
		{File: network, Flags: []string{"--frames-per-chunk=20"}},
	} {
		s, err := e.Optimize(t.Context(), in)
		if err != nil || len(s.Recording.Steps) == 0 {
			t.Fatalf("%+v: %v", in, err)
		}
		if trial, err := e.Try(t.Context(), in, 3); err != nil || trial.Differ != "" || len(trial.Outputs) == 0 {
			t.Errorf("%+v: %+v, %v", in, trial, err)
		}
		for format, want := range map[string]string{"graph": "graph {", "dot": "digraph", "json": `"optimizer"`, "page": "<!DOCTYPE html>", "trace": "traceEvents"} {
			if !longtest.Enabled() && in.File != file && format != "page" {
				continue
			}
			if data, err := e.Export(t.Context(), in, format); err != nil || !strings.Contains(string(data), want) {
				t.Errorf("%+v as %s: %.80s, %v", in, format, data, err)
			}
		}
	}
	wrong := view.Input{Expr: "tanh(x) + exp(x)", Variables: "x: vector", Rules: "(tanh x) => (sin x)"}
	if trial, err := e.Try(t.Context(), wrong, 1); err != nil || trial.Differ == "" {
		t.Errorf("a wrong rule: %+v, %v", trial, err)
	}
	for _, c := range []struct {
		in     view.Input
		format string
		want   string
	}{
		{view.Input{File: file, Flags: []string{"--shape=x=3"}}, "graph", "shape"},
		{view.Input{File: network, Flags: []string{"--request=/etc/passwd"}}, "graph", "is no flag"},
		{view.Input{File: network, Flags: []string{"--query=none"}}, "graph", "is no flag"},
		{view.Input{File: network, Flags: []string{"/etc/passwd"}}, "graph", "is no flag"},
		{view.Input{File: network, Flags: []string{"--frames-per-chunk=x"}}, "graph", "frames-per-chunk"},
		{view.Input{Expr: "x"}, "model", "no other form"},
		{view.Input{Expr: "x"}, "nonsense", "no format"},
		{view.Input{File: file + ".gone"}, "graph", "no such file"},
	} {
		var f *service.Fault
		if _, err := e.Export(t.Context(), c.in, c.format); !errors.As(err, &f) || !strings.Contains(f.Text, c.want) {
			t.Errorf("%+v as %s: %v, want %s", c.in, c.format, err, c.want)
		}
	}
}
