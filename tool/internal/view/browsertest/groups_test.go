package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestGroups folds the layers of a network into boxes and unfolds one; every apply is in one of them,
// or drawn.
func TestGroups(t *testing.T) {
	r := recordNetwork(t, demoNetwork)
	b := openFile(t, r)
	all := len(r.Start.Nodes)
	b.drawn(all)
	by := func(mode string) {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(e => { e.value = %q; e.dispatchEvent(new Event("change")) })(document.getElementById("fold"))`, mode)))
	}
	by("scope")
	b.until(`document.querySelectorAll("[data-group]").length > 2`)
	const inside = `[...document.querySelectorAll("[data-group] .sub")].reduce((n, e) => n + parseInt(e.textContent), 0)`
	const single = `document.querySelectorAll("[data-node]:not([data-group])").length`
	if groups, rest := eval[int](b, inside), eval[int](b, single); groups+rest != all {
		t.Errorf("%d applies in groups and %d others, of %d", groups, rest, all)
	}
	b.shot("groups")
	before := eval[int](b, `document.querySelectorAll("[data-group]").length`)
	b.click("[data-group]")
	b.until(`document.querySelector("[data-fold]")`)
	b.click("[data-fold]")
	if now := eval[int](b, `document.querySelectorAll("[data-group]").length`); now != before-1 {
		t.Errorf("%d groups of %d are folded after one is not", now, before)
	}
	for range stops(r) {
		b.key(kb.ArrowRight)
	}
	by("pass")
	b.key(kb.Home, kb.End)
	b.until(`document.querySelectorAll("[data-group]").length > 0`)
	b.key("b")
	b.until(`document.querySelectorAll("#second [data-node]").length > 0`)
	b.key("b")
	by("")
	b.key(kb.Home)
	b.drawn(all)
}
