package onnxtest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// maxCalls bounds the calls that one call of a function makes in all.
const maxCalls = 20

// function draws a function, which may call those before.
func (d *drawing) function(k int) *function {
	// Two of the names are those of operators of ONNX, which only the domain tells from these functions.
	f := &function{proto: &onnx.Function{Domain: local, Name: []string{"f", "g", "Relu", "If"}[d.IntN(4)], Opsets: []*onnx.Opset{{Version: 17}, {Domain: local, Version: 1}}}}
	// A name that is in use gets an overload.
	if slices.ContainsFunc(d.functions, func(g *function) bool { return g.proto.Name == f.proto.Name }) {
		f.proto.Overload = fmt.Sprint(k)
	}
	s := newScope(d, f)
	f.formals = []named{{s.name(), matrix, false}}
	for range d.IntN(5) {
		v := named{s.name(), kind(d.IntN(int(other))), false}
		v.optional = v.kind != matrix && d.chance(0.6)
		f.formals = append(f.formals, v)
	}
	d.Shuffle(len(f.formals), func(i, k int) { f.formals[i], f.formals[k] = f.formals[k], f.formals[i] })
	s.visible = slices.Clone(f.formals)
	for _, v := range f.formals {
		f.proto.Inputs = append(f.proto.Inputs, v.name)
	}
	for range 1 + d.IntN(3) {
		f.proto.Outputs = append(f.proto.Outputs, s.result(s.steps(1+d.IntN(3))))
	}
	f.proto.Nodes = s.nodes
	for _, p := range f.attributes {
		if d.chance(0.5) {
			p.standard = purposes[p.purpose](d, p.name)
			f.proto.Defaults = append(f.proto.Defaults, p.standard)
		} else {
			f.proto.Attributes = append(f.proto.Attributes, p.name)
		}
	}
	return f
}

// main draws the main graph and its inputs.
func (d *drawing) main() (*onnx.Graph, []*onnx.Tensor) {
	s := newScope(d, nil)
	g := &onnx.Graph{Name: "g"}
	var inputs []*onnx.Tensor
	for _, k := range []kind{matrix, matrix, scalar, truthful, truthful, count, axes} {
		v := named{s.define(k), k, false}
		inputs = append(inputs, d.tensor(v.name, k))
		g.Inputs = append(g.Inputs, v.info())
	}
	for range 2 + d.IntN(4) {
		y := s.call()
		if y == "" || d.chance(0.3) {
			y = s.step()
		}
		g.Outputs = append(g.Outputs, named{s.result(y), matrix, false}.info())
	}
	g.Nodes, g.Initializers = s.nodes, s.initial
	return g, inputs
}

// result returns a new name for a value, which bounds it, since products of products grow.
func (s *scope) result(y string) string {
	return s.node(matrix, []string{"Tanh", "Softsign"}[s.IntN(2)], []string{y})
}

// steps takes some steps, and returns the last matrix.
func (s *scope) steps(n int) (y string) {
	for range n {
		y = s.step()
	}
	return y
}

// step adds nodes that make a matrix.
func (s *scope) step() string {
	x := s.some(matrix)
	switch s.IntN(14) {
	case 0, 1:
		return s.node(matrix, []string{"Add", "Sub", "Mul", "Max"}[s.IntN(4)], []string{x, s.some(kind(s.IntN(2)))})
	case 2:
		return s.node(matrix, []string{"Neg", "Identity", "Abs"}[s.IntN(3)], []string{x})
	case 3:
		return s.node(matrix, []string{"LeakyRelu", "Elu", "HardSigmoid"}[s.IntN(3)], []string{x}, s.attribute("alpha", "alpha", false))
	case 4:
		return s.node(matrix, "Softmax", []string{x}, s.attribute("axis", "axis", false))
	case 5:
		c := s.node(scalar, "Constant", nil, s.attribute("value_float", "alpha", true))
		return s.node(matrix, "Add", []string{x, c})
	case 6:
		c := s.node(scalar, "Constant", nil, s.attribute("value", "value", true))
		return s.node(matrix, "Mul", []string{x, c})
	case 7:
		// Every step ends with 2×3 elements, or others could not take it for a matrix.
		t := s.node(other, "Transpose", []string{x}, s.attribute("perm", "perm", true))
		return s.node(matrix, "Reshape", []string{t, s.ints(2, 3)})
	case 8:
		return s.node(matrix, "Clip", s.trim([]string{x, s.maybe(scalar), s.maybe(scalar)}))
	case 9:
		p := s.node(other, "Pad", s.trim([]string{x, s.ints(1, 1, 0, 1), s.maybe(scalar)}), s.attribute("mode", "mode", false))
		i, k := s.IntN(2), s.IntN(3)
		return s.node(matrix, "Slice", []string{p, s.ints(i, k), s.ints(i+2, k+3)})
	case 10:
		sum := s.node(other, "ReduceSum", s.trim([]string{x, s.maybe(axes)}), s.attribute("noop_with_empty_axes", "choice", false))
		return s.node(matrix, "Sub", []string{x, sum})
	case 11:
		if y := s.call(); y != "" {
			return y
		}
	case 12:
		if s.depth < 2 {
			return s.branch()
		}
	case 13:
		if s.depth < 2 {
			return s.loop()
		}
	}
	// An input in the middle is left out, or not.
	return s.node(matrix, "Slice", []string{x, s.ints(-1), s.ints(-9), s.maybe(axes), s.ints(-1)})
}

// call calls a function, or returns "" if there is none or it calls too many others.
func (s *scope) call() string {
	if len(s.functions) == 0 {
		return ""
	}
	f := s.functions[s.IntN(len(s.functions))]
	// Without a bound the nodes that a call means would grow exponentially, since each function may call the
	// one before it twice.
	if s.function != nil {
		if s.function.size += 1 + f.size; s.function.size > maxCalls {
			s.function.size -= 1 + f.size
			return ""
		}
	}
	n := &onnx.Node{Domain: local, Op: f.proto.Name, Overload: f.proto.Overload}
	for _, v := range f.formals {
		if v.optional {
			n.Inputs = append(n.Inputs, s.maybe(v.kind))
		} else {
			n.Inputs = append(n.Inputs, s.some(v.kind))
		}
	}
	n.Inputs = s.trim(n.Inputs)
	for _, p := range f.attributes {
		if a := s.attribute(p.name, p.purpose, p.needed && p.standard == nil); a != nil {
			n.Attributes = append(n.Attributes, a)
		}
	}
	s.nodes = append(s.nodes, n)
	// Of several results, one is read.
	keep := s.IntN(len(f.proto.Outputs))
	for i := range f.proto.Outputs {
		out := ""
		if i == keep || s.chance(0.5) {
			out = s.define(matrix)
		}
		n.Outputs = append(n.Outputs, out)
	}
	return n.Outputs[keep]
}

// branch adds an If.
func (s *scope) branch() string {
	n := &onnx.Node{Op: "If", Inputs: []string{s.some(truthful)}, Outputs: []string{s.name()}}
	for _, name := range []string{"then_branch", "else_branch"} {
		// Both branches may use the same names, since they don't see each other.
		in := s.inside()
		n.Attributes = append(n.Attributes, graph(name, in.graph(nil, []named{{in.result(in.steps(1 + s.IntN(3))), matrix, false}})))
	}
	return s.made(n)
}

// loop adds a Loop or a Scan that carries a matrix. Inputs of a Loop may be left out, so its body ends it, too.
func (s *scope) loop() string {
	if s.chance(0.3) {
		return s.scan()
	}
	n := &onnx.Node{Op: "Loop", Inputs: []string{s.maybe(count), s.maybe(truthful), s.some(matrix)}, Outputs: []string{s.name()}}
	in := s.inside()
	inputs := in.inputs(count, truthful, matrix)
	next := named{in.result(in.steps(1 + s.IntN(3))), matrix, false}
	limit := in.constant(other, tensorOf("", onnx.Int64, nil, func(int) float64 { return float64(s.IntN(3)) }))
	more := named{in.node(truthful, "Less", []string{inputs[0].name, limit}), truthful, false}
	n.Attributes = []*onnx.Attribute{graph("body", in.graph(inputs, []named{more, next}))}
	return s.made(n)
}

func (s *scope) scan() string {
	n := &onnx.Node{Op: "Scan", Inputs: []string{s.some(matrix), s.some(matrix)}, Outputs: []string{s.name()}}
	in := s.inside()
	inputs := in.inputs(matrix, vector)
	next := named{in.result(in.node(matrix, "Add", []string{in.steps(1 + s.IntN(2)), inputs[1].name})), matrix, false}
	n.Attributes = []*onnx.Attribute{graph("body", in.graph(inputs, []named{next})), integer("num_scan_inputs", 1)}
	return s.made(n)
}

// made adds a node whose name of a result is taken, so that the graphs in it could not define it.
func (s *scope) made(n *onnx.Node) string {
	s.nodes = append(s.nodes, n)
	s.visible = append(s.visible, named{n.Outputs[0], matrix, false})
	return n.Outputs[0]
}

// inputs defines the inputs of the graph of the scope.
func (s *scope) inputs(kinds ...kind) (list []named) {
	for _, k := range kinds {
		list = append(list, named{s.define(k), k, false})
	}
	return list
}

// graph returns the graph of the scope, which ends with it.
func (s *scope) graph(inputs, outputs []named) *onnx.Graph {
	maps.Copy(s.outer.inner, s.taken)
	maps.Copy(s.outer.inner, s.inner)
	g := &onnx.Graph{Name: "g", Nodes: s.nodes, Initializers: s.initial}
	for _, v := range inputs {
		g.Inputs = append(g.Inputs, v.info())
	}
	for _, v := range outputs {
		g.Outputs = append(g.Outputs, v.info())
	}
	return g
}

func (v named) info() *onnx.ValueInfo {
	return typed(v.name, kinds[v.kind].elem, [][]int{kinds[v.kind].shape})
}
