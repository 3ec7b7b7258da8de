package profile

import (
	"slices"
	"time"
)

// A Recorder fills in the [Record] of a rewriter while it runs. All methods may be
// called on a nil *Recorder, which records nothing. [Recorder.Now] does not even
// look at the clock then.
//
//	rec := profile.New("OPT_FAST_RUN", profile.ClassSequence)
//	...
//	child := rec.Begin("merge1", profile.ClassMerge)
//	child.Nodes(g.NumApplies())
//	...
//	child.Nodes(g.NumApplies())
//	child.End()
//	...
//	rec.End()
//	rec.Record().WriteText(os.Stdout)
type Recorder struct {
	record Record
	parent *Recorder
	root   *Recorder
	now    *Recorder // of the root: the innermost one that has begun and not ended
	origin time.Time // start of the root
	begin  time.Time
	seen   bool // Nodes was called
	ended  bool
	rules  map[string]int // index in record.Rules
}

// New returns a recorder for the root of a run and starts its clock.
func New(name, class string) *Recorder {
	now := time.Now()
	r := &Recorder{record: Record{Name: name, Class: class}, origin: now, begin: now}
	r.root, r.now = r, r
	return r
}

// Begin returns a recorder for a rewriter that this one runs and starts its clock.
func (r *Recorder) Begin(name, class string) *Recorder {
	if r == nil {
		return nil
	}
	now := time.Now()
	c := &Recorder{
		record: Record{Name: name, Class: class, Index: len(r.record.Children), Start: now.Sub(r.origin)},
		parent: r, root: r.root, origin: r.origin, begin: now,
	}
	// In the tree from now on, not only at its end: a run that fails in the middle shows how far it came.
	r.record.Children = append(r.record.Children, &c.record)
	r.root.now = c
	return c
}

// End stops the clock. A second call changes nothing.
func (r *Recorder) End() {
	if r == nil || r.ended {
		return
	}
	r.ended = true
	r.record.Time = time.Since(r.begin)
	if r.parent != nil {
		r.root.now = r.parent
	}
}

// Record returns the record, which is complete after End. It is nil for a nil
// recorder.
func (r *Recorder) Record() *Record {
	if r == nil {
		return nil
	}
	return &r.record
}

// Current returns the innermost record of the run that has begun and not ended, nil for a
// nil recorder.
func (r *Recorder) Current() *Record {
	if r == nil {
		return nil
	}
	return &r.root.now.record
}

// Elapsed returns the time since the start of the root, as in [Record.Start]. It is zero for
// a nil recorder.
func (r *Recorder) Elapsed() time.Duration {
	if r == nil {
		return 0
	}
	return time.Since(r.origin)
}

// Enabled reports whether the recorder is not nil.
func (r *Recorder) Enabled() bool { return r != nil }

// Now returns the time, or the zero time for a nil recorder. With [Recorder.Since]
// it measures durations at no cost when nothing is recorded.
func (r *Recorder) Now() time.Time {
	if r == nil {
		return time.Time{}
	}
	return time.Now()
}

// Since returns the time since start, or zero for a nil recorder.
func (r *Recorder) Since(start time.Time) time.Duration {
	if r == nil {
		return 0
	}
	return time.Since(start)
}

// SetClass replaces the class and, unless it is empty, the name that Begin was
// given. It is for rewriters whose callers do not know what they are.
func (r *Recorder) SetClass(name, class string) {
	if r == nil {
		return
	}
	if name != "" {
		r.record.Name = name
	}
	r.record.Class = class
}

// Nodes records that the graph has n applies. The first call sets NodesBefore,
// every call sets NodesAfter and NodesMax.
func (r *Recorder) Nodes(n int) {
	if r == nil {
		return
	}
	if !r.seen {
		r.seen = true
		r.record.NodesBefore = n
	}
	r.record.NodesAfter = n
	r.record.NodesMax = max(r.record.NodesMax, n)
}

// Changed adds n replacements.
func (r *Recorder) Changed(n int) {
	if r != nil {
		r.record.Changed += n
	}
}

// AddValidate adds time in validation, to this record and to its ancestors.
func (r *Recorder) AddValidate(d time.Duration) {
	for ; r != nil; r = r.parent {
		r.record.Validate += d
	}
}

// AddCallback adds time in the callbacks of features, to this record and to its
// ancestors.
func (r *Recorder) AddCallback(d time.Duration) {
	for ; r != nil; r = r.parent {
		r.record.Callback += d
	}
}

// AddPrepare adds time in making rules that no run before needed, to this record and to its ancestors.
func (r *Recorder) AddPrepare(d time.Duration) {
	for ; r != nil; r = r.parent {
		r.record.Prepare += d
	}
}

// AddToposort adds time in a topological sort.
func (r *Recorder) AddToposort(d time.Duration) {
	if r != nil {
		r.record.Toposort += d
	}
}

// AddLoop adds time in the walk over the nodes.
func (r *Recorder) AddLoop(d time.Duration) {
	if r != nil {
		r.record.Loop += d
	}
}

// AddPass appends a pass of an equilibrium. The record keeps p.Rules.
func (r *Recorder) AddPass(p Pass) {
	if r != nil {
		r.record.Passes = append(r.record.Passes, p)
	}
}

// AddRule adds the figures of a rule to earlier ones of the same name. Rules keep
// the order in which they were first added.
func (r *Recorder) AddRule(rule RuleRecord) {
	if r == nil {
		return
	}
	i, ok := r.rules[rule.Name]
	if !ok {
		if r.rules == nil {
			r.rules = make(map[string]int)
		}
		r.rules[rule.Name] = len(r.record.Rules)
		// Later figures are added to these, and the list is the caller's.
		rule.Counters = slices.Clone(rule.Counters)
		r.record.Rules = append(r.record.Rules, rule)
		return
	}
	r.record.Rules[i].add(rule)
}

// Count adds to a counter, which it creates if it is new.
func (r *Recorder) Count(name string, delta float64, unit string) {
	if r != nil {
		r.record.Counters = AddCounter(r.record.Counters, Counter{Name: name, Value: delta, Unit: unit})
	}
}

// Set sets a counter.
func (r *Recorder) Set(name string, value float64, unit string) {
	if r == nil {
		return
	}
	for i := range r.record.Counters {
		if c := &r.record.Counters[i]; c.Name == name {
			c.Value, c.Unit = value, unit
			return
		}
	}
	r.record.Counters = append(r.record.Counters, Counter{name, value, unit})
}

// AddCounter adds c to the counter of its name and unit, which it appends if the list has none.
func AddCounter(list []Counter, c Counter) []Counter {
	for i := range list {
		// Counts and seconds of the same name must not be added up.
		if have := &list[i]; have.Name == c.Name && have.Unit == c.Unit {
			have.Value += c.Value
			return list
		}
	}
	return append(list, c)
}

func (r *RuleRecord) add(o RuleRecord) {
	r.Attempts += o.Attempts
	r.Applied += o.Applied
	r.Refused += o.Refused
	r.Created += o.Created
	r.Time += o.Time
	r.Global = r.Global || o.Global
	for _, c := range o.Counters {
		r.Counters = AddCounter(r.Counters, c)
	}
}
