package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// dropText drops a file with a text, and returns the answer.
func (b *tab) dropText(name, text string) string {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		b.t.Fatal(err)
	}
	b.drop(file)
	return b.asked()
}

// TestPlaygroundGarbage drops files that are nothing. Each is refused with its name, what was on
// screen stays, and the page goes on.
func TestPlaygroundGarbage(t *testing.T) {
	b := openPlayground(t, "")
	b.optimize("x: vector", "exp(log(x))")
	r := rand.New(rand.NewPCG(1, 1))
	noise := make([]byte, 4000)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	files := map[string]string{"empty.onnx": "", "empty.txt": "", "page.html": "<!DOCTYPE html>", "none.json": "{}", "profile.json": `{"message":"x"}`,
		"cut.json": `{"format":"nnopt-view"`, "bare.json": `{"format":"nnopt-view","version":1}`, "text\u202e.txt": "hello"}
	for _, ending := range []string{".onnx", ".raw", ".mdl", ".config", ".graph", ".json", ".txt", ""} {
		files["noise"+ending] = string(noise)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		got := b.dropText(name, files[name])
		if len(b.texts("#answer .error")) != 1 || strings.Contains(got, "/files") || strings.Contains(got, "panic") {
			t.Errorf("%s: %s", name, got)
		}
		if got := b.ops(); got != "exp log" {
			t.Errorf("after %s the graph is %q", name, got)
		}
	}
	b.optimizeAgain("(x + y)*2/(x + y)")
	if got := b.ops(); got != "add add mul true_div" {
		t.Errorf("afterwards the graph is %q", got)
	}
}

// TestPlaygroundRecordings drops recordings in which a number or a list is wrong: the page refuses
// them, or shows what there is, and nothing else happens.
func TestPlaygroundRecordings(t *testing.T) {
	b := openPlayground(t, "")
	b.optimize("x y: vector", "(x + y)*tanh(x)/(x + y)")
	good, err := os.ReadFile(b.save("recording"))
	if err != nil {
		t.Fatal(err)
	}
	r, refused := rand.New(rand.NewPCG(3, 1)), 0
	for i := range 60 {
		var whole map[string]any
		if err := json.Unmarshal(good, &whole); err != nil {
			t.Fatal(err)
		}
		delete(whole, "docs") // texts, of which most of it consists
		change(r, whole, 4)
		text, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		got := b.dropText("changed.json", string(text))
		if len(b.texts("#answer .error")) > 0 {
			if refused++; !strings.Contains(got, "no recording") {
				t.Errorf("change %d: %s", i, got)
			}
		}
		b.key(kb.End, kb.Home, "n", "c", "f")
	}
	if refused < 10 || refused > 55 {
		t.Errorf("%d of 60 are refused", refused)
	}
	b.fill("[name=query]", "fast_run")
	b.optimizeAgain("x*y/y")
	if got := b.ops(); got != "mul true_div" {
		t.Errorf("afterwards the graph is %q", got)
	}
}

// change changes something at most so deep in a value of JSON.
func change(r *rand.Rand, v any, depth int) any {
	others := []any{nil, -1.0, 1e9, 0.5, "x", []any{}, map[string]any{}, []any{7.0}}
	switch v := v.(type) {
	case map[string]any:
		if keys := slices.Sorted(maps.Keys(v)); len(keys) > 0 && depth > 0 {
			k := keys[r.IntN(len(keys))]
			for k == "format" || k == "version" {
				k = keys[r.IntN(len(keys))]
			}
			v[k] = change(r, v[k], depth-1-r.IntN(2))
			return v
		}
	case []any:
		if len(v) > 0 && depth > 0 {
			i := r.IntN(len(v))
			v[i] = change(r, v[i], depth-r.IntN(2))
			return v
		}
	}
	return others[r.IntN(len(others))]
}

// TestPlaygroundFaults: an error marks its place in the field that it is about.
func TestPlaygroundFaults(t *testing.T) {
	b := openPlayground(t, "")
	b.optimize("x: vector", "x")
	set := func(name, text string) {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(nnopt.app.form.elements[%q] ?? nnopt.app.rulesForm.elements[%[1]q]).value = %q`, name, text)))
	}
	b.panel("live")
	for _, c := range []struct{ field, text, marked string }{
		{"expr", "exp(x + )", ")"}, {"expr", "exp(x)\n + foo(x)", "f"}, {"expr", "λ + foo(x)", "f"}, {"variables", "x: vektor", "v"}, {"variables", "x: vector; y: foo", "f"},
		{"grad", "z", "z"}, {"query", "fast_run +nosuch", "nosuch"}, {"query", "fast_run +(", "("},
		{"rules", "# Twice.\nmy: canonicalize\n    (frobnicate x) => x\n", "("}, {"rules", "my: canonicalize\n    (exp x => x\n", "    (exp x => x"},
		{"expr", strings.Repeat("(", 5000) + "x", "("},
	} {
		for field, text := range map[string]string{"expr": "x + x", "variables": "x: vector", "grad": "", "query": "fast_run", "rules": ""} {
			set(field, text)
		}
		set(c.field, c.text)
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`nnopt.app.rulesForm.elements.use.checked = %v`, c.field == "rules")))
		b.click("#liveForm button.main")
		got := b.asked()
		if len(b.texts("#answer .error")) != 1 {
			t.Errorf("%s %.40q: %s", c.field, c.text, got)
			continue
		}
		marked := eval[[]string](b, `(f => [f.name, f.value.slice(f.selectionStart, f.selectionEnd)])(document.querySelector("[aria-invalid]") ?? { name: "", value: "" })`)
		if marked[0] != c.field || marked[1] != c.marked {
			t.Errorf("%s %.40q: %q is marked: %.200s", c.field, c.text, marked, got)
		}
	}
}

// TestPlaygroundHistory goes back and forward, reloads, and opens addresses in the same tab.
func TestPlaygroundHistory(t *testing.T) {
	b := openPlayground(t, "")
	first := b.ops()
	b.optimize("x: vector", "exp(log(x))")
	b.optimize("x: vector", "tanh(x)*x*0 + x")
	b.key(kb.End)
	expr := func() string { return eval[string](b, `nnopt.app.form.elements.expr.value`) }
	until := func(ops, text string) {
		t.Helper()
		b.until(fmt.Sprintf(`!document.body.hasAttribute("data-asking") && nnopt.app.form.elements.expr.value === %q`, text))
		b.key(kb.Home)
		if got := b.ops(); got != ops || expr() != text {
			t.Errorf("%q with the ops %s, where %s were expected", expr(), got, ops)
		}
	}
	back := func(by int) { b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`history.go(%d)`, by))) }
	back(-1)
	until("exp log", "exp(log(x))")
	back(-1)
	until(first, "(y + z)*x/(y + z) + tanh(x)*0")
	back(2)
	until("add mul mul tanh", "tanh(x)*x*0 + x")
	b.do(chromedp.Reload())
	b.until(`globalThis.nnopt?.app?.form && document.querySelector("#answer")?.textContent.includes("rewrite")`)
	until("add mul mul tanh", "tanh(x)*x*0 + x")
	b.do(chromedp.Evaluate[chromedp.Void](`location.hash = "#expr=log(x*x)&variables=x%3A%20vector"`))
	until("log mul", "log(x*x)")
	b.do(chromedp.Evaluate[chromedp.Void](`location.hash = "#step=99&node=-4&rewrite=x&expr=%E0%A4%A"`)) // nothing that there could be
	b.asked()
	if got := b.optimize("x: vector", "exp(log(x))"); !strings.Contains(got, "rewrite") {
		t.Errorf("afterwards: %s", got)
	}
}

// TestPlaygroundWithout opens the page in a browser without WebAssembly: it says so, and shows its
// graph.
func TestPlaygroundWithout(t *testing.T) {
	file, err := playground()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	without := filepath.Join(t.TempDir(), "page.html")
	text = bytes.Replace(text, []byte(`id="worker">`), []byte(`id="worker">delete globalThis.WebAssembly;`), 1)
	if err := os.WriteFile(without, text, 0o666); err != nil {
		t.Fatal(err)
	}
	b := open(t, "file://"+without)
	for range 2 {
		if got := b.optimize("x: vector", "exp(log(x))"); !strings.Contains(got, "does not run WebAssembly") {
			t.Errorf("the answer: %s", got)
		}
	}
	b.key(kb.End)
	b.until(`document.querySelectorAll("[data-node]").length === 0`)
}

// TestPlaygroundStops stops at any time: while the engine starts, reads, checks, runs or saves.
func TestPlaygroundStops(t *testing.T) {
	b := openPlayground(t, "")
	stop := func(what string) {
		t.Helper()
		b.do(chromedp.Sleep(50*time.Millisecond), chromedp.Evaluate[chromedp.Void](`document.querySelector("[data-do=stop]").click()`))
		if got := b.asked(); got != "" && !strings.Contains(got, "Stopped") && !strings.Contains(got, "rewrite") && !strings.Contains(got, "Saved") && !strings.Contains(got, "same") {
			t.Errorf("%s: %s", what, got)
		}
	}
	b.fill("#liveForm [name=expr]", deep(40))
	b.fill("#liveForm [name=variables]", "x: vector; y: vector")
	b.click("#liveForm button.main")
	stop("as it starts")
	stop("nothing runs")
	b.click("[data-do=run]")
	stop("a run")
	b.panel("live")
	b.click("#rulesForm button")
	stop("rules")
	b.drop(demoNetwork)
	stop("a file")
	b.do(chromedp.Evaluate[chromedp.Void](`window.read = Blob.prototype.arrayBuffer; Blob.prototype.arrayBuffer = async function () { await new Promise((f) => setTimeout(f, 500)); return read.call(this) }`))
	b.drop(demoNetwork)
	stop("a file that is read slowly")
	b.do(chromedp.Evaluate[chromedp.Void](`Blob.prototype.arrayBuffer = read`))
	b.do(chromedp.Evaluate[chromedp.Void](`void nnopt.save(nnopt.app, "page")`))
	stop("a page")
	// The file is there for the engine that runs now.
	b.drop(demoNetwork)
	if got := b.asked(); !strings.Contains(got, "rewrite") {
		t.Errorf("afterwards: %s", got)
	}
}

// TestPlaygroundTogether drops files at once: a graph and rules for it, and data beside a model.
func TestPlaygroundTogether(t *testing.T) {
	b := openPlayground(t, "")
	dir := t.TempDir()
	var names []string
	for name, text := range map[string]string{"twice.graph": "graph {\n    input %x : float64 vector\n    %0 = add(%x, %x) : float64 vector\n    return %0\n}\n",
		"my.rules": "# Twice.\nmy_rule: canonicalize\n    (add x x) => (mul 2 x)\n", "notes.bin": "\x00\x01"} {
		names = append(names, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b.drop(names...)
	if got := b.asked(); !strings.Contains(got, "1 apply became 1") {
		t.Errorf("together: %s", got)
	}
	b.key(kb.End)
	b.until(`[...document.querySelectorAll("[data-node] .title")].some(e => e.textContent === "mul")`)
}

// TestPlaygroundKeys does without a pointer: to the form, through the passes, to an apply.
func TestPlaygroundKeys(t *testing.T) {
	b := openPlayground(t, "")
	b.until(`document.documentElement.dataset.engine`)
	for range 40 {
		if b.key(kb.Tab); eval[bool](b, `document.activeElement?.name === "expr"`) {
			break
		}
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`))
	b.key("x", "/", "y", "*", "y", kb.Tab)
	b.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.select()`))
	for _, c := range "x y: vector" {
		b.key(string(c))
	}
	b.key(kb.Enter)
	b.until(`document.querySelector("#answer")?.textContent.includes("rewrite")`)
	if got := b.ops(); got != "mul true_div" {
		t.Errorf("the graph is %q", got)
	}
	b.key(kb.Escape, kb.ArrowRight)
	if got := eval[string](b, `document.getElementById("where").textContent`); strings.HasPrefix(got, "0") {
		t.Errorf("the step is %s", got)
	}
	b.key(kb.ArrowDown)
	if got := eval[string](b, `document.getElementById("spoken").textContent`); !strings.Contains(got, "reads") {
		t.Errorf("spoken: %q", got)
	}
}
