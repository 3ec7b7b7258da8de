package browsertest

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestBeside draws two steps beside each other: what both have is at the same place, and each has
// what only it has.
func TestBeside(t *testing.T) {
	b := openFile(t, softmaxRecording(t))
	b.key(kb.End)
	b.key("b")
	b.until(`document.querySelectorAll("#second [data-node]").length > 0`)
	const places = `(id => Object.fromEntries([...document.querySelectorAll(id + " [data-node]")].filter(e => e.getBoundingClientRect().width > 0)
		.map(e => [e.dataset.node, e.getAttribute("transform")])))`
	left, right := eval[map[string]string](b, places+`("#picture")`), eval[map[string]string](b, places+`("#second")`)
	before := len(softmaxRecording(t).Start.Nodes)
	if len(left) != before || len(right) == 0 || len(right) >= before {
		t.Errorf("%d applies on the left, %d on the right, of %d", len(left), len(right), before)
	}
	for n, at := range left {
		if r, both := right[n]; both && r != at {
			t.Errorf("apply %s is at %s and at %s", n, at, r)
		}
	}
	b.shot("beside")
	// One camera moves the other.
	b.click("#zoomIn")
	b.until(`document.querySelector("#picture .scene").getAttribute("transform") === document.querySelector("#second .scene").getAttribute("transform")`)
	b.key("b")
	if eval[bool](b, `document.getElementById("second").getBoundingClientRect().width > 0`) {
		t.Error("the second picture stays")
	}
}

// TestOps sorts the table of ops, whose counts are those of the graph on screen.
func TestOps(t *testing.T) {
	b := openFile(t, softmaxRecording(t))
	b.click("#tab-ops")
	sum := func(column string) string {
		return strings.Join(b.texts("#panel-ops tfoot td:nth-child("+column+")"), "")
	}
	if before, now := sum("2"), sum("3"); before == "" || before != now {
		t.Errorf("%s applies at first, %s now", before, now)
	}
	b.key(kb.End)
	if now := sum("3"); now == sum("2") {
		t.Errorf("still %s applies", now)
	}
	names := func() []string { return b.texts("#panel-ops [data-op] td:first-child") }
	b.click("#panel-ops [data-sort=name] button")
	up := names()
	b.click("#panel-ops [data-sort=name] button")
	down := names()
	slices.Reverse(down)
	if len(up) < 3 || !slices.Equal(up, down) || !slices.IsSortedFunc(up, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) }) {
		t.Errorf("sorted: %q, %q", up, down)
	}
	b.shot("ops")
}

// TestSpoken: whoever hears the page is told what is chosen.
func TestSpoken(t *testing.T) {
	b := openFile(t, softmaxRecording(t))
	b.key(kb.ArrowDown)
	b.key(kb.ArrowDown)
	if got := eval[string](b, `document.getElementById("spoken").textContent`); !strings.Contains(got, "reads") || !strings.Contains(got, "read by") {
		t.Errorf("spoken: %q", got)
	}
}
