package tensors

import (
	"cmp"
	"context"
	"flag"
	"strings"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/internal/tune"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/repro"
)

// Options say what tensors a program has.
type Options struct {
	// Language has the ops and functions that expressions, rules and graphs may name. The default
	// is that of the ops of package tensor.
	Language *expr.Language
	// Sections read the features that graph files hold in sections of these names, see
	// graphfile.WithSections.
	Sections map[string]graphfile.SectionReader
}

// Dialect returns the dialect of graphs of tensors. Its subjects are expressions, and it brings the
// verb expr.
func Dialect(o Options) *tool.Dialect {
	o.Language = cmp.Or(o.Language, expr.Default())
	d := &tool.Dialect{
		Name:       "tensor",
		Vocabulary: o.vocabulary,
		Open: func(*tool.Console, string, *graphfile.File) (repro.World, error) {
			return World(o.dialect()), nil
		},
		Subjects: o.subjects,
		Domain:   o.domain,
		Element:  func(t fgraph.Type) string { return t.(tensor.Type).DType().String() },
		Class:    tensorpass.Class,
	}
	d.Rules = func(cfg *tool.Config, entries []optdb.Listing) []rulecheck.Entry { return rules(cfg, d, entries) }
	d.Verbs = []tool.Verb{o.exprVerb()}
	return d
}

func (o Options) vocabulary() pattern.Vocabulary { return tensorpass.VocabularyOf(o.Language) }

// dialect returns how graphs of tensors are written.
func (o Options) dialect() graphfile.Dialect {
	return graphfile.WithSections(expr.Dialect{Language: o.Language}, o.Sections)
}

// maxElements bounds the elements of an argument of a type that is given.
const maxElements = 1 << 12

// domain returns what the machine that checks rules needs to know. vars declares names of patterns.
func (o Options) domain(vars string) (rulecheck.Domain, error) {
	scope := o.Language.NewScope()
	if err := scope.Declare(vars); err != nil {
		return nil, tool.Usagef("--vars: %v", err)
	}
	types := make(map[string]tensor.Type)
	for _, v := range scope.Inputs() {
		n, t := 1, tensor.TypeOf(v)
		for _, d := range t.Shape() {
			if n *= max(d, 1); n > maxElements {
				return nil, tool.Usagef("rulecheck: the type of %s, %v, has more than %d elements", v.Name(), t, maxElements)
			}
		}
		types[v.Name()] = t
	}
	return Domain(nil, o.Language, types), nil
}

// rules returns the rules of a database. One that is a Go function can be checked only where its
// tests have expressions on which it fires.
func rules(cfg *tool.Config, d *tool.Dialect, list []optdb.Listing) []rulecheck.Entry {
	// Rules come from two places: the families of this module, which have cases for Go functions,
	// and entries that the configuration adds, which are checked if they are text. A family may be
	// missing from the database of a configuration.
	cases := make(map[string][]rulecheck.Case)
	for _, k := range tensorpass.Cases() {
		cases[k.Rule] = append(cases[k.Rule], rulecheck.Case{Vars: k.Vars, Expr: k.Expr})
	}
	inDatabase, ours := make(map[string]bool), make(map[string]bool)
	for i := range list {
		inDatabase[strings.TrimPrefix(list[i].Name, "pre_")] = true
	}
	var entries []rulecheck.Entry
	for _, l := range tensorpass.Rules() {
		name := rewrite.Describe(l.Rule).Name
		ours[name] = true
		if inDatabase[name] {
			entries = append(entries, rulecheck.Entry{Rule: l.Rule, Groups: (l.Groups &^ tensorpass.Saturate).Names(), Tags: l.Tags, Cases: cases[name]})
		}
	}
	return append(entries, cfg.TextRules(d, list, func(name string) bool { return ours[name] || tensorpass.Pass(name) != nil })...)
}

// anExpression is what an expression is called in errors.
const anExpression = "an expression"

// subjects are expressions.
func (o Options) subjects(flags *tool.SubjectFlags, fs *flag.FlagSet) *tool.Source {
	f := &exprFlags{Options: o, passes: flags.Passes, watch: flags.Watch}
	f.declareInput(fs, "Variables of an expression")
	return &tool.Source{
		What: anExpression, Flags: []string{"vars", "grad"}, Typed: true, Claims: func(string) bool { return true },
		Open: func(_ context.Context, c *tool.Console, arg string) (*tool.Subject, error) {
			return f.subject(c, arg)
		},
		Profile: func(ctx context.Context, c *tool.Console, arg string, runs, threads int) (*profile.Function, error) {
			return f.measure(ctx, c, arg, runs, threads)
		},
		Tune: func(ctx context.Context, c *tool.Console, arg string) (*tune.Subject, error) {
			return f.tune(ctx, arg)
		},
	}
}

// use selects passes by flags for an expression.
func (f *exprFlags) use(text string) (*optdb.Optimizer, error) {
	if err := tool.MissingFile(text); err != nil {
		return nil, err
	}
	_, opt, err := f.passes.BuildFor(f.vocabulary())
	return opt, err
}

// subject parses an expression, of which passes are to be selected by flags.
func (f *exprFlags) subject(c *tool.Console, text string) (*tool.Subject, error) {
	opt, err := f.use(text)
	if err != nil {
		return nil, err
	}
	inputs, outputs, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	g, err := tensor.NewGraph(inputs, outputs)
	if err != nil {
		return nil, err
	}
	s := &tool.Subject{Dialect: f.dialect(), Optimizer: opt, World: World(f.dialect()), Typed: &view.Input{Expr: text, Variables: f.vars, Grad: f.grad}}
	s.SetGraphs([]*fgraph.FunctionGraph{g})
	s.Again = func() ([]*fgraph.FunctionGraph, error) {
		g, err := f.graph(text)
		return []*fgraph.FunctionGraph{g}, err
	}
	s.Failed = func(ctx context.Context, err error, _ int) error { return f.failed(ctx, c, err, inputs, outputs) }
	return s, nil
}

// page writes a page on which to watch the expression being optimized.
func (f *exprFlags) page(ctx context.Context, c *tool.Console, text string, opt *optdb.Optimizer) error {
	s, err := view.Record(ctx, opt, func() (*fgraph.FunctionGraph, error) { return f.graph(text) })
	if err != nil {
		return err
	}
	if err := s.AddMisses(ctx); err != nil {
		return err
	}
	if err := c.Stdout.Flush(); err != nil {
		return err
	}
	return view.WritePage(fileio.Writer(ctx, c.Data), s.Recording)
}

// measure optimizes an expression, and evaluates it for random arguments.
func (f *exprFlags) measure(ctx context.Context, c *tool.Console, text string, runs, threads int) (*profile.Function, error) {
	opt, err := f.use(text)
	if err != nil {
		return nil, err
	}
	inputs, outputs, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	watched, told := f.watch.Start(ctx, c, opt)
	fn, err := exec.NewFunction(watched, inputs, outputs, exec.FunctionOptions{Optimizer: opt, Profile: true, Threads: threads})
	if err != nil {
		return nil, f.failed(ctx, c, err, inputs, outputs)
	}
	if err := told(); err != nil {
		return nil, err
	}
	runner := fn.NewRunner()
	for k := range runs {
		args, err := fn.RandomArguments(ctx, uint64(k))
		if err == nil {
			_, err = runner.Run(ctx, args...)
		}
		if err != nil {
			return nil, err
		}
	}
	p := runner.Profile()
	p.Message = text
	return p, nil
}
