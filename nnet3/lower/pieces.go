package lower

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// A piece is a part of the contents of a matrix: a term of value v whose destination is the matrix.
type piece struct {
	v *fgraph.Variable
	t Term
}

// pieces holds the contents of each matrix as pieces, numbered in the order in which they were
// written. Overlapping pieces add up. The pieces of a matrix are in a search tree by position,
// because a tall matrix may be written and read in as many parts as a recurrence has steps.
type pieces struct {
	all    []piece
	roots  []int32 // by matrix: its tree
	forest boxForest
	found  []int32 // nodes
	terms  []Term
}

// newPieces allocates room for the pieces of some commands.
func newPieces(matrices, commands int) pieces {
	return pieces{roots: make([]int32, matrices), all: make([]piece, 0, commands), forest: boxForest{nodes: make([]boxNode, 1, commands+1)}}
}

// empty reports whether matrix m holds nothing.
func (p *pieces) empty(m int32) bool { return p.roots[m] == 0 }

// clear empties matrix m.
func (p *pieces) clear(m int32) {
	p.forest.releaseTree(p.roots[m])
	p.roots[m] = 0
}

// swap exchanges the contents of two matrices.
func (p *pieces) swap(a, b int32) { p.roots[a], p.roots[b] = p.roots[b], p.roots[a] }

// add adds a term of value v to the contents of matrix m.
func (p *pieces) add(m int32, v *fgraph.Variable, t Term) {
	n := p.forest.add(occupation{box: box{Rect: t.Dst()}}, cellRef{n: int32(len(p.all))})
	p.all = append(p.all, piece{v, t})
	p.roots[m] = p.forest.insert(p.roots[m], n)
}

// search returns the nodes of the pieces of m that may overlap r, in order, until the next search.
func (p *pieces) search(m int32, r Rect) []int32 {
	p.found = p.forest.appendOverlapping(p.found[:0], p.roots[m], &box{Rect: r})
	if len(p.found) > 1 {
		slices.SortFunc(p.found, func(a, b int32) int { return int(p.numberOf(a) - p.numberOf(b)) })
	}
	return p.found
}

func (p *pieces) numberOf(node int32) int32 { return p.forest.nodes[node].owner.n }

// at returns the piece of a node.
func (p *pieces) at(node int32) *piece { return &p.all[p.numberOf(node)] }

// cut removes the contents of matrix m in r.
func (p *pieces) cut(m int32, r Rect) {
	for _, n := range p.search(m, r) {
		old := *p.at(n)
		p.roots[m] = p.forest.remove(p.roots[m], n)
		p.forest.release(n)
		if r.Contains(old.t.Dst()) {
			continue
		}
		p.terms = old.t.appendOutside(p.terms[:0], r)
		for _, t := range p.terms {
			p.add(m, old.v, t)
		}
	}
}
