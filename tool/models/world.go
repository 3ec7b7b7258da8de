package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/repro"
)

// tolerance is the relative difference that rounding may explain.
const tolerance = 1e-4

// newWorld returns the world of the graphs of a model: they are lowered to graphs of tensors and run.
// Values are arrays, and those of the types in value.go. source may be that of no model. What Evaluate runs is
// part of the tensor.Work of its context.
func newWorld(source *ir.Source, d graphfile.Dialect, o session.Options) repro.World {
	return world{source, d, o}
}

type world struct {
	source  *ir.Source
	dialect graphfile.Dialect
	options session.Options
}

func (w world) Dialect() graphfile.Dialect { return w.dialect }

func (w world) Attach(g, _ *fgraph.FunctionGraph, _, _ []int) error { return g.Attach(w.source.For()) }

func (w world) Complete(g *fgraph.FunctionGraph) error { return g.Attach(w.source.For()) }

// Random returns values for inputs of types with sizes that are not known, too: the same for the same
// symbol.
func (w world) Random(ctx context.Context, g *fgraph.FunctionGraph, seed uint64) ([]any, error) {
	values, _, err := w.sample(ctx, g, seed)
	return values, err
}

// sample is Random, with the outputs if they were computed to find sizes.
func (w world) sample(ctx context.Context, g *fgraph.FunctionGraph, seed uint64) (inputs, outputs []any, err error) {
	var first error
	known := hints(g)
	for i := range 2 * len(sizes) {
		// Hints may be wrong: where a size is 1, another one may be broadcast with it.
		s := sizes[i%len(sizes)]
		if i == len(sizes) {
			if len(known) == 0 {
				break
			}
			known = nil
		}
		values, unknown, err := draw(g, seed, s, known)
		if err != nil && first == nil {
			return nil, nil, err
		}
		if err != nil {
			continue // these sizes are too large, and others may not be
		}
		if !unknown {
			return values, nil, nil
		}
		outputs, err := w.Evaluate(ctx, g, values)
		if err == nil {
			return values, outputs, nil
		}
		if no := ctx.Err(); no != nil {
			return nil, nil, no
		}
		if errors.Is(err, lower.ErrOperator) || errors.Is(err, tensor.ErrWork) {
			return nil, nil, err // for any sizes
		}
		if first == nil {
			first = err
		}
	}
	return nil, nil, fmt.Errorf("no sizes of inputs were found for which it can be computed; give some by --shape: %w", first)
}

// sizes are tried in turn for those that are not known, of a batch and others. Networks of images
// halve them several times; that of a recurrent one may be small.
var sizes = [][2]int{{1, 64}, {1, 32}, {1, 16}, {1, 8}, {2, 4}, {1, 3}, {1, 2}, {1, 1}, {1, 128}, {1, 224}, {1, 256}, {1, 512}, {1, 640}}

// maxDrawn bounds the elements of all inputs that are drawn at random.
const maxDrawn = 1 << 27

// A drawing draws the inputs of a graph.
type drawing struct {
	rng     *rand.Rand
	size    [2]int         // of first dimensions and of others that are not known
	known   map[string]int // sizes of symbols
	symbols map[string]int // sizes that have been chosen
	unknown bool           // whether there are such sizes
	left    int            // elements that may still be drawn
	without bool           // optional inputs are left out
}

// draw draws inputs. size has the sizes of first dimensions and of others that are not known, but for those of
// symbols that are. Inputs that have an initializer keep its value. Optional inputs have one, but for seeds 2, 4
// and so on.
func draw(g *fgraph.FunctionGraph, seed uint64, size [2]int, known map[string]int) (values []any, unknown bool, err error) {
	d := &drawing{rng: rand.New(rand.NewPCG(seed, 0x0991)), size: size, known: known, symbols: make(map[string]int), left: maxDrawn, without: seed > 0 && seed%2 == 0}
	initials := initialsOf(g)
	for _, v := range g.Inputs() {
		if x := initials[v.Name()]; x != nil && v.Type().Accepts(x.Type()) {
			values = append(values, initial{})
			continue
		}
		value, err := d.value(ir.TypeOf(v))
		if err != nil {
			return nil, false, fmt.Errorf("input %s is %v, %w", fileio.Excerpt(v.Name(), 0), v.Type(), err)
		}
		values = append(values, value)
	}
	return values, d.unknown, nil
}

// initialsOf returns the initializers of the model of a graph, by name.
func initialsOf(g *fgraph.FunctionGraph) map[string]*fgraph.Variable {
	initials := make(map[string]*fgraph.Variable)
	for _, t := range ir.SourceOf(g).Model.Graph.Initializers {
		initials[t.Name] = ir.Constant(ir.NewValue(t, ir.SourceOf(g).Dir), t.Name)
	}
	return initials
}

// drawnItems is how many tensors sequences have.
const drawnItems = 2

// value draws a value of a type.
func (d *drawing) value(t ir.Type) (any, error) {
	elem, sequence, optional := t.ElementOf()
	switch {
	case optional && d.without:
		return nothing{}, nil
	case optional:
		return d.value(elem)
	case sequence:
		if elem.IsTensor() && elem.Rank() < 0 { // most models say no more of a sequence
			elem = ir.NewType(elem.Elem(), ir.Symbol("items"))
		}
		l := make(list, drawnItems)
		for i := range l {
			var err error
			if l[i], err = d.tensor(elem); err != nil {
				return nil, err
			}
		}
		return l, nil
	}
	return d.tensor(t)
}

func (d *drawing) tensor(t ir.Type) (*array.Array, error) {
	dims, ranked := t.Shape()
	if !ranked {
		return nil, errors.New("of which nothing can be made")
	}
	shape, n := make([]int, len(dims)), 1
	for i, dim := range dims {
		shape[i] = d.sizeOf(dim, i)
		if shape[i] > 0 && n > d.left/shape[i] {
			return nil, errors.New("which is more than is drawn")
		}
		n *= max(shape[i], 0)
	}
	d.left -= n
	a, err := lower.NewArray(t.Elem(), shape...)
	if err != nil {
		return nil, err
	}
	fill(a, d.rng)
	return a, nil
}

// fill sets the elements of an array to random numbers.
func fill(a *array.Array, rng *rand.Rand) {
	for i := range a.Len() {
		if a.DType().IsFloat() {
			a.SetFloat(i, rng.NormFloat64())
		} else {
			a.SetFloat(i, float64(rng.IntN(2))) // which any index may be
		}
	}
}

// sizeOf returns the size of a dimension: the same for the same symbol.
func (d *drawing) sizeOf(dim ir.Dim, axis int) int {
	if n, ok := dim.Number(); ok {
		return int(n)
	}
	d.unknown = true
	symbol := dim.String()
	if d.symbols[symbol] == 0 {
		n := d.size[min(axis, 1)]
		// Exporters name a sum so: "past_sequence_length + 1".
		if name, _ := dim.Symbolic(); strings.Contains(name, " + ") {
			n = 0
			for part := range strings.SplitSeq(name, " + ") {
				if number, err := strconv.Atoi(part); err == nil {
					n += number
				} else {
					n += d.sizeOf(ir.Symbol(part), axis)
				}
			}
		}
		d.symbols[symbol] = cmp.Or(d.known[symbol], n)
	}
	return d.symbols[symbol]
}

func (w world) Evaluate(ctx context.Context, g *fgraph.FunctionGraph, inputs []any) ([]any, error) {
	args, names := make(map[string]*array.Array), make([]string, len(g.Outputs()))
	for i, v := range g.Inputs() {
		if err := give(args, lower.InputName(g, i), ir.TypeOf(v), inputs[i]); err != nil {
			return nil, err
		}
	}
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	f, err := session.Graph(ctx, g, names, w.options, args)
	if err != nil {
		return nil, err
	}
	if work := tensor.WorkOf(ctx); work != nil {
		if err := work.Spend(tensor.GraphCost(f.Graph())); err != nil {
			return nil, err
		}
	}
	results, err := f.Call(ctx, args)
	if err != nil {
		return nil, err
	}
	outputs := make([]any, len(names))
	for i, v := range g.Outputs() {
		outputs[i] = take(results, names[i], ir.TypeOf(v))
	}
	return outputs, nil
}

func (w world) Differ(outputs, right []any) string {
	if len(outputs) != len(right) {
		return fmt.Sprintf("there are %d outputs, not %d", len(outputs), len(right))
	}
	for i, v := range right {
		if !differenceOf(outputs[i], v).tolerable() {
			return fmt.Sprintf("output %d is %s, not %s", i, fileio.Excerpt(fmt.Sprint(outputs[i]), 0), fileio.Excerpt(fmt.Sprint(v), 0))
		}
	}
	return ""
}

// FormatValue returns a value as text: a tensor as the data of a constant.
func (w world) FormatValue(t fgraph.Type, value any) (string, error) {
	return formatValue(w.dialect, t.(ir.Type), value)
}

func (w world) ParseValue(_ fgraph.Type, text string) (any, error) {
	return parseValue(w.dialect, text)
}
