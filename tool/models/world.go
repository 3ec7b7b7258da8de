package models

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/repro"
)

// tolerance is the relative difference that rounding may explain.
const tolerance = 1e-4

// World returns the world of the graphs of a model: they are lowered to graphs of tensors and run.
// Values are arrays. source may be that of no model.
func World(source *ir.Source, d graphfile.Dialect, o session.Options) repro.World {
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
	return sample(ctx, w, g, seed)
}

// sizes are tried in turn for those that are not known, of a batch and others. Networks of images
// halve them several times; that of a recurrent one may be small.
var sizes = [][2]int{{1, 64}, {1, 32}, {1, 16}, {1, 8}, {2, 4}, {1, 3}, {1, 2}, {1, 1}, {1, 128}, {1, 224}, {1, 256}, {1, 512}, {1, 640}}

// maxDrawn bounds the elements of all inputs that are drawn at random.
const maxDrawn = 1 << 27

// sample draws inputs for which the graph can be computed.
func sample(ctx context.Context, w world, g *fgraph.FunctionGraph, seed uint64) ([]any, error) {
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
			return nil, err
		}
		if err != nil {
			continue // these sizes are too large, and others may not be
		}
		if !unknown {
			return values, nil
		}
		c, err := fgraph.NewCopy(g.Inputs(), g.Outputs(), w.source.For())
		if err != nil {
			return nil, err
		}
		if _, err = w.Evaluate(ctx, c, values); err == nil {
			return values, nil
		}
		if no := ctx.Err(); no != nil {
			return nil, no
		}
		if errors.Is(err, lower.ErrOperator) {
			return nil, err // for any sizes
		}
		if first == nil {
			first = err
		}
	}
	return nil, fmt.Errorf("no sizes of inputs were found for which it can be computed; give some by --shape: %w", first)
}

// draw draws inputs. size has the sizes of first dimensions and of others that are not known, but for those of
// symbols that are.
func draw(g *fgraph.FunctionGraph, seed uint64, size [2]int, known map[string]int) (values []any, unknown bool, err error) {
	rng := rand.New(rand.NewPCG(seed, 0x0991))
	symbols := make(map[string]int)
	left := maxDrawn
	for _, v := range g.Inputs() {
		t := ir.TypeOf(v)
		dims, ranked := t.Shape()
		if !ranked {
			return nil, false, fmt.Errorf("input %s is %v, of which nothing can be made", v.Name(), t)
		}
		shape := make([]int, len(dims))
		for i, d := range dims {
			n, ok := d.Number()
			shape[i] = int(n)
			if ok {
				continue
			}
			unknown = true
			if shape[i] = symbols[d.String()]; shape[i] == 0 {
				if shape[i] = known[d.String()]; shape[i] == 0 {
					shape[i] = size[min(i, 1)]
				}
				symbols[d.String()] = shape[i]
			}
		}
		n := 1
		for _, size := range shape {
			if size > 0 && n > left/size {
				return nil, false, fmt.Errorf("input %s is %v, which is more than is drawn", v.Name(), t)
			}
			n *= max(size, 0)
		}
		left -= n
		a, err := lower.NewArray(t.Elem(), shape...)
		if err != nil {
			return nil, false, fmt.Errorf("input %s: %w", v.Name(), err)
		}
		for i := range a.Len() {
			if a.DType().IsFloat() {
				a.SetFloat(i, rng.NormFloat64())
			} else {
				a.SetFloat(i, float64(rng.IntN(2))) // which any index may be
			}
		}
		values = append(values, a)
	}
	return values, unknown, nil
}

func (w world) Evaluate(ctx context.Context, g *fgraph.FunctionGraph, inputs []any) ([]any, error) {
	args, names := make(map[string]*array.Array), make([]string, len(g.Outputs()))
	for i, v := range inputs {
		a, ok := v.(*array.Array)
		if !ok {
			return nil, fmt.Errorf("a %T for input %v", v, g.Inputs()[i])
		}
		args[lower.InputName(g, i)] = a
	}
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	f, err := session.Graph(ctx, g, names, w.options, args)
	if err != nil {
		return nil, err
	}
	results, err := f.Call(ctx, args)
	if err != nil {
		return nil, err
	}
	outputs := make([]any, len(names))
	for i, name := range names {
		outputs[i] = results[name]
	}
	return outputs, nil
}

func (w world) Differ(outputs, right []any) string {
	if len(outputs) != len(right) {
		return fmt.Sprintf("there are %d outputs, not %d", len(outputs), len(right))
	}
	for i, v := range right {
		a, b := outputs[i].(*array.Array), v.(*array.Array)
		if d := array.MaxRelDiff(a, b); a.DType() != b.DType() || !(d <= tolerance) {
			return fmt.Sprintf("output %d is %s, not %s", i, fileio.Excerpt(a.String(), 0), fileio.Excerpt(b.String(), 0))
		}
	}
	return ""
}

// FormatValue returns an array as the data of a constant.
func (w world) FormatValue(t fgraph.Type, value any) (string, error) {
	x, err := lower.TensorOf("", value.(*array.Array), t.(ir.Type).Elem())
	if err != nil {
		return "", err
	}
	c := ir.Constant(ir.NewValue(x, ""), "")
	text, err := w.dialect.DataText(c.Type(), c.Data())
	return c.Type().String() + " " + text, err
}

func (w world) ParseValue(_ fgraph.Type, text string) (any, error) {
	return parseValue(w.dialect, text)
}
