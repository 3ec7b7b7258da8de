package rewrite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
)

// TestNeeds: drivers and groups ask a rule only where the inputs meet its needs, and count it
// everywhere. They ask it everywhere if somebody wants to know why it does not fire.
func TestNeeds(t *testing.T) {
	var many []Track
	for i := range 200 { // more than there are bits for
		many = append(many, TrackOp(op(fmt.Sprint("many", i))))
	}
	a, b, c := Need{Ops: []Track{TrackOp(op("a"))}}, Need{Ops: []Track{TrackOp(op("b"))}}, Need{Constant: true}
	needs := map[string][]Need{
		"nothing": nil, "a": {a}, "b": {b}, "a and b": {a, b}, "a or b": {{Ops: slices.Concat(a.Ops, b.Ops)}},
		"constant": {c}, "a and constant": {c, a}, "alike": {{Ops: []Track{TrackOp(alike{"x", 1})}}},
		"type": {{Ops: []Track{TrackType[inplaceOp]()}}}, "empty": {{}}, "many": {{Ops: many}}, "last": {{Ops: many[len(many)-1:]}},
		"number": {{Through: list(TrackOp(op("see")), TrackType[inplaceOp]())}}, "see": {{Ops: list(TrackOp(op("see")))}},
		"same": {{Same: true}}, "one": {{Counts: list(1)}}, "two or four": {{Counts: list(2, 4)}},
	}
	var names []string
	for name := range needs {
		names = append(names, name)
	}
	slices.Sort(names)
	x, k := input("x"), fgraph.NewConstant(num, 1, "")
	roots := map[string]struct {
		inputs []*fgraph.Variable
		want   string // besides nothing and empty
	}{
		"root0": {nil, strings.Join(names, ", ")},
		"root1": {list(x, x), "same, two or four"},
		"root2": {list(call(op("a"), x), x), "a, a or b, two or four"},
		"root3": {list(call(op("a"), x), call(op("b"), k)), "a, a and b, a or b, b, two or four"},
		"root4": {list(call(op("a"), x), k), "a, a and constant, a or b, constant, number, two or four"},
		"root5": {list(call(alike{"x", 2}, x)), "alike, one"},
		"root6": {list(call(inplaceOp("x"), x)), "type, one"},
		"root7": {list(call(many[3].Op(), x)), "many, one"},
		"root8": {append(slices.Repeat(list(x), maxSeen), call(op("a"), x)), strings.Join(names, ", ")},
		"root9": {list(call(op("see"), x), x), "see, two or four"},
		"rootA": {list(x, call(op("see"), x, k)), "see, number, two or four"},
		"rootB": {list(call(inplaceOp("y"), call(op("see"), k))), "type, number, one"},
		"rootC": {list(x, call(op("b"), x), input("y")), "a or b, b, same"}, // there may be two that are the same
		"rootD": {list(k, fgraph.NewConstant(num, 2, "")), "constant, number, same, two or four"},
	}
	asked := make(map[string]map[string]bool)
	var rules []NodeRewriter
	for _, name := range names {
		rules = append(rules, Rule{Name: name, On: []Track{TrackType[root]()}, Inputs: needs[name], Depth: 1, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
			at := n.Op().String()
			if asked[at] == nil {
				asked[at] = make(map[string]bool)
			}
			asked[at][name] = true
			return c.Miss("no reason"), nil
		}})
	}
	rules[0] = As(rules[0], Description{Name: names[0]})
	var outs []*fgraph.Variable
	for name, r := range roots {
		outs = append(outs, call(root(name), r.inputs...))
	}
	g := newGraph(t, list(x, roots["rootC"].inputs[2]), outs)
	all := len(names) * len(roots)
	for driver, d := range map[string]GraphRewriter{
		"walk": In2Out("walk", rules...), "equilibrium": &Equilibrium{Rules: rules}, "group": In2Out("group", &Group{Name: "group", Rules: rules}),
	} {
		clear(asked)
		rec := run(t, d, g)
		for _, r := range rec.Rules {
			if driver != "group" && r.Attempts != len(roots) {
				t.Errorf("%s: %d attempts of %s, want %d", driver, r.Attempts, r.Name, len(roots))
			}
		}
		for name, r := range roots {
			var want, got []string
			for _, rule := range names {
				if rule == "nothing" || rule == "empty" || slices.Contains(strings.Split(r.want, ", "), rule) {
					want = append(want, rule)
				}
				// Tracks that share a bit may cause a question too many.
				if asked[name][rule] && (rule != "many" && rule != "last" || slices.Contains(want, rule)) {
					got = append(got, rule)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: at %s %q are asked, want %q", driver, name, got, want)
			}
		}
		misses := 0
		ctx := WithOptions(context.Background(), Options{WhyNot: func(Miss) { misses++ }})
		if err := Run(ctx, d, g, nil); err != nil {
			t.Fatal(err)
		}
		if misses != all {
			t.Errorf("%s: %d rules say why they do not fire, want %d", driver, misses, all)
		}
	}
}

// root is an op whose rules have needs.
type root string

func (r root) String() string { return string(r) }
