package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// Limits of what is asked about rules that do not fire. A question takes some 20 µs.
const (
	maxQuestions = 20_000
	maxMisses    = 5_000
)

// noReason is what a rule without a reason says, which is not worth recording.
const noReason = "it proposes nothing, and does not say why"

// AddMisses adds to the recording why rules do not fire, at every node as it is after each of the
// outermost passes. Where there are too many nodes and rules, those of later passes are left out.
func (s *Subject) AddMisses(ctx context.Context) error {
	r, opt := s.Recording, s.Optimizer
	a := &asker{Recorder: NewRecorder(), opt: opt, ctx: ctx}
	a.again = true
	opts := rewrite.OptionsFrom(ctx)
	opts.Observe, opts.Steps = a.begin, true
	opts.BeforePass = func(pass string) bool {
		// A rule is asked when its pass has ended: earlier, it would say why it does not fire on
		// what the pass was about to rewrite anyway. The end of a pass is the beginning of the next
		// one, or that of the segment.
		a.ask()
		a.passes = append(a.passes, pass)
		return true
	}
	if err := s.Run(rewrite.WithOptions(ctx, opts)); err != nil {
		return err
	}
	// The run was repeated, so nodes and passes have the numbers of the first run only if it took
	// the same course. An optimizer is deterministic; if one is not, numbers that are out of range
	// give it away.
	numbers, outermost := a.numbers(), r.outermost()
	for _, m := range a.misses {
		m.Node = numbers[m.Node]
		if m.Node < 0 || int(m.Node) >= len(r.Nodes) || m.Pass >= len(outermost) {
			return errors.New("view: a run of the optimizer does not repeat")
		}
		m.Pass = outermost[m.Pass]
		r.Misses = append(r.Misses, m)
	}
	return nil
}

// outermost returns the numbers of the passes that each segment consists of.
func (r *Recording) outermost() []int {
	var list []int
	for i := range r.Passes {
		if slices.Contains(r.roots, r.Passes[i].Parent) {
			list = append(list, i)
		}
	}
	return list
}

// An asker asks why rules do not fire while the optimizer runs.
type asker struct {
	*Recorder
	ctx       context.Context
	opt       *optdb.Optimizer
	rules     map[string][]pathRule // of the present segment, by its pass
	passes    []string              // the outermost passes that have run, and the one that runs
	asked     int                   // of passes
	questions int
	misses    []Miss // with numbers of the Recorder, and of passes
}

// A pathRule is a node rewriter of an optimizer, with its path.
type pathRule struct {
	path string
	rewrite.NodeRewriter
}

// begin begins a segment.
func (a *asker) begin(g *fgraph.FunctionGraph, rec *profile.Recorder) (end func(), err error) {
	detach, err := a.observe(g, rec)
	if err != nil {
		return nil, err
	}
	a.rules = make(map[string][]pathRule)
	for path, r := range a.opt.Rules(g.Dialect()) {
		pass, _, _ := strings.Cut(path, "/")
		a.rules[pass] = append(a.rules[pass], pathRule{path, r})
	}
	return func() { a.ask(); detach() }, nil
}

// ask asks the rules of the pass that has just run, if there is one.
func (a *asker) ask() {
	if a.asked == len(a.passes) {
		return
	}
	pass := a.asked
	a.asked = len(a.passes)
	s, rules := a.segments[len(a.segments)-1], a.rules[a.passes[pass]]
	if len(rules) == 0 {
		return
	}
	for _, n := range s.live() {
		for _, r := range rules {
			node := a.nodes[n].apply
			if !rewrite.Wants(r, node.Op()) {
				continue
			}
			if a.questions++; a.questions > maxQuestions || len(a.misses) == maxMisses || a.ctx.Err() != nil {
				return
			}
			if text := rewrite.WhyNot(a.ctx, r, s.g, node); text != noReason {
				a.misses = append(a.misses, Miss{n, r.path, short(text), pass})
			}
		}
	}
}

// ErrNowhere says that a question is about no node of the graph.
var ErrNowhere = errors.New("view: there is no such place")

// An answer says why a rule does not fire at a node. Its JSON is a list [rule, text].
type answer struct{ Rule, Text string }

// MarshalJSON writes the list.
func (a answer) MarshalJSON() ([]byte, error) { return json.Marshal([]string{a.Rule, a.Text}) }

// WhyNot repeats the run up to a step, and says why rules do not fire at a node there: the rule
// of a name or path, or all that look at its op if it is empty.
func (s *Subject) WhyNot(ctx context.Context, step int, node int32, name string) ([]answer, error) {
	r := s.Recording
	if step < 0 || step > len(r.Steps) || node < 0 || int(node) >= len(r.Nodes) {
		return nil, fmt.Errorf("%w: no step %d or no node %d", ErrNowhere, step, node)
	}
	// The graph after a step is nowhere kept, since a recording of thousands of steps would hold
	// thousands of graphs. The run is repeated up to there, and the rules are asked on the graph
	// that it leaves.
	again := NewRecorder()
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	again.stopAt(step, r.Nodes[node].Segment, stop)
	if err := s.Run(again.Watch(stopped)); err != nil && stopped.Err() == nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	of, a := again.find(r, node)
	if of == nil || !of.g.Contains(a) {
		return nil, fmt.Errorf("%w: node %d is not in the graph after %d steps", ErrNowhere, node, step)
	}
	answers, err := s.answers(ctx, of.g, a, name)
	if name != "" && len(answers) == 0 && err == nil {
		answers = append(answers, answer{name, s.Optimizer.Explain(name)})
	}
	return answers, err
}

// answers asks the rules of a name or path, or all that look at an apply.
func (s *Subject) answers(ctx context.Context, g *fgraph.FunctionGraph, a *fgraph.Apply, name string) ([]answer, error) {
	var list []answer
	for path, rule := range s.Optimizer.Rules(g.Dialect()) {
		switch {
		case name == "" && !rewrite.Wants(rule, a.Op()):
			continue
		case name != "" && name != path && name != rewrite.Describe(rule).Name:
			continue
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		list = append(list, answer{path, rewrite.WhyNot(ctx, rule, g, a)})
	}
	return list, nil
}

// find returns the apply of a node of a recording, which may have more steps.
func (r *Recorder) find(in *Recording, node int32) (*segment, *fgraph.Apply) {
	// The repeated run ends early, so it may know fewer nodes, and of later segments none. But
	// within a segment nodes appear in the same order, so the node is found by its rank among those
	// of its segment.
	segment, before := in.Nodes[node].Segment, 0
	for i := range in.Nodes[:node] {
		if in.Nodes[i].Segment == segment {
			before++
		}
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		if !n.known || n.segment != segment {
			continue
		}
		if before--; before < 0 {
			return r.segments[segment], n.apply
		}
	}
	return nil, nil
}
