package optdb

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// An Optimizer runs what a query selected from a database. It never changes, and
// it is a rewrite.GraphRewriter.
type Optimizer struct {
	name     string
	query    Query
	database string // its name
	driver   Driver // of the database
	choices  []*choice

	// Not a sync.Map, whose generic methods would be compiled again in every package that knows an Optimizer.
	mu        sync.Mutex
	rewriters map[string]rewrite.GraphRewriter // by dialect, made on first use
}

// Name returns the name of the optimizer in the profile: for a mode Theano's, such
// as OPT_FAST_RUN, and otherwise the query.
func (o *Optimizer) Name() string { return o.name }

// Describe returns the name and the class.
func (o *Optimizer) Describe() rewrite.Description {
	return rewrite.Description{Name: o.name, Class: o.Class()}
}

// Class returns the class of the optimizer in the profile.
func (o *Optimizer) Class() string { return o.driver.Kind().Class }

// Query returns the query that the optimizer was built from.
func (o *Optimizer) Query() Query { return o.query }

// Debugging reports whether the query is for debugging, see [Query.Debugging].
func (o *Optimizer) Debugging() bool { return o.query.debug }

// rewriter returns the rewriter for graphs of a dialect. It records the time that making it takes.
func (o *Optimizer) rewriter(dialect string, rec *profile.Recorder) rewrite.GraphRewriter {
	o.mu.Lock()
	r, ok := o.rewriters[dialect]
	o.mu.Unlock()
	if ok {
		return r
	}
	start := rec.Now()
	defer func() { rec.AddPrepare(rec.Since(start)) }()
	// Two goroutines may build at the same time. Both then use what was stored first.
	r = build(o.driver, o.name, o.choices, dialect)
	o.mu.Lock()
	defer o.mu.Unlock()
	if first, ok := o.rewriters[dialect]; ok {
		return first
	}
	if o.rewriters == nil {
		o.rewriters = make(map[string]rewrite.GraphRewriter)
	}
	o.rewriters[dialect] = r
	return r
}

// Passes returns the names of the entries that the optimizer runs one after the
// other on a graph of a dialect, as they appear in the profile. On graphs of the
// dialect "" everything runs.
func (o *Optimizer) Passes(dialect string) []string {
	s, ok := o.rewriter(dialect, nil).(*rewrite.Sequence)
	if !ok {
		return []string{o.name}
	}
	return lists.Map(s.Members, func(m rewrite.Member) string { return m.Name })
}

// MakeRules makes the rules for graphs of the dialect of g, unless a run before needed them.
func (o *Optimizer) MakeRules(g *fgraph.FunctionGraph, rec *profile.Recorder) {
	o.rewriter(g.Dialect(), rec)
}

// AddRequirements attaches the features that the optimizer needs.
func (o *Optimizer) AddRequirements(g *fgraph.FunctionGraph) error {
	return o.rewriter(g.Dialect(), nil).AddRequirements(g)
}

// Apply runs the optimizer as part of another rewriter.
func (o *Optimizer) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	return o.rewriter(g.Dialect(), rec).Apply(o.options(ctx), g, rec)
}

// Rewrite optimizes g. rec, which may be nil, records the run; the caller begins
// and ends it.
func (o *Optimizer) Rewrite(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", o.Class())
	return rewrite.Run(o.options(ctx), o, g, rec)
}

type running struct{}

// Running returns the optimizer that runs with a context, nil if none does. A rewriter that finds graphs in
// a graph has it rewrite them, too.
func Running(ctx context.Context) *Optimizer {
	o, _ := ctx.Value(running{}).(*Optimizer)
	return o
}

// options returns a context in which failures report the query, and the graph is
// checked if the query is for debugging.
func (o *Optimizer) options(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, running{}, o)
	opts := rewrite.OptionsFrom(ctx)
	// An optimizer that runs inside another one leaves the query of that one: it is what repeats the failure.
	tell := opts.Reproduce != nil && opts.Query == ""
	if !tell && (opts.Check || !o.query.debug) {
		return ctx
	}
	if tell {
		opts.Query = o.query.String()
	}
	opts.Check = opts.Check || o.query.debug
	return rewrite.WithOptions(ctx, opts)
}

// WhyNot says why the node rewriter of that name, or at that path, does not fire
// at an apply: [Optimizer.Explain] if it is not in the optimizer, and otherwise
// rewrite.WhyNot, in a line for each entry of that name.
func (o *Optimizer) WhyNot(ctx context.Context, name string, g *fgraph.FunctionGraph, n *fgraph.Apply) string {
	var lines []string
	for _, c := range o.all() {
		if !c.is(name) || !c.taken {
			continue
		}
		why := "it is not a node rewriter"
		if _, ok := c.entry.Rewriter.(rewrite.NodeRewriter); ok && c.isRule() {
			if why = "it is for graphs of " + c.dialect; c.serves(g.Dialect()) {
				why = rewrite.WhyNot(ctx, c.entry.rule(), g, n)
			}
		}
		lines = append(lines, c.path+": "+why)
	}
	if len(lines) == 0 {
		return o.Explain(name)
	}
	return strings.Join(lines, "\n")
}

// Rules yields the node rewriters that the optimizer has for graphs of a dialect, by
// their paths, in the order in which they run.
func (o *Optimizer) Rules(dialect string) iter.Seq2[string, rewrite.NodeRewriter] {
	return func(yield func(string, rewrite.NodeRewriter) bool) {
		for _, c := range o.all() {
			if c.entry.DB == nil && c.isRule() && c.serves(dialect) && !yield(c.path, c.entry.rule()) {
				return
			}
		}
	}
}

// Selected reports whether an entry of that name, or at that path, is in the
// optimizer. If several databases have entries of that name, one is enough.
func (o *Optimizer) Selected(name string) bool {
	return slices.ContainsFunc(o.all(), func(c *choice) bool { return c.taken && c.is(name) })
}

// Has reports whether the database, or what the query added, has an entry of that name or at that
// path, selected or not.
func (o *Optimizer) Has(name string) bool {
	return slices.ContainsFunc(o.all(), func(c *choice) bool { return c.is(name) })
}

// AllNames returns the names that rewrites may go by: of all entries of the database, selected or
// not, of those that the query added, and of rules that a rewriter brings along, see
// [rewrite.Ruled]. [Optimizer.Selected] tells which of them are selected, [Optimizer.Outline] lists those.
func (o *Optimizer) AllNames() []string {
	var names []string
	known := make(map[string]bool)
	for _, c := range o.all() {
		list := []string{c.entry.Name}
		if r, ok := c.entry.Rewriter.(rewrite.Ruled); ok {
			list = append(list, r.RuleNames()...)
		}
		for _, name := range list {
			if !known[name] {
				known[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// Settings returns the settings of the entry of that name, or at that path, with their
// values, or nil if it is not in the optimizer or has none. See [rewrite.Configurable].
func (o *Optimizer) Settings(name string) []rewrite.Setting {
	for _, c := range o.all() {
		if c.taken && c.is(name) {
			if conf := c.configurable(); conf != nil {
				return conf.Settings()
			}
		}
	}
	return nil
}

// Explain says why an entry is in the optimizer or not. It takes a name, or a path
// of names joined by "/". If several databases have entries of that name, it
// returns a line for each.
func (o *Optimizer) Explain(name string) string {
	var lines, words []string
	for _, c := range o.all() {
		if !c.is(name) {
			words = append(words, c.entry.Name)
			continue
		}
		state := "not selected: "
		if c.taken {
			state = ""
		}
		lines = append(lines, fmt.Sprintf("%s: %s%s", c.path, state, c.why))
	}
	if len(lines) == 0 {
		return fmt.Sprintf("%s: unknown: no entry of that name in %s%s", fileio.Excerpt(name, 0), o.database, didYouMean(name, words))
	}
	return strings.Join(lines, "\n")
}

// String returns the optimizer as a tree with a line per entry, in the order in
// which they run: position, name and class.
func (o *Optimizer) String() string {
	if o == nil {
		return "no optimizer\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\n", o.database, o.Class(), o.query)
	for _, c := range o.all() {
		if c.taken {
			l, place := c.listing(rewrite.Outline), ""
			if l.Placed {
				place = formatPosition(l.Position) + " "
			}
			fmt.Fprintf(&b, "%s%s%s", strings.Repeat("    ", c.depth+1), place, l.Name)
			printSettings(&b, c.settings)
			b.WriteString(" " + l.Class + "\n")
		}
	}
	return b.String()
}

// Entries returns the selected entries in the order in which they run, databases
// before the entries in them.
func (o *Optimizer) Entries() []Listing { return o.list(rewrite.Describe) }

// Outline is Entries without Cases and all else that is known of a rule only after it has been made,
// see rewrite.Later. Outline makes no rules.
func (o *Optimizer) Outline() []Listing { return o.list(rewrite.Outline) }

func (o *Optimizer) list(describe func(any) rewrite.Description) []Listing {
	var list []Listing
	for _, c := range o.all() {
		if c.taken {
			list = append(list, c.listing(describe))
		}
	}
	return list
}

// Empty reports whether no entry is selected.
func (o *Optimizer) Empty() bool {
	return !slices.ContainsFunc(o.choices, func(c *choice) bool { return c.taken })
}

// A Listing describes an entry.
type Listing struct {
	Path     string   `json:"path"` // names of databases and of the entry, joined by "/"
	Name     string   `json:"name"`
	Depth    int      `json:"depth"` // number of databases around it, without the outermost one
	Class    string   `json:"class"` // as in the profile; "rule" for a node rewriter
	Doc      string   `json:"doc"`
	Position float64  `json:"position"`          // in a SequenceDB the place, elsewhere the rank
	Placed   bool     `json:"placed"`            // it is in a SequenceDB
	Tags     []string `json:"tags"`              // without its name and that of its database
	Dialect  string   `json:"dialect,omitempty"` // of the graphs it is for; empty for all
	Inplace  bool     `json:"inplace,omitempty"`
	Database bool     `json:"database,omitempty"`
	Why      string   `json:"why,omitempty"`    // why it was selected
	Cases    []string `json:"cases,omitempty"`  // the rewrites of a rule that is text, or of a walk with it
	Reason   string   `json:"reason,omitempty"` // why a rule is a Go function
	// Settings are those of the entry, see rewrite.Configurable, with their values.
	Settings []rewrite.Setting `json:"settings,omitempty"`
}

// Entries returns all entries of the database in the order in which they would run,
// databases before the entries in them.
func (d *store) Entries() []Listing { return d.list(rewrite.Describe) }

// Outline is Entries without Cases and all else that is known of a rule only after it has been made,
// see rewrite.Later. Outline makes no rules.
func (d *store) Outline() []Listing { return d.list(rewrite.Outline) }

func (d *store) list(describe func(any) rewrite.Description) []Listing {
	// Since out is set, decide asks no query: only the order of the entries is wanted here.
	everything := view{out: " ", faults: new([]error), room: new(math.MaxInt)}
	o := Optimizer{choices: d.choose(everything, "", 0)}
	var list []Listing
	for _, c := range o.all() {
		l := c.listing(describe)
		l.Why = ""
		list = append(list, l)
	}
	return list
}

// Names returns the names of all entries of the database and of the databases in it, each once. It is
// quicker than Entries, which also describes them.
func (d *store) Names() []string {
	var names []string
	known := make(map[string]bool)
	for _, in := range d.databases() {
		for _, e := range in.entries {
			if !known[e.Name] {
				known[e.Name] = true
				names = append(names, e.Name)
			}
		}
	}
	return names
}

// all returns all choices, databases before the entries in them.
func (o *Optimizer) all() []*choice {
	var list []*choice
	stack := slices.Clone(o.choices)
	slices.Reverse(stack)
	for len(stack) > 0 {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		list = append(list, c)
		for _, n := range slices.Backward(c.nested) {
			stack = append(stack, n)
		}
	}
	return list
}

func (c *choice) is(name string) bool { return c.entry.Name == name || c.path == name }

// listing describes the entry, its rewriter by describe.
func (c *choice) listing(describe func(any) rewrite.Description) Listing {
	e := c.entry
	l := Listing{
		Path: c.path, Name: e.Name, Depth: c.depth, Doc: e.Doc, Tags: slices.Clone(e.Tags),
		Position: e.Position, Placed: c.db.driver.Kind().Placed,
		Class: "rule", Dialect: c.dialect, Inplace: e.DB == nil && e.inplace(), Database: e.DB != nil, Why: c.why,
	}
	if conf := c.configurable(); conf != nil {
		l.Settings = conf.Settings()
	}
	if e.DB != nil {
		l.Class = e.DB.base().driver.Kind().Class
		return l
	}
	d := describe(e.Rewriter)
	if _, ok := e.Rewriter.(rewrite.GraphRewriter); ok {
		l.Class = d.Class
	}
	l.Cases, l.Reason = d.Cases, d.Reason
	return l
}
