package ir

import (
	"errors"
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// sorted returns nodes in an order in which those whose results others use come first: that of the
// model if it is one, as ONNX asks for. Programs that convert models to half floats, for example, put
// their casts anywhere, and ONNX Runtime sorts them. A name that a graph around has, too, is that one as
// long as no node before has made it anew.
func (im *importer) sorted(nodes []*onnx.Node, s *scope) ([]int, error) {
	order := make([]int, len(nodes))
	maker := make(map[string]int)
	for i, n := range nodes {
		order[i] = i
		for _, name := range n.Outputs {
			if _, taken := maker[name]; name != "" && !taken {
				maker[name] = i
			}
		}
	}
	if !slices.ContainsFunc(order, func(i int) bool {
		return slices.ContainsFunc(im.reads(nodes[i]), func(name string) bool { k, ok := maker[name]; return ok && k > i && !s.sees(name) })
	}) {
		return order, nil
	}
	im.source.unsorted = true
	order = order[:0]
	const open, done = 1, 2
	state := make([]byte, len(nodes))
	for i := range nodes {
		for stack := []int{i}; len(stack) > 0; {
			k := stack[len(stack)-1]
			if state[k] == done {
				stack = stack[:len(stack)-1]
				continue
			}
			before := len(stack)
			for _, name := range im.reads(nodes[k]) {
				m, ok := maker[name]
				switch {
				case !ok || state[m] == done || s.sees(name):
				case m == k || state[m] == open: // it is around k on the stack
					return nil, errors.New(whereOf(m, nodes[m]) + " depends on its own results")
				default:
					stack = append(stack, m)
				}
			}
			if state[k] = open; len(stack) == before {
				state[k] = done
				order = append(order, k)
			}
		}
	}
	return order, nil
}

// sees reports whether a name is known before any node is imported.
func (s *scope) sees(name string) bool {
	for ; s != nil; s = s.outer {
		if s.vars[name] != nil {
			return true
		}
	}
	return false
}

// reads returns the names of what a node uses, in the graphs that it holds as well.
func (im *importer) reads(n *onnx.Node) []string {
	names := n.Inputs
	for _, a := range n.Attributes {
		for _, g := range graphsOf(a) {
			names = append(slices.Clip(names), im.freeNames(g)...)
		}
	}
	return names
}

// graphsOf returns the graphs of an attribute.
func graphsOf(a *onnx.Attribute) []*onnx.Graph {
	if a.Graph != nil {
		return append([]*onnx.Graph{a.Graph}, a.Graphs...)
	}
	return a.Graphs
}

// freeNames returns the names that a graph uses and does not define, each once.
func (im *importer) freeNames(g *onnx.Graph) []string {
	if free, ok := im.free[g]; ok {
		return free
	}
	defined := definedIn(g)
	var free []string
	use := func(name string) {
		if name != "" && !defined[name] {
			defined[name] = true
			free = append(free, name)
		}
	}
	for _, n := range g.Nodes {
		for _, name := range im.reads(n) {
			use(name)
		}
	}
	for _, out := range g.Outputs {
		use(out.Name)
	}
	im.free[g] = free
	return free
}

// definedIn returns the names that a graph defines.
func definedIn(g *onnx.Graph) map[string]bool {
	defined := make(map[string]bool)
	for _, v := range g.Inputs {
		defined[v.Name] = true
	}
	for _, t := range g.Initializers {
		defined[t.Name] = true
	}
	for _, t := range g.SparseInitializers {
		if t.Values != nil {
			defined[t.Values.Name] = true
		}
	}
	for _, n := range g.Nodes {
		for _, name := range n.Outputs {
			defined[name] = true
		}
	}
	delete(defined, "") // results that are left out
	return defined
}

// redefines reports whether a graph in a function defines a name that one around it does. ONNX forbids it, and
// where ONNX Runtime 1.30 puts such a function in the place of a call, it may refuse what it has made.
func redefines(f *onnx.Function) bool {
	type scope struct {
		graph  *onnx.Graph
		around []map[string]bool
	}
	body := &onnx.Graph{Nodes: f.Nodes}
	for _, name := range f.Inputs {
		body.Inputs = append(body.Inputs, &onnx.ValueInfo{Name: name})
	}
	scopes := []scope{{graph: body}}
	for i := 0; i < len(scopes); i++ {
		s := scopes[i]
		own := definedIn(s.graph)
		for _, names := range s.around {
			for name := range own {
				if names[name] {
					return true
				}
			}
		}
		around := append(slices.Clip(s.around), own)
		for _, n := range s.graph.Nodes {
			for _, a := range n.Attributes {
				for _, g := range graphsOf(a) {
					scopes = append(scopes, scope{g, around})
				}
			}
		}
	}
	return false
}
