package computation

import (
	"errors"
	"fmt"
	"slices"
	"sort"
)

// errTooLarge is the error for a computation whose check would take too much memory: it cuts its
// matrices into more pieces than any compiler would.
var errTooLarge = errors.New("computation too large to analyze")

// maxVariables bounds the variables, and the mentions of variables in all commands together.
const maxVariables = 1 << 28

// variables cuts the matrices of a computation into the pieces that its commands tell apart. The
// row and column boundaries of all sub-matrices of a matrix form a grid on it; each cell of the
// grid is a variable. So every sub-matrix is a rectangle of variables, and two overlap where they
// share one.
//
// Variables are numbered from 0, matrix by matrix, and row by row within a matrix.
type variables struct {
	first      []int32 // by matrix: its first variable; one more entry for the end
	rows, cols boundaries
	rects      []variableRectangle // by sub-matrix
}

// variableRectangle is the variables of a sub-matrix: first + r*stride + c for r < rows, c < cols.
type variableRectangle struct {
	first, rows, cols, stride int32
}

// all yields the variables in ascending order.
func (r variableRectangle) all(yield func(v int32) bool) {
	for i := range r.rows {
		for j := range r.cols {
			if !yield(r.first + i*r.stride + j) {
				return
			}
		}
	}
}

// newVariables cuts the matrices of c. Numbers must be in range. The error is errTooLarge.
func newVariables(c *Computation) (*variables, error) {
	v := &variables{first: make([]int32, len(c.Matrices)+1), rects: make([]variableRectangle, len(c.Submatrices))}
	v.rows = findBoundaries(c, func(m MatrixInfo) int32 { return m.Rows },
		func(s SubMatrixInfo) (int32, int32) { return s.RowOffset, s.RowOffset + s.NumRows })
	v.cols = findBoundaries(c, func(m MatrixInfo) int32 { return m.Cols },
		func(s SubMatrixInfo) (int32, int32) { return s.ColOffset, s.ColOffset + s.NumCols })
	total := int64(0)
	for m := range c.Matrices {
		v.first[m] = int32(total)
		total += int64(v.rows.cells(m)) * int64(v.cols.cells(m))
		// Cells multiply: n views across and n down make n² cells, so a short text could ask for
		// any amount of memory.
		if total > maxVariables {
			return nil, fmt.Errorf("%w: its sub-matrices cut its matrices into more than %d pieces", errTooLarge, maxVariables)
		}
	}
	v.first[len(c.Matrices)] = int32(total)
	for s, sub := range c.Submatrices {
		if s == 0 {
			continue // the reserved one has no variables
		}
		m := int(sub.Matrix)
		r0, r1 := v.rows.find(m, sub.RowOffset), v.rows.find(m, sub.RowOffset+sub.NumRows)
		c0, c1 := v.cols.find(m, sub.ColOffset), v.cols.find(m, sub.ColOffset+sub.NumCols)
		stride := int32(v.cols.cells(m))
		v.rects[s] = variableRectangle{first: v.first[m] + r0*stride + c0, rows: r1 - r0, cols: c1 - c0, stride: stride}
	}
	return v, nil
}

// boundaries holds the boundaries of the cells of each matrix in one dimension, ascending from 0.
type boundaries struct {
	all   []int32
	start []int32 // by matrix: its first boundary; one more entry for the end
}

// findBoundaries collects the boundaries in the dimension in which matrices have the given size and
// sub-matrices the given ends. It groups them by matrix with a counting sort, then sorts each
// group.
func findBoundaries(c *Computation, size func(MatrixInfo) int32, ends func(SubMatrixInfo) (int32, int32)) boundaries {
	start := make([]int32, len(c.Matrices)+1)
	// Two boundaries for each matrix and two for each sub-matrix, shifted by one so that the sums
	// become the starts.
	for m := 1; m < len(c.Matrices); m++ {
		start[m+1] = 2
	}
	for _, s := range c.Submatrices[1:] {
		start[s.Matrix+1] += 2
	}
	for m := range c.Matrices {
		start[m+1] += start[m]
	}
	all := make([]int32, start[len(c.Matrices)])
	next := slices.Clone(start)
	add := func(m, a, b int32) {
		all[next[m]], all[next[m]+1] = a, b
		next[m] += 2
	}
	for m := 1; m < len(c.Matrices); m++ {
		add(int32(m), 0, size(c.Matrices[m]))
	}
	for _, s := range c.Submatrices[1:] {
		a, b := ends(s)
		add(s.Matrix, a, b)
	}
	// The groups move together in place: compacted, none is longer than it was.
	kept := int32(0)
	for m := range c.Matrices {
		group := all[start[m]:start[m+1]]
		slices.Sort(group)
		group = slices.Compact(group)
		start[m] = kept
		kept += int32(copy(all[kept:], group))
	}
	start[len(c.Matrices)] = kept
	return boundaries{all[:kept:kept], start}
}

// of returns the boundaries in matrix m.
func (b *boundaries) of(m int) []int32 { return b.all[b.start[m]:b.start[m+1]] }

// cells returns the number of cells of matrix m.
func (b *boundaries) cells(m int) int { return max(len(b.of(m))-1, 0) }

// find returns the position of a boundary among those of matrix m.
func (b *boundaries) find(m int, boundary int32) int32 {
	i, _ := slices.BinarySearch(b.of(m), boundary)
	return int32(i)
}

// len returns the number of variables.
func (v *variables) len() int { return int(v.first[len(v.first)-1]) }

// cell returns the rectangle that a variable is.
func (v *variables) cell(variable int32) SubMatrixInfo {
	m := sort.Search(len(v.first), func(m int) bool { return v.first[m] > variable }) - 1
	rows, cols := v.rows.of(m), v.cols.of(m)
	i := variable - v.first[m]
	n := int32(len(cols) - 1)
	r, c := i/n, i%n
	return SubMatrixInfo{Matrix: int32(m), RowOffset: rows[r], NumRows: rows[r+1] - rows[r], ColOffset: cols[c], NumCols: cols[c+1] - cols[c]}
}

// describe returns the variable as text: m4(0:9, 0:31).
func (v *variables) describe(c *Computation, variable int32) string {
	cell := v.cell(variable)
	m := c.Matrices[cell.Matrix]
	dst := fmt.Appendf(nil, "m%d(", cell.Matrix)
	dst = appendRange(dst, cell.RowOffset, cell.NumRows, m.Rows)
	dst = appendRange(append(dst, ", "...), cell.ColOffset, cell.NumCols, m.Cols)
	return string(append(dst, ')'))
}
