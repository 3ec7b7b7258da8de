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
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/repro"
)

// Fields of files whose graphs are of a model.
const (
	fieldModel  = "onnx-model"  // the file of the model
	fieldShapes = "onnx-shapes" // sizes of inputs that were given: x=1x3x8 y=2
	fieldValues = "onnx-values" // values of inputs
	// fieldDefaults is "fixed" if inputs that are initializers are constants.
	fieldDefaults, defaultsFixed = "onnx-defaults", "fixed"
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

// An importer makes graphs of a model, with the sizes and values of inputs that a user gives.
type importer struct {
	ir.Options
	others []otherInput
}

// An otherInput is an input that is no tensor, with its value.
type otherInput struct {
	info  *onnx.ValueInfo
	value any
}

// importing returns how a model is imported: with sizes, and values that become constants.
func (o Options) importing(m *onnx.Model, dir string, a *argumentFlags) (*importer, error) {
	im := &importer{Options: ir.Options{
		Operators: o.Operators, Dir: dir, Evaluator: lower.Evaluator{Options: o.lowering(dir, nil).Options},
		Shapes: make(map[string][]ir.Dim), Values: make(map[string]*onnx.Tensor),
	}}
	var faults []error
	for _, name := range a.names() {
		i := slices.IndexFunc(m.Graph.Inputs, func(in *onnx.ValueInfo) bool { return in.Name == name })
		if err := im.input(m, i, name, a); err != nil {
			faults = append(faults, err)
		}
	}
	return im, errors.Join(faults...)
}

// input notes what is given of input i of a model, -1 if there is no such input.
func (im *importer) input(m *onnx.Model, i int, name string, a *argumentFlags) error {
	if !a.sets(name) {
		shape, ok := a.shapes[name]
		if !ok {
			return nil // its value is in a file
		}
		if i >= 0 && m.Graph.Inputs[i].Type != nil && m.Graph.Inputs[i].Type.Tensor == nil {
			return tool.Usagef("--shape %s: it is %v, of which only the value can be fixed, by --set", fileio.Excerpt(name, 0), m.Graph.Inputs[i].Type)
		}
		im.Shapes[name] = nil
		for _, n := range shape {
			im.Shapes[name] = append(im.Shapes[name], ir.Known(int64(n)))
		}
		return nil
	}
	if i < 0 {
		return tool.Usagef("--set: the model has no input %s; it has %s", fileio.Excerpt(name, 0), inputNames(m))
	}
	in := m.Graph.Inputs[i]
	value, err := a.make(in, nil, nil)
	if err != nil {
		return err
	}
	v, ok := value.(*array.Array)
	if !ok || in.Type.Tensor == nil {
		im.others = append(im.others, otherInput{in, value})
		return nil
	}
	im.Values[name], err = lower.TensorOf(name, v, in.Type.Tensor.Elem)
	return err
}

// graph makes the graph of a model. The value of an input that is no tensor is made by nodes.
func (im *importer) graph(m *onnx.Model) (*fgraph.FunctionGraph, error) {
	g, err := ir.Import(m, im.Options)
	if err != nil {
		return nil, err
	}
	for _, in := range im.others {
		i := slices.IndexFunc(g.Inputs(), func(v *fgraph.Variable) bool { return v.Name() == in.info.Name })
		if i < 0 {
			continue // only the outer graph has inputs
		}
		v, err := made(ir.SourceOf(g).Operators, in.info.Type, in.value)
		if err == nil {
			v.SetName(in.info.Name + "_value")
			err = g.Replace(g.Inputs()[i], v, fgraph.Reason{Pass: "--set"})
		}
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", fileio.Excerpt(in.info.Name, 0), err)
		}
	}
	return g, nil
}

// made returns nodes that make a value of a type.
func made(operators *ir.Operators, t *onnx.Type, value any) (*fgraph.Variable, error) {
	if t.Optional != nil {
		if value == (nothing{}) {
			return operators.Make("Optional", []*onnx.Attribute{{Name: "type", Type: onnx.AttributeTypeProto, TypeProto: t.Optional.Elem}})
		}
		v, err := made(operators, t.Optional.Elem, value)
		if err != nil {
			return nil, err
		}
		return operators.Make("Optional", nil, v)
	}
	if t.Sequence == nil {
		return constantOf(value.(*array.Array), t.Tensor.Elem)
	}
	elem, items := t.Sequence.Elem.Tensor.Elem, value.(list)
	if len(items) == 0 {
		return operators.Make("SequenceEmpty", []*onnx.Attribute{{Name: "dtype", Type: onnx.AttributeInt, Int: int64(elem)}})
	}
	inputs := make([]*fgraph.Variable, len(items))
	for i, a := range items {
		var err error
		if inputs[i], err = constantOf(a, elem); err != nil {
			return nil, err
		}
	}
	return operators.Make("SequenceConstruct", nil, inputs...)
}

// constantOf returns an array as a constant.
func constantOf(a *array.Array, elem onnx.DataType) (*fgraph.Variable, error) {
	x, err := lower.TensorOf("", a, elem)
	if err != nil {
		return nil, err
	}
	return ir.Constant(ir.NewValue(x, ""), ""), nil
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
	own := []string{"shape", "set", "fix-defaults"}
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
			f.passes.Tell(c)
			return s.subject(c)
		},
		Profile: f.profile,
		Tune:    f.tune,
	}
}

// An opened is a model with the passes for it.
type opened struct {
	*modelFlags
	name     string
	model    *onnx.Model
	defaults int // inputs that are initializers
	importer *importer
	query    string
	opt      *optdb.Optimizer
}

// open reads a model.
func (f *modelFlags) open(name string) (*opened, error) {
	f.passes.Completing(passes.ModelQuery)
	query, opt, err := f.passes.BuildFor(f.vocabulary())
	if err != nil {
		return nil, err
	}
	m, defaults, err := f.arguments.read(name)
	if err != nil {
		return nil, err
	}
	// Importing sorts nodes, and says which of them can't be: those of a circle.
	var faults *onnx.Faults
	if err := onnx.Check(m); err != nil && !(errors.As(err, &faults) && faults.OnlyOrder()) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	im, err := f.importing(m, filepath.Dir(name), f.arguments)
	if err != nil {
		return nil, err
	}
	im.Opset = f.opset
	return &opened{modelFlags: f, name: name, model: m, defaults: defaults, importer: im, query: query, opt: opt}, nil
}

// graph makes the graph of the model.
func (s *opened) graph() (*fgraph.FunctionGraph, error) {
	g, err := s.importer.graph(s.model)
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
	sub := &tool.Subject{Dialect: s.text(source), Optimizer: s.opt, World: newWorld(source, s.text(source), s.lowering(source.Dir, nil)), Write: write, Typed: new(view.Input)}
	sub.SetGraphs([]*fgraph.FunctionGraph{g})
	for _, n := range s.notes() {
		sub.File.Set(n.Name, n.Text)
	}
	sub.Failed = func(ctx context.Context, err error, _ int) error { return s.failed(ctx, c, err) }
	sub.Again = func() ([]*fgraph.FunctionGraph, error) {
		g, err := s.graph()
		return []*fgraph.FunctionGraph{g}, err
	}
	sub.Lowered = func(ctx context.Context) ([]*fgraph.FunctionGraph, error) {
		args, _, err := s.Options.arguments(s.modelFlags.arguments, s.model)
		if err != nil {
			return nil, err
		}
		f, err := lowered(ctx, s.model, s.lowering(source.Dir, nil), args)
		if err != nil {
			return nil, err
		}
		return []*fgraph.FunctionGraph{f.Graph()}, nil
	}
	return sub, nil
}

func (s *opened) recorder() *profile.Recorder { return profile.New(s.opt.Name(), s.opt.Class()) }

// rewrite optimizes the graph of the model.
func (s *opened) rewrite(ctx context.Context, c *tool.Console, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	watched, told := s.watch.Start(ctx, c, s.opt)
	if err := s.opt.Rewrite(tensor.WithWork(watched, maxFolded), g, rec); err != nil {
		return s.failed(ctx, c, fmt.Errorf("optimizing: %w", err))
	}
	rec.End()
	return told()
}

// notes are the fields of files with graphs of the model.
func (s *opened) notes() []graphfile.Field {
	fields := []graphfile.Field{{Name: fieldModel, Text: s.name}}
	if s.arguments.fixDefaults && s.defaults > 0 {
		fields = append(fields, graphfile.Field{Name: fieldDefaults, Text: defaultsFixed})
	}
	var shapes, values []string
	for _, name := range s.arguments.names() {
		if shape, ok := s.arguments.shapes[name]; ok {
			text := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
			shapes = append(shapes, name+"="+text)
		}
		if s.arguments.sets(name) {
			values = append(values, fmt.Sprintf("%s=%v", name, s.arguments.values[name]))
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
	source := ir.SourceOf(g)
	cas := &repro.Case{World: newWorld(source, s.text(source), s.lowering(source.Dir, nil)), Build: s.passes.Optimizer, Graph: g, Query: s.opt.Query(), Notes: s.notes()}
	s.passes.Added().Note(cas)
	return tool.Reproducing(ctx, c, err, cas)
}

// world returns the world of the graphs in a file that names a model.
func (o Options) world(_ *tool.Console, name string, head *graphfile.File) (repro.World, error) {
	file := head.Field(fieldModel)
	if file == noModel {
		s := ir.NewSource(o.Operators)
		s.Evaluator = lower.Evaluator{Options: o.lowering("", nil).Options}
		return newWorld(s, o.text(nil), o.lowering("", nil)), nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(name), file)
	}
	a := &argumentFlags{shapes: make(map[string][]int), values: make(map[string]setting), fixDefaults: head.Field(fieldDefaults) == defaultsFixed}
	m, _, err := a.read(file)
	if err != nil {
		return nil, err
	}
	for _, text := range strings.Fields(head.Field(fieldShapes)) {
		if err := entry(a.shapes, text, "1x3x8", parseShape); err != nil {
			return nil, fmt.Errorf("%s: field %s: %w", name, fieldShapes, err)
		}
	}
	for _, text := range strings.Fields(head.Field(fieldValues)) {
		if err := entry(a.values, text, "VALUE", parseSetting); err != nil {
			return nil, fmt.Errorf("%s: field %s: %w", name, fieldValues, err)
		}
	}
	im, err := o.importing(m, filepath.Dir(file), a)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	g, err := im.graph(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s := ir.SourceOf(g)
	return newWorld(s, o.text(s), o.lowering(s.Dir, nil)), nil
}

// profile optimizes a model, and runs it if there are runs: then the graph of tensors is optimized as well.
func (f *modelFlags) profile(ctx context.Context, c *tool.Console, arg string, runs, threads int) (*profile.Function, error) {
	if runs == 0 {
		if err := c.InVain("without --run", "input"); err != nil {
			return nil, err
		}
	}
	s, err := f.open(arg)
	if err != nil {
		return nil, err
	}
	g, err := s.graph()
	if err != nil {
		return nil, err
	}
	rec := s.recorder()
	if err := s.rewrite(ctx, c, g, rec); err != nil {
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
	o.Threads = threads
	p, err := profiled(ctx, s.model, o, inputs, runs)
	if err != nil {
		return nil, err
	}
	p.Message, p.Optimizer = arg, profile.Merge(record, p.Optimizer)
	p.CompileTime, p.OptimizerTime = p.CompileTime+record.Time, p.OptimizerTime+record.Time
	return p, nil
}
