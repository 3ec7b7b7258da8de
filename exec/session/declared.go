package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// declared returns a lower.ErrInput if inputs have other sizes than the model declares. A size with a name is one
// number in all inputs: passes take sizes of one name for equal, so a graph for different ones might compute
// something else. Only an input of which no sizes are read may have any: ONNX's own tests give such ones to
// CastLike. What inputs a model has, and of what types, is found when they are bound.
func declared(g *onnx.Graph, inputs map[string]*array.Array) error {
	known := make(map[string]declaredSize)
	var faults []error
	for _, in := range g.Inputs {
		t, list := in.Type, false
		if t != nil && t.Optional != nil {
			t = t.Optional.Elem
		}
		if t != nil && t.Sequence != nil {
			t, list = t.Sequence.Elem, true
		}
		if t == nil || t.Tensor == nil || t.Tensor.Shape == nil {
			continue
		}
		if !list {
			if err := fits(in.Name, t.Tensor, inputs[in.Name], known); err != nil && sizesRead(g, in.Name) {
				faults = append(faults, err)
			}
			continue
		}
		// The tensors of a sequence may have different sizes, so names say nothing in them.
		for i := 0; inputs[lower.Item(in.Name, i)] != nil; i++ {
			faults = append(faults, fits(lower.Item(in.Name, i), t.Tensor, inputs[lower.Item(in.Name, i)], nil))
		}
	}
	return errors.Join(faults...)
}

// sizesRead reports whether a graph, or one inside it, does more with a value than to ask for its type.
func sizesRead(g *onnx.Graph, name string) bool {
	for g := range onnx.Nested(g) {
		if slices.ContainsFunc(g.Outputs, func(o *onnx.ValueInfo) bool { return o.Name == name }) {
			return true
		}
		for _, n := range g.Nodes {
			if i := slices.Index(n.Inputs, name); i >= 0 && !(i == 1 && n.Op == "CastLike" && (n.Domain == "" || n.Domain == "ai.onnx")) {
				return true
			}
		}
	}
	return false
}

// A declaredSize is the number that a name stands for, with where that was found.
type declaredSize struct {
	size  int
	input string
}

// fits returns an error if a value, which may be missing, does not have the sizes of its type. It notes those
// of names in known, unless that is nil.
func fits(name string, t *onnx.TensorType, a *array.Array, known map[string]declaredSize) error {
	if a == nil {
		return nil
	}
	dims := t.Shape.Dims
	if len(dims) != a.NDim() {
		return fmt.Errorf("%w: %s is declared as %v, with %d dimensions, and has %d: %v", lower.ErrInput, fileio.Excerpt(name, 0), t, len(dims), a.NDim(), a.Shape())
	}
	for i, d := range dims {
		n := a.Dim(i)
		size, symbol := d.Size()
		switch first, again := known[symbol]; {
		case size >= 0 && size != int64(n):
			return fmt.Errorf("%w: %s is declared as %v, and has the shape %v: size %d should be %d", lower.ErrInput, fileio.Excerpt(name, 0), t, a.Shape(), i, size)
		case symbol == "" || known == nil:
		case again && first.size != n:
			return fmt.Errorf("%w: %s is declared as %v, and has the shape %v: size %d should be %d, since %s is %d in %s", lower.ErrInput,
				fileio.Excerpt(name, 0), t, a.Shape(), i, first.size, fileio.Excerpt(symbol, 0), first.size, fileio.Excerpt(first.input, 0))
		case !again:
			known[symbol] = declaredSize{n, name}
		}
	}
	return nil
}
