package browsertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	cmd.Dir = filepath.Join("..", "..", "..")
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
	return strings.Join(b.texts("#answer"), "")
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
	begin := time.Now()
	b := openPlayground(t, "")
	if got := b.optimize("x: vector", "exp(log(x))"); !strings.Contains(got, "rewrite") {
		t.Fatalf("the first answer: %s", got)
	}
	first := eval[float64](b, `performance.now()`)
	for i := range 5 {
		if got := b.optimize("x y: vector", fmt.Sprintf("tanh(x*%d/y)*y", i+2)); !strings.Contains(got, "rewrite") {
			t.Fatalf("an answer: %s", got)
		}
	}
	later := b.measures("nnopt:optimize")
	fmt.Printf("playground: first expression after %.0f ms (bar 3000; %v with the test), later ones %.0f ms (bar 150)\n", first, time.Since(begin), later[1:])
}

func TestPlaygroundTimes(t *testing.T) {
	b := openPlayground(t, "")
	b.optimize("x: vector", "exp(log(x))")
	for range 6 {
		t.Log(eval[string](b, `(async () => { const r=[]; for (const [q,body] of [["optimize",{expr:"tanh(x*2/y)*y"+" ".repeat(Math.random()*1000),variables:"x y: vector",query:"fast_run"}],["passes",{query:"fast_run"}],["passes",{query:"nonsense("}]]) { const t=performance.now(); try { await nnopt.transport.ask(q,body) } catch {} r.push(q+" "+(performance.now()-t).toFixed(0)); } return r.join(", ") })()`, chromedp.EvalAwaitPromise))
	}
}
