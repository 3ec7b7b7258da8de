package profile

import "time"

// A Recorder fills in the [Record] of a rewriter that runs. All methods may be
// called on a nil *Recorder, which records nothing; [Recorder.Now] then does not
// even look at the clock.
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
	origin time.Time // when the root began
	begin  time.Time
	seen   bool // Nodes was called
	ended  bool
	rules  map[string]int // index in record.Rules
}

// New returns a recorder for the root of a run, with its clock started.
func New(name, class string) *Recorder {
	now := time.Now()
	return &Recorder{record: Record{Name: name, Class: class}, origin: now, begin: now}
}

// Begin returns a recorder for a rewriter that this one runs, with its clock
// started.
func (r *Recorder) Begin(name, class string) *Recorder {
	if r == nil {
		return nil
	}
	now := time.Now()
	c := &Recorder{
		record: Record{Name: name, Class: class, Index: len(r.record.Children), Start: now.Sub(r.origin)},
		parent: r, origin: r.origin, begin: now,
	}
	r.record.Children = append(r.record.Children, &c.record)
	return c
}

// End stops the clock. A second call changes nothing.
func (r *Recorder) End() {
	if r == nil || r.ended {
		return
	}
	r.ended = true
	r.record.Time = time.Since(r.begin)
}

// Record returns the record, which is complete once End was called. It is nil
// for a nil recorder.
func (r *Recorder) Record() *Record {
	if r == nil {
		return nil
	}
	return &r.record
}

// Enabled reports whether the recorder records: it is not nil.
func (r *Recorder) Enabled() bool { return r != nil }

// Now returns the time, or the zero time for a nil recorder. Together with
// [Recorder.Since] it measures a stretch at no cost when nobody records.
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

// SetClass replaces the class that was given to Begin, and the name unless it is
// empty. It serves a rewriter that is handed a recorder by a caller that does
// not know what it is.
func (r *Recorder) SetClass(name, class string) {
	if r == nil {
		return
	}
	if name != "" {
		r.record.Name = name
	}
	r.record.Class = class
}

// SetIndex replaces the place among the siblings, for a sequence some of whose
// members were not run.
func (r *Recorder) SetIndex(i int) {
	if r != nil {
		r.record.Index = i
	}
}

// Nodes notes that the graph has n applies. The first call sets the number
// before the rewriter, every call the number after it and the largest one.
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

// Changed adds n replacements that were made and kept.
func (r *Recorder) Changed(n int) {
	if r != nil {
		r.record.Changed += n
	}
}

// AddValidate adds time in validation, to this record and to those it is part of.
func (r *Recorder) AddValidate(d time.Duration) {
	for ; r != nil; r = r.parent {
		r.record.Validate += d
	}
}

// AddCallback adds time in the callbacks of features, to this record and to
// those it is part of.
func (r *Recorder) AddCallback(d time.Duration) {
	for ; r != nil; r = r.parent {
		r.record.Callback += d
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

// AddRule adds the figures of a rule to those that were added under its name
// before. Rules keep the order in which they were first added.
func (r *Recorder) AddRule(rule Rule) {
	if r == nil {
		return
	}
	i, ok := r.rules[rule.Name]
	if !ok {
		if r.rules == nil {
			r.rules = make(map[string]int)
		}
		r.rules[rule.Name] = len(r.record.Rules)
		r.record.Rules = append(r.record.Rules, rule)
		return
	}
	r.record.Rules[i].add(rule)
}

// Count adds to a counter, which is created when it is new.
func (r *Recorder) Count(name string, delta float64, unit string) {
	if r != nil {
		r.record.count(Counter{Name: name, Value: delta, Unit: unit})
	}
}

// CountTime adds a duration to a counter of seconds.
func (r *Recorder) CountTime(name string, d time.Duration) {
	r.Count(name, d.Seconds(), "s")
}

// Set gives a counter a value, whatever it had before.
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

// Import appends the record of a run that another recorder made, as a child
// that began at the given time. The record is owned by this recorder from then
// on and its start times are shifted.
func (r *Recorder) Import(child *Record, began time.Time) {
	if r == nil || child == nil {
		return
	}
	shift := began.Sub(r.origin) - child.Start
	for _, c := range child.All() {
		c.Start += shift
	}
	child.Index = len(r.record.Children)
	r.record.Children = append(r.record.Children, child)
}

func (r *Record) count(c Counter) {
	for i := range r.Counters {
		if have := &r.Counters[i]; have.Name == c.Name && have.Unit == c.Unit {
			have.Value += c.Value
			return
		}
	}
	r.Counters = append(r.Counters, c)
}

func (r *Rule) add(o Rule) {
	r.Attempts += o.Attempts
	r.Applied += o.Applied
	r.Refused += o.Refused
	r.Created += o.Created
	r.Time += o.Time
	r.Global = r.Global || o.Global
}
