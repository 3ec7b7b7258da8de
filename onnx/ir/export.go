package ir

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// Export returns the model of a graph. Inputs and outputs are those of the model that the graph is
// from, with their names and, unless sizes were given, with their types. If nothing has changed, it is
// that model itself. A call of a function of the model is written again if nothing that it became has
// changed; else its nodes are where it was. It shares the tensors and other parts of that model, which must not change.
func Export(g *fgraph.FunctionGraph) (*onnx.Model, error) {
	s := SourceOf(g)
	// ONNX asks for nodes in order, so a model that has them otherwise does not go out as it came.
	if s.imported == g && g.Commits() == 0 && !s.fixed && !s.unsorted {
		return s.Model, nil
	}
	e := &exporter{
		Source: s, root: g, taken: make(map[string]holders, g.NumVariableIDs()), numbered: make(map[scopedName]int), hints: make(map[string]bool, g.NumVariableIDs()), constants: make(map[*Value]string),
		contracted: make(map[*fgraph.FunctionGraph]*fgraph.FunctionGraph), domains: make(map[string]int64),
	}
	e.opset = e.version(g, s.opsets[""])
	// In a model that is raised, fewer functions are kept, and what they become may need more.
	for n := s.opsets[""]; e.opset != n; {
		n, e.raised = e.opset, e.opset
		clear(e.contracted)
		e.opset = e.version(g, n)
	}
	m := *s.Model
	if e.opset > s.opsets[""] {
		e.raise(&m)
	}
	e.format = m.IRVersion
	calling := e.calling(g)
	root, err := Regions(calling)
	if err != nil {
		return nil, err
	}
	w := e.writer(calling)
	m.Graph = w.main(root, s.imported == g)
	e.finish(&m)
	return &m, errors.Join(e.faults...)
}

// An exporter writes the graphs of a model.
type exporter struct {
	*Source
	root      *fgraph.FunctionGraph // the main graph
	opset     int64                 // of ONNX's own operators
	taken     map[string]holders
	numbered  map[scopedName]int // the last number behind a name that is not free
	hints     map[string]bool    // names of values in any graph
	constants map[*Value]string  // all of them are in the main graph
	// contracted are graphs with calls of functions, by the graphs without.
	contracted map[*fgraph.FunctionGraph]*fgraph.FunctionGraph
	raised     int64 // the version of ONNX's operators that calls must have been written for, 0 for any
	versioned  []versioned
	domains    map[string]int64 // that the model does not have
	format     int64            // the version of the file format
	faults     []error
}

// raise raises the version of ONNX's operators, which an operator asks for that rules have made.
func (e *exporter) raise(m *onnx.Model) {
	m.IRVersion = max(m.IRVersion, formatOf(e.opset))
	m.Opsets = slices.Clone(m.Opsets)
	for i, o := range m.Opsets {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			c := *o
			c.Version = e.opset
			m.Opsets[i] = &c
		}
	}
}

// A writer writes one graph of the model with the branches in it: the main one, or a body.
type writer struct {
	*exporter
	graph     *fgraph.FunctionGraph
	names     []string                  // of values, by ID
	nodeNames map[nodeKey]*fgraph.Apply // whose the names of nodes are
}

func (e *exporter) writer(g *fgraph.FunctionGraph) *writer {
	return &writer{exporter: e, graph: g, names: make([]string, g.NumVariableIDs()), nodeNames: make(map[nodeKey]*fgraph.Apply)}
}

// main writes the main graph, which may be the one that was imported.
func (w *writer) main(r *Region, imported bool) *onnx.Graph {
	old := w.Model.Graph
	g := *old
	g.Nodes, g.Initializers, g.SparseInitializers, g.Inputs, g.Outputs = nil, nil, nil, nil, nil
	w.hint(w.graph)
	// Names are taken by those first that can't have another one. Inputs and outputs are what programs
	// call by name; values inside get out of their way.
	for i, v := range w.graph.Inputs() {
		w.names[v.ID()] = w.fresh(cmp.Or(v.Name(), "input_"+strconv.Itoa(i)), r)
	}
	outputs := make([]string, len(w.graph.Outputs()))
	// Only the graph of the model has its outputs in place. Those of a part or a copy are others, and
	// must not take their names.
	own := imported && len(outputs) == len(old.Outputs)
	for i, v := range w.graph.Outputs() {
		if own {
			outputs[i] = w.take(old.Outputs[i].Name, r)
		} else {
			outputs[i] = w.fresh(cmp.Or(v.Name(), "output_"+strconv.Itoa(i)), r)
		}
		// An output is a value of its name, if that is one of a node and of no other output.
		if w.names[v.ID()] == "" && v.Owner() != nil {
			w.names[v.ID()] = outputs[i]
		}
	}
	w.constantsOf(&g, r)
	w.nameValues(r)

	defaults := make(map[string]bool)
	for i, v := range w.graph.Inputs() {
		defaults[v.Name()] = true
		var info *onnx.ValueInfo
		if i < len(old.Inputs) && old.Inputs[i].Name == v.Name() {
			info = old.Inputs[i]
		}
		g.Inputs = append(g.Inputs, w.info(info, v, w.names[v.ID()]))
	}
	// The default of an input is no constant, since whoever runs the model may override it. The graph
	// does not have it, so it comes from the file.
	for _, t := range old.Initializers {
		if defaults[t.Name] {
			g.Initializers = append(g.Initializers, t)
		}
	}
	w.inOldOrder(&g)
	g.Nodes = w.nodes(g.Nodes, r, w.graph.Outputs(), outputs)
	for i, v := range w.graph.Outputs() {
		var info *onnx.ValueInfo
		if own {
			info = old.Outputs[i]
		}
		g.Outputs = append(g.Outputs, w.info(info, v, outputs[i]))
	}
	g.Values = w.valueInfos(old)
	return &g
}

// hint notes the names that values of a graph would like to have, and of the bodies in it.
func (e *exporter) hint(g *fgraph.FunctionGraph) {
	g = e.calling(g)
	for v := range g.Variables() {
		e.hints[v.Name()] = true
	}
	for a := range g.Applies() {
		for _, b := range a.Op().(*Op).Bodies {
			e.hint(b.Graph)
		}
	}
}

// nameValues gives the results of applies names: those that they have, if these are free, then others.
// A result without a name that nothing uses and that may be left out stays without one.
func (w *writer) nameValues(root *Region) {
	regions := []*Region{root}
	for i := 0; i < len(regions); i++ {
		r := regions[i]
		for _, a := range r.Applies {
			if IsIf(a) {
				regions = append(regions, r.Branch(a, 0), r.Branch(a, 1))
			}
		}
	}
	// An apply may be in several branches, and its results need a name that is free in each.
	each := func(name func(a *fgraph.Apply, i int, v *fgraph.Variable)) {
		for _, r := range regions {
			for _, a := range r.Applies {
				for i, v := range a.Outputs() {
					if w.names[v.ID()] == "" {
						name(a, i, v)
					}
				}
			}
		}
	}
	// First all names that values have already: a new one must not be what a later value is called.
	each(func(a *fgraph.Apply, _ int, v *fgraph.Variable) {
		if name := v.Name(); name != "" && w.isFree(name, root.placed[a.ID()]...) {
			w.names[v.ID()] = w.take(name, root.placed[a.ID()]...)
		}
	})
	each(func(a *fgraph.Apply, i int, v *fgraph.Variable) {
		if v.Name() == "" && len(v.Clients()) == 0 && w.mayLeaveOut(a, i) {
			return
		}
		w.names[v.ID()] = w.fresh(cmp.Or(v.Name(), strings.ToLower(opName(v))), root.placed[a.ID()]...)
	})
}

// mayLeaveOut reports whether result i needs no name, if nothing uses it: ONNX says so, or the model did
// it. The checker of ONNX refuses others, and ONNX Runtime ends at once where a result of a Loop has no
// name.
func (w *writer) mayLeaveOut(a *fgraph.Apply, i int) bool {
	if a.Op().(*Op).MayLeaveOut(i) {
		return true
	}
	old := w.origin(a)
	return old != nil && w.unchanged(a) && i < len(old.node.Outputs) && old.node.Outputs[i] == ""
}

// name returns the name of a value.
func (w *writer) name(v *fgraph.Variable) string {
	switch x := ValueOf(v); {
	case IsOmitted(v):
		return ""
	case x != nil:
		return w.constants[x]
	}
	return w.names[v.ID()]
}

// constantsOf writes constants of Constant nodes as nodes, and other constants as initializers. Before
// version 4 of the format, initializers are inputs that may be overridden, so new ones are nodes. Those
// of bodies are in the main graph, too, whose names bodies see.
func (w *writer) constantsOf(g *onnx.Graph, r *Region) {
	initial := make(map[*onnx.Tensor]bool)
	for _, t := range w.Model.Graph.Initializers {
		initial[t] = true
	}
	for _, v := range w.written(w.graph, nil) {
		x := ValueOf(v)
		if w.constants[x] != "" {
			continue
		}
		name := w.fresh(cmp.Or(v.Name(), "constant"), r)
		w.constants[x] = name
		switch {
		case w.Source.constants[x] != nil:
			n := w.Source.constants[x]
			if n.Outputs[0] != name {
				c := *n
				c.Outputs = []string{name}
				n = &c
			}
			g.Nodes = append(g.Nodes, n)
		case x.sparse != nil:
			t := *x.sparse
			values := *t.Values
			values.Name = name
			t.Values = &values
			g.SparseInitializers = append(g.SparseInitializers, &t)
		case w.Model.IRVersion < 4 && !initial[x.Tensor]:
			g.Nodes = append(g.Nodes, &onnx.Node{Op: "Constant", Outputs: []string{name}, Attributes: []*onnx.Attribute{
				{Name: "value", Type: onnx.AttributeTensor, Tensor: x.Tensor}}})
		default:
			t := x.Tensor
			if t.Name != name {
				// The tensor is one of the model, which must not change.
				c := *t
				c.Name = name
				t = &c
			}
			g.Initializers = append(g.Initializers, t)
		}
	}
}

// inOldOrder sorts initializers as the file has them, new ones last, so that little moves in it.
func (w *writer) inOldOrder(g *onnx.Graph) {
	position := make(map[string]int)
	for i, t := range w.Model.Graph.Initializers {
		position[t.Name] = i + 1
	}
	slices.SortStableFunc(g.Initializers, func(a, b *onnx.Tensor) int {
		x, y := position[a.Name], position[b.Name]
		if x == 0 || y == 0 {
			return y - x
		}
		return x - y
	})
}

// written appends the constants of a graph, and of the bodies in it, that are values in the file. A
// constant is none if all its clients have it as an attribute in this version.
func (e *exporter) written(g *fgraph.FunctionGraph, list []*fgraph.Variable) []*fgraph.Variable {
	g = e.calling(g)
	for v := range g.Variables() {
		if ValueOf(v) != nil && slices.ContainsFunc(v.Clients(), e.readsValue) {
			list = append(list, v)
		}
	}
	for a := range g.Applies() {
		for _, b := range a.Op().(*Op).Bodies {
			list = e.written(b.Graph, list)
		}
	}
	return list
}

// readsValue reports whether a client of a constant has it as an input in the file.
func (e *exporter) readsValue(c fgraph.Client) bool {
	if c.Apply == nil {
		return true
	}
	op := c.Apply.Op().(*Op)
	m, ok := movedSince[op.Type]
	return !ok || op.Domain != "" || op.Legacy != 0 || e.versionOf(c.Apply) >= m.version ||
		!slices.ContainsFunc(m.list, func(a moved) bool { return a.input == c.Index })
}

// info returns the declaration of a value: the one that the model has, unless sizes were given.
func (e *exporter) info(old *onnx.ValueInfo, v *fgraph.Variable, name string) *onnx.ValueInfo {
	if old == nil {
		return &onnx.ValueInfo{Name: name, Type: TypeOf(v).Proto()}
	}
	typ := old.Type
	if t, now := FromProto(typ), TypeOf(v); e.fixed && now.IsTensor() && (!t.IsTensor() || moreNumbers(t, now)) {
		typ = now.Proto()
	}
	if name == old.Name && typ == old.Type {
		return old
	}
	info := *old
	info.Name, info.Type = name, typ
	return &info
}

// moreNumbers reports whether the second type has a number for a size where the first has none or
// another.
func moreNumbers(t, u Type) bool {
	x, ranked := t.Shape()
	y, too := u.Shape()
	if !too {
		return false
	}
	if !ranked || len(x) != len(y) {
		return true
	}
	for i := range x {
		if _, ok := y[i].Number(); ok && x[i] != y[i] {
			return true
		}
	}
	return false
}

// valueInfos returns the declarations of what is left of the values that the model declares.
func (w *writer) valueInfos(old *onnx.Graph) []*onnx.ValueInfo {
	if len(old.Values) == 0 {
		return nil
	}
	byName := make(map[string]*fgraph.Variable)
	for v := range w.graph.Variables() {
		byName[w.names[v.ID()]] = v
	}
	var list []*onnx.ValueInfo
	for _, info := range old.Values {
		v := byName[info.Name]
		if v == nil || v.IsInput() {
			continue
		}
		now := w.info(info, v, info.Name)
		// A value that took the name of another one in a rewrite may be of another type.
		if _, ok := FromProto(now.Type).Meet(TypeOf(v)); ok {
			list = append(list, now)
		}
	}
	return list
}
