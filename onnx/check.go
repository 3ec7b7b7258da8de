package onnx

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
)

// A Fault is something that is wrong with a model.
type Fault struct {
	// Place says where: "node 3 loop (Loop): attribute body: node 0 (Add)". Nodes are counted from 0 in
	// their graph. It is empty for the model itself.
	Place string
	Node  *Node // the innermost node of the place, or nil
	Text  string
	// Order says that the node is in front of one whose result it reads. ONNX forbids that, but such files are published,
	// and what runs them sorts nodes.
	Order bool
}

func (f Fault) String() string {
	if f.Place == "" {
		return f.Text
	}
	return f.Place + ": " + f.Text
}

// Faults is the error of [Check]: what is wrong with a model, in the order in which it is written.
type Faults struct {
	List []Fault // the first maxFaults of them
	More int     // how many others there are

	unordered int // how many of all are those of nodes in front of others
}

const (
	maxFaults = 1000 // that are listed
	maxLines  = 10   // that an error shows
)

// Error has the first faults, a line each.
func (f *Faults) Error() string {
	var b strings.Builder
	all := len(f.List) + f.More
	fmt.Fprintf(&b, "onnx: %d faults of structure", all)
	if all == 1 {
		return "onnx: " + f.List[0].String()
	}
	shown := f.List[:min(len(f.List), maxLines)]
	for _, fault := range shown {
		b.WriteString("\n\t" + fault.String())
	}
	if more := all - len(shown); more > 0 {
		fmt.Fprintf(&b, "\n\tand %d more", more)
	}
	return b.String()
}

// Check looks for faults in the structure of a model, as ONNX's checker does, and returns all of them
// as a [*Faults], or nil:
//
//   - names that are defined twice, or that a node in a subgraph defines although they are visible there
//   - inputs of nodes, and outputs of graphs, that nothing computes, or only a later node
//   - domains of operators without a version
//   - attributes without the value that their type asks for, with several values, or with the name of
//     another one; references to attributes of a function that it has not
//   - tensors whose elements don't fit their dimensions and type, or are at an impossible place; files
//     with external data are not looked for
//   - what must not be left out: versions, names, types of the inputs and outputs of the model
//   - functions with the name of another one, and those that call themselves
//
// Unlike ONNX's checker it doesn't know operators, and accepts inputs and outputs of any number of
// dimensions. A model without faults may still have nodes whose operators don't take their inputs.
//
// Check takes time in proportion to the model, and does not read weights.
func Check(m *Model) error {
	c := &checker{model: m, seen: make(map[*Graph]bool)}
	c.all()
	if len(c.faults.List) == 0 {
		return nil
	}
	return &c.faults
}

// ofOrder says of the last fault that it is one of order.
func (f *Faults) ofOrder() {
	if f.unordered++; f.More == 0 {
		f.List[len(f.List)-1].Order = true
	}
}

// OnlyOrder reports whether nothing is wrong but the order of nodes.
func (f *Faults) OnlyOrder() bool {
	return f.unordered == len(f.List)+f.More
}

// A checker checks a model.
type checker struct {
	model  *Model
	faults Faults
	path   []step           // to the place at hand
	opsets map[string]int64 // of the model or function at hand
	names  scopes
	// function is that at hand, or nil; its attributes are those that may be referred to.
	function   *Function
	attributes map[string]bool
	seen       map[*Graph]bool // a graph that is in several places is checked at the first one
}

// A step leads from a message to one within it. It becomes text only when there is a fault.
type step struct {
	index int // -1 if it has none
	of    proto
}

func (c *checker) fault(format string, args ...any) {
	if len(c.faults.List) == maxFaults {
		c.faults.More++
		return
	}
	f := Fault{Text: fmt.Sprintf(format, args...)}
	places := make([]string, len(c.path))
	for i, s := range c.path {
		places[i] = s.String()
		if n, ok := s.of.(*Node); ok {
			f.Node = n
		}
	}
	f.Place = strings.Join(places, ": ")
	c.faults.List = append(c.faults.List, f)
}

func (s step) String() string {
	switch m := s.of.(type) {
	case *Node:
		return nodeText(s.index, m)
	case *Function:
		return "function " + fileio.Excerpt(m.fullName(), 0)
	}
	text := nameOf(s.of)
	if s.index >= 0 && (!strings.Contains(text, " ") || strings.HasSuffix(text, " ")) { // it has no name
		return fmt.Sprintf("%s %d", strings.TrimSpace(text), s.index)
	}
	return strings.TrimSpace(text)
}

func nodeText(index int, n *Node) string {
	if n.Name == "" {
		return fmt.Sprintf("node %d (%s)", index, fileio.Excerpt(n.Op, 0))
	}
	return fmt.Sprintf("node %d %s (%s)", index, fileio.Excerpt(n.Name, 0), fileio.Excerpt(n.Op, 0))
}

// in checks what is in a message.
func (c *checker) in(index int, m proto, check func()) {
	c.path = append(c.path, step{index, m})
	check()
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) all() {
	m := c.model
	if m.IRVersion <= 0 {
		c.fault("ir_version is %d", m.IRVersion)
	}
	keys := make(map[string]bool)
	for _, e := range m.Metadata {
		if keys[e.Key] {
			c.fault("metadata has the key %s twice", quote(e.Key))
		}
		keys[e.Key] = true
	}
	c.versions(m.Opsets)
	switch {
	case m.IRVersion >= 3 && len(m.Opsets) == 0:
		c.fault("there is no version of the operators, which there must be from ir_version 3 on")
	case m.IRVersion < 3 && len(m.Opsets) > 0:
		c.fault("there is a version of the operators, which there can't be before ir_version 3")
	case m.IRVersion < 3:
		// There was no field for it, and the operators were those of version 1.
		c.opsets[""] = 1
	}
	if m.Graph == nil {
		c.fault("there is no graph")
	} else {
		c.graph(m.Graph, true)
	}
	c.functions()
}

// versions notes the versions of operators.
func (c *checker) versions(list []*Opset) {
	c.opsets = make(map[string]int64)
	for _, o := range list {
		domain := domainOf(o.Domain)
		if v, ok := c.opsets[domain]; ok && v != o.Version {
			c.fault("the operators of domain %s have two versions, %d and %d", quote(domain), v, o.Version)
		}
		if o.Version <= 0 {
			c.fault("the operators of domain %s have version %d", quote(domain), o.Version)
		}
		c.opsets[domain] = o.Version
	}
}

// domainOf returns the short name of a domain, which has two if it is ONNX's own.
func domainOf(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

// quote quotes a name, of which it shows as much as fits a line.
func quote(s string) string { return `"` + fileio.Excerpt(s, 0) + `"` }

// functions checks the functions of the model.
func (c *checker) functions() {
	index := make(map[callee]int)
	for i, f := range c.model.Functions {
		c.in(i, f, func() {
			key := f.callee()
			if _, ok := index[key]; ok {
				c.fault("there is another function with this name")
			} else {
				index[key] = i
			}
			if f.Name == "" {
				c.fault("it has no name")
			}
			c.body(f)
		})
	}
	c.recursion(index)
}

// A callee is what a node names as its operator.
type callee struct{ domain, name, overload string }

func (m *Function) callee() callee { return callee{domainOf(m.Domain), m.Name, m.Overload} }

func (m *Function) fullName() string { return strings.TrimPrefix(m.Domain+"."+m.Name, ".") }

// body checks what is in a function.
func (c *checker) body(f *Function) {
	c.function, c.attributes = f, make(map[string]bool)
	defer func() { c.function, c.attributes = nil, nil }()
	c.versions(f.Opsets)
	attribute := func(name string) {
		if c.attributes[name] {
			c.fault("it has two attributes %s", quote(name))
		}
		c.attributes[name] = true
	}
	for _, name := range f.Attributes {
		attribute(name)
	}
	for _, a := range f.Defaults {
		attribute(a.Name)
	}
	for i, a := range f.Defaults {
		c.in(i, a, func() { c.attribute(a) })
	}
	// No graph is open here, since a function sees no names but its own.
	c.names.enter()
	for _, name := range f.Inputs {
		if !c.names.define(name, definition{node: isInput}) {
			c.fault("it has two inputs %s", quote(name))
		}
	}
	c.nodes(f.Nodes)
	outputs := make(map[string]bool)
	for _, name := range f.Outputs {
		if outputs[name] {
			c.fault("it has two outputs %s", quote(name))
		}
		if outputs[name] = true; !c.names.visible(name) {
			c.fault("nothing computes its output %s", quote(name))
		}
	}
	c.names.leave()
}

// recursion looks for functions that call themselves, also through others.
func (c *checker) recursion(index map[callee]int) {
	functions := c.model.Functions
	all := lists.Range[int](len(functions))
	DepthFirst(all, func(i int) []int { return callsOf(functions[i], index) }, func(circle []int) {
		c.in(circle[0], functions[circle[0]], func() { c.circle(circle) })
	})
}

// circle reports a function that calls itself through others.
func (c *checker) circle(functions []int) {
	var through []string
	for _, f := range functions[1:] {
		if through = append(through, fileio.Excerpt(c.model.Functions[f].fullName(), 0)); len(through) == maxLines {
			through = append(through, "others")
			break
		}
	}
	if len(through) == 0 {
		c.fault("it calls itself")
		return
	}
	c.fault("it calls itself through %s", strings.Join(through, ", "))
}

// callsOf returns the functions that a function calls, each once.
func callsOf(f *Function, index map[callee]int) []int {
	var calls []int
	called := make(map[int]bool)
	// A call in a branch or a loop counts: it is one wherever the function is called.
	for g := range Nested(&Graph{Nodes: f.Nodes}) {
		for _, n := range g.Nodes {
			if i, ok := index[callee{domainOf(n.Domain), n.Op, n.Overload}]; ok && !called[i] {
				called[i] = true
				calls = append(calls, i)
			}
		}
	}
	return calls
}
