package browsertest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/tool/internal/view"
)

// drawn returns the change of every apply in the picture, once all are drawn.
func (b *tab) drawn(want int) map[string]string {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelectorAll("[data-node]").length === %d`, want))
	return eval[map[string]string](b, `Object.fromEntries([...document.querySelectorAll("[data-node]")].map(e => [e.dataset.node, e.dataset.change]))`)
}

// current returns the pass whose row is the current step, -1 for the start.
func (b *tab) current() int {
	b.t.Helper()
	row := eval[string](b, `(l => l.length === 1 ? l[0].dataset.pass ?? "-1" : "rows: " + l.length)([...document.querySelectorAll("[data-step]")])`)
	pass, err := strconv.Atoi(row)
	if err != nil {
		b.t.Fatalf("the current step: %s", row)
	}
	return pass
}

// checkStep compares what is drawn with the steps from and to of the recording.
func (b *tab) checkStep(r *view.Recording, name string, from, to int) {
	b.t.Helper()
	want := changes(r, from, to)
	if diff := cmp.Diff(want, b.drawn(len(want))); diff != "" {
		b.t.Fatalf("%s: -recorded +drawn:\n%s", name, diff)
	}
	rules := make(map[string]int)
	for _, s := range r.Steps[from:to] {
		if s.Rule != "" {
			rules[s.Rule]++
		}
	}
	shown := eval[map[string]int](b, `Object.fromEntries([...document.querySelectorAll("#step [data-rule]")].map(e => [e.dataset.rule, Number(e.querySelector("b").textContent)]))`)
	if diff := cmp.Diff(rules, shown); diff != "" {
		b.t.Fatalf("%s: -rules that fired +rules shown:\n%s", name, diff)
	}
}

// A stop is where an arrow key must rest.
type stop struct{ pass, from, to int }

// stops returns the start, and for each pass without passes of its own its steps; steps that
// belong to none of them come between, by their pass.
func stops(r *view.Recording) []stop {
	list := []stop{{-1, 0, 0}}
	done := 0
	between := func(to int) {
		for done < to {
			from, pass := done, r.Steps[done].Pass
			for done < to && r.Steps[done].Pass == pass {
				done++
			}
			list = append(list, stop{pass, from, done})
		}
	}
	for _, i := range leaves(r) {
		p := r.Passes[i]
		between(p.Steps[0])
		list = append(list, stop{i, p.Steps[0], p.Steps[1]})
		done = p.Steps[1]
	}
	between(len(r.Steps))
	return list
}

// stepThrough goes through all passes with the arrow keys, there and back, and looks at each.
func stepThrough(t *testing.T, r *view.Recording) *tab {
	t.Helper()
	if len(r.Steps) == 0 {
		t.Fatal("the optimizer does nothing")
	}
	b := openFile(t, r)
	if got := len(b.texts("[data-pass]")); got != len(r.Passes) {
		t.Fatalf("the timeline has %d passes of %d", got, len(r.Passes))
	}
	list := stops(r)
	for i, s := range list {
		if i > 0 {
			b.key(kb.ArrowRight)
		}
		if got := b.current(); got != s.pass {
			t.Fatalf("stop %d is pass %d, want %d", i, got, s.pass)
		}
		b.checkStep(r, fmt.Sprintf("stop %d", i), s.from, s.to)
	}
	b.key(kb.ArrowRight) // at the end, nothing is left
	if got := b.current(); got != list[len(list)-1].pass {
		t.Errorf("pass %d follows the end", got)
	}
	for _, s := range slices.Backward(list[:len(list)-1]) {
		b.key(kb.ArrowLeft)
		if s.from != s.to {
			b.checkStep(r, "back", s.from, s.to)
		}
	}
	return b
}

func TestStepsOfNetwork(t *testing.T) {
	r := recordNetwork(t, demoNetwork)
	b := stepThrough(t, r)
	for i, p := range r.Passes { // a click leads to the pass
		b.click(fmt.Sprintf(`[data-pass="%d"] button`, i))
		if got := b.current(); got != i {
			t.Errorf("a click on pass %d leads to %d", i, got)
		}
		b.checkStep(r, p.Name, p.Steps[0], p.Steps[1])
	}
}

func TestStepsOfExpressions(t *testing.T) {
	for _, e := range []struct{ variables, text string }{
		{"", "(y + z)*x/(y + z)"},
		{"X: matrix; W: matrix; b: vector", "sum(log(softmax(dot(X, W) + b)) * X[1:3].T[0] + 0*1)"},
		{"x: vector; y: vector", deep(6)},
	} {
		stepThrough(t, expression(t, e.variables, e.text))
	}
}

// TestRewrites goes through the single rewrites of a run.
func TestRewrites(t *testing.T) {
	r := expression(t, "X: matrix; W: matrix; b: vector", "sum(log(softmax(dot(X, W) + b)) * X[1:3].T[0] + 0*1)")
	b := openFile(t, r)
	for i, s := range r.Steps {
		b.do(shiftRight)
		want := changes(r, i, i+1)
		if diff := cmp.Diff(want, b.drawn(len(want))); diff != "" {
			t.Fatalf("rewrite %d: -recorded +drawn:\n%s", i, diff)
		}
		if got := b.current(); got != s.Pass {
			t.Errorf("rewrite %d is in pass %d, want %d", i, got, s.Pass)
		}
	}
}

// TestTraceOutputs traces every output of the first graph through all steps.
func TestTraceOutputs(t *testing.T) {
	for _, r := range []*view.Recording{
		expression(t, "", "(y + z)*x/(y + z)"),
		recordNetwork(t, demoNetwork),
	} {
		b := openFile(t, r)
		list := stops(r)
		values := make(map[int32]bool)
		for _, s := range r.Steps {
			for _, pair := range s.Replaced {
				values[pair[0]] = true
			}
		}
		followed := 0
		for _, n := range r.Start.Nodes {
			v := r.Nodes[n].Out[0]
			if !values[v] || followed == 3 {
				continue
			}
			followed++
			b.key(kb.Home)
			b.drawn(len(r.Start.Nodes))
			b.click(fmt.Sprintf(`[data-node="%d"]`, n))
			b.key("f")
			for _, s := range list[1:] {
				b.key(kb.ArrowRight)
				for _, step := range r.Steps[s.from:s.to] {
					for _, pair := range step.Replaced {
						if pair[0] == v {
							v = pair[1]
						}
					}
				}
				if got := eval[string](b, `document.querySelector("[data-followed]").dataset.followed`); got != fmt.Sprint(v) {
					t.Fatalf("pass %d: followed to value %s, want %d", s.pass, got, v)
				}
				// What is not needed any more is dead, although nothing took its place.
				if owner := r.Values[v].Node; owner != nil && changes(r, s.from, s.to)[fmt.Sprint(*owner)] != "" {
					b.until(fmt.Sprintf(`document.querySelector('[data-node="%d"]')?.classList.contains("followed")`, *owner))
				}
			}
			b.key("f")
		}
		if followed == 0 {
			t.Error("no value is replaced")
		}
	}
}

// TestWhyNot clicks applies of the final graph and compares the reasons with those recorded.
func TestWhyNot(t *testing.T) {
	r := softmaxRecording(t)
	final := begin(r)
	for i := range r.Steps {
		final.apply(&r.Steps[i])
	}
	if !slices.ContainsFunc(r.Misses, func(m view.Miss) bool { return final.alive[m.Node] }) {
		t.Fatal("no rule says why it does not fire")
	}
	b := openFile(t, r)
	b.key(kb.End)
	b.drawn(len(final.alive))
	for _, n := range slices.Sorted(maps.Keys(final.alive)) {
		b.click(fmt.Sprintf(`[data-node="%d"]`, n))
		rules, reasons := []string{}, []string{}
		for _, m := range r.Misses {
			if m.Node == n {
				rules, reasons = append(rules, m.Rule), append(reasons, m.Text)
			}
		}
		if diff := cmp.Diff(rules, b.texts("[data-miss]")); diff != "" {
			t.Errorf("apply %d: -recorded +shown:\n%s", n, diff)
		}
		if diff := cmp.Diff(reasons, b.texts("[data-miss] + dd")); diff != "" {
			t.Errorf("apply %d: -recorded +shown:\n%s", n, diff)
		}
	}
}

// TestCommands goes from commands to their applies and back.
func TestCommands(t *testing.T) {
	r := recordNetwork(t, demoNetwork)
	b := openFile(t, r)
	b.key("d")
	for side, list := range map[string][]view.Command{"before": r.Commands.Before, "after": r.Commands.After} {
		if got := len(b.texts(fmt.Sprintf(`[data-command][data-side=%s]`, side))); got != len(list) {
			t.Fatalf("%d commands %s, want %d", got, side, len(list))
		}
		for i := 0; i < len(list); i += 1 + len(list)/12 {
			row := fmt.Sprintf(`[data-command="%d"][data-side=%s]`, i, side)
			b.click(row + " button")
			if !eval[bool](b, fmt.Sprintf(`document.querySelector('%s').classList.contains("here")`, row)) {
				t.Errorf("command %d %s is not marked", i, side)
			}
			if len(list[i].Nodes) == 0 {
				continue
			}
			chosen := fmt.Sprint(list[i].Nodes[0])
			b.until(fmt.Sprintf(`document.querySelector(".node.selected")?.dataset.node === %q`, chosen))
			b.click(".node.selected")
			if !eval[bool](b, fmt.Sprintf(`document.querySelector('%s').classList.contains("here")`, row)) {
				t.Errorf("apply %s does not lead back to command %d %s", chosen, i, side)
			}
		}
	}
	peak := strings.Join(b.texts(".side h3"), " ")
	if !strings.Contains(peak, fmt.Sprintf("%d commands", len(r.Commands.Before))) {
		t.Errorf("heads of the lists: %s", peak)
	}
}
