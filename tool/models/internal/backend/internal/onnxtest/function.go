package onnxtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// DrawFunctions returns the case of a seed whose model has functions and graphs in graphs, and few names, each of
// which stands for many values: in functions, in graphs that don't see each other, and in the main graph. Functions
// call functions, also in branches and loops, refer to attributes, with defaults and without, and leave inputs out.
// [Inline] says what such a model means.
func DrawFunctions(seed uint64) *Case {
	d := &drawing{Rand: rand.New(rand.NewPCG(seed, 2))}
	m := &onnx.Model{IRVersion: 10, Opsets: []*onnx.Opset{{Version: 17}, {Domain: local, Version: 1}}}
	for k := range 2 + d.IntN(4) {
		d.functions = append(d.functions, d.function(k))
	}
	for _, f := range d.functions {
		m.Functions = append(m.Functions, f.proto)
	}
	// A function may be defined before those that it calls.
	d.Shuffle(len(m.Functions), func(i, k int) { m.Functions[i], m.Functions[k] = m.Functions[k], m.Functions[i] })
	c := &Case{Name: fmt.Sprintf("functions_%06d", seed), Model: m, Sets: make([][]*onnx.Tensor, 1)}
	m.Graph, c.Sets[0] = d.main()
	return c
}

const local = "local"

// A kind is the type and shape of a value.
type kind int

const (
	matrix kind = iota // float[2, 3]
	scalar
	truthful // bool
	count    // int64, a number of rounds
	axes     // int64[1]
	vector   // float[3]
	other
)

var kinds = [...]struct {
	elem  onnx.DataType
	shape []int
}{{onnx.Float, []int{2, 3}}, {onnx.Float, nil}, {onnx.Bool, nil}, {onnx.Int64, nil}, {onnx.Int64, []int{1}}, {onnx.Float, []int{3}}}

// element draws an element of a value of the kind.
func (d *drawing) element(k kind) float64 {
	switch k {
	case truthful, axes:
		return float64(d.IntN(2))
	case count:
		return float64(d.IntN(4))
	}
	return float64(float64(1+d.IntN(8))/4) - 1
}

func (d *drawing) tensor(name string, k kind) *onnx.Tensor {
	return tensorOf(name, kinds[k].elem, kinds[k].shape, func(int) float64 { return d.element(k) })
}

// A drawing is the state of DrawFunctions.
type drawing struct {
	*rand.Rand
	functions []*function
	fresh     int
}

func (d *drawing) chance(p float64) bool { return d.Float64() < p }

// A function is a local function and what those who call it have to know.
type function struct {
	proto   *onnx.Function
	formals []named
	// attributes are named for what they are for, such as "alpha1", since each serves one purpose.
	attributes []*parameter
	size       int // how many functions are called in all, of itself and others
}

// A parameter is an attribute of a function. One that is needed is given by each call, or has a default.
type parameter struct {
	name, purpose string
	needed        bool
	standard      *onnx.Attribute
}

// A named value is one that nodes can read. Only what takes an optional input may read an optional one.
type named struct {
	name     string
	kind     kind
	optional bool
}

// A scope is a graph, or the body of a function, with the names that can't be defined there.
type scope struct {
	*drawing
	function *function
	outer    *scope
	depth    int
	visible  []named
	taken    map[string]bool
	inner    map[string]bool // names of the graphs in the nodes so far, which no initializer may have
	nodes    []*onnx.Node
	initial  []*onnx.Tensor
}

func newScope(d *drawing, f *function) *scope {
	return &scope{drawing: d, function: f, taken: make(map[string]bool), inner: make(map[string]bool)}
}

// inside returns a scope of a graph in a node, which sees what the node could.
func (s *scope) inside() *scope {
	in := newScope(s.drawing, s.function)
	in.outer, in.depth, in.visible, in.taken = s, s.depth+1, slices.Clone(s.visible), maps.Clone(s.taken)
	return in
}

// few are the names that are used again and again.
var few = []string{"t", "u", "o", "k", "w", "a", "b", "x", "y", "c"}

// name returns a name that the scope can define.
func (s *scope) name() string {
	name := few[s.IntN(len(few))]
	if s.taken[name] {
		return s.unique()
	}
	s.taken[name] = true
	return name
}

// unique returns a name that nothing else has.
func (s *scope) unique() string {
	s.fresh++
	name := fmt.Sprint("n", s.fresh)
	s.taken[name] = true
	return name
}

// define returns a new name for a value of a kind.
func (s *scope) define(k kind) string {
	name := s.name()
	s.visible = append(s.visible, named{name, k, false})
	return name
}

// node adds a node with a result.
func (s *scope) node(k kind, op string, in []string, attributes ...*onnx.Attribute) string {
	n := &onnx.Node{Op: op, Inputs: in, Attributes: slices.DeleteFunc(attributes, func(a *onnx.Attribute) bool { return a == nil })}
	s.nodes = append(s.nodes, n)
	out := s.define(k)
	n.Outputs = []string{out}
	return out
}

// constant adds a constant: a node or, where there can be one, an initializer.
func (s *scope) constant(k kind, t *onnx.Tensor) string {
	// A function has no initializers, but graphs in its nodes may have some.
	if (s.function != nil && s.depth == 0) || s.chance(0.5) {
		return s.node(k, "Constant", nil, &onnx.Attribute{Name: "value", Type: onnx.AttributeTensor, Tensor: t})
	}
	t.Name = s.name()
	if s.inner[t.Name] {
		t.Name = s.unique()
	}
	s.visible = append(s.visible, named{t.Name, k, false})
	s.initial = append(s.initial, t)
	return t.Name
}

// ints adds a constant list of integers.
func (s *scope) ints(v ...int) string {
	return s.constant(other, tensorOf("", onnx.Int64, []int{len(v)}, func(i int) float64 { return float64(v[i]) }))
}

// some returns a value of a kind, more often one of the last, or a new constant.
func (s *scope) some(k kind) string {
	var list []string
	for _, v := range s.visible {
		if v.kind == k && !v.optional {
			list = append(list, v.name)
		}
	}
	if len(list) == 0 || k != matrix && s.chance(0.2) {
		return s.constant(k, s.tensor("", k))
	}
	if s.chance(0.6) {
		list = list[max(0, len(list)-4):]
	}
	return list[s.IntN(len(list))]
}

// maybe returns what an optional input may be: nothing, one of the function that may be left out, or a value.
func (s *scope) maybe(k kind) string {
	if s.chance(0.3) {
		return ""
	}
	for _, v := range s.visible {
		if v.kind == k && v.optional && s.chance(0.7) {
			return v.name
		}
	}
	return s.some(k)
}

// trim leaves out the inputs at the end that are empty, as most writers do.
func (d *drawing) trim(in []string) []string {
	for len(in) > 0 && in[len(in)-1] == "" && d.chance(0.7) {
		in = in[:len(in)-1]
	}
	return in
}

// purposes say how the value of an attribute is drawn.
var purposes = map[string]func(d *drawing, name string) *onnx.Attribute{
	"alpha":  func(d *drawing, name string) *onnx.Attribute { return number(name, float64(1+d.IntN(8))/4) },
	"axis":   func(d *drawing, name string) *onnx.Attribute { return integer(name, d.IntN(4)-2) },
	"choice": func(d *drawing, name string) *onnx.Attribute { return integer(name, d.IntN(2)) },
	"perm":   func(d *drawing, name string) *onnx.Attribute { k := d.IntN(2); return list(name, k, 1-k) },
	"mode": func(d *drawing, name string) *onnx.Attribute {
		return text(name, []string{"constant", "reflect", "edge"}[d.IntN(3)])
	},
	"value": func(d *drawing, name string) *onnx.Attribute {
		return &onnx.Attribute{Name: name, Type: onnx.AttributeTensor, Tensor: d.tensor("", scalar)}
	},
}

// attribute returns an attribute of a node: a value, a reference to one of the function, or nil where the operator has
// a default.
func (s *scope) attribute(name, purpose string, needed bool) *onnx.Attribute {
	draw := purposes[purpose]
	switch {
	case s.function != nil && s.chance(0.7):
		p := s.parameter(purpose)
		p.needed = p.needed || needed
		// A reference has the type of the value, and one is drawn only to know that.
		return &onnx.Attribute{Name: name, Type: draw(s.drawing, name).Type, Ref: p.name}
	case !needed && s.chance(0.3):
		return nil
	}
	return draw(s.drawing, name)
}

// parameter returns an attribute of the function, one that there is or a new one.
func (s *scope) parameter(purpose string) *parameter {
	f := s.function
	for _, p := range f.attributes {
		if p.purpose == purpose && s.chance(0.6) {
			return p
		}
	}
	p := &parameter{name: fmt.Sprint(purpose, len(f.attributes)), purpose: purpose}
	// Names of attributes are apart from those of values, and from what operators call theirs.
	for _, name := range []string{"x", "alpha", "axis"} {
		if !slices.ContainsFunc(f.attributes, func(p *parameter) bool { return p.name == name }) && s.chance(0.3) {
			p.name = name
			break
		}
	}
	f.attributes = append(f.attributes, p)
	return p
}
