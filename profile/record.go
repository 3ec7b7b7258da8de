package profile

import (
	"iter"
	"time"
)

// The classes of rewriters for which reports have a layout. For any other class
// they print a block of counters.
const (
	ClassSequence     = "SeqOptimizer"
	ClassEquilibrium  = "EquilibriumOptimizer"
	ClassTopo         = "TopoOptimizer"
	ClassOpKey        = "OpKeyOptimizer"
	ClassMerge        = "MergeOptimizer"
	ClassFromFunction = "FromFunctionOptimizer"
	ClassFusion       = "FusionOptimizer"
	ClassGemm         = "GemmOptimizer"
	ClassSaturation   = "Saturation" // which Theano does not have
)

// A Record is what one run of a rewriter did and cost. Durations are wall time and
// include those of the children, except Toposort and Loop.
type Record struct {
	Name  string `json:"name"`
	Class string `json:"class"` // as Theano prints it: SeqOptimizer, EquilibriumOptimizer, ...
	Index int    `json:"index"` // place among its siblings, in the order in which they ran

	Start    time.Duration `json:"start_ns"`              // since the start of the root
	Time     time.Duration `json:"time_ns"`               // from start to end
	Validate time.Duration `json:"validate_ns,omitempty"` // in the validation of replacements
	Callback time.Duration `json:"callback_ns,omitempty"` // in the callbacks of features
	Toposort time.Duration `json:"toposort_ns,omitempty"` // in topological sorts
	Prepare  time.Duration `json:"prepare_ns,omitempty"`  // making rules that no run before needed
	Loop     time.Duration `json:"loop_ns,omitempty"`     // in the walk over the nodes

	NodesBefore int `json:"nodes_before"`
	NodesAfter  int `json:"nodes_after"`
	NodesMax    int `json:"nodes_max"`
	Changed     int `json:"changed"` // replacements made and kept

	Passes     []Pass       `json:"passes,omitempty"` // of an equilibrium
	Rules      []RuleRecord `json:"rules,omitempty"`  // in the order in which the driver tries them
	Counters   []Counter    `json:"counters,omitempty"`
	Saturation *Saturation  `json:"saturation,omitempty"`
	Children   []*Record    `json:"children,omitempty"` // in the order in which they ran
}

// A Pass is one round of an equilibrium over the graph.
type Pass struct {
	Time     time.Duration `json:"time_ns"`
	Global   time.Duration `json:"global_ns,omitempty"` // in graph rewriters
	Toposort time.Duration `json:"toposort_ns,omitempty"`
	Nodes    int           `json:"nodes"`   // when the pass started to visit nodes
	Applied  int           `json:"applied"` // sum of the counts of Rules
	Rules    []RuleCount   `json:"rules,omitempty"`
}

// A RuleCount says how often a rule fired in a pass.
type RuleCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// A RuleRecord is what a rule did and cost in one run of a rewriter.
type RuleRecord struct {
	Name     string        `json:"name"`
	Attempts int           `json:"attempts"`          // nodes it was shown
	Applied  int           `json:"applied"`           // proposals that were kept
	Refused  int           `json:"refused,omitempty"` // proposals that a feature vetoed
	Created  int           `json:"created"`           // applies that it added to the graph
	Time     time.Duration `json:"time_ns"`
	Global   bool          `json:"global,omitempty"` // a graph rewriter that an equilibrium runs in every pass

	Counters []Counter `json:"counters,omitempty"` // of its own, see rewrite.Context.Count
}

// A Counter is another figure of a rewriter or a rule. Unit "s" means seconds, an empty
// unit for a count. Reports print any other unit after the value.
type Counter struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// Counter returns the value of the named counter and reports whether there is one.
func (r *Record) Counter(name string) (float64, bool) {
	for _, c := range r.Counters {
		if c.Name == name {
			return c.Value, true
		}
	}
	return 0, false
}

// All yields the record and its descendants with their depths, parents before
// children, children in the order in which they ran. A nil record yields nothing.
func (r *Record) All() iter.Seq2[int, *Record] {
	return func(yield func(int, *Record) bool) {
		if r != nil {
			r.walk(0, (*Record).children, yield)
		}
	}
}

func (r *Record) children() []*Record { return r.Children }

// walk yields r, which is not nil, and its descendants. It reports whether to
// continue. It recurses as deep as rewriters are nested.
func (r *Record) walk(depth int, children func(*Record) []*Record, yield func(int, *Record) bool) bool {
	if !yield(depth, r) {
		return false
	}
	for _, c := range children(r) {
		if !c.walk(depth+1, children, yield) {
			return false
		}
	}
	return true
}

// Find returns the first record of that name in the order of [Record.All], or nil.
func (r *Record) Find(name string) *Record {
	for _, c := range r.All() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// localTime returns the time in node rewriters.
func (r *Record) localTime() time.Duration {
	var sum time.Duration
	for i := range r.Rules {
		if !r.Rules[i].Global {
			sum += r.Rules[i].Time
		}
	}
	return sum
}

// Applied returns how often the rules of the record fired, without those of its
// descendants.
func (r *Record) Applied() int {
	n := 0
	for i := range r.Rules {
		n += r.Rules[i].Applied
	}
	return n
}

// sumPasses adds up a duration over the passes.
func (r *Record) sumPasses(of func(*Pass) time.Duration) time.Duration {
	var sum time.Duration
	for i := range r.Passes {
		sum += of(&r.Passes[i])
	}
	return sum
}

// What sumPasses adds up.
func inPass(p *Pass) time.Duration   { return p.Time }
func inGlobal(p *Pass) time.Duration { return p.Global }
func inSort(p *Pass) time.Duration   { return p.Toposort }
