package saturate

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/passes/saturate/internal/egraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// A Pass is a graph rewriter that saturates a graph with rules, and replaces it by the cheapest
// form. The zero value of a setting means its default.
type Pass struct {
	Name  string
	Rules []rewrite.NodeRewriter
	// Nodes and Growth bound the nodes that rules add: Nodes, or Growth times the nodes of the
	// graph if that is more. The defaults are 10000 and 2.
	Nodes  int
	Growth float64
	Laps   int // bounds the rounds of matching and applying; 30 by default
	// Patience is how many laps may find nothing cheaper before the pass ends; a third of that once
	// rules have added 500 nodes. The default is 9.
	Patience int
	// Tries bounds how many forms are tried with what runs later. The default is 10.
	Tries int
	// A rule that matches more often in a lap than Matches, and than the graph has nodes, is banned
	// for some laps. The default is 1000.
	Matches int
	// Seconds bounds the time if it is not 0. Results then depend on the speed of the machine.
	Seconds float64
	// Later is what runs after the pass, unless nil: the graph is changed only if it is cheaper
	// also after that, which is tried on copies. Earlier ran before, and its requirements still
	// hold.
	Later   rewrite.GraphRewriter
	Earlier []rewrite.GraphRewriter

	program *program
}

// Prepare compiles the rules, which happens in each run otherwise. The rules must not change after
// that.
func (p *Pass) Prepare() error {
	c, err := newProgram(p.Rules)
	p.program = c
	return err
}

// With returns the pass with other rules and the same settings.
func (p *Pass) With(rules []rewrite.NodeRewriter) Pass {
	c := *p
	c.Rules, c.program = rules, nil
	return c
}

// Describe describes the pass.
func (p *Pass) Describe() rewrite.Description {
	return rewrite.Description{Name: p.Name, Class: profile.ClassSaturation, Doc: "collects what rules say about the graph, and takes the cheapest form"}
}

// Situate returns the pass for a place in a sequence.
func (p *Pass) Situate(earlier []rewrite.GraphRewriter, later rewrite.GraphRewriter) rewrite.GraphRewriter {
	c := *p
	c.Earlier, c.Later = earlier, later
	return &c
}

// AddRequirements does nothing.
func (p *Pass) AddRequirements(*fgraph.FunctionGraph) error { return nil }

// Apply saturates a graph, and replaces what gets cheaper.
func (p *Pass) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	c := *p
	if c.program == nil {
		if err := c.Prepare(); err != nil {
			return err
		}
	}
	// A saturation changes the graph at its end, by one replacement of all roots at a time, so it
	// is a global pass: checked, counted and undone as a whole.
	global := rewrite.Global{Name: p.Name, Class: profile.ClassSaturation, Fn: func(ctx context.Context, h *rewrite.Handle) error {
		s := run{p: &c, h: h}
		return s.do(ctx)
	}}
	return global.Apply(ctx, g, rec)
}

// run is one saturation of a graph.
type run struct {
	p       *Pass
	h       *rewrite.Handle
	b       *bridge
	in      imported
	first   int // nodes from here on are those of rules
	report  *egraph.Report
	extract time.Duration
}

func (s *run) do(ctx context.Context) error {
	g := s.h.Graph()
	explain := watched(rewrite.OptionsFrom(ctx))
	s.b = newBridge(s.p.program, g, rewrite.NewContext(ctx, g), explain)
	var err error
	if s.in, err = s.b.take(ctx); err != nil {
		return err
	}
	// Nothing to saturate, for example because everything overwrites its inputs already.
	if s.in.admitted == 0 {
		s.h.Recorder().Count("not_admitted", float64(g.NumApplies()), "")
		return nil
	}
	s.first = len(s.b.sources)
	o := s.p.options(s.first)
	// Rules go on matching long after the best form was found, and to be sure that it was takes
	// until nothing is new. So the run ends when some laps in a row have gained nothing.
	o.Done = s.stalled()
	if s.report, err = s.b.g.Saturate(ctx, s.p.program.rules, o); err != nil {
		return err
	}
	if s.report.Reason == egraph.Goal {
		s.report.Reason = "stalled"
	}
	start := s.h.Recorder().Now()
	f, err := s.choose(ctx)
	if err != nil {
		return err
	}
	s.extract = s.h.Recorder().Since(start)
	after := s.in.cost
	if f != nil {
		done := false
		// Without a watcher the roots are replaced at once. With one, the same result is reached by
		// the single steps of an explanation, each of which can be traced, counted and refused.
		if explain {
			done, err = s.step(f)
		} else {
			done, err = s.h.Replace("", nil, f.pairs...)
		}
		if err != nil {
			return err
		}
		if done {
			after = f.cost
		}
	}
	s.record(after)
	return nil
}

// fewNodes is how many nodes rules have added when the e-graph is no longer small, see
// Pass.Patience.
const fewNodes = 500

// stalled returns what asks before each lap whether enough of them have found nothing cheaper.
func (s *run) stalled() func(*egraph.Graph) bool {
	cost := s.b.model(s.first, s.b.costOf, 1)
	best, since := math.Inf(1), 0
	patience := s.p.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	return func(g *egraph.Graph) bool {
		// An estimate is enough here: it never is below what extraction will find, and it gets
		// lower with every lap that finds something.
		c, err := g.Estimate(cost, s.roots()...)
		if err != nil || math.IsInf(best, 1) || c < best-float64(best*preference) {
			best, since = c, 0
			return false
		}
		// Large graphs get a third of the patience: a lap over them costs more, and late gains are
		// rarer, see defaultPatience.
		since++
		nodes, _ := g.Size()
		return since >= patience || 3*since >= patience && nodes >= s.first+fewNodes
	}
}

// roots returns the classes of what must be computed.
func (s *run) roots() []egraph.Class {
	return lists.Map(s.in.roots, func(v *fgraph.Variable) egraph.Class { return s.b.g.Class(s.b.nodes[v]) })
}

// replacements pairs variables with what replaces them.
func replacements(from, to []*fgraph.Variable) []fgraph.Replacement {
	var pairs []fgraph.Replacement
	seen := make(map[*fgraph.Variable]bool)
	for i, v := range from {
		if to[i] != v && !seen[v] {
			// A root may be listed twice, as two outputs. A second replacement of it would be a
			// fault.
			seen[v] = true
			pairs = append(pairs, fgraph.Replacement{Old: v, New: to[i]})
		}
	}
	return pairs
}

// options returns how to saturate a graph of a number of nodes.
func (p *Pass) options(nodes int) egraph.Options {
	or := func(v, or int) int {
		if v == 0 {
			return or
		}
		return v
	}
	growth := p.Growth
	if growth == 0 {
		growth = defaultGrowth
	}
	more := max(float64(or(p.Nodes, defaultNodes)), growth*float64(nodes))
	return egraph.Options{
		Limits: egraph.Limits{
			Nodes: nodes + int(min(more, math.MaxInt32)), Laps: or(p.Laps, defaultLaps),
			Time: time.Duration(p.Seconds * float64(time.Second)),
		},
		Backoff: egraph.Backoff{Matches: max(or(p.Matches, defaultMatches), nodes), Laps: 5},
	}
}

// The defaults of settings.
const (
	defaultNodes   = 10000
	defaultGrowth  = 2.0
	defaultLaps    = 30
	defaultMatches = 1000
	// Of 692 graphs (the tables of tests, chains, random expressions, gradients) one gets cheaper
	// after 8 laps that gain nothing, and none after 3 if it has 500 nodes by then.
	defaultPatience = 9
	defaultTries    = 10
)

// Settings returns nodes, growth, laps, patience, matches, tries and seconds.
func (p *Pass) Settings() []rewrite.Setting {
	whole := func(name string, v, def int, doc string) rewrite.Setting {
		if v == 0 {
			v = def
		}
		return rewrite.Setting{Name: name, Value: strconv.Itoa(v), Default: strconv.Itoa(def), Doc: doc}
	}
	number := func(name string, v, def float64, doc string) rewrite.Setting {
		if v == 0 {
			v = def
		}
		return rewrite.Setting{Name: name, Value: strconv.FormatFloat(v, 'g', -1, 64), Default: strconv.FormatFloat(def, 'g', -1, 64), Doc: doc}
	}
	return []rewrite.Setting{
		whole("nodes", p.Nodes, defaultNodes, "how many nodes rules may add"),
		number("growth", p.Growth, defaultGrowth, "how many nodes rules may add at least, as a multiple of those of the graph"),
		whole("laps", p.Laps, defaultLaps, "how often all rules are matched at most"),
		whole("patience", p.Patience, defaultPatience, "after how many laps without anything cheaper it ends, a third if there are 500 new nodes"),
		whole("matches", p.Matches, defaultMatches, "how often a rule may match in a lap before it is left out for some"),
		whole("tries", p.Tries, defaultTries, "how many forms are tried with the passes that follow"),
		number("seconds", p.Seconds, 0, "how long it may take; 0 is without a limit, and otherwise results depend on the machine"),
	}
}

// Configured returns a copy of the pass with one setting changed.
func (p *Pass) Configured(name, value string) (rewrite.Configurable, error) {
	c := *p
	switch name {
	case "nodes", "laps", "patience", "matches", "tries":
		v, err := strconv.Atoi(value)
		if err != nil || v <= 0 || v > math.MaxInt32 {
			return nil, fmt.Errorf("%q is not a number from 1 to %d", value, math.MaxInt32)
		}
		switch name {
		case "nodes":
			c.Nodes = v
		case "laps":
			c.Laps = v
		case "patience":
			c.Patience = v
		case "tries":
			c.Tries = v
		default:
			c.Matches = v
		}
	case "growth", "seconds":
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= 0) || v > math.MaxInt32 || v == 0 && name == "growth" {
			return nil, fmt.Errorf("%q is not a positive number up to %d", value, math.MaxInt32)
		}
		if name == "growth" {
			c.Growth = v
		} else {
			c.Seconds = v
		}
	}
	return &c, nil
}
