package browsertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// shiftRight presses shift and the right arrow.
var shiftRight = chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(chromedp.ModifierShift))

const softmax = "sum(log(softmax(dot(X, W) + b)) * X[1:3].T[0] + 0*1)"

func softmaxRecording(t testing.TB) *view.Recording {
	t.Helper()
	return expression(t, "X: matrix; W: matrix; b: vector", softmax)
}

// contrast is the contrast of the colours of an element after WCAG, with the nearest background.
const contrast = `(e => {
	const parse = c => c.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map(x => (x /= 255) <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4)
		.reduce((s, x, i) => s + x * [.2126, .7152, .0722][i], 0);
	let p = e, back;
	do { back = parse(getComputedStyle(p).backgroundColor); p = p.parentElement } while (p && back[3] === 0);
	const [a, b] = [light(parse(getComputedStyle(e).color)), light(back)].sort((x, y) => y - x);
	return (a + .05) / (b + .05);
})`

func TestColours(t *testing.T) {
	r := softmaxRecording(t)
	b := openFile(t, r, dark())
	const background = `getComputedStyle(document.body).backgroundColor`
	check := func(name string) string {
		for _, e := range []string{"h1", "#where", "[data-pass] .name", "[data-pass] .time", "#detail .faint", "#detail .link", "#step b", ".legend"} {
			if c := eval[float64](b, contrast+fmt.Sprintf(`(document.querySelector(%q))`, e)); c < 4.5 {
				t.Errorf("%s: %s has a contrast of %.1f", name, e, c)
			}
		}
		return eval[string](b, background)
	}
	night := check("dark")
	b.shot("dark")
	b.key("t") // auto, light, dark
	day := check("light")
	if night == day {
		t.Errorf("both are %s", day)
	}
	b.key("t")
	if got := eval[string](b, background); got != night {
		t.Errorf("dark by choice is %s, by the system %s", got, night)
	}
}

// TestNarrow looks for what sticks out of a window of 400 pixels, in every view.
func TestNarrow(t *testing.T) {
	b := openFile(t, recordNetwork(t, demoNetwork), window(400, 800))
	for _, name := range []string{"passes", "graph", "detail", "dock"} {
		b.click(fmt.Sprintf("[data-to=%s]", name))
		if !eval[bool](b, fmt.Sprintf(`document.getElementById(%q).offsetHeight > 300`, name)) {
			t.Errorf("%s is not shown", name)
		}
		if w := eval[int](b, `document.documentElement.scrollWidth`); w > 400 {
			t.Errorf("%s is %d pixels wide", name, w)
		}
		wide := eval[[]string](b, `[...document.querySelectorAll("button, input, h1, h2, h3, label")].filter(e => {
			const r = e.getBoundingClientRect();
			return r.width && r.right > 401 && !e.closest("pre, table");
		}).map(e => e.outerHTML.slice(0, 100))`)
		if len(wide) > 0 {
			t.Errorf("%s: sticks out: %q", name, wide)
		}
		b.shot("narrow-" + name)
	}
	b.click("[data-to=graph]")
	b.key(kb.ArrowRight)
	if b.current() < 0 {
		t.Error("the arrow key does not step")
	}
}

// TestKeyboard reaches every part with the keyboard alone.
func TestKeyboard(t *testing.T) {
	b := openFile(t, softmaxRecording(t))
	b.key("?")
	if !eval[bool](b, `document.getElementById("keys").open && document.querySelectorAll("#keys kbd").length > 10`) {
		t.Error("? does not list the keys")
	}
	b.shot("keys")
	b.key(kb.Enter)
	if eval[bool](b, `document.getElementById("keys").open`) {
		t.Error("the list of keys does not close")
	}
	b.key("/")
	if got := eval[string](b, `document.activeElement.id`); got != "search" {
		t.Fatalf("/ leads to %q", got)
	}
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "softmax"))
	if found := b.texts("#hits [role=option]"); len(found) == 0 || !strings.Contains(found[0], "Softmax") {
		t.Errorf("found %q", found)
	}
	b.key(kb.Enter)
	if got := eval[string](b, `document.querySelector("#detail h2").textContent`); !strings.Contains(got, "Softmax") {
		t.Errorf("the first hit leads to %q", got)
	}
	b.key(kb.Escape)

	// Tab comes by every part of the page.
	want := map[string]bool{"timeline": true, "picture": true, "tabs": true, "detail": true, "theme": true, "help": true, "next": true, "search": true}
	for range 150 {
		b.key(kb.Tab)
		for _, id := range eval[[]string](b, `(l => { for (let e = document.activeElement; e; e = e.parentElement) if (e.id) l.push(e.id); return l })([])`) {
			delete(want, id)
		}
	}
	if len(want) > 0 {
		t.Errorf("tab never comes to %v", want)
	}

	// Up and down go along the lines.
	b.do(chromedp.Focus(chromedp.CSS("#picture")))
	b.key(kb.ArrowDown)
	first := eval[string](b, `document.activeElement.dataset.node ?? ""`)
	b.key(kb.ArrowDown)
	second := eval[string](b, `document.activeElement.dataset.node ?? ""`)
	if first == "" || second == "" || first == second {
		t.Errorf("arrow down leads to %q and %q", first, second)
	}
	b.key(kb.ArrowRight)
	if b.current() < 0 {
		t.Error("the arrow key does not step from an apply")
	}

	unnamed := eval[[]string](b, `[...document.querySelectorAll("button, input, select, textarea, [role=img]")].filter(e =>
		!(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length || e.title)).map(e => e.outerHTML.slice(0, 100))`)
	if len(unnamed) > 0 {
		t.Errorf("without a name: %q", unnamed)
	}
	twice := eval[[]string](b, `(ids => ids.filter((id, i) => ids.indexOf(id) !== i))([...document.querySelectorAll("[id]")].map(e => e.id))`)
	if len(twice) > 0 {
		t.Errorf("ids twice: %q", twice)
	}
}

// TestHostileNames opens a recording whose every text tries to become markup.
func TestHostileNames(t *testing.T) {
	const evil = `</script><img src=x onerror="window.owned=1"><!--<script>window.owned=1</script>"'` + "\u202e\u0000\n{{TITLE}}/*SCRIPT*/"
	r := softmaxRecording(t)
	r.Title, r.Subject, r.Query, r.Report = evil, evil, evil, evil
	for i := range r.Values {
		r.Values[i].Name, r.Values[i].Type = evil, evil
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		n.Op, n.Kind, n.From, n.Lines, n.Params = evil, evil, evil, []string{evil}, [][2]string{{evil, evil}}
	}
	for i := range r.Passes {
		r.Passes[i].Name, r.Passes[i].Class, r.Passes[i].Counters = evil, evil, [][2]string{{evil, evil}}
	}
	for i := range r.Steps {
		r.Steps[i].Rule = evil
	}
	r.Docs = map[string]view.Doc{evil: {Doc: evil, Tags: []string{evil}}, "__proto__": {Doc: evil}}
	r.Misses = append(r.Misses, view.Miss{Node: 0, Rule: evil, Text: evil})
	r.Commands = &view.Commands{Before: []view.Command{{Text: evil, Nodes: []int32{0}}}, After: []view.Command{{Text: evil}}}
	b := openFile(t, r)
	for range stops(r) {
		b.key(kb.ArrowRight)
	}
	b.key(kb.Home)
	b.until(`document.querySelector('[data-node="0"]')`)
	b.click(`[data-node="0"]`)
	b.key("d", "f")
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "onerror"), chromedp.Sleep(100*time.Millisecond))
	if eval[bool](b, `"owned" in window || document.images.length > 0 || document.scripts.length !== 2`) {
		t.Error("a name became markup")
	}
	if got := eval[string](b, `document.getElementById("title").textContent`); !strings.Contains(got, "<img src=x") {
		t.Errorf("the title reads %q", got)
	}
}

// TestProfileAlone opens a profile without a recording of the graph.
func TestProfileAlone(t *testing.T) {
	full := recordNetwork(t, demoNetwork)
	record := profile.New("OPT", profile.ClassSequence)
	child := record.Begin("merge1", profile.ClassMerge)
	child.Nodes(7)
	child.Changed(3)
	child.AddRule(profile.RuleRecord{Name: "local_rule", Attempts: 5, Applied: 3})
	child.End()
	record.End()
	r, err := view.NewProfile(&profile.Function{Message: full.Title, Optimizer: record.Record()})
	if err != nil {
		t.Fatal(err)
	}
	b := openFile(t, r)
	if got := b.texts("[data-pass] .name"); len(got) != 2 || got[1] != "merge1" {
		t.Errorf("the timeline: %q", got)
	}
	b.click("#tab-rules")
	if got := b.texts("#panel-rules [data-rule] td:first-child"); len(got) != 1 || !strings.Contains(got[0], "local_rule") {
		t.Errorf("the rules: %q", got)
	}
	b.key(kb.ArrowRight, "c", "f", "w", kb.ArrowDown, "0", "+", "d", kb.Escape) // nothing to do, and no error
	b.shot("profile")
}

// TestPrint makes a PDF with everything on it.
func TestPrint(t *testing.T) {
	b := openFile(t, softmaxRecording(t))
	b.do(chromedp.EmulateViewport(900, 1200))
	eval[bool](b, `dispatchEvent(new Event("beforeprint"))`)
	if eval[bool](b, `!document.getElementById("picture").getAttribute("viewBox")`) {
		t.Error("print does not show the whole graph")
	}
	eval[bool](b, `dispatchEvent(new Event("afterprint"))`)
	if eval[bool](b, `document.getElementById("picture").hasAttribute("viewBox")`) {
		t.Error("the picture is still that of the print")
	}
}
