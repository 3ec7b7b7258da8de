package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// snipRowOps drops sums over no rows from both ends of a list of sums. Rows of a term need no such
// rule: a term has no rows without a source.
func snipRowOps() rewrite.Rule {
	return ruleFor("snip_row_ops", "empty sums at either end of a list of sums are dropped", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.RowRanges) rewrite.Result {
			first, last := 0, len(op.Ranges)
			for first < last && op.Ranges[first][0] >= op.Ranges[first][1] {
				first++
			}
			for first < last && op.Ranges[last-1][0] >= op.Ranges[last-1][1] {
				last--
			}
			t := lower.TypeOf(a.Out())
			switch {
			case last-first == len(op.Ranges):
				return c.Miss("the first and the last sum are over some rows")
			case first == last:
				return rewrite.Replace(lower.NewFill(t.Rows, t.Cols, 0))
			}
			some := lower.MatrixType{Rows: int32(last - first), Cols: t.Cols}
			sums := applyAt(a, &lower.RowRanges{Cols: op.Cols, Ranges: op.Ranges[first:last]}, a.Inputs(), some)
			place := lower.Term{Scale: 1, DstRow: int32(first), NumRows: some.Rows, NumCols: some.Cols, At: int32(a.Origin())}
			return rewrite.Replace(lower.NewAssemble(t.Rows, t.Cols, []lower.Term{place}, sums.Outputs()))
		})
}
