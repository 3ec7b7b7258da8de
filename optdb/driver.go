package optdb

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// A Driver is what makes a database of some kind: it says what the database holds, and makes a
// rewriter of what a query selects. Drivers are immutable values. One that is also a
// rewrite.Configurable has settings, which queries change; what Configured returns must be a Driver
// again.
//
// SequenceDB, EquilibriumDB, TopoDB and GroupDB are databases with drivers of this package. Others
// are made outside in the same way, such as saturate.DB in package passes/saturate: a type
// with a [DB] embedded, which [New] makes with the driver.
type Driver interface {
	// Kind describes the databases of the driver.
	Kind() Kind
	// Build returns the rewriter that runs what a query selected, for graphs of one dialect. It is
	// called once for each optimizer and dialect, before the first run. The rewriter describes itself
	// by the name of the selection and the class of the kind, see rewrite.Describer.
	Build(s Selection) rewrite.GraphRewriter
}

// A Kind describes a kind of databases.
type Kind struct {
	Name  string // in errors, such as SequenceDB
	Class string // of its rewriters in the profile, such as SeqOptimizer
	// Graphs and Rules say what such a database holds: graph rewriters and nested databases, or node
	// rewriters and groups of them.
	Graphs, Rules bool
	// Placed is set if entries run in the order of their positions. Before PositionInplace such a
	// database, if it is the outermost one, holds nothing that works in place.
	Placed bool
	// Shared is set if its rules are registered in other databases, too, and are chosen there as a
	// rule: the name of a rule in a query then does not open this one.
	Shared bool
	// CheckRule, unless nil, says why such a database can't hold a rule. It is asked for those of
	// groups in the database, too.
	CheckRule func(rewrite.NodeRewriter) error
}

// A Selection is what a query selected from a database for graphs of one dialect, in the order in
// which it runs.
type Selection struct {
	Name    string                 // of the rewriter in the profile
	Graphs  []rewrite.Member       // graph rewriters, and those of nested databases
	Rules   []rewrite.NodeRewriter // node rewriters, including those of groups
	final   []rewrite.Member
	cleanup []rewrite.Member
}

// A Compiler is a Driver that compiles the rules of a selection together. DB.Build calls Compile once,
// with the rules for graphs of all dialects, so that its errors are those of the query. Build of the
// driver that it returns gets these rules, or fewer.
type Compiler interface {
	Driver
	Compile(rules []rewrite.NodeRewriter) (Driver, error)
}

// A SequenceDB holds graph rewriters and databases that run one after the other.
type SequenceDB struct{ *store }

// NewSequenceDB returns an empty database.
func NewSequenceDB(name string) *SequenceDB { return &SequenceDB{newStore(name, sequence{})} }

// Register adds a rewrite.GraphRewriter that describes itself, see
// rewrite.Describer, or a [Database]. To register any other rewriter, or a database
// with documentation, use Add.
func (d *SequenceDB) Register(name string, rewriterOrDB any, position float64, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Position: position, Tags: tags})
}

type sequence struct{}

func (sequence) Kind() Kind {
	return Kind{Name: "SequenceDB", Class: "SeqOptimizer", Graphs: true, Placed: true}
}

// Build tells those members that want to know what runs before and after them.
func (sequence) Build(s Selection) rewrite.GraphRewriter {
	q := &rewrite.Sequence{Name: s.Name, Members: s.Graphs}
	var earlier []rewrite.GraphRewriter
	for i, m := range q.Members {
		if p, ok := m.Rewriter.(rewrite.Situated); ok {
			// The members that follow are those of this slice, so they are the ones that will run, even if
			// they are replaced by a later step of this loop.
			later := &rewrite.Sequence{Name: s.Name, Members: q.Members[i+1:]}
			q.Members[i].Rewriter = p.Situate(earlier[:i:i], later)
		}
		earlier = append(earlier, q.Members[i].Rewriter)
	}
	return q
}

// An EquilibriumDB holds node rewriters that are applied over and over until none
// of them fires, and graph rewriters that run in each of these passes.
type EquilibriumDB struct{ *store }

// NewEquilibriumDB returns an empty database.
func NewEquilibriumDB(name string) *EquilibriumDB {
	return &EquilibriumDB{newStore(name, equilibrium{})}
}

// Register adds a rewriter that describes itself, see rewrite.Describer, or a
// [Database]. To register any other rewriter, or a database with documentation, use
// Add.
func (d *EquilibriumDB) Register(name string, rewriterOrDB any, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Tags: tags})
}

// Configure sets how the rules are applied: the Order, IgnoreNewTrees and MaxUse
// of settings.
func (d *EquilibriumDB) Configure(settings rewrite.Equilibrium) *EquilibriumDB {
	d.SetDriver(equilibrium{settings})
	return d
}

type equilibrium struct{ settings rewrite.Equilibrium }

func (equilibrium) Kind() Kind {
	return Kind{Name: "EquilibriumDB", Class: "EquilibriumOptimizer", Graphs: true, Rules: true}
}

func (d equilibrium) Build(s Selection) rewrite.GraphRewriter {
	q := d.settings
	q.Name, q.Rules, q.Globals, q.Final, q.Cleanup = s.Name, s.Rules, s.Graphs, s.final, s.cleanup
	q.Prepare()
	return &q
}

func (d equilibrium) Settings() []rewrite.Setting { return d.settings.Settings() }

func (d equilibrium) Configured(name, value string) (rewrite.Configurable, error) {
	c, err := d.settings.Configured(name, value)
	if err != nil {
		return nil, err
	}
	return equilibrium{*c.(*rewrite.Equilibrium)}, nil
}

// A TopoDB holds node rewriters, or groups of them, that are applied in one walk
// over the graph.
type TopoDB struct{ *store }

// NewTopoDB returns an empty database.
func NewTopoDB(name string) *TopoDB { return &TopoDB{newStore(name, topo{})} }

// Register adds a rewriter that describes itself, see rewrite.Describer, or a
// [Database]. To register any other rewriter, or a database with documentation, use
// Add.
func (d *TopoDB) Register(name string, rewriterOrDB any, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Tags: tags})
}

// Configure sets how the graph is walked: the Order, VisitNew and MaxUse of
// settings.
func (d *TopoDB) Configure(settings rewrite.Walk) *TopoDB {
	d.SetDriver(topo{settings})
	return d
}

type topo struct{ settings rewrite.Walk }

func (topo) Kind() Kind { return Kind{Name: "TopoDB", Class: "TopoOptimizer", Rules: true} }

func (d topo) Build(s Selection) rewrite.GraphRewriter {
	w := d.settings
	w.Name, w.Rules = s.Name, s.Rules
	w.Prepare()
	return &w
}

func (d topo) Settings() []rewrite.Setting { return d.settings.Settings() }

func (d topo) Configured(name, value string) (rewrite.Configurable, error) {
	c, err := d.settings.Configured(name, value)
	if err != nil {
		return nil, err
	}
	return topo{*c.(*rewrite.Walk)}, nil
}

// A GroupDB holds node rewriters that belong together. It runs nothing: they
// join the rewriters of the database that the group is registered in.
type GroupDB struct{ *store }

// NewGroupDB returns an empty database.
func NewGroupDB(name string) *GroupDB { return &GroupDB{newStore(name, group{})} }

// Register adds a rewriter that describes itself, see rewrite.Describer, or a
// [Database]. To register any other rewriter, or a database with documentation, use
// Add.
func (d *GroupDB) Register(name string, rewriterOrDB any, tags ...string) error {
	return d.Add(Entry{Name: name, Rewriter: rewriterOrDB, Tags: tags})
}

type group struct{}

func (group) Kind() Kind { return Kind{Name: "GroupDB", Class: "group", Rules: true} }

// Build returns a rewriter that does nothing, for an optimizer of the group alone.
func (group) Build(Selection) rewrite.GraphRewriter { return idle{} }

type idle struct{}

func (idle) AddRequirements(*fgraph.FunctionGraph) error { return nil }
func (idle) Apply(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error {
	return nil
}
