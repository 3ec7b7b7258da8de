package rewrite

import (
	"context"
	"slices"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// An Equilibrium applies rules to a graph until none of them fires.
//
// It works in passes. A pass runs the graph rewriters in Globals and Cleanup, shows applies to
// the rules, and runs the graph rewriters in Final and Cleanup. The first pass shows every
// apply. Applies that a replacement inserts or affects are queued and shown in the same pass.
// Later passes show the applies that graph rewriters affected, and all applies again if rules
// may look further than the queue follows; see Depth in [Description]. The run ends with a pass
// that changes nothing.
//
// A rule may fire at most MaxUse times the number of applies: the largest number at the start of
// a pass, but at most eight times that at the start of the run. If a rule fires more often, the
// run ends immediately with a [MaxUseError] that shows the cycle. The graph is then valid but
// not in equilibrium.
type Equilibrium struct {
	Name  string
	Rules []NodeRewriter
	// Globals, Final and Cleanup are graph rewriters that run in every pass: before the
	// rules, after the rules, and after both.
	Globals, Final, Cleanup []Member
	// Order is the direction in which a pass traverses the graph.
	Order Order
	// IgnoreNewTrees defers applies that a replacement inserts or affects to the next pass.
	IgnoreNewTrees bool
	// MaxUse bounds how often a rule fires, as a multiple of the number of applies. 0 means
	// for MaxUse in the options, or else for 8.
	MaxUse float64

	set *preparation
}

// maxPasses bounds the passes in a profile. Further ones are added to the last.
const maxPasses = 1000

// Prepare has the first run analyze the rules for all later ones. The rules must not change
// afterwards. A run reports faults of the rules.
func (q *Equilibrium) Prepare() { q.set = &preparation{rules: q.Rules} }

// MakeRules makes the rules that are made on first use.
func (q *Equilibrium) MakeRules(_ *fgraph.FunctionGraph, rec *profile.Recorder) { q.set.record(rec) }

// Describe describes the equilibrium by its rules.
func (q *Equilibrium) Describe() Description {
	return q.set.get().describe(q.Name, profile.ClassEquilibrium, q.Rules)
}

// Outline describes the equilibrium by the outlines of its rules.
func (q *Equilibrium) Outline() Description {
	return summarize(q.Name, profile.ClassEquilibrium, q.Rules, Outline)
}

// AddRequirements attaches the features that the rules and graph rewriters need.
func (q *Equilibrium) AddRequirements(g *fgraph.FunctionGraph) error {
	for _, m := range q.members() {
		if err := m.Rewriter.AddRequirements(g); err != nil {
			return err
		}
	}
	return watchDestroyers(g, q.Describe().Destroys)
}

func (q *Equilibrium) members() []Member { return slices.Concat(q.Globals, q.Final, q.Cleanup) }

// Apply brings the graph to an equilibrium.
func (q *Equilibrium) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", profile.ClassEquilibrium)
	rec.Nodes(g.NumApplies())
	e, err := newEngine(ctx, passFrom(ctx, q.Name, "Equilibrium"), q.set.get(), q.Rules, g, rec)
	if err != nil {
		return err
	}
	defer e.close()
	r := &equilibrium{Equilibrium: q, engine: e, ctx: ctx}
	r.changes.queue = &r.queue
	r.limit = newLimit(e.opts, q.MaxUse, g.NumApplies())
	r.depth = 1
	for _, m := range q.members() {
		r.members = append(r.members, memberState{Member: m})
	}
	// Members are recorded before the engine records the rules, in the order in which deferred
	// calls run.
	defer r.recordMembers()
	// The last pass changes nothing: only that proves an equilibrium, since graph rewriters do not
	// say what they would look at.
	for first := true; ; first = false {
		changed, err := r.pass(first)
		if err != nil || !changed || r.stopped {
			return err
		}
	}
}

// equilibrium is a run of an Equilibrium.
type equilibrium struct {
	*Equilibrium
	*engine
	ctx     context.Context
	queue   queue
	members []memberState // of Globals, Final and Cleanup
	depth   int           // greatest depth of the rules for ops that were in the graph, 0 if unlimited
	lossy   bool          // the queue has missed applies
	near    []*fgraph.Apply
	passes  int
}

// memberState has the counters of a graph rewriter in one run.
type memberState struct {
	Member
	runs, changed, created int
	commits                int // changes of the graph
	time                   time.Duration
}

// pass makes one pass and reports whether it changed the graph.
func (r *equilibrium) pass(first bool) (bool, error) {
	if err := ended(r.ctx, r.engine.pass); err != nil {
		return false, err
	}
	start, commits := r.rec.Now(), r.g.Commits()
	var p profile.Pass
	before := r.applied()
	globals, final := len(r.Globals), len(r.Globals)+len(r.Final)
	// What the graph rewriters below change is followed by fill. Changes of the last pass were
	// followed when it ended.
	r.changes.clear()
	// The list is Globals, Final, Cleanup: cleanups run here, after the globals, and once more at
	// the end, after the final ones.
	err := r.run(&p, 0, globals)
	if err == nil {
		err = r.run(&p, final, len(r.members))
	}
	if err == nil {
		err = r.fill(first, &p)
	}
	if err == nil {
		p.Nodes = r.g.NumApplies()
		// Graph rewriters may have made the graph larger, which is no fault of the rules: MaxUse
		// counts in applies of the graph that they get.
		r.limit.raise(p.Nodes)
		r.rec.Nodes(p.Nodes)
		err = r.drain()
	}
	// Counted even if the pass failed, so that the profile shows what happened until then.
	for i, n := range r.applied() {
		if n -= before[i]; n > 0 {
			p.Rules = append(p.Rules, profile.RuleCount{Name: r.asker.names[i], Count: n})
		}
	}
	r.changes.clear()
	if err == nil && !r.stopped {
		// Final and Cleanup are neighbours in the list, so this is one call. What they change is
		// queued for the next pass.
		err = r.run(&p, globals, len(r.members))
		r.follow()
	}
	r.record(p, start)
	return r.g.Commits() != commits, err
}

// applied returns how often each rule has fired, or nil if nothing is recorded.
func (r *equilibrium) applied() []int {
	if !r.rec.Enabled() {
		return nil
	}
	counts := make([]int, len(r.rules))
	for i := range counts {
		counts[i] = r.rules[i].applied
	}
	return counts
}

// fill queues the applies that the pass starts with.
func (r *equilibrium) fill(first bool, p *profile.Pass) error {
	r.follow()
	// The queue has all that the rules could see differently since they were last asked, provided
	// that their depth is bounded and nothing was missed. Everything else would decline again: that
	// is what makes later passes cost as much as the changes, not as the graph.
	if !first && !r.IgnoreNewTrees && r.depth > 0 && !r.lossy {
		return nil
	}
	r.lossy = false
	if r.asker.idle(r.g) {
		return nil
	}
	start := r.rec.Now()
	order, err := r.g.Toposort()
	p.Toposort = r.rec.Since(start)
	r.rec.AddToposort(p.Toposort)
	if err != nil {
		return &Error{Pass: r.engine.pass, Err: err}
	}
	if r.Order == OutToIn {
		slices.Reverse(order)
	}
	// The depth to follow is that of the rules for ops that are here, not of all rules: one rule
	// without a bound for an op that does not occur would make every pass visit every apply.
	for _, a := range order {
		r.meet(a)
	}
	r.queue.fill(order, r.g)
	return nil
}

// meet makes the queue follow changes as far as the rules for the op of an apply look. It
// reports whether that is further than before.
func (r *equilibrium) meet(a *fgraph.Apply) bool {
	depth := r.asker.factsOf(a).list.depth
	if r.depth == 0 || depth != 0 && depth <= r.depth {
		return false
	}
	r.depth = depth
	return true
}

// drain visits queued applies until the queue is empty.
func (r *equilibrium) drain() error {
	for !r.stopped {
		n := r.queue.pop(r.g)
		if n == nil {
			return nil
		}
		rule, err := r.visit(n)
		if err != nil {
			return err
		}
		// A rule that fired may have left n in the graph with other inputs, where it, or an earlier
		// rule of the list, may fire again.
		if rule >= 0 && !r.IgnoreNewTrees {
			if r.g.Contains(n) {
				r.queue.push(n)
			}
			r.follow()
		}
	}
	return nil
}

// maxNear bounds how many applies are queued because something a few levels away changed. If
// there are more, all applies are visited again. Otherwise every change near a variable with
// very many clients would cost in proportion to their number.
const maxNear = 256

// follow queues the applies that rules may see differently because of r.changes, and clears
// r.changes: new applies, those with changed inputs, those whose inputs or outputs lost clients,
// and those that depend on these within the depth of the rules.
func (r *equilibrium) follow() {
	defer r.changes.clear()
	if r.IgnoreNewTrees {
		return
	}
	r.near = r.near[:0]
	// New applies have been shown to no rule. Their clients have changed inputs, so the next loop
	// has them.
	for _, a := range r.changes.imported {
		if r.g.Contains(a) {
			r.queue.push(a)
			// An op came in whose rules look further than those of any op before. What changed
			// earlier was followed too short a way for them.
			if r.meet(a) {
				r.lossy = true // earlier changes were not followed that far
			}
		}
	}
	for _, a := range r.changes.changed {
		if r.g.Contains(a) {
			r.queue.push(a)
			// Rules with a depth of 2 or more see a from its clients.
			r.near = append(r.near, a)
		}
	}
	// Fewer clients let rules fire that duplicate no work: a rule refuses to take apart a value
	// that is needed elsewhere as well. So the owner of v is shown again, and the one client that
	// is left.
	for _, v := range r.changes.lost {
		if v.Graph() != r.g {
			continue
		}
		if a := v.Owner(); a != nil {
			r.queue.push(a)
		}
		// A rule may require that an inner variable has one client.
		if c := v.Clients(); len(c) == 1 && c[0].Apply != nil {
			r.queue.push(c[0].Apply)
			r.near = append(r.near, c[0].Apply)
		}
	}
	r.followNear()
}

// followNear queues applies that depend on r.near.
func (r *equilibrium) followNear() {
	steps := r.depth
	if steps == 0 {
		steps = 2 // the next pass visits the others
	}
	// Level by level, breadth first: an apply at distance k sees the change if a rule looks at k
	// levels of inputs. Duplicates are harmless, as the queue has each apply once, and are cheaper
	// than a set.
	from := 0
	for steps--; steps > 0; steps-- {
		to := len(r.near)
		for _, a := range r.near[from:to] {
			for _, v := range a.Outputs() {
				for _, c := range v.Clients() {
					if c.Apply == nil {
						continue
					}
					// Give up following, and not rules: the next pass visits everything.
					if len(r.near) >= to+maxNear {
						r.lossy = true
						return
					}
					r.queue.push(c.Apply)
					r.near = append(r.near, c.Apply)
				}
			}
		}
		from = to
	}
}

// run runs members[from:to] in a pass.
func (r *equilibrium) run(p *profile.Pass, from, to int) error {
	for i := from; i < to; i++ {
		m := &r.members[i]
		start, commits, times := r.rec.Now(), r.g.Commits(), r.g.Times()
		imported, nodes := len(r.changes.imported), r.g.NumApplies()
		m.runs++
		err := runMember(r.ctx, m.Member, r.g, r.rec)
		// The member has recorded the time spent in features itself.
		// The clock of the graph ran through the member. Its time in features is taken out of what
		// this equilibrium will report at its end, as if it had begun later.
		now := r.g.Times()
		r.before.Validate += now.Validate - times.Validate
		r.before.Callback += now.Callback - times.Callback
		d := r.rec.Since(start)
		m.time += d
		p.Global += d
		if err != nil {
			return err
		}
		if r.g.Commits() == commits {
			continue
		}
		m.changed++
		m.commits += r.g.Commits() - commits
		r.limit.logMember(m.Name, nodes, r.g.NumApplies())
		m.created += max(0, len(r.changes.imported)-imported)
		p.Rules = append(p.Rules, profile.RuleCount{Name: m.Name, Count: 1})
		// A graph rewriter that changes the graph each time it runs never lets the equilibrium end.
		// Rules have MaxUse for that; members have this.
		if m.changed > maxPasses {
			r.stopped = true
			return r.opts.fail(r.ctx, &Error{Pass: r.engine.pass, Err: &MaxUseError{Rule: m.Name, uses: m.changed,
				nodes: r.limit.nodes, MaxUse: r.limit.ratio}})
		}
	}
	return nil
}

// record adds a pass to the profile.
func (r *equilibrium) record(p profile.Pass, start time.Time) {
	r.passes++
	if !r.rec.Enabled() {
		return
	}
	p.Time = r.rec.Since(start)
	p.Rules = sumCounts(p.Rules)
	for _, c := range p.Rules {
		p.Applied += c.Count
	}
	passes := r.rec.Record().Passes
	if len(passes) < maxPasses {
		r.rec.AddPass(p)
		return
	}
	last := &passes[len(passes)-1]
	last.Time += p.Time
	last.Global += p.Global
	last.Toposort += p.Toposort
	last.Applied += p.Applied
	last.Rules = sumCounts(append(last.Rules, p.Rules...))
}

// sumCounts adds up the counts of equal names and sorts them, largest first.
func sumCounts(counts []profile.RuleCount) []profile.RuleCount {
	var sums []profile.RuleCount
	at := make(map[string]int, len(counts))
	for _, c := range counts {
		i, ok := at[c.Name]
		if !ok {
			i = len(sums)
			at[c.Name] = i
			sums = append(sums, profile.RuleCount{Name: c.Name})
		}
		sums[i].Count += c.Count
	}
	slices.SortStableFunc(sums, func(a, b profile.RuleCount) int { return b.Count - a.Count })
	return sums
}

// recordMembers adds the counters of the graph rewriters to the profile.
func (r *equilibrium) recordMembers() {
	for _, m := range r.members {
		r.rec.AddRule(profile.RuleRecord{Name: m.Name, Attempts: m.runs, Applied: m.changed, Created: m.created,
			Time: m.time, Global: true})
		r.rec.Changed(m.commits)
	}
}
