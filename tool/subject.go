package tool

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/repro"
)

// A Subject is what a verb works on: graphs, and the optimizer for them.
type Subject struct {
	// File has the graphs, which no pass has changed.
	File graphfile.File
	// Dialect is how they are written.
	Dialect   graphfile.Dialect
	Optimizer *optdb.Optimizer
	// Failed adds a reproducer to an error of the optimizer, about the graph of that number.
	Failed func(ctx context.Context, err error, graph int) error
	// World is how they are run and compared. It may be nil.
	World repro.World
	// Write is that of the dialect, see [Dialect.Write].
	Write func(ctx context.Context, w repro.World, g *fgraph.FunctionGraph, name string) error
	// Again makes the graphs once more. Only subjects without a [Source.Record] need it.
	Again func() ([]*fgraph.FunctionGraph, error)
	// Typed is how a page asks for it again. Without it, that is by the inside of a file of its first graph.
	Typed *view.Input

	// Lowered returns the graphs of another dialect that are computed in place of these, as no pass has changed
	// them. It may be nil.
	Lowered func(ctx context.Context) ([]*fgraph.FunctionGraph, error)

	// compare returns an error with a reproducer if the graph of that number has other values once
	// it is optimized. It may be nil.
	compare func(ctx context.Context, graph int, seed *uint64, draws repro.Draws) error
}

// SetGraphs sets the graphs, of which there is at least one.
func (s *Subject) SetGraphs(graphs []*fgraph.FunctionGraph) {
	s.File.Graph, s.File.More = graphs[0], graphs[1:]
}

// SubjectFlags are the flags that select passes and say what the subject is.
type SubjectFlags struct {
	Passes *Selection
	Watch  *Watch
	// Runs says that the verb runs subjects, so that flags for values of inputs have a meaning.
	Runs    bool
	sources []*Source
	graphs  *Source // files of graphs of any dialect
	only    *Source // of all arguments, unless it is nil
}

func declareSubject(cfg *Config, fs *flag.FlagSet) *SubjectFlags {
	f := &SubjectFlags{Passes: DeclareSelection(cfg, fs), Watch: DeclareWatch(fs)}
	f.declare(cfg, fs)
	return f
}

// declare declares the flags of the dialects.
func (f *SubjectFlags) declare(cfg *Config, fs *flag.FlagSet) {
	f.graphs = f.graphFiles(cfg)
	for _, d := range cfg.Dialects {
		if d.Subjects != nil {
			f.sources = append(f.sources, d.Subjects(f, fs))
		} else {
			f.sources = append(f.sources, f.graphs)
		}
	}
}

// graphFiles are the subjects of dialects that have no others.
func (f *SubjectFlags) graphFiles(cfg *Config) *Source {
	return &Source{
		What:   "a file of graphs",
		Claims: isFile,
		Open: func(_ context.Context, c *Console, arg string) (*Subject, error) {
			return readSubject(cfg, c, arg, f.Passes)
		},
	}
}

// isFile reports whether an argument is a file, which a directory that is named like a variable is
// not, or standard input.
func isFile(arg string) bool {
	info, err := os.Stat(arg)
	return arg == "-" || err == nil && !info.IsDir()
}

// load returns the subject that an argument names.
func (f *SubjectFlags) load(ctx context.Context, c *Console, arg string) (*Subject, error) {
	s, err := f.sourceOf(c, arg)
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, c, arg)
}

// sourceOf returns the source of the first dialect that claims an argument. Flags of other dialects
// are errors.
func (f *SubjectFlags) sourceOf(c *Console, arg string) (*Source, error) {
	if f.only != nil {
		return f.only, nil
	}
	if isGraphFile(arg) {
		for _, other := range f.sources {
			if err := c.InVainIf(other != f.graphs, "for a file of graphs", other.Flags...); err != nil {
				return nil, err
			}
		}
		return f.graphs, nil
	}
	named := func(s *Source) bool { return s.Named != nil && s.Named(arg) }
	claimed := func(s *Source) bool { return s.Claims != nil && s.Claims(arg) }
	for _, claims := range []func(*Source) bool{named, claimed} {
		i := slices.IndexFunc(f.sources, claims)
		if i < 0 {
			continue
		}
		s := f.sources[i]
		for _, other := range f.sources {
			if err := c.InVainIf(other != s, "for "+s.What, other.Flags...); err != nil {
				return nil, err
			}
		}
		return s, nil
	}
	if err := MissingFile(arg); err != nil {
		return nil, err
	}
	return nil, Usagef("%s is nothing that can be optimized here", fileio.Excerpt(arg, 0))
}

// fileName is what files are called that verbs take in place of a text. No expression looks like
// that.
var fileName = regexp.MustCompile(`^[^\s()]+\.(config|graph|html|json|mdl|onnx|raw|txt)$`)

// MissingFile returns an error if an argument is the name of a file that there is not, rather than
// a subject that is typed.
func MissingFile(arg string) error {
	if !fileName.MatchString(arg) {
		return nil
	}
	_, err := os.Stat(arg)
	return err
}

// record optimizes a subject for a page.
func (s *Subject) record(ctx context.Context, c *Console, arg string, f *SubjectFlags, in *view.Input) (*view.Subject, error) {
	query, _, err := f.Passes.Build()
	if err != nil {
		return nil, err
	}
	if s.Again == nil {
		return nil, fmt.Errorf("%s can't be made twice, as a page needs", fileio.Excerpt(arg, 0))
	}
	if s.Typed != nil {
		*in = *s.Typed
	} else if in.Expr, err = inside(s); err != nil {
		return nil, err
	}
	in.Query, in.Rules = query, f.Passes.added.Text()
	watched, told := f.Watch.Start(ctx, c, s.Optimizer)
	first := s.File.Graph
	v, err := view.Record(watched, s.Optimizer, func() (*fgraph.FunctionGraph, error) {
		if g := first; g != nil {
			first = nil
			return g, nil
		}
		graphs, err := s.Again()
		if err != nil {
			return nil, err
		}
		return graphs[0], nil
	})
	if err != nil {
		return nil, s.Failed(ctx, err, 0)
	}
	title := arg
	if isFile(arg) {
		title = filepath.Base(arg)
	}
	v.Recording.Title, v.Recording.Subject, v.Recording.Query = fileio.Excerpt(title, 0), arg, query
	return v, told()
}

// inside returns the first graph as it can be typed, see [Source.Typed].
func inside(s *Subject) (string, error) {
	text, err := graphfile.Format(&graphfile.File{Graph: s.File.Graph}, s.Dialect)
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines[1:len(lines)-1], "; "), nil
}

// profile optimizes the graphs of a subject, and returns what the optimizer did.
func (s *Subject) profile(ctx context.Context, c *Console, arg string, w *Watch) (*profile.Function, error) {
	rec := profile.New(s.Optimizer.Name(), s.Optimizer.Class())
	watched, told := w.Start(ctx, c, s.Optimizer)
	f := &profile.Function{Message: arg}
	for i, g := range s.File.Graphs() {
		if err := s.Optimizer.Rewrite(watched, g, rec); err != nil {
			return nil, s.Failed(ctx, err, i)
		}
		f.Applies += g.NumApplies()
	}
	rec.End()
	f.Optimizer = rec.Record()
	f.CompileTime = f.Optimizer.Time
	return f, told()
}

// readSubject reads a file of graphs.
func readSubject(cfg *Config, c *Console, name string, flags *Selection) (*Subject, error) {
	text, head, err := readText(c, name)
	if err != nil {
		return nil, err
	}
	return subjectOf(cfg, c, name, text, head, flags)
}

// subjectOf returns the graphs of a text. The query in its head counts unless a flag selects passes.
func subjectOf(cfg *Config, c *Console, name, text string, head *graphfile.File, flags *Selection) (*Subject, error) {
	d, err := cfg.dialectOf(name, head)
	if err != nil {
		return nil, err
	}
	world, err := d.Open(c, name, head)
	if err != nil {
		return nil, err
	}
	// The optimizer changes graphs, so the text is parsed again by who needs them as they were.
	parse := func() (*graphfile.File, error) {
		f, err := graphfile.Parse(name, text, world.Dialect())
		if err == nil {
			err = repro.Complete(world, f)
		}
		return f, err
	}
	f, err := parse()
	if err != nil {
		return nil, err
	}
	if query := f.Field(fieldQuery); query != "" && c.InVain("", "query", "pipeline") == nil {
		flags.query = query
	} else {
		flags.Completing(d.Query)
	}
	flags.vocab = d.vocabulary()
	_, opt, err := flags.Build()
	if err != nil {
		return nil, err
	}
	caseOf := func(number int) (*repro.Case, error) {
		f, err := parse()
		if err != nil {
			return nil, err
		}
		cas := &repro.Case{World: world, Build: flags.db.Build, Query: opt.Query(), Graph: f.Graphs()[number]}
		if given, err := repro.FromFile(f, world, cas.Build); err == nil && number == 0 {
			cas.Seed, cas.Values = given.Seed, given.Values
		}
		for _, field := range d.Fields {
			SetNote(cas, field, head.Field(field))
		}
		flags.added.Note(cas)
		return cas, nil
	}
	s := &Subject{File: *f, Dialect: world.Dialect(), World: world, Write: d.Write, Optimizer: opt}
	s.Again = func() ([]*fgraph.FunctionGraph, error) {
		f, err := parse()
		if err != nil {
			return nil, err
		}
		return f.Graphs(), nil
	}
	s.File.Remove(fieldQuery) // it will be done
	s.Failed = func(ctx context.Context, err error, number int) error {
		cas, fault := caseOf(number)
		if fault != nil {
			return fmt.Errorf("%w\n(there is no reproducer: %v)", err, fault)
		}
		return Reproducing(ctx, c, err, cas)
	}
	s.compare = func(ctx context.Context, number int, seed *uint64, draws repro.Draws) error {
		cas, err := caseOf(number)
		if err != nil {
			return err
		}
		if seed != nil {
			cas.Seed, cas.Values = *seed, nil
		}
		failure, err := repro.Debug(rewrite.WithOptions(ctx, rewrite.Options{}), cas, draws)
		if err != nil && ctx.Err() == nil {
			c.Say("values are not compared: %s", strings.TrimPrefix(err.Error(), repro.ErrCase.Error()+": "))
		}
		if err != nil || failure.Kind == repro.None {
			return ctx.Err()
		}
		return Reproducing(ctx, c, failure.Err, cas)
	}
	return s, nil
}

// fieldQuery has the passes that opt runs without --query.
const fieldQuery = "query"
