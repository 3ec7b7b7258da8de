package tensors

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// likeness describes the arguments of a differing element. Elements with the same description
// likely differ for the same reason.
func (in *instance) likeness(args []*array.Array, t trace, at place) string {
	var b strings.Builder
	if at.element < 0 {
		return "shape"
	}
	l, r := t.values[in.circuit.left[at.output]], t.values[in.circuit.right[at.output]]
	index := unravel(l.Shape(), at.element)
	for _, a := range append([]*array.Array{l, r}, in.arguments(args)...) {
		b.WriteByte(letter(a, elementNear(a, index)))
	}
	return b.String()
}

// letter returns the letter of a kind of number.
func letter(a *array.Array, i int) byte {
	if i < 0 {
		return '.'
	}
	v := a.Float(i)
	large, tiny := 1e9, 1e-9
	if a.DType().IsFloat() {
		largest, _ := limits(a.DType())
		large = max(math.Sqrt(largest)/1e3, 64)
		tiny = 1 / large
	}
	m := math.Abs(v)
	kind := byte(0)
	switch {
	case v != v:
		return 'n'
	case math.IsInf(v, 0):
		kind = 'I'
	case v == 0:
		kind = 'O'
	case m > large:
		kind = 'L'
	case m < tiny:
		kind = 'T'
	case m > 1:
		kind = 'G'
	case m < 1:
		kind = 'S'
	default:
		kind = 'E'
	}
	if math.Signbit(v) {
		kind += 'a' - 'A'
	}
	return kind
}

// unravel returns the index of an element in each dimension.
func unravel(shape []int, i int) []int {
	index := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		index[d] = i % shape[d]
		i /= shape[d]
	}
	return index
}

// elementNear returns the element of an array that an element-wise op combines with one of another
// array, or else one that exists, or -1.
func elementNear(a *array.Array, index []int) int {
	i := 0
	for d, n := range a.Shape() {
		k := 0
		if from := d + len(index) - a.NDim(); from >= 0 && index[from] < n {
			k = index[from]
		}
		i = i*n + k
	}
	if i >= a.Len() {
		return -1
	}
	return i
}

// reduce returns smaller arguments for which the sides still differ: one element for each
// dimension of unknown size, or a few.
func (in *instance) reduce(args []*array.Array, t trace, at place) []*array.Array {
	if at.element >= 0 {
		// For element-wise ops, the arguments at the index of the element are enough. Where they
		// are not, as for a sum, elements are cut off as long as the sides differ.
		index := unravel(t.values[in.circuit.left[at.output]].Shape(), at.element)
		one := make([]*array.Array, len(args))
		for i, a := range args {
			one[i] = in.single(i, a, index)
		}
		if in.differs(one) {
			return one
		}
	}
	return in.cut(args, in.differs)
}

// maxTamed bounds the elements of arguments that tame looks at.
const maxTamed = 48

// tame replaces special elements of arguments by ordinary ones as long as the sides differ, so that
// what remains special is a reason.
func (in *instance) tame(args []*array.Array) []*array.Array {
	left := maxTamed
	for i := range args {
		if args[i].IsCSR() {
			continue
		}
		for e := 0; e < args[i].Len() && left > 0; e++ {
			if l := letter(args[i], e); strings.IndexByte("GgSsEe", l) >= 0 || args[i].DType() == array.Bool {
				continue
			}
			left--
			tried := slices.Clone(args)
			tried[i] = args[i].Clone()
			tried[i].SetFloat(e, 3)
			if in.differs(tried) {
				args = tried
			}
		}
	}
	return args
}

// single keeps one element of each dimension of unknown size, and repeats it where a type fixes the
// size.
func (in *instance) single(input int, a *array.Array, index []int) *array.Array {
	t := tensor.TypeOf(in.circuit.inputs[input])
	return selected(a, func(d, n int) []int {
		if n == 0 {
			return nil
		}
		k := 0
		if from := d + len(index) - a.NDim(); from >= 0 && index[from] < n {
			k = index[from]
		}
		if t.Dim(d) == tensor.Unknown {
			n = 1
		}
		return slices.Repeat([]int{k}, n)
	})
}

// selected returns a copy of an array with some elements of each dimension; nil keeps all.
func selected(a *array.Array, keep func(d, n int) []int) *array.Array {
	if a.IsCSR() {
		return a
	}
	shape := slices.Clone(a.Shape())
	kept := make([][]int, len(shape))
	for d, n := range shape {
		if kept[d] = keep(d, n); kept[d] != nil {
			shape[d] = len(kept[d])
		}
	}
	b := array.New(a.DType(), shape...)
	for i := range b.Len() {
		index := unravel(shape, i)
		from := 0
		for d, k := range index {
			if kept[d] != nil {
				k = kept[d][k]
			}
			from = from*a.Dim(d) + k
		}
		put(b, i, a, from)
	}
	return b
}

// put copies an element.
func put(to *array.Array, i int, from *array.Array, k int) {
	if isInteger(to.DType()) && isInteger(from.DType()) {
		to.SetInt(i, from.Int(k))
		return
	}
	to.SetFloat(i, from.Float(k))
}

// differs reports whether the sides differ.
func (in *instance) differs(args []*array.Array) bool {
	t := in.circuit.run(args, nil)
	if t.leftError != nil {
		return false
	}
	if t.err != nil {
		return true
	}
	places, _ := in.circuit.differences(t)
	return len(places) > 0
}

// cut removes elements of dimensions of unknown size as long as the arguments stay of interest. It
// removes the same ones of all dimensions of one size.
func (in *instance) cut(args []*array.Array, interesting func([]*array.Array) bool) []*array.Array {
	sizes := func() []int {
		var list []int
		for i, a := range args {
			for d, n := range a.Shape() {
				if tensor.TypeOf(in.circuit.inputs[i]).Dim(d) == tensor.Unknown && n > 0 && !slices.Contains(list, n) {
					list = append(list, n)
				}
			}
		}
		slices.Sort(list)
		slices.Reverse(list)
		return list
	}
	for again := true; again; {
		again = false
		for _, size := range sizes() {
			// As in the reduction of failures: halves first, then smaller parts, until no single
			// element can go. Dimensions of one size lose the same elements, because they have to
			// agree.
			for part := (size + 1) / 2; part >= 1; part /= 2 {
				for from := 0; from+part <= size; {
					fewer := in.without(args, size, from, part)
					if !interesting(fewer) {
						from += part
						continue
					}
					args, again = fewer, true
					size -= part
				}
			}
		}
	}
	return args
}

// without removes elements from all dimensions of unknown size that have a size.
func (in *instance) without(args []*array.Array, size, from, count int) []*array.Array {
	fewer := make([]*array.Array, len(args))
	for i, a := range args {
		t := tensor.TypeOf(in.circuit.inputs[i])
		fewer[i] = selected(a, func(d, n int) []int {
			if n != size || t.Dim(d) != tensor.Unknown {
				return nil
			}
			keep := make([]int, 0, n-count)
			for k := range n {
				if k < from || k >= from+count {
					keep = append(keep, k)
				}
			}
			return keep
		})
	}
	return fewer
}

// shrink returns the text of the smallest example of a verdict that it finds, which it leaves in f.
func (c *judge) shrink(v verdict, f *finding) string {
	if f.text != "" {
		return fmt.Sprintf("%s: %s", fgraph.Sprint(0, f.in.Graph.Outputs()...), f.text)
	}
	c.simplify(v, f)
	same := func(args []*array.Array) bool {
		w, ok := f.in.judge(args)
		return ok && w == v
	}
	f.args = f.in.cut(f.args, same)
	f.args = plainer(f.args, same)
	return f.in.text(f.args)
}

// simplify tries simpler choices, for the types for example. The arguments move along if they fit; otherwise the new
// expression is compared from the beginning, and counts if it has an example of the same verdict.
func (c *judge) simplify(v verdict, f *finding) {
	rulecheck.Simplify(f.in.Instance, f.again, func(simpler *rulecheck.Instance) bool {
		in, err := compile(c.Context, simpler)
		if err != nil {
			return false
		}
		if args, ok := f.in.move(f.args, in); ok {
			if w, ok := in.judge(args); ok && w == v {
				f.in, f.args = in, args
				return true
			}
		}
		probe := &judge{Trial: rulecheck.Trial{Context: c.Context, Seed: c.Seed, Rand: rulecheck.NewRand("", c.Seed)}, exact: true, found: make(map[verdict]finding)}
		probe.compare(in, f.again)
		g, ok := probe.found[v]
		if ok {
			*f = g
		}
		return ok
	})
}

// move returns arguments for an expression of which another one is a simpler form: the first values
// of those of the same name.
func (in *instance) move(args []*array.Array, to *instance) ([]*array.Array, bool) {
	moved := make([]*array.Array, len(to.circuit.inputs))
	for i, v := range to.circuit.inputs {
		k := slices.IndexFunc(in.circuit.inputs, func(w *variable) bool { return w.Name() == v.Name() })
		t := tensor.TypeOf(v)
		if k < 0 || args[k].Len() == 0 || t.IsCSR() {
			return nil, false
		}
		a := array.New(t.DType(), equal.shape(nil, t, 1)...)
		for e := range a.Len() {
			put(a, e, args[k], 0)
		}
		moved[i] = a
	}
	return moved, true
}

// plain are numbers in the order in which they are preferred.
var plain = []float64{1, -1, 2, 0, -2, 0.5, 3, 1000, -1000, 1e200}

// plainer replaces elements by plainer ones as long as the arguments stay of interest.
func plainer(args []*array.Array, interesting func([]*array.Array) bool) []*array.Array {
	for i := range args {
		for e := range min(args[i].Len(), 16) {
			if args[i].IsCSR() {
				break
			}
			for _, v := range plain {
				if args[i].Float(e) == v {
					break
				}
				tried := slices.Clone(args)
				tried[i] = args[i].Clone()
				tried[i].SetFloat(e, v)
				if d := args[i].DType(); !d.IsFloat() && tried[i].Float(e) != v {
					continue // the type does not have it
				}
				if interesting(tried) {
					args = tried
					break
				}
			}
		}
	}
	return args
}

// text prints the variables with values, and both sides.
func (in *instance) text(args []*array.Array) string {
	var parts []string
	used := tensor.InputsOf(append(slices.Clone(in.Left), in.Right...)...)
	for i, v := range in.circuit.inputs {
		if slices.Contains(used, v) {
			parts = append(parts, fmt.Sprintf("%s: %s = %s", v.Name(), strings.TrimSuffix(v.Type().String(), " scalar"), args[i].Text(40)))
		}
	}
	t := in.circuit.run(args, nil)
	side := func(name string, vars []*variable, slots []int, err error) {
		for k, v := range vars {
			text := fgraph.Text(0, v)
			switch {
			case err != nil:
				text += " fails: " + err.Error()
			case v.Type().(tensor.Type).DType() != t.values[slots[k]].DType():
				text += fmt.Sprintf(" is a %v", t.values[slots[k]].DType())
			default:
				text += " = " + t.values[slots[k]].Text(40)
			}
			parts = append(parts, name+": "+text)
		}
	}
	side("left", in.Left, in.circuit.left, t.leftError)
	side("right", in.Right, in.circuit.right, cmp.Or(t.err, t.leftError)) // nothing is computed after an error
	return strings.Join(parts, "; ")
}
