package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/onnx"
)

// Versions of what is written: those of ONNX 1.12.
const (
	irVersion = 8
	opset     = 17
)

// maxNodes bounds the nodes of a model. Other programs have no use for more.
const maxNodes = 1 << 20

// Options say what a model is called.
type Options struct {
	// Name is the name of the graph. Producer is the program that writes it.
	Name, Producer, ProducerVersion string
	// Port returns the name of an input or output. The default is the name of its node.
	Port func(p lower.Port, output bool) string
	// Metadata are written as they are.
	Metadata []*onnx.Entry
}

// Model returns a program as a model for any number of sequences, each with the rows of the program.
// The network has its components and nodes. The error is of type Faults if ONNX can't say all of it.
// The model shares no memory with the network.
func Model(p *lower.Program, nn *nnet3.Nnet, o Options) (*onnx.Model, error) {
	if o.Port == nil {
		o.Port = func(p lower.Port, _ bool) string { return nn.Nodes[p.Node].Name }
	}
	m := &modeller{writer: newWriter(), nn: nn, values: make(map[*fgraph.Variable]value)}
	order, err := p.Graph.Toposort()
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	m.reserve(p, o)
	for i, v := range p.Graph.Inputs() {
		if p.Inputs[i].IsMatrix() {
			m.input(v, o.Port(p.Inputs[i], false))
		}
	}
	for _, a := range order {
		if err := m.apply(a); err != nil {
			return nil, err
		}
		if len(m.graph.Nodes) > maxNodes {
			return nil, fmt.Errorf("export: there would be more than %d nodes", maxNodes)
		}
	}
	if len(m.faults) > 0 {
		return nil, m.faults
	}
	m.outputs(p, o)
	if m.fault != nil {
		return nil, fmt.Errorf("export: %w", m.fault)
	}
	m.graph.Name = o.Name
	return &onnx.Model{IRVersion: irVersion, ProducerName: o.Producer, ProducerVersion: o.ProducerVersion, Graph: m.graph,
		Opsets: []*onnx.Opset{{Version: opset}}, Metadata: o.Metadata}, nil
}

// A modeller makes a model of a program.
type modeller struct {
	*writer
	nn     *nnet3.Nnet
	values map[*fgraph.Variable]value
	faults Faults
}

// reserve keeps the names of inputs and outputs for them.
func (m *modeller) reserve(p *lower.Program, o Options) {
	for side, ports := range [][]lower.Port{p.Inputs, p.Outputs} {
		for _, port := range ports {
			if port.IsMatrix() {
				m.names[o.Port(port, side == 1)] = true
			}
		}
	}
}

// shaped returns the type of a value of all sequences.
func shaped(name string, t lower.MatrixType, batched bool) *onnx.ValueInfo {
	rows, cols, one := int64(t.Rows), int64(t.Cols), int64(1)
	sequences := &onnx.Dim{Param: batchSymbol}
	if !batched {
		sequences = &onnx.Dim{Value: &one}
	}
	return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: onnx.Float,
		Shape: &onnx.Shape{Dims: []*onnx.Dim{sequences, {Value: &rows}, {Value: &cols}}}}}}
}

func (m *modeller) input(v *fgraph.Variable, name string) {
	t := lower.TypeOf(v)
	m.graph.Inputs = append(m.graph.Inputs, shaped(name, t, true))
	m.values[v] = value{name: name, dims: []int{int(t.Rows), int(t.Cols)}, batched: true}
	if m.sequence == "" {
		m.sequence = name
	}
}

// outputs gives values the names of outputs.
func (m *modeller) outputs(p *lower.Program, o Options) {
	makers := make(map[string]*onnx.Node)
	var names, values []string
	for i, v := range p.Graph.Outputs() {
		if !p.Outputs[i].IsMatrix() {
			continue
		}
		name := o.Port(p.Outputs[i], true)
		m.scope = name
		m.graph.Outputs = append(m.graph.Outputs, shaped(name, lower.TypeOf(v), m.sequence != ""))
		names = append(names, name)
		values = append(values, m.allSequences(m.allRows(m.values[v])).name)
	}
	for _, n := range m.graph.Nodes {
		makers[n.Outputs[0]] = n
	}
	// The node that makes a value gets the name of the output. An input, a constant and what is another
	// output already have no such node.
	renamed := make(map[string]string)
	for i, name := range names {
		if n := makers[values[i]]; n != nil {
			renamed[values[i]], n.Outputs[0] = name, name
			delete(makers, values[i])
			continue
		}
		n := &onnx.Node{Op: "Identity", Name: m.unused(name + "/Identity"), Inputs: []string{values[i]}, Outputs: []string{name}}
		m.graph.Nodes = append(m.graph.Nodes, n)
	}
	for _, n := range m.graph.Nodes {
		for i, in := range n.Inputs {
			if to, ok := renamed[in]; ok {
				n.Inputs[i] = to
			}
		}
	}
}

// apply makes nodes of an apply.
func (m *modeller) apply(a *fgraph.Apply) error {
	inputs := lists.Map(a.Inputs(), func(v *fgraph.Variable) value { return m.values[v] })
	var y value
	switch op := a.Op().(type) {
	case lower.Propagate:
		m.scope = op.Name
		return m.propagate(a, op, inputs)
	case lower.Backprop:
		m.faults = append(m.faults, Fault{Reason: "a derivative, which the request asks for"})
		return nil
	case *lower.Assemble:
		m.scope = "rows"
		if len(m.faults) > 0 {
			return nil
		}
		y = m.assemble(op, inputs)
	case *lower.RowRanges:
		m.scope = "sums"
		if len(m.faults) > 0 {
			return nil
		}
		return m.rowRanges(a, op, inputs[0])
	case lower.Fill:
		m.scope = "constant"
		y = m.filled(op.Value, int(op.Rows), int(op.Cols))
	case lower.Block:
		m.scope = "block"
		if len(m.faults) > 0 {
			return nil
		}
		y = m.slice(m.slice(inputs[0], 0, int(op.R0), int(op.R1), 1), 1, int(op.C0), int(op.C1), 1)
	default:
		m.faults = append(m.faults, Fault{Reason: fmt.Sprintf("%v, an operation that this package doesn't know", op)})
		return nil
	}
	m.values[a.Out()] = y
	return nil
}

// propagate makes nodes of what a component computes.
func (m *modeller) propagate(a *fgraph.Apply, op lower.Propagate, inputs []value) error {
	f := new(component.Formula)
	operands := component.Operands{Rows: int(lower.TypeOf(a.Out()).Rows)}
	if op.Precomputed != nil {
		operands.Pre = op.Precomputed.Data
	}
	added := op.InputAdded()
	var terms []value
	var sum component.Term
	for i, v := range a.Inputs() {
		t := lower.TypeOf(v)
		if t == (lower.MatrixType{}) {
			continue // the state that statistics go into
		}
		x := f.Input(int(t.Rows), int(t.Cols))
		terms = append(terms, inputs[i])
		if i == added {
			sum = x
		} else {
			operands.X = x
		}
	}
	// A product says where in its formula it adds. All others add to their result.
	_, product := op.C.(*component.Product)
	if product {
		operands.Y = sum
	}
	y := f.Express(op.C, operands)
	if sum != 0 && !product && y != 0 {
		y = f.Binary(component.OpAdd, sum, y)
	}
	for _, fault := range f.Faults() {
		m.note(op.C, fault)
	}
	if len(m.faults) > 0 {
		return nil
	}
	values, err := m.steps(f, terms)
	if err != nil {
		return err
	}
	m.values[a.Out()] = values[y-1]
	return nil
}

// note notes a fault of a component, or of a part of it, unless it is known.
func (m *modeller) note(whole component.Component, f component.FormulaFault) {
	fault := faultOf(m.nn, f.Component, f.Reason)
	if fault.Nodes == nil {
		fault = faultOf(m.nn, whole, fmt.Sprintf("%s: %s %s", "has a part that can't be said", f.Component.Type(), f.Reason))
	}
	if !slices.ContainsFunc(m.faults, func(o Fault) bool { return o.Component == fault.Component && o.Reason == fault.Reason }) {
		m.faults = append(m.faults, fault)
	}
}

// rowRanges makes nodes that sum ranges of rows.
func (m *modeller) rowRanges(a *fgraph.Apply, op *lower.RowRanges, x value) error {
	f := new(component.Formula)
	sets := make([][]int32, len(op.Ranges))
	for i, r := range op.Ranges {
		for row := r[0]; row < r[1]; row++ {
			sets[i] = append(sets[i], row)
		}
	}
	t := lower.TypeOf(a.Inputs()[0])
	y := f.SumSets(f.Input(int(t.Rows), int(t.Cols)), 0, sets)
	for _, fault := range f.Faults() {
		m.faults = append(m.faults, Fault{Reason: "a sum of rows " + fault.Reason})
	}
	if len(m.faults) > 0 {
		return nil
	}
	values, err := m.steps(f, []value{x})
	if err != nil {
		return err
	}
	m.values[a.Out()] = values[y-1]
	return nil
}

// A Fault is a part of a computation that ONNX can't say.
type Fault struct {
	Nodes     []string // that run the component
	Component string   // its name; empty for what is no component's fault
	Type      string
	Reason    string
}

// String returns the fault with the names of nodes and component.
func (f Fault) String() string {
	if f.Component == "" {
		return f.Reason
	}
	nodes := ""
	for i, n := range f.Nodes {
		if i > 0 {
			nodes += ", "
		}
		nodes += fileio.Excerpt(n, 0)
	}
	return fmt.Sprintf("node %s: component %s (%s) %s", nodes, fileio.Excerpt(f.Component, 0), f.Type, f.Reason)
}

// Faults is the error of Model: everything that can't be said, in the order of the computation.
type Faults []Fault

// Error lists all faults.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	if len(lines) == 1 {
		return "this can't be said in ONNX: " + lines[0]
	}
	return fmt.Sprintf("%d parts of the network can't be said in ONNX:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// faultOf names the component of a fault, and the nodes that run it.
func faultOf(nn *nnet3.Nnet, c component.Component, reason string) Fault {
	for {
		d, ok := c.(component.Derived)
		if !ok {
			break
		}
		c = d.Base()
	}
	f := Fault{Type: c.Type(), Component: "?", Reason: reason}
	for i, other := range nn.Components {
		if other != c {
			continue
		}
		f.Component = nn.ComponentNames[i]
		for n := range nn.Nodes {
			if nn.Nodes[n].Kind == nnet3.ComponentNode && nn.Nodes[n].Component == i {
				f.Nodes = append(f.Nodes, nn.Nodes[n].Name)
			}
		}
	}
	return f
}
