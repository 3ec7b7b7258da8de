package compile

import "github.com/nnopt/nnopt/nnet3/index"

// lanes are the sequences (values of n) of a request if all of them are alike. The graph is built
// only for the first lane, and each vertex stands for a row of every lane. This makes minibatches
// cheap to compile. It is exact, because no descriptor or component mixes sequences. Other requests
// have a single lane, and each vertex has its own n.
type lanes []int32

// rows maps vertices to the rows of a matrix.
type rows struct {
	vertices []int32
	order    []int32 // vertex i in lane l is row order[i·lanes + l]; if order is nil, row i·lanes + l
	count    int     // the number of rows
}

// row returns the row of vertex i in lane l.
func (r *rows) row(i, l, lanes int) int {
	k := i*lanes + l
	if r.order != nil {
		return int(r.order[k])
	}
	return k
}

// inOrder returns a rows without an order.
func inOrder(vertices []int32, lanes int) rows {
	return rows{vertices: vertices, count: len(vertices) * lanes}
}

// withOrder returns a rows with an order, unless that is the natural one.
func withOrder(vertices, order []int32) rows {
	r := rows{vertices: vertices, order: order, count: len(order)}
	for i, row := range order {
		if int(row) != i {
			return r
		}
	}
	r.order = nil
	return r
}

// indexes returns the index of every row.
func (r *rows) indexes(g *graph, l lanes) []index.Index {
	ix := make([]index.Index, r.count)
	for i, v := range r.vertices {
		at := g.vertices[v].Index
		if len(l) == 1 {
			ix[r.row(i, 0, 1)] = at
			continue
		}
		for k, n := range l {
			at.N = n
			ix[r.row(i, k, len(l))] = at
		}
	}
	return ix
}
