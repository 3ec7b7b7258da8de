package compile

import "github.com/nnopt/nnopt/nnet3/index"

// lanes are the sequences (values of n) of a request in which all sequences ask for the same and supply the same. The graph
// is then built for the first of them alone, and each vertex stands for a row of every lane. This is what makes minibatches
// cheap to compile, and it is exact, because no descriptor and no component mixes sequences. In other requests there is a
// single lane, and each vertex has its own n.
type lanes []int32

// rows says what the rows of a matrix stand for. Without an order, row i·lanes + l is vertex i in lane l.
type rows struct {
	vertices []int32
	// order[i·lanes + l] is the row of vertex i in lane l, where the rows don't follow the vertices.
	order []int32
	// count is the number of rows. Rows that stand for no vertex are padding.
	count int
}

// row returns the row of vertex i in lane l.
func (r *rows) row(i, l, lanes int) int {
	k := i*lanes + l
	if r.order != nil {
		return int(r.order[k])
	}
	return k
}

// inOrder is a rows without an order.
func inOrder(vertices []int32, lanes int) rows {
	return rows{vertices: vertices, count: len(vertices) * lanes}
}

// withOrder is a rows with an order, dropped where it says nothing.
func withOrder(vertices, order []int32, count int) rows {
	r := rows{vertices: vertices, order: order, count: count}
	if len(order) != count {
		return r
	}
	for i, row := range order {
		if int(row) != i {
			return r
		}
	}
	r.order = nil
	return r
}

// indexes returns the index of every row. Padding has no time.
func (r *rows) indexes(g *graph, l lanes) []index.Index {
	ix := make([]index.Index, r.count)
	if r.order != nil && len(r.order) < r.count {
		for i := range ix {
			ix[i] = index.Index{T: index.NoTime}
		}
	}
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
