package browsertest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestAxe has axe-core look for what is in the way of people who can't see or point. NNOPT_AXE names
// its file axe.min.js, of the package axe-core of npm.
func TestAxe(t *testing.T) {
	file := os.Getenv("NNOPT_AXE")
	if file == "" {
		t.Skip("left out: NNOPT_AXE names no axe.min.js")
	}
	axe, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	check := func(b *tab, what string) {
		t.Helper()
		found := eval[[]string](b, `(async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
			.filter(v => ["serious", "critical"].includes(v.impact)).map(v => v.impact + " " + v.id + ": " + v.help + ": " + v.nodes.slice(0, 4).map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join(" | ")))()`, chromedp.EvalAwaitPromise)
		for _, f := range found {
			t.Errorf("%s: %s", what, f)
		}
	}
	load := chromedp.Evaluate[chromedp.Void](string(axe))
	for _, size := range []int64{400, 1280, 2560} {
		for _, name := range []string{"light", "dark"} {
			before := []action{window(size, max(800, size/2))}
			if name == "dark" {
				before = append(before, dark())
			}
			where := fmt.Sprintf("%s, %d pixels", name, size)
			// Colours are those of the theme, and all elements are there at one of the widths: the parts
			// of the page are looked at one by one there, and all together at the others.
			all := size == 1280
			b := openFile(t, recordNetwork(t, demoNetwork), before...)
			b.do(load)
			b.key("n")
			b.key("c")
			check(b, "a network, "+where)
			if all {
				for _, tab := range []string{"commands", "ops", "rules", "report"} {
					b.click("#tab-" + tab)
					check(b, tab+", "+where)
				}
				b.key("?")
				check(b, "keys, "+where)
			}

			p := openPlayground(t, "", before...)
			p.do(load)
			p.shot(fmt.Sprintf("first-%d-%s", size, name))
			check(p, "playground, "+where)
			p.panel("live")
			p.until(`document.querySelector("#ticks input")`)
			p.click("#ticks summary")
			p.shot(fmt.Sprintf("rules-%d-%s", size, name))
			check(p, "passes and rules, "+where)
			p.do(chromedp.Evaluate[chromedp.Void](`nnopt.app.toggleDock(); nnopt.app.showView("graph")`))
			p.optimize("x: vector", "tanh(x)*x + 0*exp(x)")
			p.key(kb.End)
			p.click("#besideButton")
			p.shot(fmt.Sprintf("beside-%d-%s", size, name))
			p.click("[data-do=run]")
			if got := p.asked(); !strings.Contains(got, "same") {
				t.Errorf("%s: %s", where, got)
			}
			check(p, "two steps beside each other, "+where)
			if all {
				p.click("#liveForm [data-do=share]")
				check(p, "an address, "+where)
				p.fill("#liveForm [name=expr]", "exp(x + )")
				p.click("#liveForm button.main")
				p.asked()
				p.shot(fmt.Sprintf("error-%d-%s", size, name))
				check(p, "an error, "+where)
			}
		}
	}
}
