package profile

import "slices"

// Merge returns the sum of several runs of the same optimizer, or nil when there
// are none. Records are matched by name and class, wherever they stand among
// their siblings, then by order of appearance; what only some runs have is kept.
// Times, counts and rules are added, passes are added pass by pass, and the node
// counts become sums, so that "before" and "after" stay comparable. The
// arguments are not changed.
func Merge(runs ...*Record) *Record {
	var sum *Record
	for _, r := range runs {
		switch {
		case r == nil:
		case sum == nil:
			sum = r.Clone()
		default:
			sum.merge(r)
		}
	}
	return sum
}

// Clone returns a deep copy.
func (r *Record) Clone() *Record {
	if r == nil {
		return nil
	}
	root := new(Record)
	type pair struct{ dst, src *Record }
	work := []pair{{root, r}}
	for len(work) > 0 {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		*p.dst = *p.src
		p.dst.Rules = slices.Clone(p.src.Rules)
		p.dst.Counters = slices.Clone(p.src.Counters)
		p.dst.Passes = slices.Clone(p.src.Passes)
		for i := range p.dst.Passes {
			p.dst.Passes[i].Rules = slices.Clone(p.dst.Passes[i].Rules)
		}
		p.dst.Children = nil
		for _, c := range p.src.Children {
			n := new(Record)
			p.dst.Children = append(p.dst.Children, n)
			work = append(work, pair{n, c})
		}
	}
	return root
}

func (r *Record) merge(o *Record) {
	type pair struct{ dst, src *Record }
	work := []pair{{r, o}}
	for len(work) > 0 {
		p := work[len(work)-1]
		work = work[:len(work)-1]
		p.dst.addFigures(p.src)
		for _, m := range matchChildren(p.dst.Children, p.src.Children) {
			if m.a == nil {
				p.dst.Children = append(p.dst.Children, m.b.Clone())
			} else if m.b != nil {
				work = append(work, pair{m.a, m.b})
			}
		}
	}
}

// addFigures adds everything of o but its children.
func (r *Record) addFigures(o *Record) {
	r.Time += o.Time
	r.Validate += o.Validate
	r.Callback += o.Callback
	r.Toposort += o.Toposort
	r.Loop += o.Loop
	r.NodesBefore += o.NodesBefore
	r.NodesAfter += o.NodesAfter
	r.NodesMax += o.NodesMax
	r.Changed += o.Changed
	for i := range o.Passes {
		if i == len(r.Passes) {
			p := o.Passes[i]
			p.Rules = slices.Clone(p.Rules)
			r.Passes = append(r.Passes, p)
			continue
		}
		r.Passes[i].add(o.Passes[i])
	}
	at := make(map[string]int, len(r.Rules))
	for i := range r.Rules {
		at[r.Rules[i].Name] = i
	}
	for _, rule := range o.Rules {
		if i, ok := at[rule.Name]; ok {
			r.Rules[i].add(rule)
		} else {
			at[rule.Name] = len(r.Rules)
			r.Rules = append(r.Rules, rule)
		}
	}
	for _, c := range o.Counters {
		r.count(c)
	}
}

func (p *Pass) add(o Pass) {
	p.Time += o.Time
	p.Global += o.Global
	p.Toposort += o.Toposort
	p.Nodes += o.Nodes
	p.Applied += o.Applied
	for _, c := range o.Rules {
		i := slices.IndexFunc(p.Rules, func(h RuleCount) bool { return h.Name == c.Name })
		if i < 0 {
			p.Rules = append(p.Rules, c)
		} else {
			p.Rules[i].Count += c.Count
		}
	}
}

// distinct returns the children as reports show them. An equilibrium runs the same
// graph rewriters in every pass; their runs are added up, so that each has one
// record.
func (r *Record) distinct() []*Record {
	if r.Class != ClassEquilibrium {
		return r.Children
	}
	type key struct{ name, class string }
	at := make(map[key]*Record)
	var list []*Record
	for _, c := range r.Children {
		k := key{c.Name, c.Class}
		sum := at[k]
		if sum == nil {
			sum = c.Clone()
			at[k] = sum
			list = append(list, sum)
			continue
		}
		before, largest := sum.NodesBefore, max(sum.NodesMax, c.NodesMax)
		sum.merge(c)
		sum.NodesBefore, sum.NodesAfter, sum.NodesMax = before, c.NodesAfter, largest
	}
	return list
}

// A match pairs two records that stand for the same rewriter in two runs; one
// of them is nil when only the other run has it.
type match struct{ a, b *Record }

// matchChildren pairs the children of two records: the k-th of a name and class
// with the k-th of the same. The order is that of a, then what only b has.
func matchChildren(a, b []*Record) []match {
	type key struct{ name, class string }
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
