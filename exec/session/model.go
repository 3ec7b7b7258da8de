package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/session/internal/constants"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// Options say how a model is run.
type Options struct {
	lower.Options
	// Dir is the folder of the model, where external data are.
	Dir string
	// Optimizer optimizes the graph of nodes and then that of tensors, unless it is nil. passes.ForModels
	// makes it.
	Optimizer *optdb.Optimizer
	// Profile measures the calls of a Runner, by apply.
	Profile bool
	// Threads is the number of threads that compute an op together where that pays; 0 means 1. It
	// changes no bit of any result.
	Threads int
	// MaxBytes bounds the memory of a call, see exec.FunctionOptions.
	MaxBytes int64
	// Spend lets go of constants that ops have prepared in another form, such as weights that passes have made. No
	// other goroutine may use the function during its first call, and its graph has no elements of them then.
	// Functions of a Session find what they have in common by the elements, and keep them.
	Spend bool
}

// Model makes the function of a model for inputs of these shapes and, where the graph depends on them,
// values. A sequence is given, and returned, as tensors with names of its items, see lower.Item; an optional
// value without one is left out.
func Model(ctx context.Context, m *onnx.Model, o Options, inputs map[string]*array.Array) (*Function, error) {
	return (&source{file: m}).function(ctx, o, requestFor(inputs))
}

// Graph is Model for a graph of nodes, which stays as it is. Its outputs have the names that names says.
func Graph(ctx context.Context, g *fgraph.FunctionGraph, names []string, o Options, inputs map[string]*array.Array) (*Function, error) {
	return (&source{file: ir.SourceOf(g).Model, nodes: g, names: names}).function(ctx, o, requestFor(inputs))
}

// maxConstants is by how many bytes more than in a file passes may make constants larger for a run: an embedding
// that is read transposed as well would be transposed in each run.
const maxConstants = 64 << 20

// imported returns the graph of a model for inputs of some shapes, nil for any. What is wrong with a node is
// found when it is lowered.
func imported(m *onnx.Model, o Options, shapes map[string][]ir.Dim) (*fgraph.FunctionGraph, error) {
	if m.Graph == nil {
		return nil, fmt.Errorf("%w: the model has no graph", lower.ErrUnsupported)
	}
	return ir.Import(m, ir.Options{Operators: o.Types, Dir: o.Dir, Evaluator: lower.Evaluator{Options: o.Options}, Shapes: shapes, Lenient: true})
}

// Unsupported lists what can't be computed in a model, whatever the inputs are, see lower.Unsupported. The
// error says why the model is no graph.
func Unsupported(m *onnx.Model, o Options) ([]lower.Gap, error) {
	g, err := imported(m, o, nil)
	if err != nil {
		return nil, err
	}
	return lower.Unsupported(g, o.Operators), nil
}

// A source is a model of which functions are made.
type source struct {
	file      *onnx.Model           // as it was read, whose memory weights may be in
	nodes     *fgraph.FunctionGraph // what passes for nodes have made of it whatever the shapes are; nil if that is not worth it
	names     []string              // of the outputs, nil for those of the file
	constants *constants.Table      // that functions have in common; nil if there is one function
}

// A request asks for a function for inputs.
type request struct {
	inputs map[string]*array.Array
	shapes map[string][]ir.Dim // of those that are tensors, as far as they are known
	open   bool                // whether some sizes are not
}

// requestFor returns the request of a function for inputs of the sizes that these have.
func requestFor(inputs map[string]*array.Array) request {
	r := request{inputs: inputs, shapes: make(map[string][]ir.Dim)}
	for name, a := range inputs {
		dims := make([]ir.Dim, a.NDim())
		for i, n := range a.Shape() {
			dims[i] = ir.Known(int64(n))
		}
		r.shapes[name] = dims
	}
	return r
}

// freed returns the request of a function for inputs of any sizes that a model does not declare, from
// lower.LeastFree on: smaller ones are as they are given. It reports false if there are none.
func freed(g *onnx.Graph, inputs map[string]*array.Array) (request, bool) {
	r := requestFor(inputs)
	for _, in := range g.Inputs {
		a := inputs[in.Name]
		switch {
		case a == nil:
			continue
		case in.Type == nil || in.Type.Tensor == nil:
			return r, false
		}
		for i, n := range a.Shape() {
			if n < lower.LeastFree {
				continue
			}
			name := fmt.Sprintf("%s.%d", in.Name, i)
			if s := in.Type.Tensor.Shape; s != nil && i < len(s.Dims) {
				size, symbol := s.Dims[i].Size()
				if size >= 0 {
					continue
				}
				name = cmp.Or(symbol, name)
			}
			r.shapes[in.Name][i], r.open = ir.Symbol(name), true
		}
	}
	return r, r.open
}

// function is Model.
func (s *source) function(ctx context.Context, o Options, r request) (*Function, error) {
	if s.names == nil { // a graph may have other sizes than its file
		if err := declared(s.file.Graph, r.inputs); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	g, err := s.optimized(ctx, o, r)
	if err != nil {
		return nil, err
	}
	_ = s.file.Forget(nil) // what the passes for nodes have looked at
	if s.constants != nil {
		o.Array = s.constants.Of
	}
	names := s.names
	if names == nil {
		for _, out := range s.file.Graph.Outputs {
			names = append(names, out.Name)
		}
	}
	o.AnySizes = r.open
	l, err := lower.Graph(ctx, g, names, o.Options, r.inputs)
	if err != nil {
		return nil, err
	}
	f := &Function{l: l, open: r.open}
	outputs := l.Values
	for _, d := range l.Demands {
		if d.Input < 0 {
			outputs = append(outputs, d.Variable)
		}
	}
	l.Values = nil // the function has what passes make of them
	options := exec.FunctionOptions{Profile: o.Profile, Threads: o.Threads, MaxBytes: o.MaxBytes, Used: func(a *array.Array, spent bool) {
		if forget(s.file, a); spent && o.Spend && s.constants == nil {
			*a = *array.Unmade(a.DType(), a.Shape()...)
		}
	}}
	switch {
	case o.Optimizer != nil && s.constants != nil:
		options.Optimizer = sharing{o.Optimizer, s.constants}
	case o.Optimizer != nil:
		options.Optimizer = o.Optimizer
	}
	f.f, err = exec.NewFunction(ctx, l.Inputs, outputs, options)
	_ = s.file.Forget(nil) // and those for tensors
	f.took = time.Since(start)
	return f, err
}

// optimized returns the graph as the passes for its nodes make it, for inputs of these shapes.
func (s *source) optimized(ctx context.Context, o Options, r request) (*fgraph.FunctionGraph, error) {
	if !r.open && (o.Optimizer == nil || len(o.Optimizer.Passes(ir.Dialect)) == 0) {
		return s.general(o)
	}
	shapes := make(map[string][]ir.Dim)
	for _, in := range s.file.Graph.Inputs { // not the items of sequences
		if dims := r.shapes[in.Name]; dims != nil {
			shapes[in.Name] = dims
		}
	}
	var g *fgraph.FunctionGraph
	var err error
	if s.nodes == nil {
		g, err = imported(s.file, o, shapes)
	} else {
		g, err = ir.Specialize(s.nodes, shapes)
	}
	if errors.Is(err, ir.ErrModel) {
		return s.general(o) // if the inputs don't fit, lowering says so
	}
	if err != nil {
		return nil, err
	}
	if o.Optimizer == nil {
		return g, nil
	}
	ir.SourceOf(g).AllowGrowth(maxConstants)
	if err := o.Optimizer.Rewrite(ctx, g, nil); err != nil {
		return nil, fmt.Errorf("optimizing nodes: %w", err)
	}
	return g, nil
}

// general returns a graph for all shapes, which must not be changed.
func (s *source) general(o Options) (*fgraph.FunctionGraph, error) {
	if s.nodes != nil {
		return s.nodes, nil
	}
	return imported(s.file, o, nil)
}

// forget gives back the memory of weights that are in a mapped file, after products have prepared them, say.
func forget(m *onnx.Model, a *array.Array) {
	if data, ok := lower.BytesOf(a.InMemoryOrder()); ok && len(data) >= leastForgotten {
		_ = m.Forget(data) // which may be read again at any time
	}
}

// leastForgotten is the size of what is worth a call of the system, in bytes.
const leastForgotten = 1 << 16

// sharing is an optimizer after which constants are shared.
type sharing struct {
	*optdb.Optimizer
	constants *constants.Table
}

// Rewrite implements exec.Optimizer.
func (s sharing) Rewrite(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if err := s.Optimizer.Rewrite(ctx, g, rec); err != nil {
		return err
	}
	// Functions come and go. Without this the lists would keep an entry for every constant there ever was.
	s.constants.Prune()
	var pairs []fgraph.Replacement
	for v := range g.Variables() {
		if a := tensor.ConstantOf(v); a != nil && !a.IsCSR() {
			if b := s.constants.Shared(a); b != a {
				pairs = append(pairs, fgraph.Replacement{Old: v, New: tensor.Constant(b)})
			}
		}
	}
	return g.ReplaceAll(pairs, fgraph.Reason{Pass: "shared_constants"})
}
