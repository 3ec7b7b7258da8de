package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// snipRowOps leaves out sums over no rows at either end of a list of sums. The rows of a term need no such rule: those that
// come from nowhere are no part of it.
func snipRowOps() rewrite.Rule {
	return rewrite.Rule{
		Name: "snip_row_ops", Doc: "sums over no rows at either end of a list of sums are left out",
		On: []rewrite.Track{rewrite.TrackType[*lower.RowRanges]()}, Depth: 1,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			op := a.Op().(*lower.RowRanges)
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
				return c.Miss("the first and the last sum are over some rows"), nil
			case first == last:
				return rewrite.Replace(lower.NewFill(t.Rows, t.Cols, 0)), nil
			}
			some := lower.MatrixType{Rows: int32(last - first), Cols: t.Cols}
			sums := fgraph.NewApply(&lower.RowRanges{Cols: op.Cols, Ranges: op.Ranges[first:last]}, a.Inputs(), some)
			sums.SetOrigin(a.Origin())
			place := lower.Term{Scale: 1, DstRow: int32(first), NumRows: some.Rows, NumCols: some.Cols, At: int32(a.Origin())}
			return rewrite.Replace(lower.NewAssemble(t.Rows, t.Cols, []lower.Term{place}, sums.Outputs())), nil
		},
	}
}
