package onnx

import (
	"iter"
	"slices"
)

// Subgraphs returns the graphs that an attribute holds.
func (m *Attribute) Subgraphs() []*Graph {
	if m.Graph != nil {
		return append([]*Graph{m.Graph}, m.Graphs...)
	}
	return m.Graphs
}

// Nested yields graphs and all graphs within them, each once.
func Nested(todo ...*Graph) iter.Seq[*Graph] {
	return func(yield func(*Graph) bool) {
		todo, seen := slices.Clone(todo), make(map[*Graph]bool)
		for len(todo) > 0 {
			g := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if seen[g] { // of a model that was put together, not read
				continue
			}
			if seen[g] = true; !yield(g) {
				return
			}
			for _, n := range g.Nodes {
				for _, a := range n.Attributes {
					todo = append(todo, a.Subgraphs()...)
				}
			}
		}
	}
}

// Uses tells which names nodes use. It looks at each graph once. The zero value is ready.
type Uses struct {
	free map[*Graph][]string
}

// Of returns the names of what a node uses, in the graphs that it holds as well.
func (u *Uses) Of(n *Node) []string {
	names := n.Inputs
	for _, a := range n.Attributes {
		for _, g := range a.Subgraphs() {
			// Clipped, since names is the node's own list at first.
			names = append(slices.Clip(names), u.freeNames(g)...)
		}
	}
	return names
}

// freeNames returns the names that a graph uses and does not define, each once.
func (u *Uses) freeNames(g *Graph) []string {
	if free, ok := u.free[g]; ok {
		return free
	}
	defined := g.Defined()
	// An input that is left out uses nothing.
	defined[""] = true
	var used []string
	for _, n := range g.Nodes {
		used = append(used, u.Of(n)...)
	}
	for _, out := range g.Outputs {
		used = append(used, out.Name)
	}
	var free []string
	for _, name := range used {
		if !defined[name] {
			defined[name] = true
			free = append(free, name)
		}
	}
	// A graph without others is as soon looked at again, and there may be very many of them.
	if slices.ContainsFunc(g.Nodes, func(n *Node) bool {
		return slices.ContainsFunc(n.Attributes, func(a *Attribute) bool { return len(a.Subgraphs()) > 0 })
	}) {
		if u.free == nil {
			u.free = make(map[*Graph][]string)
		}
		u.free[g] = free
	}
	return free
}

// Defined returns the names that a graph defines.
func (m *Graph) Defined() map[string]bool {
	defined := make(map[string]bool)
	for _, v := range m.Inputs {
		defined[v.Name] = true
	}
	for _, t := range m.Initializers {
		defined[t.Name] = true
	}
	for _, t := range m.SparseInitializers {
		if t.Values != nil {
			defined[t.Values.Name] = true
		}
	}
	for _, n := range m.Nodes {
		for _, name := range n.Outputs {
			defined[name] = true
		}
	}
	delete(defined, "") // results that are left out
	return defined
}

// Initial returns the names of the initializers of a graph.
func (m *Graph) Initial() map[string]bool {
	names := make(map[string]bool)
	for _, t := range m.Initializers {
		names[t.Name] = true
	}
	return names
}

// DepthFirst lists nodes behind those that they depend on, and all in the order of a list as far as that can be. What
// depends on itself is handed to circle, as the nodes on the way.
func DepthFirst[T comparable](list []T, needs func(T) []T, circle func(path []T)) (order []T) {
	const done = -1
	state := make(map[T]int, len(list)) // its place on the path, counted from 1, while it is there
	for _, root := range list {
		if state[root] != 0 {
			continue
		}
		state[root] = 1
		path, left := []T{root}, [][]T{needs(root)} // of each node on the path, what has not been looked at
		for len(path) > 0 {
			last := len(path) - 1
			if len(left[last]) == 0 {
				state[path[last]] = done
				order = append(order, path[last])
				path, left = path[:last], left[:last]
				continue
			}
			n := left[last][0]
			left[last] = left[last][1:]
			switch at := state[n]; {
			case at == 0:
				path, left = append(path, n), append(left, needs(n))
				state[n] = len(path)
			case at != done:
				circle(path[at-1:])
			}
		}
	}
	return order
}
