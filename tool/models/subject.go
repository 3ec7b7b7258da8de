package models

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/view"
)

// Fields of files whose graphs are of a model.
const (
	fieldModel  = "onnx-model"  // the file of the model
	fieldShapes = "onnx-shapes" // sizes of inputs that were given: x=1x3x8 y=2
	fieldValues = "onnx-values" // values of inputs
)

// noModel is the model of graphs that belong to none.
const noModel = "none"

// write writes a graph as a model.
func write(ctx context.Context, _ repro.World, g *fgraph.FunctionGraph, name string) error {
	m, err := ir.Export(g)
	if err != nil {
		return err
	}
	return m.WriteFile(ctx, name)
}

// A given is what a user says about inputs: sizes, and values that become constants.
type given struct {
	shapes map[string][]int
	values map[string][]float64
}

// importing returns how a model is imported.
func (o Options) importing(m *onnx.Model, dir string, g given) (ir.Options, error) {
	opts := ir.Options{
		Operators: o.Operators, Dir: dir, Evaluator: lower.Evaluator{Options: o.lowering(dir, nil)},
		Shapes: make(map[string][]ir.Dim), Values: make(map[string]*onnx.Tensor),
	}
	for name, shape := range g.shapes {
		opts.Shapes[name] = nil
		for _, n := range shape {
			opts.Shapes[name] = append(opts.Shapes[name], ir.Known(int64(n)))
		}
	}
	var faults []error
	for name, list := range g.values {
		t, err := valueOf(m, name, g.shapes[name], list)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		opts.Values[name] = t
		delete(opts.Shapes, name)
	}
	return opts, errors.Join(faults...)
}

// valueOf returns the value of an input from numbers: one for all elements, or one for each.
func valueOf(m *onnx.Model, name string, shape []int, list []float64) (*onnx.Tensor, error) {
	i := slices.IndexFunc(m.Graph.Inputs, func(in *onnx.ValueInfo) bool { return in.Name == name })
	if i < 0 {
		return nil, tool.Usagef("--set: the model has no input %s; it has %s", fileio.Excerpt(name, 0), inputNames(m))
	}
	a := &argumentFlags{shapes: make(map[string][]int), values: map[string][]float64{name: list}}
	if shape != nil {
		a.shapes[name] = shape
	}
	v, err := a.make(m.Graph.Inputs[i], nil, nil)
	if err != nil {
		return nil, err
	}
	return lower.TensorOf(name, v, m.Graph.Inputs[i].Type.Tensor.Elem)
}

// A modelFlags are the flags of a model as a subject.
type modelFlags struct {
	Options
	arguments *argumentFlags
	passes    *tool.Selection
	watch     *tool.Watch
	opset     int64
}

func (o Options) vocabulary() pattern.Vocabulary { return onnxpass.Vocabulary(o.Operators) }

// subjects are files of models.
func (o Options) subjects(flags *tool.SubjectFlags, fs *flag.FlagSet) *tool.Source {
	f := &modelFlags{Options: o, arguments: declareGiven(fs), passes: flags.Passes, watch: flags.Watch}
	own := []string{"shape", "set"}
	if flags.Runs {
		f.arguments.declareFiles(fs)
		own = append(own, "input")
	}
	return &tool.Source{
		What: aModel, Flags: own, Named: isModel,
		Open: func(ctx context.Context, c *tool.Console, arg string) (*tool.Subject, error) {
			s, err := f.open(arg)
			if err != nil {
				return nil, err
			}
			return s.subject(c)
		},
		Record:  f.record,
		Profile: f.profile,
		Tune:    f.tune,
	}
}

// An opened is a model with the passes for it.
type opened struct {
	*modelFlags
	name  string
	model *onnx.Model
	opts  ir.Options
	query string
	opt   *optdb.Optimizer
}

// open reads a model.
func (f *modelFlags) open(name string) (*opened, error) {
	query, opt, err := f.passes.BuildFor(f.vocabulary())
	if err != nil {
		return nil, err
	}
	m, err := onnx.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if err := onnx.Check(m); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	opts, err := f.importing(m, filepath.Dir(name), given{f.arguments.shapes, f.arguments.values})
	if err != nil {
		return nil, err
	}
	opts.Opset = f.opset
	return &opened{modelFlags: f, name: name, model: m, opts: opts, query: query, opt: opt}, nil
}

// graph makes the graph of the model.
func (s *opened) graph() (*fgraph.FunctionGraph, error) {
	g, err := ir.Import(s.model, s.opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return g, nil
}

// subject returns the model as what verbs work on.
func (s *opened) subject(c *tool.Console) (*tool.Subject, error) {
	g, err := s.graph()
	if err != nil {
		return nil, err
	}
	source := ir.SourceOf(g)
	sub := &tool.Subject{Dialect: s.text(source), Optimizer: s.opt, World: World(source, s.text(source), s.lowering(source.Dir, nil)), Write: write}
	sub.SetGraphs([]*fgraph.FunctionGraph{g})
	for _, n := range s.notes() {
		sub.File.Set(n.Name, n.Text)
	}
	sub.Failed = func(ctx context.Context, err error, _ int) error { return s.failed(ctx, c, err) }
	sub.Again = func() ([]*fgraph.FunctionGraph, error) {
		g, err := s.graph()
		return []*fgraph.FunctionGraph{g}, err
	}
	return sub, nil
}

// notes are the fields of files with graphs of the model.
func (s *opened) notes() []graphfile.Field {
	fields := []graphfile.Field{{Name: fieldModel, Text: s.name}}
	var shapes, values []string
	for _, name := range s.arguments.names() {
		if shape, ok := s.arguments.shapes[name]; ok {
			text := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
			shapes = append(shapes, name+"="+text)
		}
		if list, ok := s.arguments.values[name]; ok {
			text := strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
			values = append(values, name+"="+text)
		}
	}
	if shapes != nil {
		fields = append(fields, graphfile.Field{Name: fieldShapes, Text: strings.Join(shapes, " ")})
	}
	if values != nil {
		fields = append(fields, graphfile.Field{Name: fieldValues, Text: strings.Join(values, " ")})
	}
	return fields
}

func (o Options) text(s *ir.Source) graphfile.Dialect {
	return graphfile.WithSections(ir.Text{Operators: o.Operators, Source: s}, nil)
}

// failed adds a reproducer to the error of a pass.
func (s *opened) failed(ctx context.Context, c *tool.Console, err error) error {
	g, fault := s.graph()
	if fault != nil {
		return err
	}
	db, fault := c.Config().Database()
	if fault != nil {
		return err
	}
	source := ir.SourceOf(g)
	cas := &repro.Case{World: World(source, s.text(source), s.lowering(source.Dir, nil)), Build: db.Build, Graph: g, Query: s.opt.Query(), Notes: s.notes()}
	s.passes.Added().Note(cas)
	return tool.Reproducing(ctx, c, err, cas)
}

// world returns the world of the graphs in a file that names a model.
func (o Options) world(_ *tool.Console, name string, head *graphfile.File) (repro.World, error) {
	file := head.Field(fieldModel)
	if file == noModel {
		s := ir.NewSource(o.Operators)
		s.Evaluator = lower.Evaluator{Options: o.lowering("", nil)}
		return World(s, o.text(nil), o.lowering("", nil)), nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(name), file)
	}
	m, err := onnx.ReadFile(file)
	if err != nil {
		return nil, err
	}
	a := &argumentFlags{shapes: make(map[string][]int), values: make(map[string][]float64)}
	for _, text := range strings.Fields(head.Field(fieldShapes)) {
		if err := entry(a.shapes, text, "1x3x8", parseShape); err != nil {
			return nil, fmt.Errorf("%s: field %s: %w", name, fieldShapes, err)
		}
	}
	for _, text := range strings.Fields(head.Field(fieldValues)) {
		if err := entry(a.values, text, "VALUE", parseNumbers); err != nil {
			return nil, fmt.Errorf("%s: field %s: %w", name, fieldValues, err)
		}
	}
	opts, err := o.importing(m, filepath.Dir(file), given{a.shapes, a.values})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	g, err := ir.Import(m, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s := ir.SourceOf(g)
	return World(s, o.text(s), o.lowering(s.Dir, nil)), nil
}

// record optimizes a model for a page.
func (f *modelFlags) record(ctx context.Context, c *tool.Console, arg string, in *view.Input) (*view.Subject, error) {
	s, err := f.open(arg)
	if err != nil {
		return nil, err
	}
	*in = view.Input{Query: s.query, Rules: f.passes.Added().Text()}
	ctx, told := f.watch.Start(ctx, c, s.opt)
	sub, err := view.Record(ctx, s.opt, s.graph)
	if err != nil {
		return nil, s.failed(ctx, c, err)
	}
	sub.Recording.Title, sub.Recording.Subject, sub.Recording.Query = fileio.Excerpt(filepath.Base(arg), 0), arg, s.query
	return sub, told()
}

// profile optimizes a model, and runs it if there are runs: then the graph of tensors is optimized as well.
func (f *modelFlags) profile(ctx context.Context, c *tool.Console, arg string, runs, threads int) (*profile.Function, error) {
	if runs > 0 {
		f.passes.Without(lower.FreeTags()...)
	} else if err := c.InVain("without --run", "input"); err != nil {
		return nil, err
	}
	s, err := f.open(arg)
	if err != nil {
		return nil, err
	}
	g, err := s.graph()
	if err != nil {
		return nil, err
	}
	watched, told := f.watch.Start(ctx, c, s.opt)
	rec := profile.New(s.opt.Name(), s.opt.Class())
	if err := s.opt.Rewrite(watched, g, rec); err != nil {
		return nil, s.failed(ctx, c, err)
	}
	rec.End()
	if err := told(); err != nil {
		return nil, err
	}
	record := rec.Record()
	if runs == 0 {
		return &profile.Function{CompileTime: record.Time, Applies: g.NumApplies(), Optimizer: record}, nil
	}
	inputs, _, err := f.Options.arguments(f.arguments, s.model)
	if err != nil {
		return nil, err
	}
	o := s.lowering(filepath.Dir(arg), s.opt)
	o.Profile, o.Threads = true, threads
	fn, err := lower.Model(ctx, s.model, o, inputs)
	if err != nil {
		return nil, err
	}
	runner := fn.NewRunner()
	for range runs {
		if _, err := runner.Run(ctx, inputs); err != nil {
			return nil, err
		}
	}
	p := runner.Profile()
	p.Message, p.Optimizer = arg, profile.Merge(record, p.Optimizer)
	p.CompileTime, p.OptimizerTime = p.CompileTime+record.Time, p.OptimizerTime+record.Time
	return p, nil
}

// parseValue reads what FormatValue returns.
func parseValue(d graphfile.Dialect, text string) (*array.Array, error) {
	name, data, ok := strings.Cut(text, " ")
	if !ok {
		return nil, fmt.Errorf("%q is no value", fileio.Excerpt(text, 0))
	}
	t, err := d.ParseType(name)
	if err != nil {
		return nil, err
	}
	x, err := d.ParseData(t, data)
	if err != nil {
		return nil, err
	}
	value, ok := x.(*ir.Value)
	if !ok || value.Tensor == nil {
		return nil, fmt.Errorf("%q is no tensor", fileio.Excerpt(text, 0))
	}
	return lower.ArrayOf(value.Tensor, value.Dir())
}
