package ir

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// inputs makes the inputs of the model.
func (im *importer) inputs(g *onnx.Graph, s *scope) []*fgraph.Variable {
	im.noteSymbols(g.Inputs)
	var inputs []*fgraph.Variable
	given := make(map[string]bool)
	for _, in := range g.Inputs {
		t := FromProto(in.Type)
		if dims, ok := im.Shapes[in.Name]; ok {
			given[in.Name] = true
			var err error
			if t, err = withShape(t, dims); err != nil {
				im.fault("input "+in.Name, err)
			}
		}
		v := fgraph.NewInput(symbolized(im.source.symbols, t, in.Name), in.Name)
		s.vars[in.Name] = v
		if x := im.Values[in.Name]; x != nil {
			given[in.Name] = true
			c := Constant(NewValue(x, im.Dir), in.Name)
			if !v.Type().Accepts(c.Type()) {
				im.fault("input "+in.Name, fmt.Errorf("the value is of type %v, not %v", c.Type(), v.Type()))
			}
			s.vars[in.Name] = c
		}
		inputs = append(inputs, v)
	}
	for _, name := range slices.Sorted(maps.Keys(im.Shapes)) {
		if !given[name] {
			im.fault("input "+name, errors.New("a shape is given, but the model has no such input"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(im.Values)) {
		if !given[name] {
			im.fault("input "+name, errors.New("a value is given, but the model has no such input"))
		}
	}
	return inputs
}

// withShape gives the type of an input other sizes.
func withShape(t Type, dims []Dim) (Type, error) {
	old, ranked := t.Shape()
	if ranked && len(old) != len(dims) {
		return t, fmt.Errorf("it has %d dimensions, and the shape that is given has %d", len(old), len(dims))
	}
	dims = slices.Clone(dims)
	for i := range old {
		if dims[i].IsUnknown() {
			dims[i] = old[i]
		}
	}
	return NewType(t.Elem(), dims...), nil
}

// noteSymbols notes the symbols of the model, so that none of ours is one of them.
func (im *importer) noteSymbols(list []*onnx.ValueInfo) {
	for _, in := range list {
		if in.Type == nil || in.Type.Tensor == nil || in.Type.Tensor.Shape == nil {
			continue
		}
		for _, d := range in.Type.Tensor.Shape.Dims {
			im.source.symbols[d.Param] = true
		}
	}
}

// symbolized gives sizes that are not known symbols of their own: whatever they are, they are the same
// wherever the value is used. Symbols are named after the value. Values of one name, in graphs that
// don't see each other, get different ones.
func symbolized(symbols map[string]bool, t Type, name string) Type {
	if name == "" || !strings.Contains(t.dims, unknownDim) {
		return t
	}
	dims, _ := t.Shape()
	for i, d := range dims {
		if !d.IsUnknown() {
			continue
		}
		symbol := fmt.Sprintf("%s.%d", name, i)
		for k := 2; symbols[symbol]; k++ {
			symbol = fmt.Sprintf("%s.%d.%d", name, i, k)
		}
		symbols[symbol] = true
		dims[i] = Symbol(symbol)
	}
	u := NewType(t.elem, dims...)
	u.data = t.data
	return u
}

// A declaration is the type that a model declares for a value.
type declaration struct {
	name string
	Type
}

// declare notes the types that the model declares in a graph. Their symbols are left out: programs
// that write models give the same name to different sizes. If sizes are given, those of the model may
// be others.
func (im *importer) declare(g *onnx.Graph, s *scope) {
	s.types = make([]declaration, 0, len(g.Outputs)+len(g.Values))
	// A list that is sorted, since most graphs are branches with a result or two. The last declaration of a name counts.
	for _, list := range [][]*onnx.ValueInfo{g.Outputs, g.Values} {
		for _, v := range slices.Backward(list) {
			if t := im.declaredType(v.Type); !t.IsUnknown() {
				s.types = append(s.types, declaration{v.Name, t})
			}
		}
	}
	slices.SortStableFunc(s.types, func(a, b declaration) int { return strings.Compare(a.name, b.name) })
}

// declared returns the type that the model declares for a value of a graph.
func (s *scope) declared(name string) Type {
	i, ok := slices.BinarySearchFunc(s.types, name, func(d declaration, name string) int { return strings.Compare(d.name, name) })
	if !ok {
		return Type{}
	}
	return s.types[i].Type
}

// declaredType returns the type that the model declares for a value within a graph.
func (im *importer) declaredType(p *onnx.Type) Type {
	t, known := im.types[p] // values of graphs in nodes share them
	if !known {
		if t = FromProto(p).numbersOnly(); im.source.fixed {
			t = t.elementsOnly()
		}
		im.types[p] = t
	}
	return t
}

// elementsOnly returns the type with the number of dimensions of a tensor, but without sizes.
func (t Type) elementsOnly() Type {
	if dims, ranked := t.Shape(); ranked {
		return NewType(t.elem, unknowns(len(dims))...)
	}
	return t
}
