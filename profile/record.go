package profile

import (
	"iter"
	"time"
)

// The classes of the rewriters that reports know a layout for. Any other class
// is reported as a block of counters.
const (
	ClassSequence     = "SeqOptimizer"
	ClassEquilibrium  = "EquilibriumOptimizer"
	ClassTopo         = "TopoOptimizer"
	ClassOpKey        = "OpKeyOptimizer"
	ClassMerge        = "MergeOptimizer"
	ClassFromFunction = "FromFunctionOptimizer"
	ClassFusion       = "FusionOptimizer"
	ClassGemm         = "GemmOptimizer"
)

// A Record is what one run of one rewriter did and cost. Its durations are wall
// time and include those of its children, except Toposort and Loop, which are
// its own.
type Record struct {
	Name  string `json:"name"`
	Class string `json:"class"` // as Theano prints it: SeqOptimizer, EquilibriumOptimizer, ...
	Index int    `json:"index"` // place among its siblings, in the order they ran

	Start    time.Duration `json:"start_ns"`              // since the root began
	Time     time.Duration `json:"time_ns"`               // from begin to end
	Validate time.Duration `json:"validate_ns,omitempty"` // in the validation of replacements
	Callback time.Duration `json:"callback_ns,omitempty"` // in the callbacks of features
	Toposort time.Duration `json:"toposort_ns,omitempty"` // in topological sorts
	Loop     time.Duration `json:"loop_ns,omitempty"`     // in the walk over the nodes

	NodesBefore int `json:"nodes_before"`
	NodesAfter  int `json:"nodes_after"`
	NodesMax    int `json:"nodes_max"`
	Changed     int `json:"changed"` // replacements that were made and kept

	Passes   []Pass    `json:"passes,omitempty"` // of an equilibrium
	Rules    []Rule    `json:"rules,omitempty"`  // in the order the driver tries them
	Counters []Counter `json:"counters,omitempty"`
	Children []*Record `json:"children,omitempty"` // in the order they ran
}

// A Pass is one round of an equilibrium over the graph.
type Pass struct {
	Time     time.Duration `json:"time_ns"`
	Global   time.Duration `json:"global_ns,omitempty"` // in graph rewriters
	Toposort time.Duration `json:"toposort_ns,omitempty"`
	Nodes    int           `json:"nodes"`   // when the pass began to visit nodes
	Applied  int           `json:"applied"` // sum of the counts of Rules
	Rules    []RuleCount   `json:"rules,omitempty"`
}

// A RuleCount says how often a rule fired in a pass.
type RuleCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// A Rule is what one rule did and cost in one rewriter run.
type Rule struct {
	Name     string        `json:"name"`
	Attempts int           `json:"attempts"`          // nodes it was shown
	Applied  int           `json:"applied"`           // proposals that were made and kept
	Refused  int           `json:"refused,omitempty"` // proposals that were undone by a feature's veto
	Created  int           `json:"created"`           // applies that entered the graph through it
	Time     time.Duration `json:"time_ns"`
	Global   bool          `json:"global,omitempty"` // a graph rewriter that an equilibrium runs once a pass
}

// A Counter is a further figure of a rewriter. Unit "s" marks seconds, any other
// unit is printed after the value; an empty one marks a plain count.
type Counter struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
}

// Counter returns the value of the named counter and whether there is one.
func (r *Record) Counter(name string) (float64, bool) {
	for _, c := range r.Counters {
		if c.Name == name {
			return c.Value, true
		}
	}
	return 0, false
}

// All yields the record and its descendants with their depths, parents before
// children, children in the order they ran.
func (r *Record) All() iter.Seq2[int, *Record] {
	type item struct {
		depth int
		r     *Record
	}
	return func(yield func(int, *Record) bool) {
		if r == nil {
			return
		}
		stack := []item{{0, r}}
		for len(stack) > 0 {
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !yield(top.depth, top.r) {
				return
			}
			for i := len(top.r.Children) - 1; i >= 0; i-- {
				stack = append(stack, item{top.depth + 1, top.r.Children[i]})
			}
		}
	}
}

// Find returns the first record of the given name in the order of [Record.All],
// or nil.
func (r *Record) Find(name string) *Record {
	for _, c := range r.All() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// LocalTime returns the time in node rewriters.
func (r *Record) LocalTime() time.Duration {
	var sum time.Duration
	for i := range r.Rules {
		if !r.Rules[i].Global {
			sum += r.Rules[i].Time
		}
	}
	return sum
}

// GlobalTime returns the time in graph rewriters that an equilibrium ran.
func (r *Record) GlobalTime() time.Duration {
	var sum time.Duration
	for i := range r.Passes {
		sum += r.Passes[i].Global
	}
	return sum
}

// Applied returns how often the rules of the record fired, descendants not
// counted.
func (r *Record) Applied() int {
	n := 0
	for i := range r.Rules {
		n += r.Rules[i].Applied
	}
	return n
}
