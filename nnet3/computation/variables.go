package computation

import (
	"errors"
	"fmt"
	"slices"
)

// ErrTooLarge is the error of an analysis that would take too much memory: the computation cuts its matrices into so many
// pieces that no compiler can have made it.
var ErrTooLarge = errors.New("computation too large to analyze")

// maxVariables bounds the variables, and the mentions of variables in all commands together.
const maxVariables = 1 << 28

// Variables cuts the matrices of a computation into the pieces that its commands tell apart. All row and column boundaries
// of the sub-matrices of a matrix make a grid on it; each cell of the grid is a variable. Every sub-matrix is then exactly
// a rectangle of variables, and two sub-matrices overlap where they share one.
//
// Variables are numbered from 0, matrix by matrix, in a matrix row by row.
type Variables struct {
	first    []int32   // by matrix: its first variable; one more entry for the end
	rowStart []int32   // by matrix: where its row boundaries begin in rows; one more entry
	colStart []int32   // the same for cols
	rows     []int32   // row boundaries in increasing order, the matrix's 0 and number of rows among them
	cols     []int32   // column boundaries
	matrix   []int32   // by variable: its matrix
	rects    []VarRect // by sub-matrix
	whole    []bool    // by sub-matrix: covers its matrix
}

// VarRect is the rectangle of variables that a sub-matrix is: the variables First + r*Stride + c for r < Rows, c < Cols.
type VarRect struct {
	First, Rows, Cols, Stride int32
}

// Len is the number of variables.
func (r VarRect) Len() int { return int(r.Rows) * int(r.Cols) }

// All calls yield for each variable, in increasing order.
func (r VarRect) All(yield func(v int32) bool) {
	for i := range r.Rows {
		for j := range r.Cols {
			if !yield(r.First + i*r.Stride + j) {
				return
			}
		}
	}
}

// NewVariables computes the variables of c, whose numbers must be in range. The error is ErrTooLarge.
func NewVariables(c *Computation) (*Variables, error) {
	v := &Variables{first: make([]int32, len(c.Matrices)+1)}
	v.rows, v.rowStart = boundaries(c, func(m MatrixInfo) int32 { return m.Rows },
		func(s SubMatrixInfo) (int32, int32) { return s.RowOffset, s.RowOffset + s.NumRows })
	v.cols, v.colStart = boundaries(c, func(m MatrixInfo) int32 { return m.Cols },
		func(s SubMatrixInfo) (int32, int32) { return s.ColOffset, s.ColOffset + s.NumCols })
	total := int64(0)
	for m := range c.Matrices {
		v.first[m] = int32(total)
		total += int64(v.cells(v.rowStart, m)) * int64(v.cells(v.colStart, m))
		if total > maxVariables {
			return nil, fmt.Errorf("%w: its sub-matrices cut its matrices into more than %d pieces", ErrTooLarge, maxVariables)
		}
	}
	v.first[len(c.Matrices)] = int32(total)
	v.matrix = make([]int32, total)
	for m := range c.Matrices {
		for i := v.first[m]; i < v.first[m+1]; i++ {
			v.matrix[i] = int32(m)
		}
	}
	v.rects = make([]VarRect, len(c.Submatrices))
	v.whole = make([]bool, len(c.Submatrices))
	for s := range c.Submatrices {
		if s == 0 {
			continue // the reserved one has no variables
		}
		sub := c.Submatrices[s]
		r0, r1 := v.find(v.rows, v.rowStart, sub.Matrix, sub.RowOffset), v.find(v.rows, v.rowStart, sub.Matrix, sub.RowOffset+sub.NumRows)
		c0, c1 := v.find(v.cols, v.colStart, sub.Matrix, sub.ColOffset), v.find(v.cols, v.colStart, sub.Matrix, sub.ColOffset+sub.NumCols)
		stride := int32(v.cells(v.colStart, int(sub.Matrix)))
		v.rects[s] = VarRect{First: v.first[sub.Matrix] + r0*stride + c0, Rows: r1 - r0, Cols: c1 - c0, Stride: stride}
		v.whole[s] = c.IsWhole(int32(s))
	}
	return v, nil
}

// boundaries collects, matrix by matrix, the sorted ends that the matrix (given by whole) and its sub-matrices (given by
// ends) have in one dimension. The second result says where each matrix's begin.
func boundaries(c *Computation, whole func(MatrixInfo) int32, ends func(SubMatrixInfo) (int32, int32)) (all, start []int32) {
	// Group the ends by matrix with a counting sort, then sort and compact each group.
	start = make([]int32, len(c.Matrices)+1)
	for m := 1; m < len(c.Matrices); m++ {
		start[m+1] = 2
	}
	for _, s := range c.Submatrices[1:] {
		start[s.Matrix+1] += 2
	}
	for m := range c.Matrices {
		start[m+1] += start[m]
	}
	all = make([]int32, start[len(c.Matrices)])
	next := slices.Clone(start)
	for m := 1; m < len(c.Matrices); m++ {
		all[next[m]], all[next[m]+1] = 0, whole(c.Matrices[m])
		next[m] += 2
	}
	for _, s := range c.Submatrices[1:] {
		a, b := ends(s)
		all[next[s.Matrix]], all[next[s.Matrix]+1] = a, b
		next[s.Matrix] += 2
	}
	kept := int32(0)
	for m := range c.Matrices {
		group := all[start[m]:start[m+1]]
		slices.Sort(group)
		group = slices.Compact(group)
		start[m] = kept
		kept += int32(copy(all[kept:], group))
	}
	start[len(c.Matrices)] = kept
	return all[:kept:kept], start
}

// cells is how many cells the boundaries of matrix m make.
func (v *Variables) cells(start []int32, m int) int {
	return max(int(start[m+1]-start[m])-1, 0)
}

// find returns the position of a boundary among those of matrix m.
func (v *Variables) find(all, start []int32, m, boundary int32) int32 {
	i, _ := slices.BinarySearch(all[start[m]:start[m+1]], boundary)
	return int32(i)
}

// Len is the number of variables.
func (v *Variables) Len() int { return len(v.matrix) }

// Matrix returns the matrix that a variable is a part of.
func (v *Variables) Matrix(variable int32) int32 { return v.matrix[variable] }

// OfMatrix returns the variables of matrix m, from first up to but not including end.
func (v *Variables) OfMatrix(m int32) (first, end int32) { return v.first[m], v.first[m+1] }

// OfSubmatrix returns the variables of a sub-matrix.
func (v *Variables) OfSubmatrix(s int32) VarRect { return v.rects[s] }

// IsWhole reports whether a sub-matrix covers its matrix.
func (v *Variables) IsWhole(s int32) bool { return v.whole[s] }

// Grid returns the boundaries of the rows and of the columns of matrix m's cells, in increasing order, each one more than
// there are cells. They are shared: read only.
func (v *Variables) Grid(m int32) (rows, cols []int32) {
	return v.rows[v.rowStart[m]:v.rowStart[m+1]], v.cols[v.colStart[m]:v.colStart[m+1]]
}

// Cell returns the rectangle that a variable is.
func (v *Variables) Cell(variable int32) SubMatrixInfo {
	m := v.matrix[variable]
	rows, cols := v.Grid(m)
	i := variable - v.first[m]
	n := int32(len(cols) - 1)
	r, c := i/n, i%n
	return SubMatrixInfo{Matrix: m, RowOffset: rows[r], NumRows: rows[r+1] - rows[r], ColOffset: cols[c], NumCols: cols[c+1] - cols[c]}
}

// Describe returns the variable as text: m4(0:9, 0:31).
func (v *Variables) Describe(c *Computation, variable int32) string {
	cell := v.Cell(variable)
	m := c.Matrices[cell.Matrix]
	dst := fmt.Appendf(nil, "m%d(", cell.Matrix)
	dst = appendRange(dst, cell.RowOffset, cell.NumRows, m.Rows)
	dst = appendRange(append(dst, ", "...), cell.ColOffset, cell.NumCols, m.Cols)
	return string(append(dst, ')'))
}
