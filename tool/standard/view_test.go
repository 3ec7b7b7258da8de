package standard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/standard"
)

// pageOf reads the recording of a page.
func pageOf(t *testing.T, page string) *view.Recording {
	t.Helper()
	r, err := view.ReadPage(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// names returns the names of the passes.
func names(r *view.Recording) []string {
	var list []string
	for _, p := range r.Passes {
		list = append(list, p.Name)
	}
	return list
}

// TestView: pages of an expression, a network, a profile and a page.
func TestView(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "page.html")
	nnopt(t, "view", "(y + z)*x/(y + z)", "--output", page).ok(t)
	r := pageOf(t, readFile(t, page))
	if r.Kind != view.KindExpression || len(r.Steps) == 0 || !slices.Contains(names(r), "canonicalize") || len(r.Nodes) != 4 {
		t.Errorf("the page of an expression has %d steps and %d nodes, passes %q", len(r.Steps), len(r.Nodes), names(r))
	}
	again := pageOf(t, nnopt(t, "view", page).ok(t).stdout)
	if a, b := jsonOf(t, r), jsonOf(t, again); a != b {
		t.Errorf("a page of a page shows something else:\n%s\n%s", a, b)
	}
	r = pageOf(t, nnopt(t, "view", "-tanh(x)", "--vars", "x: vector", "--rule", "(tanh x) => (exp x)", "--optimization.merge1=false").ok(t).stdout)
	if i := slices.IndexFunc(r.Steps, func(s view.Step) bool { return s.Rule == "rule1" }); i < 0 || slices.Contains(names(r), "merge1") {
		t.Errorf("no step of the rule of the command line, or a pass that is switched off: %+v, %q", r.Steps, names(r))
	}
	r = pageOf(t, nnopt(t, "view", "x**2", "--grad", "x", "--max-rewrites", "1").ok(t).stdout)
	if len(r.Steps) != 1 {
		t.Errorf("%d steps with --max-rewrites 1", len(r.Steps))
	}
	config := file(t, "net.config", smallConfig)
	r = pageOf(t, nnopt(t, "view", config).ok(t).stdout)
	if r.Kind != view.KindNetwork || r.Commands == nil || len(r.Commands.After) >= len(r.Commands.Before) || len(r.Misses) == 0 {
		t.Errorf("the page of a network: %+v", r)
	}
	profile := file(t, "profile.json", nnopt(t, "profile", "--format=json", config).ok(t).stdout)
	r = pageOf(t, nnopt(t, "view", profile).ok(t).stdout)
	if r.Kind != view.KindProfile || len(r.Nodes) != 0 || !slices.Contains(names(r), "plan_storage") {
		t.Errorf("the page of a profile has %d nodes, passes %q", len(r.Nodes), names(r))
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestViewMistakes: what can't be viewed is an error.
func TestViewMistakes(t *testing.T) {
	nnopt(t, "view").fails(t, statusUsage, "MODEL, EXPR or PROFILE expected")
	nnopt(t, "view", "x +").fails(t, statusUsage, "not end")
	nnopt(t, "view", "x", "--query", "+nothing_like_it(").fails(t, statusUsage)
	nnopt(t, "view", "x", "--listen=nowhere").fails(t, statusUsage, "missing port")
	nnopt(t, "view", "x", "--rule", "(neg x) => (no_such_op x)").fails(t, statusUsage, "no_such_op")
	nnopt(t, "view", file(t, "broken.json", `{"optimizer": 1}`)).fails(t, statusFault, "reading JSON")
	nnopt(t, "view", file(t, "page.html", "<!DOCTYPE html>")).fails(t, statusFault, "no recording")
	nnopt(t, "view", t.TempDir()).fails(t, statusFault)
	config := file(t, "net.config", smallConfig)
	nnopt(t, "view", config, "--query", "none").fails(t, statusFault, "nothing was optimized")
	nnopt(t, "view", config, "--output", config).fails(t, statusUsage, "would be overwritten")
}

// TestViewListen: the verb serves until it is told to end.
func TestViewListen(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"view", "x*y/y", "--listen"}, {"view", "--listen", "127.0.0.1:0", "x*y/y"}, {"view", "--listen=127.0.0.1:0", "x*y/y"},
	}[:longtest.Of(1, 3)] {
		ctx, cancel := context.WithCancelCause(t.Context())
		in, out := io.Pipe()
		done := make(chan int, 1)
		go func() {
			done <- standard.Program{}.Run(ctx, args, strings.NewReader(""), out, io.Discard)
			out.Close()
		}()
		url, err := bufio.NewReader(in).ReadString('\n')
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		url = strings.TrimSpace(url)
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if r := pageOf(t, string(text)); r.Live == nil || r.Live.Expr != "x*y/y" {
			t.Errorf("%q: the page is not alive: %+v", args, r.Live)
		}
		for path, body := range map[string]string{
			"api/optimize": `{"expr": "exp(log(x)) + z*z", "variables": "x: vector", "query": "+fast_run -merge1", "rules": "(mul x x) => (sqr x)"}`,
			"api/check":    `{"rules": "(true_div (mul x y) z) => x"}`,
			"api/whynot":   `{"step": 0, "node": 0, "rule": "local_func_inv"}`,
		} {
			want := map[string]string{"api/optimize": `"steps"`, "api/check": `"class":"wrong","ok":false,"counterexample":"x: float64`, "api/whynot": `local_func_inv`}[path]
			resp, err := http.Post(url+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
				t.Errorf("%s: %v, status %d, %.300s", path, err, resp.StatusCode, text)
			}
		}
		resp, err = http.Post(url+"api/optimize", "application/json", strings.NewReader(`{"expr": "x + foo(y)"}`))
		if err != nil {
			t.Fatal(err)
		}
		text, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(text), `"column":5`) {
			t.Errorf("a wrong expression: status %d, %s", resp.StatusCode, text)
		}
		cancel(errors.New("enough"))
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("the server does not end")
		}
	}
	if _, err := os.Stat("x*y"); err == nil {
		t.Error("an expression was taken for a file")
	}
}
