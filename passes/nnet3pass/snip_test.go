package nnet3pass_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/rewrite"
)

func TestSnipRowOps(t *testing.T) {
	rules := nnet3pass.Rules()
	snip := rules[slices.IndexFunc(rules, func(r rewrite.Rule) bool { return r.Name == "snip_row_ops" })]
	none := computation.Pair{-1, -1}
	for _, test := range []struct {
		name   string
		ranges []computation.Pair
		want   string // the ops, outermost first
		place  string // of what is left
	}{
		{"at both ends", []computation.Pair{none, none, {0, 2}, none, {2, 5}, none}, "Scatter{6x3} RowRanges{3}", "[2:5,0:3] += 1 * in0[0:3,0:3]"},
		{"at the beginning", []computation.Pair{{3, 3}, {0, 2}}, "Scatter{2x3} RowRanges{1}", "[1:2,0:3] += 1 * in0[0:1,0:3]"},
		{"nothing left", []computation.Pair{none, {4, 4}}, "Fill{0}", ""},
		{"only inside", []computation.Pair{{0, 1}, none, {1, 5}}, "RowRanges{3}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := fgraph.NewInput(lower.MatrixType{Rows: 5, Cols: 3}, "x")
			size := lower.MatrixType{Rows: int32(len(test.ranges)), Cols: 3}
			v := fgraph.NewApply(&lower.RowRanges{Cols: 3, Ranges: test.ranges}, []*fgraph.Variable{x}, size).Out()
			g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{v})
			if err != nil {
				t.Fatal(err)
			}
			if err := rewrite.Run(t.Context(), rewrite.In2Out("test", snip), g, nil); err != nil {
				t.Fatal(err)
			}
			var ops []string
			for a := g.Outputs()[0].Owner(); a != nil; {
				ops = append(ops, a.Op().String())
				if len(a.Inputs()) == 0 {
					break
				}
				a = a.Inputs()[0].Owner()
			}
			if got := strings.Join(ops, " "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if op, ok := g.Outputs()[0].Owner().Op().(*lower.Assemble); ok && strings.TrimSpace(op.Describe()) != test.place {
				t.Errorf("%s, want %s", op.Describe(), test.place)
			}
		})
	}
}
