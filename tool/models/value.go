package models

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// The values of graphs are arrays, and those of the types here. An optional value that is there is what it
// holds.
type (
	// A list is a sequence of tensors.
	list []*array.Array
	// nothing is an optional value that is not there.
	nothing struct{}
	// initial is the value of an input that nobody gives one: that of its initializer.
	initial struct{}
)

func (l list) String() string {
	return "sequence(" + strings.Join(lists.Map(l, (*array.Array).String), ", ") + ")"
}

func (nothing) String() string { return none }

func (initial) String() string { return byDefault }

// The texts of values that are no tensors: none, default, and seq before a list of the tensors.
const (
	none      = "none"
	byDefault = "default"
	sequence  = "seq "
)

// give adds the value of an input to arguments, as session.Model takes them.
func give(args map[string]*array.Array, name string, t ir.Type, value any) error {
	_, _, optional := t.ElementOf()
	switch v := value.(type) {
	case *array.Array:
		args[name] = v
	case list:
		if optional && len(v) == 0 {
			return fmt.Errorf("input %s: an optional sequence that is there has tensors", fileio.Excerpt(name, 0))
		}
		for i, a := range v {
			args[lower.Item(name, i)] = a
		}
	case nothing:
		if !optional {
			return fmt.Errorf("input %s is %v, which has to have a value", fileio.Excerpt(name, 0), t)
		}
	case initial:
	default:
		return fmt.Errorf("input %s: a %T", fileio.Excerpt(name, 0), value)
	}
	return nil
}

// take returns the value of an output among results, as session.Function returns them.
func take(results map[string]*array.Array, name string, t ir.Type) any {
	if a := results[name]; a != nil {
		return a
	}
	var l list
	for i := 0; results[lower.Item(name, i)] != nil; i++ {
		l = append(l, results[lower.Item(name, i)])
	}
	if _, _, optional := t.ElementOf(); l == nil && optional {
		return nothing{}
	}
	return l
}

// A difference is how far a value is from the right one: the largest relative difference of elements, and the
// norm of the difference as a part of that of the right one, of the worst tensor of a sequence. Both are +Inf
// if kinds, types or sizes differ.
type difference struct{ element, norm float64 }

// differenceOf compares a value with the right one.
func differenceOf(a, right any) difference {
	switch x := a.(type) {
	case *array.Array:
		if y, ok := right.(*array.Array); ok && x.DType() == y.DType() && array.SameShape(x, y) {
			return difference{array.MaxRelDiff(x, y), array.Distance(x, y)}
		}
	case list:
		if y, ok := right.(list); ok && len(x) == len(y) {
			var most difference
			for i := range x {
				most = most.or(differenceOf(x[i], y[i]))
			}
			return most
		}
	default:
		if a == right {
			return difference{}
		}
	}
	return difference{math.Inf(1), math.Inf(1)}
}

// or returns the larger ones of two differences.
func (d difference) or(e difference) difference {
	return difference{max(d.element, e.element), max(d.norm, e.norm)}
}

// tolerable reports whether rounding may explain a difference.
func (d difference) tolerable() bool { return d.element <= tolerance }

// within reports whether a difference is no larger than another one.
func (d difference) within(e difference) bool { return d.element <= e.element && d.norm <= e.norm }

// tensorType returns the type of the tensors in a value: in a sequence or an optional value as well.
func tensorType(t ir.Type) ir.Type {
	for {
		elem, sequence, optional := t.ElementOf()
		if !sequence && !optional {
			return t
		}
		t = elem
	}
}

// formatTensor returns an array as the data of a constant, with its type.
func formatTensor(d graphfile.Dialect, t ir.Type, a *array.Array) (string, error) {
	x, err := lower.TensorOf("", a, t.Elem())
	if err != nil {
		return "", err
	}
	c := ir.Constant(ir.NewValue(x, ""), "")
	text, err := d.DataText(c.Type(), c.Data())
	return c.Type().String() + " " + text, err
}

// formatValue returns a value as text. The tensors of a sequence are strings of JSON.
func formatValue(d graphfile.Dialect, t ir.Type, value any) (string, error) {
	t = tensorType(t)
	switch v := value.(type) {
	case *array.Array:
		return formatTensor(d, t, v)
	case list:
		parts := make([]string, len(v))
		for i, a := range v {
			var err error
			if parts[i], err = formatTensor(d, t, a); err != nil {
				return "", err
			}
		}
		text, err := json.Marshal(parts)
		return sequence + string(text), err
	}
	return fmt.Sprint(value), nil
}

// parseValue reads what formatValue returns.
func parseValue(d graphfile.Dialect, text string) (any, error) {
	switch text {
	case none:
		return nothing{}, nil
	case byDefault:
		return initial{}, nil
	}
	rest, ok := strings.CutPrefix(text, sequence)
	if !ok {
		return parseTensor(d, text)
	}
	var parts []string
	if err := json.Unmarshal([]byte(rest), &parts); err != nil {
		return nil, fmt.Errorf("%q is no sequence: %w", fileio.Excerpt(text, 0), err)
	}
	l := list{}
	for _, part := range parts {
		a, err := parseTensor(d, part)
		if err != nil {
			return nil, err
		}
		l = append(l, a)
	}
	return l, nil
}

// parseTensor reads what formatTensor returns.
func parseTensor(d graphfile.Dialect, text string) (*array.Array, error) {
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
