package tensors

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rational"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// Tags that permit differences.
const (
	unsafeTag   = "unsafe_nan"
	overflowTag = "overflow"
)

// maxAnalyzed bounds the differences of a rule that are analyzed.
const maxAnalyzed = 400

// A judge collects what is found about a rule.
type judge struct {
	rulecheck.Trial
	tried    int
	exact    bool
	edges    edge
	found    map[verdict]finding
	analyzed int
	rational rational.Comparer
}

// A finding is an example of a verdict.
type finding struct {
	in    *instance
	args  []*array.Array
	text  string // in place of the values
	again func(choices []int) *rulecheck.Instance
}

// Judge returns a judge of a rule.
func (d *domain) Judge(t rulecheck.Trial) rulecheck.Judge {
	return &judge{Trial: t, exact: true, found: make(map[verdict]finding), rational: rational.NewComparer(rulecheck.NewRand("rational", t.Seed))}
}

// Compare runs both sides of an expression on all plans.
func (c *judge) Compare(in *rulecheck.Instance, again func([]int) *rulecheck.Instance) bool {
	compiled, err := compile(c.Context, in)
	if err != nil {
		return false
	}
	c.compare(compiled, again)
	if differ := c.rational.Compare(in.Left, in.Right); differ != "" {
		c.Fault(in, rulecheck.Wrong, differ)
	}
	return true
}

// Fault notes an instance that can't be compared.
func (c *judge) Fault(in *rulecheck.Instance, class rulecheck.Class, text string) {
	c.note(verdict{class: class}, finding{in: &instance{Instance: in}, text: text})
}

// Refuted reports whether there is an instance for which the rule is wrong.
func (c *judge) Refuted() bool { return c.found[verdict{class: rulecheck.Wrong}].in != nil }

// compare runs both sides of an expression on all plans.
func (c *judge) compare(in *instance, again func([]int) *rulecheck.Instance) {
	// To classify one difference takes dozens of runs. Elements whose arguments are of the same
	// kinds, such as large times tiny, differ for the same reason, so two of each combination are
	// classified.
	known := make(map[string]int)
	list := scalarPlans
	for _, v := range in.circuit.inputs {
		if slices.Contains(tensor.TypeOf(v).Shape(), tensor.Unknown) {
			list = plans
		}
	}
	// Where no plan has as many elements as a slice asks for, any two such slices are empty, and x[:128] is x. The slice may
	// be of any dimension of an input, since other ops may come before it.
	if n := in.circuit.reach(); n > slices.Max(distinct[:]) {
		for d := range rankOf(in.circuit.inputs) {
			list = append(slices.Clip(list), plan{palette: ordinary, size: 2, long: n + 1, dim: d, times: 1})
		}
	}
	if len(in.circuit.inputs) == 0 {
		list = scalarPlans[:1]
	}
	for _, p := range list {
		for range p.times {
			args := p.arguments(c.Rand, in.circuit.inputs)
			t := in.circuit.run(args, nil)
			if t.leftError != nil {
				continue
			}
			c.tried++
			if t.err != nil {
				c.note(verdict{class: rulecheck.Wrong}, finding{in: in, args: args, again: again})
				continue
			}
			places, exact := in.circuit.differences(t)
			c.exact = c.exact && exact
			for _, at := range places {
				c.analyze(in, args, t, at, known, again)
			}
			if len(in.circuit.inputs) == 0 {
				return
			}
		}
	}
}

// analyze finds out why an element differs. It looks at a few of those whose arguments are alike.
func (c *judge) analyze(in *instance, args []*array.Array, t trace, at place, known map[string]int, again func([]int) *rulecheck.Instance) {
	likeness := in.likeness(args, t, at)
	if known[likeness] >= 2 || c.analyzed >= maxAnalyzed && len(known) > 8 {
		return
	}
	known[likeness]++
	c.analyzed++
	// First to the arguments of this element alone: a NaN elsewhere in a matrix would explain the
	// difference wrongly. Then special values that don't matter become ordinary ones. What is
	// special after that is a reason.
	args = in.tame(in.reduce(args, t, at))
	if v, ok := in.judge(args); ok {
		c.note(v, finding{in: in, args: args, again: again})
	}
}

// gains looks for arguments of which the left side of an example overflows and the right one does
// not: the rule computes in another order, which is no worse than the one before.
func (c *judge) gains(f finding) bool {
	if f.text != "" {
		return false
	}
	for range maxGains {
		args := plan{palette: apart, size: 1}.arguments(c.Rand, f.in.circuit.inputs)
		t := f.in.circuit.run(args, nil)
		if t.leftError != nil || t.err != nil {
			continue
		}
		if places, _ := f.in.circuit.differences(t); len(places) == 0 {
			continue
		}
		if v, ok := f.in.judge(args); ok && v == (verdict{class: rulecheck.Rounding, edge: onLeft}) {
			return true
		}
	}
	return false
}

// maxGains bounds the arguments that gains tries.
const maxGains = 200

// note remembers an example of a verdict.
func (c *judge) note(v verdict, f finding) {
	c.edges |= v.edge
	if old, ok := c.found[v]; !ok || old.text == "" && f.text == "" && f.size() < old.size() {
		c.found[v] = f
	}
}

// size orders examples.
func (f finding) size() int {
	n := 0
	for _, a := range f.args {
		n += 4*a.NDim() + a.Len()
	}
	return 8*len(f.in.circuit.steps) + n
}

// permits reports whether tags allow a verdict.
func permits(tags []string, v verdict) bool {
	switch v.class {
	case rulecheck.Exact, rulecheck.Rounding:
		return true
	case rulecheck.Overflow:
		return slices.Contains(tags, overflowTag) || !v.integer && slices.Contains(tags, unsafeTag)
	case rulecheck.UnsafeNaN:
		return slices.Contains(tags, unsafeTag)
	}
	return false
}

// Report sums up what was found: the worst that the tags do not permit, or else the worst.
func (c *judge) Report(trouble []string) rulecheck.Report {
	r := rulecheck.Report{Tried: c.tried, Class: rulecheck.Exact, Kept: true}
	if !c.exact {
		r.Class = rulecheck.Rounding
	}
	// A sum or product in another order may overflow where the old order did not. That is fair if
	// there are also arguments for which it is the other way round: neither order is better. If
	// only the right side ever overflows, the rule does harm. Arguments of the second kind may not
	// have been drawn, so they are looked for before that verdict.
	harm, harmed := c.found[verdict{class: rulecheck.Rounding, edge: onRight}]
	if _, gains := c.found[verdict{class: rulecheck.Rounding, edge: onLeft}]; harmed && !gains && !c.gains(harm) {
		c.found[verdict{class: rulecheck.Overflow}] = harm
	}
	// The report names the worst verdict that the tags don't permit; a permitted one counts only if
	// there is no other. Verdicts of one rank differ only in the edges of Rounding, which has no
	// counterexample, so the order of the map does not matter.
	var worst verdict
	rank := -1
	if !c.rational.Other {
		r.Chance = c.rational.Chance
	}
	for _, tag := range []string{unsafeTag, overflowTag} {
		for v := range c.found {
			if string(v.class) == tag && !permits(r.Tags, v) {
				r.Tags = append(r.Tags, tag)
			}
		}
	}
	for v := range c.found {
		k := v.rank()
		if !permits(c.Tags, v) {
			k += 100
		}
		if k > rank {
			worst, rank = v, k
		}
	}
	switch {
	case rank >= 100 && worst.class == rulecheck.Wrong || len(trouble) == 0 && rank >= 0:
		r.Class, r.Kept = worst.class, permits(c.Tags, worst)
		if r.Class != rulecheck.Rounding {
			f := c.found[worst]
			if !c.Brief || r.Class != rulecheck.Wrong {
				r.Counterexample = c.shrink(worst, &f)
			}
			if worst.class == rulecheck.Wrong && f.text == "" {
				r.Wrong = make(map[string]any)
				for i, v := range f.in.circuit.inputs {
					r.Wrong[v.Name()] = f.args[i]
				}
			}
		}
	case len(trouble) > 0:
		r.Class, r.Kept, r.Counterexample = rulecheck.NeverFires, false, strings.Join(trouble, "; ")
	}
	return r
}
