package tool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool/internal/service"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/repro"
)

// A given is what a page gave, as the arguments of a verb.
type given struct {
	*viewFlags
	console *Console
	arg     string
}

// given parses what a page gave as the verb view would.
func (e *viewEngine) given(ctx context.Context, in view.Input) (*given, error) {
	cfg := *e.cfg
	// To make the database takes a third of the time of an answer, and only rules change it.
	if strings.TrimSpace(in.Rules) == "" {
		cfg.Database = e.database
	}
	fs := flag.NewFlagSet("view", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	f := &viewFlags{cfg: &cfg, SubjectFlags: declareSubject(&cfg, fs)}
	cfg.bound(fs)
	if strings.Contains(in.Query, "@") {
		return nil, Usagef("the query of a page names no file")
	}
	args := []string{"--query=" + cmp.Or(in.Query, DefaultQuery)}
	g := &given{viewFlags: f, arg: in.File}
	if in.File == "" {
		g.arg, g.only = in.Expr, f.typedSource()
		if in.Variables != "" {
			args = append(args, "--vars="+in.Variables)
		}
		if in.Grad != "" {
			args = append(args, "--grad="+in.Grad)
		}
	} else if _, err := os.Stat(in.File); err != nil {
		return nil, err
	} else if finished(in.File) {
		args = nil
	}
	for _, text := range in.Flags {
		if err := f.harmless(text); err != nil {
			return nil, err
		}
		args = append(args, text)
	}
	if _, err := parseFlags(fs, args, false); err != nil {
		return nil, err
	}
	g.console = newConsole(ctx, &cfg, args, nil, io.Discard, io.Discard)
	g.console.set = fs
	return g, g.addRules(in.Rules)
}

// typedSource returns the source of what is typed: that of the first dialect that can be typed. Where none can, it is the
// inside of a file of graphs, with semicolons in place of the ends of lines.
func (f *viewFlags) typedSource() *Source {
	source := Source{What: "a graph", Open: func(_ context.Context, c *Console, text string) (*Subject, error) {
		text = "graph {\n" + strings.ReplaceAll(text, ";", "\n") + "\n}\n"
		return subjectOf(f.cfg, c, "graph", text, new(graphfile.File), f.Passes)
	}}
	if i := slices.IndexFunc(f.sources, func(s *Source) bool { return s.Typed }); i >= 0 {
		source = *f.sources[i]
	}
	open := source.Open
	source.Open = func(ctx context.Context, c *Console, text string) (*Subject, error) {
		s, err := open(ctx, c, text)
		if err == nil {
			s.Failed = func(_ context.Context, err error, _ int) error { return err } // a mistake while typing is no case
		}
		return s, err
	}
	return &source
}

// finished reports whether a file is a page or a profile, which no query changes.
func finished(name string) bool {
	head, err := headOf(name)
	return name != "" && err == nil && (isPage(head) || isProfile(head))
}

// harmless returns an error for a flag that a page may not set: one that names a file, or that has
// a place of its own on the page.
func (f *SubjectFlags) harmless(text string) error {
	name, _, _ := strings.Cut(strings.TrimLeft(text, "-"), "=")
	name = strings.ReplaceAll(name, "_", "-")
	var list []string
	for _, s := range f.sources {
		for _, n := range s.Flags {
			if !slices.Contains([]string{"request", "vars", "grad"}, n) {
				list = append(list, n)
			}
		}
	}
	if !strings.HasPrefix(text, "-") || !slices.Contains(list, name) {
		return Usagef("%s is no flag of such a file; those are --%s", fileio.Excerpt(text, 0), strings.Join(slices.Compact(list), ", --"))
	}
	return nil
}

// subjectFlags returns the flags of the command line that [SubjectFlags.harmless] lets a page set.
func (f *viewFlags) subjectFlags(c *Console) []string {
	var list []string
	for _, text := range c.args {
		if f.harmless(text) == nil {
			list = append(list, text)
		}
	}
	return list
}

// addRules adds the rules that were typed to the database.
func (g *given) addRules(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	d := g.cfg.Dialects[len(g.cfg.Dialects)-1]
	if s, err := g.sourceOf(g.console, g.arg); err == nil {
		if i := slices.IndexFunc(g.sources, func(of *Source) bool { return of == s || s == g.only && of.Typed }); i >= 0 {
			d = g.cfg.Dialects[i]
		}
	}
	if g.Passes.fault != nil {
		return g.Passes.fault
	}
	terms, err := addLooseRules(g.Passes.db, d, g.cfg.Group, text)
	g.Passes.query += terms
	return err
}

// open returns the graphs of what was given, before any pass.
func (g *given) open(ctx context.Context) (*Subject, error) { return g.load(ctx, g.console, g.arg) }

// Try runs what was given and what became of it.
func (e *viewEngine) Try(ctx context.Context, in view.Input, seed uint64) (*service.Trial, error) {
	t, err := e.try(ctx, in, seed)
	return t, located(ctx, err)
}

func (e *viewEngine) try(ctx context.Context, in view.Input, seed uint64) (*service.Trial, error) {
	g, err := e.given(ctx, in)
	if err != nil {
		return nil, err
	}
	s, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	if s.World == nil {
		return nil, errors.New("nothing is known that runs such graphs")
	}
	// The optimizer is the one of the flags, whose database has the rules that were typed.
	cas := &repro.Case{World: s.World, Graph: s.File.Graph, Query: s.Optimizer.Query(), Seed: seed,
		Build: func(optdb.Query) (*optdb.Optimizer, error) { return s.Optimizer, nil }}
	found, err := repro.Compare(ctx, cas)
	if err != nil {
		return nil, err
	}
	return &service.Trial{Inputs: told(s.File.Graph.Inputs(), found.Inputs), Outputs: told(s.File.Graph.Outputs(), found.Outputs), Differ: found.Differ, Accepted: found.Accepted}, nil
}

// maxTold is how many inputs or outputs of a trial are told.
const maxTold = 100

// told returns variables with their values, shortened.
func told(vars []*fgraph.Variable, values []any) []string {
	var list []string
	for i, v := range values {
		name := ""
		if i < len(vars) {
			name = strings.TrimSpace(fmt.Sprintf("%s : %v", fileio.Excerpt(vars[i].Name(), 0), vars[i].Type()))
		}
		if i == maxTold {
			return append(list, fmt.Sprintf("… %d more", len(values)-i))
		}
		list = append(list, strings.TrimPrefix(name, ": ")+" = "+fileio.Excerpt(fmt.Sprint(v), 0))
	}
	return list
}

// Export optimizes what was given, and returns the result in a format.
func (e *viewEngine) Export(ctx context.Context, in view.Input, format string) ([]byte, error) {
	data, err := e.export(ctx, in, format)
	return data, located(ctx, err)
}

func (e *viewEngine) export(ctx context.Context, in view.Input, format string) ([]byte, error) {
	var out bytes.Buffer
	if format == "page" {
		s, err := e.Optimize(ctx, in)
		if err == nil && s.Run != nil {
			err = s.AddMisses(ctx)
		}
		if err == nil {
			err = view.WritePage(&out, s.Recording)
		}
		return out.Bytes(), err
	}
	g, err := e.given(ctx, in)
	if err != nil {
		return nil, err
	}
	if write := profileWriter(format); write != nil {
		p, err := g.profile(ctx, g.console, g.arg, 0, 1)
		if err == nil {
			err = write(p, &out)
		}
		return out.Bytes(), err
	}
	s, err := g.open(ctx)
	if err != nil {
		return nil, err
	}
	for i, graph := range s.File.Graphs() {
		if err := s.Optimizer.Rewrite(ctx, graph, nil); err != nil {
			return nil, s.Failed(ctx, err, i)
		}
	}
	switch format {
	case "graph":
		text, err := graphfile.Format(&s.File, s.Dialect)
		return []byte(text), err
	case "dot":
		g.console.Stdout.Reset(&out)
		if err := printDOT(g.console, &s.File, filepath.Base(g.arg)); err != nil {
			return nil, err
		}
		err := g.console.Stdout.Flush()
		return out.Bytes(), err
	case "model":
		return s.model(ctx)
	}
	return nil, Usagef("%s is no format of a file", fileio.Excerpt(format, 0))
}

// model returns the first graph in the form that programs have for such graphs.
func (s *Subject) model(ctx context.Context) ([]byte, error) {
	if s.Write == nil {
		return nil, errors.New("such graphs have no other form than that of a graph file")
	}
	dir, err := os.MkdirTemp("", "nnopt-model")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "model")
	if err := s.Write(ctx, s.World, s.File.Graph, name); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

// graphLine is where a graph begins in a file of graphs.
var graphLine = regexp.MustCompile(`(?m)^graph \{`)

// isGraphFile reports whether a file is one of graphs. Other text, such as the lines of a network,
// has no such line.
func isGraphFile(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	head, err := io.ReadAll(io.LimitReader(f, 1<<16))
	return err == nil && bytes.IndexByte(head, 0) < 0 && graphLine.Match(head)
}
