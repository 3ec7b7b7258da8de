package onnxpass

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/passes/onnxpass/internal/floats"
	"github.com/nnopt/nnopt/pattern"
)

// A rule that moves something into weights writes in ONNX's own words what becomes of them, and has it
// computed at once: (Conv{a} x (computed (Mul w s))). Left to constant_folding, the graph would have more
// nodes for a while than before, and for good if that rule is not selected.

// computedFunctions make constants.
var computedFunctions = []pattern.Function{
	pattern.NewGuardOfEach("constant(x)", 1, "x is a constant", isConstant),
	pattern.NewGuardOfEach("once(x)", 2, "x has a single use", usedOnce),
	pattern.NewGuardOfEach("single(x)", 1, "x is a constant of one element", func(v *fgraph.Variable) bool {
		x := ir.ValueOf(v)
		return x != nil && x.Len() == 1
	}),
	pattern.NewGuardOfEach("nonzero(x)", 1, "x is a constant of numbers other than 0", func(v *fgraph.Variable) bool {
		return all(v, func(x float64) bool { return x != 0 && x == x })
	}),
	pattern.NewGuardOfEach("positive(x)", 1, "x is a constant of numbers above 0", func(v *fgraph.Variable) bool {
		return all(v, func(x float64) bool { return x > 0 })
	}),
	pattern.NewGuardOfPairs("same_number(x, y)", 1, "all elements of x and of y are known to be one number", func(x, y *fgraph.Variable) bool {
		a, ok := ir.NumberOf(x)
		b, too := ir.NumberOf(y)
		return ok && too && a == b
	}),
	pattern.NewGuardOfPairs("same_shape(x, y)", 1, "x and y are known to have the same shape", sameShape),
	pattern.NewGuardOfPairs("keeps_shape(x, y)", 1, "x and y are known to have the same type and shape", sameType),
	pattern.NewGuardOfPairs("compact(x, y)", 1, "what the constants x and y are broadcast to is no larger than one of them", compact),
	pattern.NewBuilder("(computed x)", 0, "the constant that x is, which is made of constants and finite", func(a pattern.Args) (*fgraph.Variable, error) {
		return computed(a, a.Vars[0])
	}),
}

func isConstant(v *fgraph.Variable) bool { return ir.ValueOf(v) != nil }

// usedOnce reports whether a value has one use, which is not that of an output of the graph.
func usedOnce(v *fgraph.Variable) bool {
	list := v.Clients()
	return len(list) == 1 && list[0].Apply != nil
}

// all reports whether something holds for every element of a constant of numbers.
func all(v *fgraph.Variable, holds func(float64) bool) bool {
	x := ir.ValueOf(v)
	if x == nil || x.Len() < 0 {
		return false
	}
	if list, ok := x.Floats(); ok {
		return !slices.ContainsFunc(list, func(f float64) bool { return !holds(f) })
	}
	list, ok := x.Ints()
	return ok && !slices.ContainsFunc(list, func(n int64) bool { return !holds(float64(n)) })
}

// errNotComputed is why a value is not computed.
var errNotComputed = errors.New("it is not computed")

// maxComputed bounds the applies of an expression that is computed. Rules write a handful.
const maxComputed = 64

// computed returns the constant that an expression of constants is. It is an error if an element is
// infinite or NaN: what was finite in two steps may overflow in one.
func computed(args pattern.Args, x *fgraph.Variable) (*fgraph.Variable, error) {
	if args.Context == nil {
		return nil, errNotComputed
	}
	evaluator := ir.SourceOf(args.Context.Graph()).Evaluator
	if evaluator == nil {
		return nil, fmt.Errorf("%w: there is nothing that computes nodes", errNotComputed)
	}
	order, ok := expression(x, maxComputed, func(*fgraph.Variable) bool { return false })
	if !ok {
		return nil, fmt.Errorf("%w: it is no small expression", errNotComputed)
	}
	values := make(map[*fgraph.Variable]*ir.Value)
	// The applies never get into the graph: only the constant that they end in does.
	for _, a := range order {
		inputs := make([]*ir.Value, len(a.Inputs()))
		for i, v := range a.Inputs() {
			if inputs[i] = values[v]; inputs[i] == nil {
				inputs[i] = ir.ValueOf(v)
			}
			if inputs[i] == nil && !ir.IsOmitted(v) {
				return nil, fmt.Errorf("%w: %v is no constant", errNotComputed, v)
			}
		}
		results, err := evaluator.Evaluate(args.Context.Context(), a.Op().(*ir.Op), inputs)
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			values[a.Outputs()[i]] = r
		}
	}
	if len(order) == 0 {
		return x, nil
	}
	if !finite(values[x]) {
		return nil, fmt.Errorf("%w: it would not be finite", errNotComputed)
	}
	return ir.Constant(values[x], ""), nil
}

// expression returns the applies that an expression of known values is made of, inputs first. ok is false if there are
// more than so many.
func expression(x *fgraph.Variable, most int, known func(*fgraph.Variable) bool) (order []*fgraph.Apply, ok bool) {
	seen := make(map[*fgraph.Apply]bool)
	visited := make(map[*fgraph.Variable]bool)
	fgraph.Walk([]*fgraph.Variable{x}, func(v *fgraph.Variable) bool {
		visited[v] = true
		return known(v) || len(visited) > 4*most || v.Owner() != nil && seen[v.Owner()]
	}, func(a *fgraph.Apply) {
		seen[a] = true
		order = append(order, a)
	})
	return order, len(visited) <= 4*most && len(order) <= most
}

// finite reports whether all floats of a tensor are. It looks at exponents, because weights are many.
func finite(x *ir.Value) bool {
	raw, err := x.Bytes()
	if err != nil {
		return false
	}
	switch x.Tensor.DataType {
	case onnx.Float:
		return floats.Finite(raw)
	case onnx.Double:
		for i := 0; i+8 <= len(raw); i += 8 {
			if binary.LittleEndian.Uint64(raw[i:])&0x7ff0000000000000 == 0x7ff0000000000000 {
				return false
			}
		}
	case onnx.Float16, onnx.BFloat16:
		mask := uint16(0x7c00)
		if x.Tensor.DataType == onnx.BFloat16 {
			mask = 0x7f80
		}
		for i := 0; i+2 <= len(raw); i += 2 {
			if binary.LittleEndian.Uint16(raw[i:])&mask == mask {
				return false
			}
		}
	}
	return true
}

// compact reports whether what two constants are broadcast to is no larger than the larger one.
func compact(x, y *fgraph.Variable) bool {
	p, ok := ir.TypeOf(x).Numbers()
	q, too := ir.TypeOf(y).Numbers()
	if !ok || !too {
		return false
	}
	if len(p) < len(q) {
		p, q = q, p
	}
	// The result is as large as one of them if the other is broadcast to that in all dimensions. A row
	// and a column would make a matrix.
	inP, inQ := true, true
	for i, d := range p {
		e := int64(1)
		if k := i - (len(p) - len(q)); k >= 0 {
			e = q[k]
		}
		inP = inP && (e == 1 || e == d)
		inQ = inQ && (d == 1 || e == d)
	}
	return inP || inQ
}
