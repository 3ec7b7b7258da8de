package browsertest

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/nnopt/nnopt/tool/internal/view"
)

// browser is the context of the browser that all tests share.
var browser context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	program, err := findBrowser()
	if err != nil {
		fmt.Println("left out: the tests in a browser:", err)
		os.Exit(0)
	}
	// Browsers and servers that are killed leave files behind, and so they get a folder of their own.
	scratch, err := os.MkdirTemp("", "nnopt-browsertest")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Setenv("TMPDIR", scratch); err != nil {
		log.Fatal(err)
	}
	// The sandbox needs what containers forbid, and the page loads nothing.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(time.Minute), chromedp.WindowSize(1400, 900))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	// A browser that is newer than the library says more than it knows.
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	if err := chromedp.Do(browser, chromedp.Navigate("about:blank")); err != nil {
		log.Fatal(err)
	}
	code := m.Run()
	end()
	stop()
	if err := os.RemoveAll(scratch); err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}

// findBrowser returns the program to start. NNOPT_BROWSER names another one.
func findBrowser() (string, error) {
	if name := os.Getenv("NNOPT_BROWSER"); name != "" {
		return exec.LookPath(name)
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no chromium or google-chrome")
}

type action = chromedp.Action[chromedp.Void]

// call is a command of the browser's protocol as an action.
func call[P, R any](command cdp.Command[P, R], params P) action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// A tab is a page in the browser. When the test ends, it fails if the page asked anything of
// anybody else, or wrote an error to the console.
type tab struct {
	t      testing.TB
	ctx    context.Context
	origin string // that the page may ask

	mu      sync.Mutex
	faults  []string
	allowed string // in the text of a fault that is none
}

// allow lets the page have faults with a text in them from now on.
func (b *tab) allow(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = text
}

// openFile writes a recording as a file and opens it.
func openFile(t testing.TB, r *view.Recording, before ...action) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.WritePage(f, r); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, "file://"+file, before...)
}

// open opens an address in a new tab and waits until the page is ready.
func open(t testing.TB, address string, before ...action) *tab {
	t.Helper()
	b := &tab{t: t, origin: address}
	var closeTab, cancel context.CancelFunc
	b.ctx, closeTab = chromedp.NewContext(browser, chromedp.WithListener(b.hear), chromedp.WithNewBrowserContext())
	if err := chromedp.Do(b.ctx); err != nil { // without the limit, which would end the tab
		t.Fatal(err)
	}
	b.ctx, cancel = context.WithTimeout(b.ctx, 5*time.Minute)
	if !strings.HasPrefix(address, "file:") {
		b.origin = strings.TrimSuffix(address, "/")
	}
	t.Cleanup(func() {
		cancel()
		closeTab()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			t.Error(f)
		}
	})
	b.do(call(network.Enable, network.EnableParams{}), call(cdplog.Enable, cdp.Empty{}))
	b.do(before...)
	b.do(chromedp.Navigate(address))
	b.until(`document.querySelector("html[data-ready]")`) // and if it never is, the cleanup says what the page said
	return b
}

// hear notes what a page must not do.
func (b *tab) hear(event any) {
	fault := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u := e.Request.URL + e.Request.URLFragment
		if !strings.HasPrefix(u, b.origin) && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
			fault = "the page asked for " + u
		}
	case *network.EventWebSocketCreated:
		fault = "the page opened a socket to " + e.URL
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			fault = "console: "
			for _, a := range e.Args {
				fault += cmp.Or(a.Description, string(a.Value)) + " "
			}
		}
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			fault += " " + x.Description
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			fault = "log: " + e.Entry.Text + " " + e.Entry.URL
		}
	}
	if fault != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.allowed == "" || !strings.Contains(fault, b.allowed) {
			b.faults = append(b.faults, fault)
		}
	}
}

func (b *tab) do(actions ...action) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval evaluates an expression of JavaScript into a T.
func eval[T any](b *tab, script string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, options...))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return out
}

// until waits until an expression is true.
func (b *tab) until(script string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](script, chromedp.WithPollingTimeout(time.Minute))); err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
}

// key presses a key.
func (b *tab) key(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(chromedp.KeyEvent(k))
	}
}

// click clicks an element that a selector finds, anywhere on the page.
func (b *tab) click(selector string) {
	b.t.Helper()
	if !eval[bool](b, fmt.Sprintf(`(e => { e?.dispatchEvent(new MouseEvent("click", { bubbles: true })); return !!e })(document.querySelector(%q))`, selector)) {
		b.t.Fatalf("there is no %s", selector)
	}
}

// panel opens a tab below the graph.
func (b *tab) panel(name string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`nnopt.app.openTab(%q)`, name)))
}

// texts returns the texts of all elements that a selector finds.
func (b *tab) texts(selector string) []string {
	b.t.Helper()
	return eval[[]string](b, fmt.Sprintf(`[...document.querySelectorAll(%q)].map(e => e.textContent)`, selector))
}

// window makes the window of a size, in pixels.
func window(width, height int64) action { return chromedp.EmulateViewport(width, height) }

// dark makes the system one of dark colours.
func dark() action {
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
}
