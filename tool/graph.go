package tool

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

func graphVerb() Verb {
	return Verb{
		Name:     "graph",
		Args:     "FILE",
		Minus:    true,
		Synopsis: "print graphs at any step of the optimizer",
		Detail: `
FILE is a graph file, "-" standard input. So is what is printed, which "$0 opt" reads, too: a line is an input, a constant or the
application of an op, with all parameters.

--after prints the graph as it is after a pass, and --every after each pass that changed something.`,
		Examples: `
$0 graph --query=none my.graph
$0 graph --every my.graph`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			subject := declareSubject(cfg, fs)
			steps := declareSteps(fs)
			return Taking(1, 1, cfg.arguments("graph"), func(ctx context.Context, c *Console, args []string) error {
				if err := steps.check(); err != nil {
					return err
				}
				s, err := subject.load(ctx, c, args[0])
				if err != nil {
					return err
				}
				return steps.run(ctx, c, s, subject.Watch, nil)
			})
		},
	}
}

// stepFlags say which steps of the optimizer to print, and how.
type stepFlags struct {
	after, format string
	every         bool
}

func declareSteps(fs *flag.FlagSet) *stepFlags {
	f := new(stepFlags)
	fs.StringVar(&f.after, "after", "", "Stop after this pass")
	fs.BoolVar(&f.every, "every", false, "Print the graph at the beginning and after each pass that changed it")
	fs.StringVar(&f.format, "format", "text", "Format of the graph: text, dot (for Graphviz) or json")
	return f
}

func (f *stepFlags) check() error {
	if !slices.Contains([]string{"text", "dot", "json"}, f.format) {
		return Usagef("--format=%s: want text, dot or json", fileio.Excerpt(f.format, 0))
	}
	return nil
}

// run optimizes the graphs of a subject one by one, and prints them. rec may be nil.
func (f *stepFlags) run(ctx context.Context, c *Console, s *Subject, w *Watch, rec *profile.Recorder) error {
	if err := f.optimize(ctx, c, s, w, rec); err != nil || f.every {
		return err
	}
	return (&stepPrinter{flags: f, console: c, subject: s}).print(&s.File, "")
}

// optimize optimizes the graphs, and prints steps if --every asks for them.
func (f *stepFlags) optimize(ctx context.Context, c *Console, s *Subject, w *Watch, rec *profile.Recorder) error {
	if f.after != "" {
		names := s.Optimizer.Passes(s.File.Graph.Dialect())
		if !slices.Contains(names, f.after) {
			return Usagef("--after=%s: the query selects no such pass%s", fileio.Excerpt(f.after, 0), meant(spell.Nearest(f.after, names)))
		}
	}
	watched, done := w.Start(ctx, c, s.Optimizer)
	p := &stepPrinter{flags: f, console: c, subject: s}
	for i, g := range s.File.Graphs() {
		p.segment, p.graph, p.last = i, g, ""
		if err := p.optimize(watched, rec); err != nil {
			return err
		}
	}
	return done()
}

// stepPrinter prints the steps of a run.
type stepPrinter struct {
	flags   *stepFlags
	console *Console
	subject *Subject
	segment int
	graph   *fgraph.FunctionGraph
	last    string // the text of the last step
	err     error
}

// optimize optimizes the present graph up to the pass of --after.
func (p *stepPrinter) optimize(ctx context.Context, rec *profile.Recorder) error {
	s := p.subject
	opts := rewrite.OptionsFrom(ctx)
	previous := ""
	// Drivers announce passes before they run them. So the graph after a pass is seen when the next
	// one is announced, or at the end; and --after stops by refusing the next.
	opts.BeforePass = func(pass string) bool {
		p.step(previous)
		if previous != "" && previous == p.flags.after || p.err != nil {
			return false
		}
		previous = pass
		return true
	}
	if s.Optimizer.Empty() {
		p.step("")
		return p.err
	}
	if len(s.File.More) > 0 {
		rec = rec.Begin(fmt.Sprintf("segment %d", p.segment+1), s.Optimizer.Class())
		defer rec.End()
	}
	if err := s.Optimizer.Rewrite(rewrite.WithOptions(ctx, opts), p.graph, rec); err != nil {
		return s.Failed(ctx, fmt.Errorf("optimizing: %w", err), p.segment)
	}
	if previous != "" && previous != p.flags.after || p.flags.after == "" {
		p.step(previous)
	}
	return p.err
}

// step prints the graph after a pass, "" for none, if it has changed and --every asks for it.
func (p *stepPrinter) step(pass string) {
	if !p.flags.every || p.err != nil {
		return
	}
	f := &graphfile.File{Graph: p.graph}
	text, err := graphfile.Format(f, p.subject.Dialect)
	if err != nil {
		p.err = err
		return
	}
	if text == p.last {
		return
	}
	p.last = text
	if p.err = p.print(f, cmp.Or(pass, "the beginning")); p.err == nil {
		p.err = p.console.Stdout.Flush()
	}
}

// stepListing is the JSON form of a step.
type stepListing struct {
	Step    string `json:"step,omitempty"`    // the pass before it
	Segment int    `json:"segment,omitempty"` // of several, from 1
	*graphfile.Listing
}

// print prints graphs. step, unless empty, is the pass before, and the graph that of one segment.
func (p *stepPrinter) print(f *graphfile.File, step string) error {
	c, title := p.console, ""
	segment := 0
	if step != "" {
		title = "after " + step
		if step == "the beginning" {
			title = "at the beginning"
		}
		if len(p.subject.File.More) > 0 {
			segment = p.segment + 1
			title = fmt.Sprintf("segment %d, %s", segment, title)
		}
	}
	switch p.flags.format {
	case "dot":
		return printDOT(c, f, title)
	case "json":
		l, err := graphfile.List(f, p.subject.Dialect)
		if err != nil {
			return err
		}
		return WriteJSON(c.Stdout, stepListing{Step: step, Segment: segment, Listing: l})
	}
	text, err := graphfile.Format(f, p.subject.Dialect)
	if err != nil {
		return err
	}
	if title != "" {
		c.Print("# %s: %d applies\n", title, f.Graph.NumApplies())
		text += "\n"
	}
	c.Print("%s", text)
	return nil
}

// printDOT prints graphs for Graphviz. A label is an op with the types of its results.
func printDOT(c *Console, f *graphfile.File, title string) error {
	for i, g := range f.Graphs() {
		name := title
		if len(f.More) > 0 {
			name = fmt.Sprintf("segment %d", i+1)
		}
		c.Print("%s\n", g.LabelledDOT(name, func(a *fgraph.Apply) string {
			types := lists.Map(a.Outputs(), func(v *fgraph.Variable) string { return v.Type().String() })
			return a.Op().String() + "\n" + strings.Join(types, ", ")
		}))
	}
	return nil
}
