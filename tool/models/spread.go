package models

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// In some models rounding is chaotic: where scales of integers are found at run time, an input that moves by
// 1e-6 moves outputs by several percent, in any engine. An optimized model rounds elsewhere, so it can't be
// held to less than what the model itself does. Nor to more: how far an output moves is measured, and only
// where it moves further than the tolerance, the difference may be as large.
// Half floats move by one unit of their last place, which rounds each node anyway.
const (
	movement = 1e-6
	// fewMoves tell whether a model is chaotic. One more draw of the same distribution, which the optimized
	// model is, exceeds the largest of n in one case of n + 1, so a chaotic model is moved more often.
	fewMoves, mostMoves = 3, 24
)

// A spread says how far outputs move.
type spread struct {
	world
	graph  *fgraph.FunctionGraph
	inputs []any
	right  []any
	rng    *rand.Rand
	moves  int
	what   string       // what is moved
	by     float64      // how far at most
	most   []difference // of each output; +Inf if its sizes change
}

// Judge returns a function that compares outputs with those that are right, see spread.
func (w world) Judge(g *fgraph.FunctionGraph, inputs, right []any) func(ctx context.Context, outputs []any) (differ, accepted string, err error) {
	s := &spread{world: w, graph: g, inputs: inputs, right: right, rng: rand.New(rand.NewPCG(6, 0x0991)), most: make([]difference, len(right))}
	return s.judge
}

func (s *spread) judge(ctx context.Context, outputs []any) (differ, accepted string, err error) {
	if differ = s.Differ(outputs, s.right); differ == "" || len(outputs) != len(s.right) {
		return differ, "", nil
	}
	for !s.explains(outputs) {
		if s.moves == mostMoves || s.moves == fewMoves && !s.chaotic() {
			return differ, "", nil
		}
		if err := s.move(ctx); err != nil {
			return "", "", err
		}
	}
	return "", s.accepted(outputs), nil
}

// explains reports whether each output that differs is no further off than the output moves.
func (s *spread) explains(outputs []any) bool {
	for i, v := range s.right {
		if d := differenceOf(outputs[i], v); !d.tolerable() && !d.within(s.most[i]) {
			return false
		}
	}
	return true
}

// chaotic reports whether an output moves further than rounding explains.
func (s *spread) chaotic() bool {
	return slices.ContainsFunc(s.most, func(d difference) bool { return !d.tolerable() })
}

// move runs the graph once more, with inputs that are moved.
func (s *spread) move(ctx context.Context) error {
	s.moves++
	g, err := fgraph.NewCopy(s.graph.Inputs(), s.graph.Outputs(), ir.SourceOf(s.graph).For())
	if err != nil {
		return err
	}
	inputs := lists.Map(s.inputs, s.moved)
	s.what = "inputs move"
	if !slices.ContainsFunc(s.inputs, movable) {
		s.what = "constants move, since no input is a float,"
		if err := s.moveConstants(g); err != nil {
			return err
		}
	}
	got, err := s.Evaluate(ctx, g, inputs)
	if no := ctx.Err(); no != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return nil // which is no output that moves
	}
	for i, v := range s.right {
		s.most[i] = s.most[i].or(differenceOf(got[i], v))
	}
	return nil
}

// movable reports whether a value has floats.
func movable(v any) bool {
	switch v := v.(type) {
	case *array.Array:
		return v.DType().IsFloat() && v.Len() > 0
	case list:
		return slices.ContainsFunc(v, func(a *array.Array) bool { return movable(a) })
	}
	return false
}

// moved returns a value with each float moved up or down.
func (s *spread) moved(v any) any {
	switch v := v.(type) {
	case *array.Array:
		if !movable(v) {
			return v
		}
		by := movement
		switch v.DType() {
		case array.Float16:
			by = 0x1p-10
		case array.BFloat16:
			by = 0x1p-7
		}
		s.by = max(s.by, by)
		a := v.Clone()
		for i := range a.Len() {
			a.SetFloat(i, a.Float(i)*(1+float64(by*float64(2*s.rng.IntN(2)-1))))
		}
		return a
	case list:
		l := make(list, len(v))
		for i, a := range v {
			l[i] = s.moved(a).(*array.Array)
		}
		return l
	}
	return v
}

// moveConstants moves the floats that the nodes of a graph read.
func (s *spread) moveConstants(g *fgraph.FunctionGraph) error {
	var pairs []fgraph.Replacement
	for v := range g.Variables() {
		x := ir.ValueOf(v)
		if x == nil || x.Tensor == nil || !slices.Contains([]onnx.DataType{onnx.Float, onnx.Float16, onnx.BFloat16}, x.Tensor.DataType) {
			continue
		}
		a, err := lower.ArrayOf(x.Tensor, x.Dir())
		if err != nil {
			return err
		}
		t, err := lower.TensorOf("", s.moved(a).(*array.Array), x.Tensor.DataType)
		if err != nil {
			return err
		}
		pairs = append(pairs, fgraph.Replacement{Old: v, New: ir.Constant(ir.NewValue(t, ""), v.Name())})
	}
	if pairs == nil {
		return errors.New("no float can be moved")
	}
	return g.ReplaceAll(pairs, fgraph.Reason{})
}

// accepted says which outputs differ no more than they move.
func (s *spread) accepted(outputs []any) string {
	var parts []string
	for i, v := range s.right {
		d := differenceOf(outputs[i], v)
		switch {
		case d.tolerable():
		case math.IsInf(s.most[i].norm, 1):
			parts = append(parts, fmt.Sprintf("output %d can't be compared: it gets other sizes, or infinities elsewhere", i))
		default:
			parts = append(parts, fmt.Sprintf("output %d is off by %.2g %% of its norm, and moves by up to %.2g %%", i, 100*d.norm, 100*s.most[i].norm))
		}
	}
	return fmt.Sprintf("%s when %s by %.0e (largest of %d)", strings.Join(parts, "; "), s.what, s.by, s.moves)
}
