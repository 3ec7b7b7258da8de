package nnet3pass

import (
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// liftRows chooses rows before a component instead of after it. The component must work row by row,
// on an input that is not wider than its output, or be a product that can read the rows wherever
// they lie.
func liftRows() rewrite.Rule {
	return ruleFor("local_lift_rows", "rows are chosen before a component that works row by row: f(x)[rows] → f(x[rows])", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
			if len(op.Terms) != 1 || op.Terms[0].Contiguous() || !covers(op, &op.Terms[0]) || op.Terms[0].Scale != 1 {
				return c.Miss("it does more than choose rows")
			}
			t := op.Terms[0]
			x := a.Inputs()[0]
			inner, ok := ownerOp[lower.Propagate](x)
			switch {
			case !ok || !plain(inner) || inner.Accumulate || len(x.Owner().Inputs()) == 0:
				return c.Miss("the input is not the plain result of a component")
			case len(x.Clients()) != 1:
				return c.Miss("the result of %s has other uses", inner.Name)
			case t.SrcCol != 0 || t.NumCols != lower.TypeOf(x).Cols || t.NumRows > lower.TypeOf(x).Rows:
				return c.Miss("columns are chosen too, or rows are repeated")
			}
			// A product looks up its rows in any case, so choosing them is free there. Others need
			// the chosen rows in a matrix of their own, which must not be larger than what it
			// saves.
			if v := liftIntoProduct(a, inner, x.Owner(), &t); v != nil {
				return rewrite.Replace(v)
			}
			if inner.C.Properties()&component.Simple == 0 || inner.Precomputed != nil || inner.C.InputDim() > inner.C.OutputDim() {
				return c.Miss("%s looks at other rows, or its input is wider than its output", inner.Name)
			}
			in := x.Owner().Inputs()[0]
			root, at := lower.Resolve(in)
			t.Input, t.NumCols = 0, int32(inner.C.InputDim())
			t.ShiftSrc(at.R0, at.C0)
			rows := lower.NewAssemble(op.Rows, t.NumCols, []lower.Term{t}, []*fgraph.Variable{root})
			return rewrite.Replace(fgraph.NewApply(inner, []*fgraph.Variable{rows}, a.Out().Type()).Out())
		})
}

// liftIntoProduct lets a product compute only the chosen rows, in the chosen order. It returns nil
// if that is impossible.
func liftIntoProduct(a *fgraph.Apply, inner lower.Propagate, producer *fgraph.Apply, t *lower.Term) *fgraph.Variable {
	product, ok := component.NewProduct(inner.C)
	if !ok {
		return nil
	}
	var pre component.Precomputed
	if inner.Precomputed != nil {
		pre = inner.Precomputed.Data
	}
	made := int(lower.TypeOf(producer.Out()).Rows)
	var splices []component.Splice
	product.Blocks(func(block, col, cols int) {
		src, known := product.Rows(block, pre, made)
		if ok = ok && known; !ok {
			return
		}
		s := component.Splice{Block: block, Cols: cols, SrcCol: col, Rows: make([]int32, t.NumRows)}
		for i := range t.NumRows {
			s.Rows[i] = src[t.Pair(i).Src]
		}
		splices = append(splices, s)
	})
	if !ok {
		return nil
	}
	in := lower.TypeOf(producer.Inputs()[0])
	q, rows := product.Splice(splices, int(in.Rows), int(in.Cols), true, true)
	inner.Component = lower.Component{C: q, Number: -1, Name: inner.Name}
	inner.Precomputed = &computation.PrecomputedIndexesInfo{Data: rows}
	return fgraph.NewApply(inner, producer.Inputs(), a.Out().Type()).Out()
}

// readRowsInPlace lets a component with precomputed indexes of the rows that it reads find them
// where they lie, instead of in a matrix of chosen rows.
func readRowsInPlace() rewrite.Rule {
	return ruleFor("local_read_rows_in_place", "a component that looks up its rows reads them in place: f(x[rows]) → f'(x)", 2,
		func(c *rewrite.Context, a *fgraph.Apply, op lower.Propagate) rewrite.Result {
			if op.Precomputed == nil || op.UsesMemo || op.StoreStats || op.InPlace || len(a.Inputs()) == 0 {
				return c.Miss("%s does not look up rows, or has an effect", op.Name)
			}
			taker, ok := op.Precomputed.Data.(component.RowTaker)
			if !ok {
				return c.Miss("%s can't look up its rows elsewhere", op.Name)
			}
			chosen := a.Inputs()[0]
			asm, ok := ownerOp[*lower.Assemble](chosen)
			if !ok || len(asm.Terms) != 1 || !covers(asm, &asm.Terms[0]) || asm.Terms[0].Scale != 1 || len(chosen.Clients()) != 1 {
				return c.Miss("the input is not a choice of rows for %s alone", op.Name)
			}
			t := &asm.Terms[0]
			root := chosen.Owner().Inputs()[0]
			size := lower.TypeOf(root)
			if !cheaperInPlace(c.Graph(), a, chosen, root) {
				return c.Miss("a copy of the rows takes less memory than to keep %v for %s", root, op.Name)
			}
			rows := make([]int32, t.NumRows)
			for i := range t.NumRows {
				rows[i] = t.Pair(i).Src
			}
			op.Precomputed = &computation.PrecomputedIndexesInfo{Data: taker.TakeRows(rows, int(size.Rows))}
			x := lower.NewBlock(root, lower.Rect{R0: 0, R1: size.Rows, C0: t.SrcCol, C1: t.SrcCol + t.NumCols})
			inputs := append([]*fgraph.Variable{x}, a.Inputs()[1:]...)
			return rewrite.Replace(fgraph.NewApply(op, inputs, outputTypes(a)...).Outputs()...)
		})
}

// cheaperInPlace reports whether apply a takes no more memory if it reads sources directly instead
// of a matrix assembled of their parts. If a reads them directly, the sources live until its output
// does, together with the matrix if that is needed later. If not, the sources live together with
// the matrix, and then the matrix with the output. Sources that are needed later anyway cost
// nothing. Memory that another component of the network needs in any case costs nothing either.
func cheaperInPlace(g *fgraph.FunctionGraph, a *fgraph.Apply, together *fgraph.Variable, sources ...*fgraph.Variable) bool {
	// All in elements: what lives at the same time at the worse of two moments, once with a copy
	// and once without. Ties go to reading in place, which saves the copy.
	var kept int64
	for _, v := range sources {
		if !neededAfter(v, a) {
			kept += elements(v)
		}
	}
	parts, out := elements(together), elements(a.Out())
	direct := kept + out
	if neededAfter(together, a) {
		direct += parts
	}
	if direct <= max(kept+parts, parts+out) {
		return true
	}
	p, ok := lower.ProgramOf(g)
	return ok && direct <= p.LargestOp()
}

func elements(v *fgraph.Variable) int64 {
	t := lower.TypeOf(v)
	return int64(t.Rows) * int64(t.Cols)
}

// neededAfter reports whether an apply that came after a in the original order reads a part of v.
func neededAfter(v *fgraph.Variable, a *fgraph.Apply) bool {
	for _, c := range v.Clients() {
		if c.Apply == nil || c.Apply.Origin() > a.Origin() {
			return true
		}
		if _, ok := c.Apply.Op().(lower.Block); ok && neededAfter(c.Apply.Out(), a) {
			return true // there are no blocks of blocks, so this goes one level deep
		}
	}
	return false
}
