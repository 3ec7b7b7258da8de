package ir

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// calling returns the graph with calls of functions as applies again, see withCalls: g itself if it has
// them already.
func (e *exporter) calling(g *fgraph.FunctionGraph) *fgraph.FunctionGraph {
	if !e.calls {
		return g
	}
	if e.contracted[g] == nil {
		c, err := e.withCalls(g, g == e.root, e.raised)
		if err != nil {
			e.faults = append(e.faults, err)
			c = g
		}
		e.contracted[g], e.contracted[c] = c, c
	}
	return e.contracted[g]
}

// A versioned function has a single node, which the model's version of the operators can't express.
type versioned struct {
	*onnx.Function
	text string // of what is in it
}

// functionsSince is the version of the file format since which models have functions.
const functionsSince = 8

// versionOf returns the version, of the operators of its domain, that an apply is written for: the model's
// own, if the op has its meaning there.
func (e *exporter) versionOf(a *fgraph.Apply) int64 {
	op, f := a.Op().(*Op), e.inFunction(a)
	if op.Domain == "" {
		switch {
		case e.opset < changedBefore[op.Type] && op.Legacy < changedBefore[op.Type]:
			return e.opset // the meaning was the same in both
		case op.Legacy != 0:
			return op.Legacy
		case f != nil && op.latest() < e.opset:
			return op.latest()
		}
		return max(e.opset, e.needs(a))
	}
	own := e.opsets[op.Domain]
	if f == nil || f.is != nil || f.opsets[op.Domain] == 0 || own == 0 {
		return own
	}
	return f.opsets[op.Domain]
}

// ownVersion returns the version of a domain that nodes of the model have.
func (e *exporter) ownVersion(domain string) int64 {
	if domain == "" {
		return e.opset
	}
	return e.opsets[domain]
}

// versionedCall returns what takes the place of a node of another version than the model's: a call of a
// function that holds the node.
func (w *writer) versionedCall(n onnx.Node, op *Op, version int64) *onnx.Node {
	if w.format < functionsSince || len(op.Bodies) > 0 {
		why := "a function can't hold its graphs, which see what is around them"
		if len(op.Bodies) == 0 {
			why = fmt.Sprintf("version %d of the file format has no functions", w.format)
		}
		w.faults = append(w.faults, fmt.Errorf("node %s: %s of version %d is not in version %d of its operators, and %s", n.Name, op.Name(), version, w.ownVersion(op.Domain), why))
		return new(n)
	}
	f := &onnx.Function{Opsets: []*onnx.Opset{{Domain: op.Domain, Version: version}}} // which ONNX Runtime 1.30 does not look at
	inner, outer := n, onnx.Node{Name: n.Name}
	inner.Name = ""
	inner.Inputs, outer.Inputs, f.Inputs = renamed(n.Inputs, "x")
	inner.Outputs, outer.Outputs, f.Outputs = renamed(n.Outputs, "y")
	f.Nodes = []*onnx.Node{&inner}
	// The old meaning is written with operators of the model's own version, so it holds also where the
	// version of a function is not looked at.
	if op.Domain == "" && changedBefore[op.Type] == softmaxVersion {
		f.Opsets[0].Version = w.opset
		f.Nodes = alongSeveral(op)
	}
	f.Domain, f.Name = w.versionedName(f, op, version)
	outer.Domain, outer.Op = f.Domain, f.Name
	w.domains[f.Domain] = 1
	return &outer
}

// alongSeveral returns nodes that compute what a Softmax and the like was before it was along one axis: it
// took all dimensions from an axis on for one.
func alongSeveral(op *Op) []*onnx.Node {
	return []*onnx.Node{
		{Op: "Flatten", Inputs: []string{"x0"}, Outputs: []string{"flat"}, Attributes: []*onnx.Attribute{Int("axis", op.Int("axis", 1))}},
		{Op: op.Type, Inputs: []string{"flat"}, Outputs: []string{"result"}, Attributes: []*onnx.Attribute{Int("axis", 1)}},
		{Op: "Shape", Inputs: []string{"x0"}, Outputs: []string{"shape"}},
		{Op: "Reshape", Inputs: []string{"result", "shape"}, Outputs: []string{"y0"}},
	}
}

// renamed gives names new ones: base with a number. In inner, those that are left out stay empty; given and
// inside are the old and the new names without those.
func renamed(names []string, base string) (inner, given, inside []string) {
	for _, name := range names {
		if name == "" {
			inner = append(inner, "")
			continue
		}
		inner = append(inner, base+strconv.Itoa(len(given)))
		given = append(given, name)
		inside = append(inside, inner[len(inner)-1])
	}
	return inner, given, inside
}

// versionedName returns the name of a function of a single node: that of an equal one, or a new one.
func (w *writer) versionedName(f *onnx.Function, op *Op, version int64) (domain, name string) {
	// All use the same names inside, so equal texts are equal functions.
	text := fmt.Sprint(op, version, f.Nodes[0].Inputs, f.Nodes[0].Outputs)
	for _, a := range f.Nodes[0].Attributes {
		text += " " + a.Name + attributeText(a)
	}
	for _, v := range w.versioned {
		if v.text == text {
			return v.Domain, v.Name
		}
	}
	w.versioned = append(w.versioned, versioned{f, text})
	domain = "versions"
	for i := 1; w.opsets[domain] != 0 || slices.ContainsFunc(w.Model.Functions, func(f *onnx.Function) bool { return f.Domain == domain }); i++ {
		domain = "versions_" + strconv.Itoa(i)
	}
	base := fmt.Sprintf("%s_%d", op.Type, version)
	name = base
	for i := 1; slices.ContainsFunc(w.versioned, func(v versioned) bool { return v.Name == name }); i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	return domain, name
}

// finish completes a model: the functions that it still calls, in the order of the file, and the versions
// of all domains.
func (e *exporter) finish(m *onnx.Model) {
	if len(e.Model.Functions) == 0 && len(e.versioned) == 0 && len(e.domains) == 0 && e.opsets[""] != 0 {
		return
	}
	functions := make(map[string]*onnx.Function)
	for _, f := range e.Model.Functions {
		functions[functionName(f.Domain, f.Name, f.Overload)] = f
	}
	called := make(map[*onnx.Function]bool)
	used := make(map[string]bool) // domains of the graph itself
	var calls []*onnx.Function
	note := func(g *onnx.Graph) {
		for _, n := range g.Nodes {
			if f := functions[functionName(n.Domain, n.Op, n.Overload)]; f != nil && !called[f] {
				called[f] = true
				calls = append(calls, f)
			}
		}
	}
	for g := range onnx.Nested(m.Graph) {
		note(g)
		for _, n := range g.Nodes {
			used[domainOf(n.Domain)] = true
		}
	}
	// The list grows on the way: a function that is kept needs those that it calls.
	for i := 0; i < len(calls); i++ {
		for g := range onnx.Nested(&onnx.Graph{Nodes: calls[i].Nodes}) {
			note(g)
		}
	}
	m.Functions = nil
	for _, f := range e.Model.Functions {
		if called[f] {
			m.Functions = append(m.Functions, f)
		}
	}
	for _, v := range e.versioned {
		m.Functions = append(m.Functions, v.Function)
	}
	e.addDomains(m, used)
}

// addDomains adds the domains that nodes of the model have because they were in a function.
func (e *exporter) addDomains(m *onnx.Model, used map[string]bool) {
	var list []*onnx.Opset
	for domain, version := range e.domains {
		if used[domain] && e.opsets[domain] == 0 {
			list = append(list, &onnx.Opset{Domain: domain, Version: version})
		}
	}
	if used[""] && e.opsets[""] == 0 {
		list = append(list, &onnx.Opset{Version: e.opset})
	}
	slices.SortFunc(list, func(a, b *onnx.Opset) int { return strings.Compare(a.Domain, b.Domain) })
	m.Opsets = append(slices.Clip(m.Opsets), list...)
}

// noteDomain notes the version of a domain that the model does not say: only a function of it does, or a rule has made
// the node.
func (e *exporter) noteDomain(a *fgraph.Apply) {
	domain := a.Op().(*Op).Domain
	if domain == "" || e.opsets[domain] != 0 {
		return
	}
	version := int64(1)
	if f := e.inFunction(a); f != nil {
		version = cmp.Or(f.opsets[domain], version)
	}
	e.domains[domain] = cmp.Or(e.domains[domain], version)
}
