package browsertest

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// program builds nnopt.
func program(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "nnopt")
	build := exec.Command("go", "build", "-o", name, "./cmd/nnopt")
	build.Dir = "../../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// serve serves a page until the test ends, and returns its address.
func serve(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), append([]string{"view", "--listen"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return strings.TrimSpace(line)
}

// fill replaces the text of a field.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(selector), text))
}

// ops returns the ops in the picture, in order of their names.
func (b *tab) ops() string {
	b.t.Helper()
	return strings.Join(eval[[]string](b, `[...document.querySelectorAll("[data-node] .title")].map(e => e.textContent).sort()`), " ")
}

func TestLive(t *testing.T) {
	b := open(t, serve(t, "--vars=x: vector", "exp(log(x))"))
	if got := b.ops(); got != "exp log" {
		t.Fatalf("the graph is %q", got)
	}

	// Another expression.
	b.fill("#liveForm [name=expr]", "(y + z)*x/(y + z)")
	b.fill("#liveForm [name=variables]", "x: scalar; y: scalar; z: scalar")
	b.click("#liveForm button")
	b.until(`document.getElementById("answer").textContent.includes("rewrite")`)
	if got := b.ops(); got != "add add mul true_div" {
		t.Errorf("the new graph is %q", got)
	}
	b.key(kb.End)
	b.until(`document.querySelectorAll("[data-node]").length === 0`)

	// Without a pass, another graph.
	b.panel("live")
	b.until(`document.querySelectorAll("#ticks input[type=checkbox]").length > 20`)
	for _, name := range []string{"canonicalize", "specialize", "stabilize"} {
		b.click(fmt.Sprintf("#ticks input[name=%s]", name))
		b.until(fmt.Sprintf("document.querySelector('#ticks input[name=%s]:not(:checked)')", name))
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.getElementById("answer").replaceChildren()`))
	b.click("#liveForm button")
	b.until(`document.getElementById("answer").textContent.includes("rewrite")`)
	b.key(kb.End)
	b.until(`document.querySelectorAll('[data-node]:not([data-change="gone"])').length > 0`)
	b.shot("live")

	// What is wrong is said, with its place. The browser logs such answers as it logs lost files.
	b.allow("422")
	b.fill("#liveForm [name=expr]", "exp(x")
	b.click("#liveForm button")
	b.until(`document.querySelector("#answer .error")`)

	// A wrong rule, and a right one.
	b.fill("#rulesForm [name=rules]", "# Wrong.\nmy_wrong: canonicalize\n    (add x x) => (mul 3 x)\n")
	b.click("#rulesForm button")
	b.until(`document.querySelector("[data-verdict=my_wrong]")`)
	verdict := b.texts("[data-verdict=my_wrong]")[0]
	if !strings.Contains(verdict, "wrong") || len(b.texts("[data-verdict=my_wrong] .counterexample")) != 1 {
		t.Errorf("the wrong rule: %s", verdict)
	}
	b.shot("live-wrong")
	b.fill("#rulesForm [name=rules]", "# Right.\nmy_right: canonicalize\n    (add x x) => (mul 2 x)\n")
	b.click("#rulesForm button")
	b.until(`document.querySelector("[data-verdict=my_right]")`)
	if len(b.texts("[data-verdict=my_right].good")) != 1 {
		t.Errorf("the right rule: %s", b.texts("[data-verdict=my_right]"))
	}
	b.fill("#rulesForm [name=rules]", "my_broken: (add x")
	b.click("#rulesForm button")
	b.until(`document.querySelector("#verdicts .error")`)
}

// TestLiveWhyNot asks why rules do not fire at a node in the middle of a run.
func TestLiveWhyNot(t *testing.T) {
	b := open(t, serve(t, "--vars=x: vector; y: vector", "exp(x)/(x + y) + 0*y"))
	b.key("n")
	node := eval[[]string](b, `[...document.querySelectorAll('[data-node][data-change="kept"]')].map(e => e.dataset.node)`)
	if len(node) == 0 {
		t.Fatal("no apply is kept")
	}
	b.click(fmt.Sprintf(`[data-node="%s"]`, node[0]))
	b.click(".ask button")
	b.until(`document.querySelector(".whynot [data-miss], .whynot .error")`)
	if got := b.texts(".whynot [data-miss]"); len(got) == 0 {
		t.Errorf("no reason: %s", b.texts(".whynot"))
	}
}

// TestLiveFind searches for rules of the ops on screen, and tries one of them on the graph.
func TestLiveFind(t *testing.T) {
	findRules(t, open(t, serve(t, "--vars=x: vector", "maximum(x, maximum(x, x))")))
}

func findRules(t *testing.T, b *tab) {
	t.Helper()
	b.panel("live")
	b.until(`document.querySelector("#opTicks [value=maximum]:checked")`)
	b.fill("#liveForm [name=query]", "none")
	b.click("#findForm button")
	b.until(`document.querySelector("[data-found] [data-do=use]")`)
	b.asked()
	if got := strings.Join(b.texts("#discovered"), ""); !strings.Contains(got, "(maximum x y) && at_least(y, x) => y") || !strings.Contains(got, "candidates follow") {
		t.Errorf("found: %s", got)
	}
	b.shot("find")
	b.click("[data-found] [data-do=use]")
	if got := b.asked(); !strings.Contains(got, "2 applies became 0") {
		t.Errorf("with a rule: %s", got)
	}
	b.fill("#findForm [name=others]", "nonsense")
	b.click("#findForm button")
	b.until(`document.querySelector("#discovered .error")`)
}
