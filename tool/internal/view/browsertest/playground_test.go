package browsertest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	protocol "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// playground returns the page with the engine inside, which is built once for all tests.
var playground = sync.OnceValues(func() (string, error) {
	if file := os.Getenv("NNOPT_PLAYGROUND"); file != "" {
		return filepath.Abs(file)
	}
	dir, err := os.MkdirTemp("", "nnopt-playground")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "playground.html")
	cmd := exec.Command("go", "run", "./cmd/playground", "--output", file)
	cmd.Dir = filepath.Join("..", "..", "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return file, nil
})

// openPlayground opens the page from disk, as one who has been there before.
func openPlayground(t testing.TB, fragment string, before ...action) *tab {
	t.Helper()
	file, err := playground()
	if err != nil {
		t.Fatal(err)
	}
	return open(t, "file://"+file+fragment, before...)
}

// asked waits until nothing is asked any more, and returns what the answer says.
func (b *tab) asked() string {
	b.t.Helper()
	b.until(`!document.body.hasAttribute("data-asking")`)
	return strings.Join(b.texts(".answer"), "")
}

// optimize types an expression and optimizes it.
func (b *tab) optimize(variables, expr string) string {
	b.t.Helper()
	b.fill("#liveForm [name=expr]", expr)
	b.fill("#liveForm [name=variables]", variables)
	b.click("#liveForm button.main")
	return b.asked()
}

func TestPlayground(t *testing.T) {
	if _, err := playground(); err != nil {
		t.Fatal(err)
	}
	var b *tab
	within(t, "playground: the first expression after opening", 3000, 8, func() float64 {
		b = openPlayground(t, "")
		if got := b.optimize("x: vector", "exp(log(x))"); !strings.Contains(got, "rewrite") {
			t.Fatalf("the first answer: %s", got)
		}
		m := b.measures("nnopt:optimize")
		return eval[float64](b, `performance.getEntriesByName("nnopt:optimize", "measure")[0].startTime`) + m[0]
	})
	// The very next one may wait until the list of passes is there.
	for i := range 3 {
		n := i + 2
		within(t, "playground: a later expression", 150, 10, func() float64 {
			n++
			if got := b.optimize("x y: vector", fmt.Sprintf("tanh(x*%d/y)*y", 100*i+n)); !strings.Contains(got, "rewrite") {
				t.Fatalf("an answer: %s", got)
			}
			m := b.measures("nnopt:optimize")
			return m[len(m)-1]
		})
	}
}

// drop drops files on the page.
func (b *tab) drop(names ...string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`window.dropped = new DataTransfer()`))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			b.t.Fatal(err)
		}
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`dropped.items.add(new File([Uint8Array.from(atob(%q), c => c.charCodeAt(0))], %q))`,
			base64.StdEncoding.EncodeToString(data), filepath.Base(name))))
	}
	b.do(chromedp.Evaluate[chromedp.Void](`performance.mark("dropped"); dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, cancelable: true })); delete window.dropped`))
}

// save saves something of the page, and returns the file.
func (b *tab) save(kind string) string {
	b.t.Helper()
	dir := b.t.TempDir()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		info, err := cdp.Call(ctx, t, target.GetTargetInfo, target.GetTargetInfoParams{})
		if err == nil {
			_, err = cdp.Call(ctx, t, protocol.SetDownloadBehavior, protocol.SetDownloadBehaviorParams{
				Behavior: protocol.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir, BrowserContextID: info.TargetInfo.BrowserContextID})
		}
		return err
	}))
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(e => { e.value = %q; e.dispatchEvent(new Event("change")) })(document.querySelector("[name=save]"))`, kind)))
	if got := b.asked(); !strings.Contains(got, "Saved") {
		b.t.Fatalf("%s: %s", kind, got)
	}
	name := eval[string](b, `document.querySelector("[data-saved]").download`)
	size := int64(-1)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil && info.Size() == size && size > 0 {
			return filepath.Join(dir, name)
		}
		if err == nil {
			size = info.Size()
		}
	}
	b.t.Fatalf("%s is not downloaded", name)
	return ""
}

// squeezenet returns a model of ONNX: one with its weights if NNOPT_MODELS has one, else the one of
// ONNX's tests, whose weights are all alike.
func squeezenet(t *testing.T) string {
	t.Helper()
	for _, name := range []string{filepath.Join(os.Getenv("NNOPT_MODELS"), "squeezenet", "model.onnx"), "/usr/include/onnx/backend/test/data/light/light_squeezenet.onnx"} {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	t.Skip("left out: there is no squeezenet; libonnx-testdata has one")
	return ""
}

// TestPlaygroundModel drops a network of images, runs it, and takes the optimized file home.
func TestPlaygroundModel(t *testing.T) {
	name := squeezenet(t)
	b := openPlayground(t, "")
	b.until(`document.documentElement.dataset.engine`)
	within(t, "playground: squeezenet dropped, optimized and drawn", 5000, 3, func() float64 {
		b.drop(name)
		if got := b.asked(); !strings.Contains(got, "rewrite") {
			t.Fatalf("the model: %s", got)
		}
		b.until(`document.querySelectorAll("[data-node]").length > 20`)
		return eval[float64](b, `performance.now() - performance.getEntriesByName("dropped").at(-1).startTime`)
	})
	b.shot("playground-squeezenet")
	b.click("#liveForm [data-do=run]")
	if got := b.asked(); !strings.Contains(got, "compute the same") {
		t.Errorf("on random inputs: %s", got)
	}
	small := b.save("model")
	if a, err := os.Stat(small); err != nil || a.Size() < 1<<20 {
		t.Fatalf("the optimized model: %v", err)
	}
	compareORT(t, name, small)
}

// TestPlaygroundRules has the machine find what is wrong, and errors say where they are.
func TestPlaygroundRules(t *testing.T) {
	b := openPlayground(t, "")
	b.until(`document.documentElement.dataset.engine`)
	b.panel("live")
	b.fill("#rulesForm [name=rules]", "# Wrong.\nmy_wrong: canonicalize\n    (add x x) => (mul 3 x)\n")
	within(t, "playground: a counterexample", 3000, 4, func() float64 {
		begin := eval[float64](b, `performance.now()`)
		b.click("#rulesForm button")
		b.asked()
		took := eval[float64](b, `performance.now()`) - begin
		if got := strings.Join(b.texts("[data-verdict=my_wrong] .counterexample"), ""); !strings.Contains(got, "x") {
			t.Errorf("the counterexample: %q", got)
		}
		return took
	})
	if got := b.optimize("x: vector", "exp(x + )"); !strings.Contains(got, "^") {
		t.Errorf("an error without a place: %s", got)
	}
	if at := eval[int](b, `document.querySelector("#liveForm [name=expr]").selectionStart`); at != 8 {
		t.Errorf("the mark is at %d", at)
	}
}

// TestPlaygroundStop stops what would take minutes, and the page goes on.
func TestPlaygroundStop(t *testing.T) {
	b := openPlayground(t, "")
	b.until(`document.documentElement.dataset.engine`)
	within(t, "playground: stopped", 200, 4, func() float64 {
		b.fill("#liveForm [name=expr]", deep(400))
		b.fill("#liveForm [name=variables]", "x: vector; y: vector")
		b.click("#liveForm button.main")
		b.do(chromedp.Sleep(500 * time.Millisecond))
		if !eval[bool](b, `document.body.hasAttribute("data-asking")`) {
			t.Fatal("it is done already")
		}
		took := eval[float64](b, `(async () => { const t = performance.now(); document.querySelector("[data-do=stop]").click(); while (document.body.hasAttribute("data-asking")) await new Promise(f => setTimeout(f)); return performance.now() - t })()`, chromedp.EvalAwaitPromise)
		if got := strings.Join(b.texts(".answer"), ""); !strings.Contains(got, "Stopped") {
			t.Errorf("after %.0f ms: %s", took, got)
		}
		return took
	})
	if got := b.optimize("x: vector", "exp(log(x))"); !strings.Contains(got, "rewrite") {
		t.Errorf("afterwards: %s", got)
	}
}

// TestPlaygroundFiles drops every kind of file, and saves every kind.
func TestPlaygroundFiles(t *testing.T) {
	b := openPlayground(t, "")
	b.until(`document.documentElement.dataset.engine`)
	b.optimize("x y: vector", "(x + y)*tanh(x)/(x + y)")
	for _, kind := range []string{"svg", "png", "recording", "page", "graph", "dot", "json", "pprof", "trace"} {
		name := b.save(kind)
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"svg": "<svg ", "png": "\x89PNG", "recording": `{"format":"nnopt-view"`, "page": "<!DOCTYPE html>", "graph": "graph {", "dot": "digraph", "json": "{", "pprof": "\x1f\x8b", "trace": "{"}[kind]
		if !bytes.Contains(data[:min(len(data), 200)], []byte(want)) {
			t.Errorf("%s begins with %.80q", kind, data)
		}
		switch kind {
		case "recording", "graph", "page", "json":
			ops := b.ops()
			b.drop(name)
			if got := b.asked(); len(b.texts(".answer .error")) > 0 || kind == "json" && !strings.Contains(got, "profile") {
				t.Errorf("%s: %s", name, got)
			}
			if kind != "graph" && kind != "json" && b.ops() != ops {
				t.Errorf("%s is another graph: %s", name, b.ops())
			}
			b.optimizeAgain("(x + y)*tanh(x)/(x + y)")
		}
	}
	for _, name := range []string{demoNetwork, "../../../../nnet3/testdata/recipes/xvector_infer/model.raw"} {
		b.drop(name)
		if got := b.asked(); !strings.Contains(got, "rewrite") {
			t.Errorf("%s: %s", name, got)
		}
		b.panel("commands")
		if eval[int](b, `document.querySelectorAll("[data-command]").length`) == 0 {
			t.Errorf("%s has no commands", name)
		}
	}
	b.click("#liveForm [data-do=run]")
	if got := b.asked(); !strings.Contains(got, "compute the same") {
		t.Errorf("on random inputs: %s", got)
	}
	rules := filepath.Join(t.TempDir(), "my.rules")
	if err := os.WriteFile(rules, []byte("# Twice.\nmy_rule: canonicalize\n    (add x x) => (mul 2 x)\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.drop(rules)
	if b.asked(); !strings.Contains(eval[string](b, `document.querySelector("#rulesForm [name=rules]").value`), "my_rule") {
		t.Error("the rules are not there")
	}
	broken := filepath.Join(t.TempDir(), "broken.onnx")
	if err := os.WriteFile(broken, []byte("nothing"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#rulesForm [name=use]").checked = false`))
	b.drop(broken)
	if got := b.asked(); !strings.Contains(got, "broken.onnx") || strings.Contains(got, "/files/") {
		t.Errorf("a broken model: %s", got)
	}
}

// optimizeAgain types an expression, also where a file took its place.
func (b *tab) optimizeAgain(expr string) {
	b.t.Helper()
	if eval[bool](b, `!document.querySelector("#liveForm [name=expr]")`) {
		b.click("[data-do=forget]")
	}
	b.optimize("x y: vector", expr)
}

// TestPlaygroundShare opens an address that has an expression and a query in it.
func TestPlaygroundShare(t *testing.T) {
	b := openPlayground(t, "")
	b.fill("#liveForm [name=query]", "fast_run -elemwise_fusion")
	b.optimize("x: vector", "exp(log(x)) + tanh(x)*x")
	b.click("[data-do=share]")
	address := eval[string](b, `document.querySelector("#answer input").value`)
	c := openPlayground(t, address[strings.Index(address, "#"):])
	c.until(`document.querySelector(".answer")?.textContent.includes("rewrite")`)
	if got := c.ops(); got != b.ops() {
		t.Errorf("the address leads to %s, not %s", got, b.ops())
	}
	if got := eval[string](c, `document.querySelector("#liveForm [name=query]").value`); got != "fast_run -elemwise_fusion" {
		t.Errorf("the query is %s", got)
	}
}

// TestPlaygroundExamples runs all examples, and passes that are ticked change the query.
func TestPlaygroundExamples(t *testing.T) {
	b := openPlayground(t, "")
	if eval[bool](b, `!document.getElementById("note")`) {
		t.Error("there is no hint at the first visit")
	}
	n := eval[int](b, `nnopt.examples.length`)
	if n < 12 {
		t.Errorf("%d examples", n)
	}
	for i := range n {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(e => { e.value = %d; e.dispatchEvent(new Event("change")) })(document.querySelector("[name=example]"))`, i)))
		name := eval[string](b, fmt.Sprintf(`nnopt.examples[%d].name`, i))
		got := b.asked()
		if want := map[string]string{"Rules that undo each other": "undo"}[name]; !strings.Contains(got, cmp.Or(want, "rewrite")) || want == "" && strings.HasPrefix(got, "0 ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	b.optimize("x: vector", "exp(log(x))")
	b.panel("live")
	b.until(`document.querySelector("#ticks input[name=canonicalize]")`)
	b.click("#ticks input[name=canonicalize]")
	if got := eval[string](b, `document.querySelector("#liveForm [name=query]").value`); !strings.HasSuffix(got, "-canonicalize") {
		t.Errorf("the query is %s", got)
	}
	b.until(`document.querySelector("#ticks input[name=canonicalize]:not(:checked)")`)
	b.click("#ticks input[name=canonicalize]")
	if got := eval[string](b, `document.querySelector("#liveForm [name=query]").value`); strings.Contains(got, "canonicalize") {
		t.Errorf("the query is %s", got)
	}
}

// TestPlaygroundPolicy opens the page from a server of files. Neither the page nor a worker of it can
// ask anything, although the server would answer.
func TestPlaygroundPolicy(t *testing.T) {
	file, err := playground()
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/leak" {
			mu.Lock()
			asked++
			mu.Unlock()
		}
		http.ServeFile(w, r, file)
	}))
	defer srv.Close()
	b := open(t, srv.URL+"/")
	if got := b.optimize("x: vector", "exp(log(x))"); !strings.Contains(got, "rewrite") {
		t.Errorf("from a server: %s", got)
	}
	b.allow("Content Security Policy") // what is refused is reported
	const leak = `(async () => {
		const url = location.origin + "/leak", refused = [];
		await fetch(url).catch(() => refused.push("page"));
		const source = URL.createObjectURL(new Blob(["fetch(" + JSON.stringify(url) + ").then(() => postMessage('asked'), () => postMessage('refused'))"]));
		const worker = new Worker(source), answer = await new Promise(f => (worker.onmessage = e => f(e.data)));
		if (answer === "refused") refused.push("worker");
		return refused.join(" ");
	})()`
	if got := eval[string](b, leak, chromedp.EvalAwaitPromise); got != "page worker" {
		t.Errorf("refused: %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked > 0 {
		t.Errorf("%d requests came", asked)
	}
}

// TestPlaygroundLimits: a file that is too large is not read, and the page says what to do.
func TestPlaygroundLimits(t *testing.T) {
	b := openPlayground(t, "")
	b.do(chromedp.Evaluate[chromedp.Void](`nnopt.transport.largest = 100; void nnopt.take(nnopt.app, [new File(["x".repeat(200)], "big.onnx")])`))
	if got := b.asked(); !strings.Contains(got, "big.onnx") || !strings.Contains(got, "200 B are too much") || !strings.Contains(got, "nnopt view") {
		t.Errorf("a large file: %s", got)
	}
	b.until(`document.documentElement.dataset.engine`)
	// So does the engine where its memory ends, and the next question finds another one.
	for _, side := range []int{14_000, 30_000} {
		b.optimize("x: vector", fmt.Sprintf("exp(zeros(%d, %d) + x[0]) + x[1]", side, side))
		b.click("[data-do=run]")
		if got := b.asked(); !strings.Contains(got, "more memory") {
			t.Errorf("%d x %d: %s", side, side, got)
		}
	}
	if got := b.optimize("x: vector", "exp(log(x))"); !strings.Contains(got, "rewrite") {
		t.Errorf("afterwards: %s", got)
	}
}

// compareORT runs two models in ONNX Runtime, if node has it.
func compareORT(t *testing.T, one, other string) {
	t.Helper()
	const script = `const ort = require("onnxruntime-node");
(async () => {
	const outs = [];
	for (const f of process.argv.slice(1)) {
		const s = await ort.InferenceSession.create(f), name = s.inputNames[0], dims = [1, 3, 224, 224];
		const x = Float32Array.from({ length: 3 * 224 * 224 }, (_, i) => Math.sin(i));
		outs.push((await s.run({ [name]: new ort.Tensor("float32", x, dims) }))[s.outputNames[0]].data);
	}
	let worst = 0;
	outs[0].forEach((v, i) => (worst = Math.max(worst, Math.abs(v - outs[1][i]) / (Math.abs(v) + 1e-6))));
	console.log(outs[0].length, worst);
})();`
	out, err := exec.Command("node", "-e", script, one, other).CombinedOutput()
	if err != nil {
		fmt.Println("left out: ONNX Runtime, which node does not have here")
		return
	}
	var n int
	var worst float64
	if _, err := fmt.Sscan(string(out), &n, &worst); err != nil || n == 0 || !(worst < 1e-3) {
		t.Errorf("ONNX Runtime: %s", out)
	}
	fmt.Printf("playground: in ONNX Runtime %d outputs differ by at most %.1e\n", n, worst)
}

// TestPlaygroundFind searches for rules inside the page.
func TestPlaygroundFind(t *testing.T) {
	b := openPlayground(t, "")
	b.until(`document.documentElement.dataset.engine`)
	b.optimize("x: vector", "maximum(x, maximum(x, x))")
	findRules(t, b)
}
