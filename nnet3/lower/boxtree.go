package lower

// box is a rectangle of a base from time t0 to t1, both included.
type box struct {
	Rect
	t0, t1 int32
}

func (b *box) overlaps(c *box) bool {
	return b.R0 < c.R1 && c.R0 < b.R1 && b.C0 < c.C1 && c.C0 < b.C1 && b.t0 <= c.t1 && c.t0 <= b.t1
}

// grow extends b to include c.
func (b *box) grow(c *box) {
	b.R0, b.R1 = min(b.R0, c.R0), max(b.R1, c.R1)
	b.C0, b.C1 = min(b.C0, c.C0), max(b.C1, c.C1)
	b.t0, b.t1 = min(b.t0, c.t0), max(b.t1, c.t1)
}

// occupation is a box of a base with data of value root. Occupations with other data must not
// overlap.
type occupation struct {
	box
	root int32
}

func (o *occupation) clashes(p *occupation) bool { return o.root != p.root && o.overlaps(&p.box) }

// boxNode is an occupation in a search tree.
type boxNode struct {
	occupation
	all         box    // the bounding box of the node's tree
	left, right int32  // 0: none
	rank        uint32 // parents have larger ranks
	next        int32  // the next occupation of the same cell
	owner       cellRef
}

// boxForest holds a search tree of occupations for each base. The trees are treaps, ordered by row,
// then by time, and balanced by pseudo-random ranks. Every node has the bounding box of its tree,
// so a search skips what is elsewhere in any dimension. Insertion, removal, and the search of a box
// that few occupations overlap take logarithmic time.
type boxForest struct {
	nodes []boxNode // node 0 stands for none
	free  int32     // the free nodes, linked by left
	seed  uint32
}

// add makes a node that is in no tree.
func (f *boxForest) add(o occupation, owner cellRef) int32 {
	f.seed += 0x9E3779B9
	// A hash of a counter. The ranks must not depend on the values stored, and must be the same in
	// every run: the shape of a tree decides which clash is found first, and so which witness is
	// kept.
	rank := f.seed
	rank = (rank ^ rank>>16) * 0x85EBCA6B
	rank = (rank ^ rank>>13) * 0xC2B2AE35
	node := boxNode{occupation: o, all: o.box, rank: rank ^ rank>>16, owner: owner}
	if n := f.free; n != 0 {
		f.free = f.nodes[n].left
		f.nodes[n] = node
		return n
	}
	if len(f.nodes) == 0 {
		f.nodes = append(f.nodes, boxNode{})
	}
	f.nodes = append(f.nodes, node)
	return int32(len(f.nodes) - 1)
}

// release frees a node that is in no tree.
func (f *boxForest) release(n int32) {
	f.nodes[n].left = f.free
	f.free = n
}

// releaseTree frees all nodes of a tree.
func (f *boxForest) releaseTree(root int32) {
	if root != 0 {
		f.releaseTree(f.nodes[root].left)
		f.releaseTree(f.nodes[root].right)
		f.release(root)
	}
}

// before orders nodes: by the first row, then by time, then by the first column.
func (f *boxForest) before(a, b int32) bool {
	x, y := &f.nodes[a], &f.nodes[b]
	switch {
	case x.R0 != y.R0:
		return x.R0 < y.R0
	case x.t0 != y.t0:
		return x.t0 < y.t0
	case x.C0 != y.C0:
		return x.C0 < y.C0
	}
	return a < b
}

// enclose computes the bounding box of node n from those of its children.
func (f *boxForest) enclose(n int32) {
	p := &f.nodes[n]
	p.all = p.box
	if p.left != 0 {
		p.all.grow(&f.nodes[p.left].all)
	}
	if p.right != 0 {
		p.all.grow(&f.nodes[p.right].all)
	}
}

// insert inserts node n, which is in no tree, and returns the tree's new root.
func (f *boxForest) insert(root, n int32) int32 {
	if root == 0 {
		return n
	}
	p := &f.nodes[root]
	// The node belongs above this tree: split the tree around it. Ranks are pseudo-random, so this
	// happens at a logarithmic depth on average, whatever the order of insertions.
	if f.nodes[n].rank > p.rank {
		l, r := f.split(root, n)
		f.nodes[n].left, f.nodes[n].right = l, r
		f.enclose(n)
		return n
	}
	if f.before(n, root) {
		p.left = f.insert(p.left, n)
	} else {
		p.right = f.insert(p.right, n)
	}
	p.all.grow(&f.nodes[n].box)
	return root
}

// split divides a tree into the nodes before and after node n.
func (f *boxForest) split(root, n int32) (l, r int32) {
	if root == 0 {
		return 0, 0
	}
	p := &f.nodes[root]
	if f.before(root, n) {
		p.right, r = f.split(p.right, n)
		l = root
	} else {
		l, p.left = f.split(p.left, n)
		r = root
	}
	f.enclose(root)
	return l, r
}

// remove removes node n from its tree, and returns the tree's new root.
func (f *boxForest) remove(root, n int32) int32 {
	p := &f.nodes[root]
	if root == n {
		root = f.join(p.left, p.right)
		p.left, p.right, p.all = 0, 0, p.box
		return root
	}
	if f.before(n, root) {
		p.left = f.remove(p.left, n)
	} else {
		p.right = f.remove(p.right, n)
	}
	f.enclose(root)
	return root
}

// join joins two trees, where all nodes of l come before those of r.
func (f *boxForest) join(l, r int32) int32 {
	if l == 0 || r == 0 {
		return l + r
	}
	root := l
	if f.nodes[l].rank > f.nodes[r].rank {
		f.nodes[l].right = f.join(f.nodes[l].right, r)
	} else {
		f.nodes[r].left = f.join(l, f.nodes[r].left)
		root = r
	}
	f.enclose(root)
	return root
}

// clash returns a node of the tree that clashes with o, 0 for none.
func (f *boxForest) clash(root int32, o *occupation) int32 {
	for root != 0 {
		p := &f.nodes[root]
		// The order by rows alone would not do: in a tall recurrent base thousands of occupations
		// share their rows and differ in time only. The bounding boxes prune in all three
		// dimensions.
		if !p.all.overlaps(&o.box) {
			return 0
		}
		if p.clashes(o) {
			return root
		}
		if n := f.clash(p.left, o); n != 0 {
			return n
		}
		root = p.right
	}
	return 0
}

// appendOverlapping appends the nodes of a tree that overlap b, in order.
func (f *boxForest) appendOverlapping(dst []int32, root int32, b *box) []int32 {
	for root != 0 && f.nodes[root].all.overlaps(b) {
		p := &f.nodes[root]
		dst = f.appendOverlapping(dst, p.left, b)
		if p.overlaps(b) {
			dst = append(dst, root)
		}
		root = p.right
	}
	return dst
}
