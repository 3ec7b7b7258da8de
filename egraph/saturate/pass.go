package saturate

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/nnopt/nnopt/egraph"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// A Pass is a graph rewriter that saturates a graph with rules, and replaces it by the cheapest form.
// The zero value of a setting stands for its default.
type Pass struct {
	Name  string
	Rules []rewrite.NodeRewriter
	// Nodes and Growth bound the nodes that rules add: Nodes, or Growth times the nodes of the graph
	// if that is more. The defaults are 10000 and 2.
	Nodes  int
	Growth float64
	Laps   int // bounds the rounds of matching and applying; 30 by default
	// A rule that matches more often in a lap than Matches, and than the graph has nodes, is banned for
	// some laps. The default is 1000.
	Matches int
	// Seconds bounds the time if it is not 0. Results then depend on the speed of the machine.
	Seconds float64
	// Later is what runs after the pass, unless nil: the graph is changed only if it is cheaper also
	// after that, which is tried on copies. Earlier ran before, and its requirements still hold.
	Later   rewrite.GraphRewriter
	Earlier []rewrite.GraphRewriter

	program *program
}

// Prepare compiles the rules, which happens in each run otherwise. The rules must not change after that.
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

// Class is the class of a pass in a profile.
const Class = profile.ClassSaturation

// Describe describes the pass.
func (p *Pass) Describe() rewrite.Description {
	return rewrite.Description{Name: p.Name, Class: Class, Doc: "collects what rules say about the graph, and takes the cheapest form"}
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
	global := rewrite.Global{Name: p.Name, Class: Class, Fn: func(ctx context.Context, h *rewrite.Handle) error {
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
	in      given
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
	if s.in.admitted == 0 {
		s.h.Recorder().Count("not_admitted", float64(g.NumApplies()), "")
		return nil
	}
	first := len(s.b.sources)
	if s.report, err = s.b.g.Saturate(ctx, s.p.program.rules, s.p.options(first)); err != nil {
		return err
	}
	start := s.h.Recorder().Now()
	choice, results, cost, err := s.cheapest(ctx, first)
	if err != nil {
		return err
	}
	s.extract = s.h.Recorder().Since(start)
	after, err := s.replace(ctx, results, cost, func(pairs []fgraph.Replacement) (bool, error) {
		if explain {
			return s.step(choice, first, results)
		}
		return s.h.Replace("", nil, pairs...)
	})
	if err == nil {
		s.record(after)
	}
	return err
}

// cheapest returns what is chosen for the roots, the variables that it makes, and what they cost. Nodes from
// first on are those of rules.
func (s *run) cheapest(ctx context.Context, first int) (*egraph.Choice, []*fgraph.Variable, float64, error) {
	roots := make([]egraph.Class, len(s.in.roots))
	for i, v := range s.in.roots {
		roots[i] = s.b.g.Class(s.b.nodes[v])
	}
	choice, err := s.b.g.Extract(ctx, s.b.cost(first), roots...)
	if err != nil {
		return nil, nil, 0, err
	}
	x := &builder{b: s.b, choice: choice, made: make(map[egraph.Class]*fgraph.Variable), tuples: make(map[egraph.Class]*fgraph.Apply)}
	results := make([]*fgraph.Variable, len(roots))
	for i, c := range roots {
		if results[i] = x.build(ctx, c); results[i] == nil {
			return nil, nil, 0, ctx.Err()
		}
	}
	return choice, results, x.cost, nil
}

// replace makes replacements that reduce the cost of the graph, and returns what it costs.
func (s *run) replace(ctx context.Context, results []*fgraph.Variable, cost float64, do func([]fgraph.Replacement) (bool, error)) (float64, error) {
	pairs := replacements(s.in.roots, results)
	if !(cost < s.in.cost*(1-preference)) || len(pairs) == 0 {
		return s.in.cost, nil
	}
	ok, err := s.pays(ctx, pairs)
	if err != nil {
		return s.in.cost, err
	}
	if !ok {
		s.h.Recorder().Count("dearer_later", 1, "")
		return s.in.cost, nil
	}
	if ok, err = do(pairs); err != nil || !ok {
		return s.in.cost, err
	}
	return cost, nil
}

// replacements pairs variables with what replaces them.
func replacements(from, to []*fgraph.Variable) []fgraph.Replacement {
	var pairs []fgraph.Replacement
	seen := make(map[*fgraph.Variable]bool)
	for i, v := range from {
		if to[i] != v && !seen[v] {
			seen[v] = true
			pairs = append(pairs, fgraph.Replacement{Old: v, New: to[i]})
		}
	}
	return pairs
}

// options returns how to saturate a graph of so many nodes.
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
)

// Settings returns nodes, growth, laps, matches and seconds.
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
		whole("matches", p.Matches, defaultMatches, "how often a rule may match in a lap before it is left out for some"),
		number("seconds", p.Seconds, 0, "how long it may take; 0 is without a limit, and otherwise results depend on the machine"),
	}
}

// Configured returns a copy of the pass with one setting changed.
func (p *Pass) Configured(name, value string) (rewrite.Configurable, error) {
	c := *p
	switch name {
	case "nodes", "laps", "matches":
		v, err := strconv.Atoi(value)
		if err != nil || v <= 0 || v > math.MaxInt32 {
			return nil, fmt.Errorf("%q is not a number from 1 to %d", value, math.MaxInt32)
		}
		switch name {
		case "nodes":
			c.Nodes = v
		case "laps":
			c.Laps = v
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
