package lower

import (
	"iter"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
)

// grid cuts a value into cells, along the edges of its reads and of its terms.
type grid struct {
	rows, cols []int32 // the edges, ascending, from 0 to the size of the value
	cells      []cell  // row by row
}

// cell is a rectangle of a value all of whose elements have the same reads and the same terms.
type cell struct {
	rect  Rect
	reads []int32 // the value's reads that cover it and may matter, the last in time first
	terms []int32 // the terms that contribute, the first in time first
	nodes int32   // its occupations in the tree of its base, linked by next
	mark  int32   // the last merge that visited it
}

// cellRef names cell i of value n.
type cellRef struct{ n, i int32 }

// over yields the cells that overlap r, with their numbers.
func (g *grid) over(r Rect) iter.Seq2[int32, *cell] {
	return func(yield func(int32, *cell) bool) {
		i0, i1, j0, j1 := g.within(r)
		for i := i0; i < i1; i++ {
			for j := j0; j < j1; j++ {
				if at := g.at(i, j); !yield(at, &g.cells[at]) {
					return
				}
			}
		}
	}
}

// within returns the rows [i0, i1) and columns [j0, j1) of the grid that overlap r.
func (g *grid) within(r Rect) (i0, i1, j0, j1 int) {
	if len(g.cells) == 1 {
		return 0, 1, 0, 1
	}
	i0, i1 = edges(g.rows, r.R0, r.R1)
	j0, j1 = edges(g.cols, r.C0, r.C1)
	return i0, i1, j0, j1
}

// edges returns the range of intervals between edges that overlap [a, b).
func edges(edges []int32, a, b int32) (int, int) {
	i, exact := slices.BinarySearch(edges, a)
	if !exact {
		i--
	}
	j, _ := slices.BinarySearch(edges, b)
	return max(i, 0), min(j, len(edges)-1)
}

// at returns the number of the cell in row i and column j of the grid.
func (g *grid) at(i, j int) int32 { return int32(i*(len(g.cols)-1) + j) }

// makeCells cuts value n into cells.
func (s *Storage) makeCells(n int32) {
	v := &s.values[n]
	full := Rect{0, v.rows, 0, v.cols}
	if full.empty() {
		return
	}
	// The edges separate elements of the value that differ in their readers or in the terms that
	// write them. Within a cell all elements live equally long, so a cell needs one occupation
	// where single elements would need rows times columns.
	rows, cols := append(s.rowEdges[:0], 0, v.rows), append(s.colEdges[:0], 0, v.cols)
	cut := func(r Rect) {
		if r.R0 != 0 || r.R1 != v.rows {
			rows = append(rows, r.R0, r.R1)
		}
		if r.C0 != 0 || r.C1 != v.cols {
			cols = append(cols, r.C0, r.C1)
		}
	}
	for i := range v.reads {
		cut(v.reads[i].rect)
	}
	for k := v.terms[0]; k < v.terms[1]; k++ {
		cut(s.terms[k].Dst())
	}
	s.rowEdges, s.colEdges = rows, cols
	v.grid.rows, v.grid.cols = edgeList(rows), edgeList(cols)
	g := &v.grid
	nc := len(g.cols) - 1
	g.cells = make([]cell, (len(g.rows)-1)*nc)
	for i := range len(g.rows) - 1 {
		for j := range nc {
			g.cells[i*nc+j].rect = Rect{g.rows[i], g.rows[i+1], g.cols[j], g.cols[j+1]}
		}
	}
	s.listReads(v)
	for k := v.terms[0]; k < v.terms[1]; k++ {
		for _, c := range g.over(s.terms[k].Dst()) {
			c.terms = append(c.terms, k)
		}
	}
	for i := range g.cells {
		// A stable sort: of the terms of one event the first listed counts as the first, as in the
		// emitted commands.
		if c := &g.cells[i]; len(c.terms) > 1 {
			slices.SortStableFunc(c.terms, func(a, b int32) int { return int(s.terms[a].event - s.terms[b].event) })
		}
	}
}

// edgeList sorts edges and drops repeated ones.
func edgeList(edges []int32) []int32 {
	if len(edges) > 2 {
		slices.Sort(edges)
		edges = slices.Compact(edges)
	}
	return slices.Clone(edges)
}

// listReads lists in each cell of a value the reads that may matter: the last ones, which end the
// cell's life, and those by terms that may be placed, whose results then show the cell. Many reads
// of a tall value can cover a cell, since a read of rows covers their bounding rectangle.
func (s *Storage) listReads(v *value) {
	g := &v.grid
	if len(v.reads) == 1 {
		for _, c := range g.over(v.reads[0].rect) {
			c.reads = append(c.reads, 0)
		}
		return
	}
	order := lists.Range[int32](len(v.reads))
	slices.SortStableFunc(order, func(a, b int32) int { return int(v.reads[b].event - v.reads[a].event) })
	// Only the last read of a cell ends its life, unless terms may be placed. Going from the last
	// event to the first, a cell that was covered need not be visited again. next is a union-find
	// structure down each column, with path halving, so that a read of a tall rectangle skips what
	// is covered in almost constant time; without it thousands of reads times thousands of rows
	// would be visited.
	// By cell: the first cell of the column, from this one down, that no last read covers yet.
	next := lists.Range[int32](len(g.cells) + len(g.cols) - 1)
	free := func(i, j int) int {
		k := g.at(i, j)
		for next[k] != k {
			next[k] = next[next[k]]
			k = next[k]
		}
		return int(k) / (len(g.cols) - 1)
	}
	for len(order) > 0 {
		// Reads of one event are equally late, so all of them count. Cells are marked as covered
		// only after the last of them was entered.
		n := 1 // reads of one event
		for n < len(order) && v.reads[order[n]].event == v.reads[order[0]].event {
			n++
		}
		for _, k := range order[:n] {
			all := s.mayBePlaced(v.reads[k].term)
			i0, i1, j0, j1 := g.within(v.reads[k].rect)
			for j := j0; j < j1; j++ {
				for i := i0; i < i1; i++ {
					if !all {
						if i = free(i, j); i >= i1 {
							break
						}
					}
					c := &g.cells[g.at(i, j)]
					c.reads = append(c.reads, k)
				}
			}
		}
		for _, k := range order[:n] {
			i0, i1, j0, j1 := g.within(v.reads[k].rect)
			for j := j0; j < j1; j++ {
				for i := free(i0, j); i < i1; i = free(i, j) {
					next[g.at(i, j)] = g.at(i+1, j)
				}
			}
		}
		order = order[n:]
	}
}

// mayBePlaced reports whether term k, unless it is -1, may ever be placed.
func (s *Storage) mayBePlaced(k int32) bool {
	return k >= 0 && !s.terms[k].constant && s.terms[k].Contiguous()
}
