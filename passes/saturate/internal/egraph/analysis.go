package egraph

// An Analysis keeps facts about classes that grow as classes are united.
type Analysis interface {
	// Make adds what node n says about its class c, and reports whether that is news. Classes that
	// it has not seen have the next numbers.
	Make(g *Graph, n Node, c Class) bool
	// Join adds to into what is known of from, and reports whether that is news for into, and
	// whether what into knew is news for from.
	Join(g *Graph, into, from Class) (bool, bool)
	// Modify is called when facts of a class are new. It may call Fold, Prune, Union and Add.
	Modify(g *Graph, c Class)
}

// Analysis returns the analysis of the graph, or nil.
func (g *Graph) Analysis() Analysis { return g.analysis }

// learn tells the analysis of a new node.
func (g *Graph) learn(n uint32, fresh bool) {
	if g.analysis == nil {
		return
	}
	c := g.nodes[n].class
	if !fresh {
		c = g.find(c)
	}
	if !g.analysis.Make(g, Node(n), Class(c)) {
		return
	}
	if g.news(c); fresh {
		g.classes[c].flags |= freshFlag
	}
}

// news queues a class whose facts have changed.
func (g *Graph) news(c uint32) {
	g.classes[c].flags &^= freshFlag
	if g.classes[c].flags&remakeFlag == 0 {
		g.classes[c].flags |= remakeFlag
		g.remake = append(g.remake, c)
	}
}

// Fold unites the class of a node with a leaf: the value of its op where its inputs have values,
// which are the leaves inputs, in order. Explanations call this step "fold". If an input is not
// known to equal its leaf yet, Fold returns false, and the class is modified again when more has
// been folded: so no value explains itself.
func (g *Graph) Fold(n Node, op Op, inputs ...Op) bool {
	g.bare = g.bare[:0]
	for i, in := range inputs {
		leaf := g.lookup(in, nil)
		if leaf == none || g.find(g.nodes[leaf].class) != g.find(g.kid(uint32(n), i)) {
			g.retry = append(g.retry, g.nodes[n].class)
			return false
		}
		g.bare = append(g.bare, leaf)
	}
	leaf := g.insertSmall(uint32(op), 0, 0, none)
	if g.find(g.nodes[n].class) != g.find(g.nodes[leaf].class) {
		g.folds++
		g.proof.fold(uint32(n), leaf, g.bare)
		g.union(g.nodes[n].class, g.nodes[leaf].class)
	}
	return true
}

// Prune says that rules need no nodes of a class but leaves, because the class has a value. The
// other nodes remain for explanations and extraction.
func (g *Graph) Prune(c Class) {
	id := g.find(uint32(c))
	if g.classes[id].flags&prunedFlag == 0 {
		g.classes[id].flags |= prunedFlag
		g.soil(id)
	}
}
