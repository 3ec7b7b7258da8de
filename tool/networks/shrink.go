package networks

import (
	"errors"
	"iter"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/tool/repro"
)

// errRigid means that an apply needs all of its rows.
var errRigid = errors.New("it needs all of its rows")

// Shrink leaves out the last rows of all matrices.
func (w world) Shrink(g *fgraph.FunctionGraph, _ []any) iter.Seq[repro.Smaller] {
	return func(yield func(repro.Smaller) bool) {
		most := int32(0)
		for v := range g.Variables() {
			most = max(most, lower.TypeOf(v).Rows)
		}
		last := int32(0)
		// Few rows are enough for most failures, so small numbers are tried first. Larger ones help
		// where a rule counts rows; the caller repeats this until none of them fails.
		for _, n := range []int32{1, 2, 3, 4, most / 8, most / 4, most / 2, most - most/4, most - 1} {
			if n <= last || n >= most {
				continue
			}
			last = n
			if s, err := firstRows(g, n); err == nil && !yield(repro.Smaller{Graph: s}) {
				return
			}
		}
	}
}

// firstRows makes all matrices with more than n rows have n.
func firstRows(g *fgraph.FunctionGraph, n int32) (*fgraph.FunctionGraph, error) {
	return repro.Rebuild(g, func(v *fgraph.Variable) *fgraph.Variable {
		t, ok := v.Type().(lower.MatrixType)
		if !ok {
			return repro.Leaf(v)
		}
		t.Rows = min(t.Rows, n)
		return fgraph.NewInput(t, v.Name())
	}, func(a *fgraph.Apply, in []*fgraph.Variable) (*fgraph.Apply, error) {
		types := make([]fgraph.Type, len(a.Outputs()))
		for i, v := range a.Outputs() {
			types[i] = v.Type()
			if t, ok := types[i].(lower.MatrixType); ok {
				t.Rows = min(t.Rows, n)
				types[i] = t
			}
		}
		return withRows(a.Op(), in, types, n)
	})
}

// withRows applies an op to matrices of at most n rows.
func withRows(op fgraph.Op, in []*fgraph.Variable, types []fgraph.Type, n int32) (*fgraph.Apply, error) {
	switch o := op.(type) {
	case lower.Fill:
		o.Rows = min(o.Rows, n)
		op = o
	case lower.Propagate:
		if !o.C.Properties().Has(component.Simple) {
			return nil, errRigid
		}
	case lower.Backprop:
		if !o.C.Properties().Has(component.Simple) {
			return nil, errRigid
		}
	case lower.Block:
		o.R1 = min(o.R1, o.R0+n)
		if o.R1 > lower.TypeOf(in[0]).Rows {
			o.R0, o.R1 = 0, o.R1-o.R0
		}
		op = o
	case *lower.Assemble:
		return assembleRows(o, in, n), nil
	default:
		return nil, errRigid
	}
	return fgraph.NewApply(op, in, types...), nil
}

// assembleRows leaves out the rows that are not there any more.
func assembleRows(op *lower.Assemble, in []*fgraph.Variable, n int32) *fgraph.Apply {
	rows := min(op.Rows, n)
	var terms []lower.Term
	for _, t := range op.Terms {
		have := lower.TypeOf(in[t.Input]).Rows
		var pairs []lower.RowPair
		for i := range t.NumRows {
			if p := t.Pair(i); p.Dst < rows && p.Src < have {
				pairs = append(pairs, p)
			}
		}
		if len(pairs) == 0 {
			continue
		}
		t.DstRow, t.SrcRow, t.NumRows = pairs[0].Dst, pairs[0].Src, int32(len(pairs))
		if t.Rows = pairs; consecutive(pairs) {
			t.Rows = nil
		}
		terms = append(terms, t)
	}
	return lower.NewAssemble(rows, op.Cols, terms, in).Owner()
}

// consecutive reports whether rows follow each other on both sides.
func consecutive(pairs []lower.RowPair) bool {
	for i, p := range pairs {
		if p.Dst != pairs[0].Dst+int32(i) || p.Src != pairs[0].Src+int32(i) {
			return false
		}
	}
	return true
}
