package onnx

// What defines a name that no node does.
const (
	isInput = -1 - iota
	isInitializer
)

// A definition says what defines a name.
type definition struct {
	node  int // its index in the graph, or one of the above
	scope int // how many graphs are around it
}

// scopes are the names that are visible in a graph: its own, and those of the graphs around it.
type scopes struct {
	now  map[string]definition
	undo []undone
	from []int // where the entries of undo of each graph begin
}

// An undone is what a name meant before a graph defined it.
type undone struct {
	name string
	old  definition
	had  bool
}

func (s *scopes) enter() {
	if s.now == nil {
		s.now = make(map[string]definition)
	}
	s.from = append(s.from, len(s.undo))
}

func (s *scopes) leave() {
	from := s.from[len(s.from)-1]
	for i := len(s.undo) - 1; i >= from; i-- {
		if u := s.undo[i]; u.had {
			s.now[u.name] = u.old
		} else {
			delete(s.now, u.name)
		}
	}
	if s.undo, s.from = s.undo[:from], s.from[:len(s.from)-1]; len(s.from) == 0 {
		s.now = nil
	}
}

// define defines a name in the innermost graph. It returns false if that graph has it.
func (s *scopes) define(name string, d definition) bool {
	old, had := s.now[name]
	d.scope = len(s.from)
	if had && old.scope == d.scope {
		return false
	}
	if s.now[name] = d; d.scope > 1 { // what nothing is around needs no undoing
		s.undo = append(s.undo, undone{name, old, had})
	}
	return true
}

func (s *scopes) visible(name string) bool {
	_, ok := s.now[name]
	return ok
}

// graph checks a graph, and those within it.
func (c *checker) graph(g *Graph, main bool) {
	if c.seen[g] {
		return
	}
	// Reading bounds the depth of a file's messages, but a program may nest graphs deeper, and nobody
	// could read those again.
	if c.seen[g] = true; len(c.path) > maxDepth {
		c.fault("messages are nested more than %d deep", maxDepth)
		return
	}
	if g.Name == "" {
		c.fault("the graph has no name")
	}
	c.names.enter()
	defer c.names.leave()
	for i, v := range g.Inputs {
		c.in(i, v, func() {
			if c.value(v, main); v.Name != "" && !c.names.define(v.Name, definition{node: isInput}) {
				c.fault("there are two inputs with this name")
			}
		})
	}
	// Behind the inputs, since an initializer may have the name of one, whose default it is.
	c.initializers(g)
	c.nodes(g.Nodes)
	for i, v := range g.Outputs {
		c.in(i, v, func() {
			if c.value(v, main); v.Name != "" && !c.names.visible(v.Name) {
				c.fault("nothing computes this output")
			}
		})
	}
}

// value checks an input or output of a graph.
func (c *checker) value(v *ValueInfo, main bool) {
	if v.Name == "" {
		c.fault("it has no name")
	}
	if main { // types in subgraphs follow from where they are
		c.typ(v.Type)
	}
}

// typ checks a type, down to its elements.
func (c *checker) typ(t *Type) {
	for range maxDepth {
		var next *ElementType
		switch {
		case t == nil:
		case t.Tensor != nil:
			c.elem(t.Tensor.Elem)
			return
		case t.SparseTensor != nil:
			c.elem(t.SparseTensor.Elem)
			return
		case t.Sequence != nil:
			next = t.Sequence
		case t.Optional != nil:
			next = t.Optional
		case t.Map != nil:
			next = &ElementType{Elem: t.Map.Value}
		case t.Opaque != nil:
			return
		}
		if next == nil {
			c.fault("it has no type")
			return
		}
		t = next.Elem
	}
	c.fault("its type is nested more than %d deep", maxDepth)
}

func (c *checker) elem(t DataType) {
	if t <= Undefined {
		c.fault("its elements are of type %v", t)
	}
}

// initializers checks the constants of a graph, and defines their names.
func (c *checker) initializers(g *Graph) {
	own := make(map[string]bool)
	define := func(name string) {
		switch {
		case name == "":
			c.fault("an initializer must have a name")
			return
		case own[name]:
			c.fault("there are two initializers with this name")
		}
		own[name] = true
		// An initializer may be the default of an input. Once it had to be.
		if c.names.define(name, definition{node: isInitializer}) && c.model.IRVersion > 0 && c.model.IRVersion <= 3 {
			c.fault("an initializer must be an input, too, before ir_version 4")
		}
	}
	for i, t := range g.Initializers {
		c.in(i, t, func() {
			define(t.Name)
			c.tensor(t)
		})
	}
	for i, t := range g.SparseInitializers {
		c.in(i, t, func() {
			if c.sparse(t); t.Values != nil {
				define(t.Values.Name)
			}
		})
	}
}

// nodes checks nodes in their order, in which each may use what is defined before it.
func (c *checker) nodes(nodes []*Node) {
	var later map[string]int // made when it is needed: which nodes compute what
	for i, n := range nodes {
		c.in(i, n, func() {
			for _, name := range n.Inputs {
				if name == "" || c.names.visible(name) {
					continue
				}
				if later == nil {
					later = outputsOf(nodes)
				}
				if k, ok := later[name]; ok {
					c.fault("its input %s is computed later, by %s", quote(name), nodeText(k, nodes[k]))
					c.faults.ofOrder()
				} else {
					c.fault("nothing computes its input %s", quote(name))
				}
			}
			// Before its outputs are defined: the graphs in a node don't see the node's own results.
			c.node(n)
			for _, name := range n.Outputs {
				if name != "" {
					c.output(i, nodes, name)
				}
			}
		})
	}
}

// outputsOf returns which node computes a name.
func outputsOf(nodes []*Node) map[string]int {
	by := make(map[string]int)
	for i, n := range nodes {
		for _, name := range n.Outputs {
			if _, ok := by[name]; !ok {
				by[name] = i
			}
		}
	}
	return by
}

// output defines an output of a node. Nodes must not hide names of the graphs around them, as inputs
// and initializers of a subgraph may.
func (c *checker) output(i int, nodes []*Node, name string) {
	old, had := c.names.now[name]
	switch {
	case !had:
		c.names.define(name, definition{node: i})
	case old.scope < len(c.names.from):
		c.fault("its output %s is a name of a graph around it", quote(name))
		c.names.define(name, definition{node: i}) // so that what uses it is no further fault
	case old.node == isInput:
		c.fault("its output %s is an input of the graph", quote(name))
	case old.node == isInitializer:
		c.fault("its output %s is an initializer", quote(name))
	case old.node == i:
		c.fault("it has two outputs %s", quote(name))
	default:
		c.fault("its output %s is also one of %s", quote(name), nodeText(old.node, nodes[old.node]))
	}
}

// node checks what a node is, apart from its inputs and outputs.
func (c *checker) node(n *Node) {
	if n.Op == "" {
		c.fault("it has no operator")
	}
	if len(n.Inputs) == 0 && len(n.Outputs) == 0 {
		c.fault("it has neither inputs nor outputs")
	}
	if _, ok := c.opsets[domainOf(n.Domain)]; !ok {
		c.fault("the domain %s of its operator has no version", quote(domainOf(n.Domain)))
	}
	names := make(map[string]bool, len(n.Attributes))
	for i, a := range n.Attributes {
		if a.Name != "" && names[a.Name] {
			c.fault("it has two attributes %s", quote(a.Name))
		}
		names[a.Name] = true
		c.in(i, a, func() { c.attribute(a) })
	}
}
