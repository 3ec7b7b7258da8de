package profile

import "slices"

// Merge returns the sum of several runs of the same optimizer, or nil if there are
// none. It matches records by name and class, wherever they are among their
// siblings, and then by order of appearance. It keeps records that only some runs
// have. Times, counts, rules and passes are added up, and so are node counts, so
// that "before" and "after" stay comparable. Merge does not change its arguments.
func Merge(runs ...*Record) *Record {
	var sum *Record
	for _, r := range runs {
		switch {
		case r == nil:
		case sum == nil:
			sum = r.clone()
		default:
			sum.merge(r)
		}
	}
	return sum
}

// clone returns a deep copy.
func (r *Record) clone() *Record {
	// Deep, because the sum is added to in place, and the runs belong to the caller.
	c := *r
	c.Rules, c.Counters, c.Passes = slices.Clone(r.Rules), slices.Clone(r.Counters), slices.Clone(r.Passes)
	for i := range c.Passes {
		c.Passes[i].Rules = slices.Clone(c.Passes[i].Rules)
	}
	for i := range c.Rules {
		c.Rules[i].Counters = slices.Clone(c.Rules[i].Counters)
	}
	c.Saturation, c.Children = r.Saturation.clone(), nil
	for _, child := range r.Children {
		c.Children = append(c.Children, child.clone())
	}
	return &c
}

// merge adds o and its descendants.
func (r *Record) merge(o *Record) {
	r.addFigures(o)
	for _, m := range matchChildren(r.Children, o.Children) {
		if m.a == nil {
			r.Children = append(r.Children, m.b.clone())
		} else if m.b != nil {
			m.a.merge(m.b)
		}
	}
}

// addFigures adds all of o except its children.
func (r *Record) addFigures(o *Record) {
	r.Time += o.Time
	r.Validate += o.Validate
	r.Callback += o.Callback
	r.Toposort += o.Toposort
	r.Prepare += o.Prepare
	r.Loop += o.Loop
	r.NodesBefore += o.NodesBefore
	r.NodesAfter += o.NodesAfter
	r.NodesMax += o.NodesMax
	r.Changed += o.Changed
	// Pass k of one run is added to pass k of the other. The longer run has some left over, which are copied,
	// because a third run may be added to them.
	for i := range o.Passes {
		if i == len(r.Passes) {
			p := o.Passes[i]
			p.Rules = slices.Clone(p.Rules)
			r.Passes = append(r.Passes, p)
			continue
		}
		r.Passes[i].add(o.Passes[i])
	}
	// Rules are matched by name, not by place: each run lists them in the order of its driver, which may have
	// had other rules.
	at := make(map[string]int, len(r.Rules))
	for i := range r.Rules {
		at[r.Rules[i].Name] = i
	}
	for _, rule := range o.Rules {
		if i, ok := at[rule.Name]; ok {
			r.Rules[i].add(rule)
		} else {
			at[rule.Name] = len(r.Rules)
			rule.Counters = slices.Clone(rule.Counters)
			r.Rules = append(r.Rules, rule)
		}
	}
	for _, c := range o.Counters {
		r.Counters = AddCounter(r.Counters, c)
	}
	r.Saturation = r.Saturation.merge(o.Saturation)
}

func (p *Pass) add(o Pass) {
	p.Time += o.Time
	p.Global += o.Global
	p.Toposort += o.Toposort
	p.Nodes += o.Nodes
	p.Applied += o.Applied
	p.Rules = addCounts(p.Rules, o.Rules)
}

// A key is what records are matched by.
type key struct{ name, class string }

// distinct returns the children as reports show them. An equilibrium runs the same
// graph rewriters in every pass: distinct adds up the runs of each.
func (r *Record) distinct() []*Record {
	if r.Class != ClassEquilibrium {
		return r.Children
	}
	at := make(map[key]*Record)
	var list []*Record
	for _, c := range r.Children {
		k := key{c.Name, c.Class}
		sum := at[k]
		if sum == nil {
			sum = c.clone()
			at[k] = sum
			list = append(list, sum)
			continue
		}
		// The runs follow each other on one graph. So the numbers of nodes are those before the first and after
		// the last, and not sums, as of runs on different graphs.
		before, largest := sum.NodesBefore, max(sum.NodesMax, c.NodesMax)
		sum.merge(c)
		sum.NodesBefore, sum.NodesAfter, sum.NodesMax = before, c.NodesAfter, largest
	}
	return list
}

// A match is the records of a rewriter in two runs. One is nil if only the other
// run has the rewriter.
type match struct{ a, b *Record }

// matchChildren pairs the k-th child of a name and class in a with the k-th in b. It
// returns them in the order of a, and then those that only b has.
func matchChildren(a, b []*Record) []match {
	rest := make(map[key][]*Record, len(b))
	for _, c := range b {
		k := key{c.Name, c.Class}
		rest[k] = append(rest[k], c)
	}
	matches := make([]match, 0, len(a))
	taken := make(map[*Record]bool, len(b))
	for _, c := range a {
		k := key{c.Name, c.Class}
		m := match{a: c}
		// A rewriter may run several times in one sequence, so each run is taken once, the earliest first.
		if list := rest[k]; len(list) > 0 {
			m.b, rest[k] = list[0], list[1:]
			taken[m.b] = true
		}
		matches = append(matches, m)
	}
	for _, c := range b {
		if !taken[c] {
			matches = append(matches, match{b: c})
		}
	}
	return matches
}
