package computation

import (
	"fmt"
	"math"
)

// MaxElements bounds the elements of a matrix (of 256 GiB), so that offsets can't overflow.
const MaxElements = 1 << 36

// checkStructure reports all numbers in the computation that are out of range. A computation that
// passes can be analyzed, printed and counted without further range checks.
func (c *Computation) checkStructure() error {
	r := newReport(c, nil)
	r.structure()
	return r.err()
}

// structure goes through every list once.
func (r *report) structure() {
	c := r.c
	if len(c.Matrices) == 0 || len(c.Submatrices) == 0 || len(c.PrecomputedIndexes) == 0 ||
		c.Matrices[0] != (MatrixInfo{}) || c.Submatrices[0] != (SubMatrixInfo{}) {
		r.addf(errStructure, -1, "matrix 0, sub-matrix 0 and precomputed indexes 0 are reserved: they must exist and be empty")
		return // the rest relies on them
	}
	for m, info := range c.Matrices[1:] {
		if info.Rows <= 0 || info.Cols <= 0 || int64(info.Rows)*int64(info.Cols) > MaxElements {
			r.addf(errStructure, -1, "matrix m%d has size %dx%d", m+1, info.Rows, info.Cols)
		}
	}
	for s, sub := range c.Submatrices[1:] {
		if sub.Matrix <= 0 || int(sub.Matrix) >= len(c.Matrices) {
			r.addf(errStructure, -1, "sub-matrix %d is of matrix %d, which is not there", s+1, sub.Matrix)
			continue
		}
		m := c.Matrices[sub.Matrix]
		if !inside(sub.RowOffset, sub.NumRows, m.Rows) || !inside(sub.ColOffset, sub.NumCols, m.Cols) {
			r.addf(errStructure, -1, "sub-matrix %d has rows %d+%d and columns %d+%d of m%d, which is %dx%d",
				s+1, sub.RowOffset, sub.NumRows, sub.ColOffset, sub.NumCols, sub.Matrix, m.Rows, m.Cols)
		}
	}
	if n := len(c.MatrixDebugInfo); n != 0 && n != len(c.Matrices) {
		r.addf(errStructure, -1, "%d entries of debug information for %d matrices", n, len(c.Matrices))
	}
	if r.bad() {
		return // a command could not even be printed
	}
	for i, pairs := range c.IndexesMulti {
		for row, p := range pairs {
			exists := p[0] > 0 && int(p[0]) < len(c.Submatrices) && p[1] >= 0 && p[1] < c.Submatrices[p[0]].NumRows
			if !exists && p != (Pair{-1, -1}) {
				r.addf(errStructure, -1, "entry %d of indexes_multi %d is row %d of sub-matrix %d, which is not there", row, i, p[1], p[0])
			}
		}
	}
	for i, cmd := range c.Commands {
		if !cmd.Type.valid() {
			r.addf(errStructure, i, "unknown command type %d", cmd.Type)
			continue
		}
		for k, kind := range argKinds[cmd.Type] {
			if why := r.argument(kind, cmd.Args[k]); why != "" {
				r.addf(errStructure, i, "argument %d is %d, %s", k+1, cmd.Args[k], why)
			}
		}
	}
}

// inside reports whether the n > 0 rows or columns from offset on are among all.
func inside(offset, n, all int32) bool {
	return offset >= 0 && n > 0 && int64(offset)+int64(n) <= int64(all)
}

// argument returns why n is not a valid argument of the given kind, "" if it is.
func (r *report) argument(kind argKind, n int32) string {
	c := r.c
	kind, _ = kind.split()
	lowest, count, what := int32(0), 0, ""
	switch kind {
	case argNone:
		return ""
	case argWhole, argView:
		lowest, count, what = 1, len(c.Submatrices), "sub-matrices"
	case argOptional:
		count, what = len(c.Submatrices), "sub-matrices"
	case argComponent:
		if count, what = math.MaxInt32, "components"; r.net != nil {
			count = len(r.net.Components)
		}
	case argPrecomputed:
		count, what = len(c.PrecomputedIndexes), "precomputed indexes"
	case argMemo:
		// The memos of a running computation are a list, so there must not be more of them than
		// commands. Kaldi numbers them by step, and every step has several commands.
		lowest, count, what = -1, len(c.Commands)+1, "memo slots"
	case argFlag:
		lowest, count, what = -1, 2, "flag values"
	case argIndexes:
		count, what = len(c.Indexes), "index vectors"
	case argMulti:
		count, what = len(c.IndexesMulti), "indexes_multi vectors"
	case argRanges:
		count, what = len(c.IndexesRanges), "indexes_ranges vectors"
	case argNode:
		if count, what = math.MaxInt32, "nodes"; r.net != nil && len(r.net.Nodes) > 0 {
			count = len(r.net.Nodes)
		}
	case argCompression:
		lowest, count, what = CompressInt8, CompressUint16+1, "ways to compress"
	case argCommand:
		count, what = len(c.Commands), "commands"
	}
	if n < lowest || int(n) >= count {
		return fmt.Sprintf("not among the %s numbered %d to %d", what, lowest, count-1)
	}
	if kind == argWhole && !c.IsWhole(n) {
		return "a part of a matrix where all of it is wanted"
	}
	return ""
}
