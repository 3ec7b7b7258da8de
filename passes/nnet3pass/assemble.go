package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// again proposes an Assemble of other terms of the same inputs.
func again(a *fgraph.Apply, op *lower.Assemble, terms []lower.Term) rewrite.Result {
	return rewrite.Replace(lower.NewAssemble(op.Rows, op.Cols, terms, a.Inputs()))
}

// termRule makes a rule that divides terms. parts returns nil for a term that stays as it is.
func termRule(name, doc string, parts func(t *lower.Term) []lower.Term) rewrite.Rule {
	return ruleFor(name, doc, 1, func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
		var terms []lower.Term // nil until a term is divided
		for i := range op.Terms {
			now := parts(&op.Terms[i])
			if now != nil && terms == nil {
				terms = append(make([]lower.Term, 0, len(op.Terms)+1), op.Terms[:i]...)
			}
			if terms != nil && now == nil {
				terms = append(terms, op.Terms[i])
			}
			terms = append(terms, now...)
		}
		if terms == nil {
			return rewrite.Result{}
		}
		return again(a, op, terms)
	})
}

// optimizeRowOps turns consecutive rows that are listed one by one into one block.
func optimizeRowOps() rewrite.Rule {
	return termRule("optimize_row_ops", "consecutive rows that are listed one by one are moved as one block",
		func(t *lower.Term) []lower.Term {
			if t.Contiguous() || t.FirstRun() != t.NumRows {
				return nil
			}
			return []lower.Term{t.Run(0, t.NumRows)}
		})
}

// splitRowOps turns rows that are listed one by one and make up two blocks into two terms.
func splitRowOps() rewrite.Rule {
	return termRule("split_row_ops", "rows that are listed one by one and make up two blocks are moved as two blocks",
		func(t *lower.Term) []lower.Term {
			if !t.HasTwoRuns() {
				return nil
			}
			cut := t.FirstRun()
			return []lower.Term{t.Run(0, cut), t.Run(cut, t.NumRows)}
		})
}

// mergeTerms joins adjacent blocks that come from adjacent places of one input.
func mergeTerms() rewrite.Rule {
	return ruleFor("local_merge_terms", "blocks that are adjacent in the result and in one input are moved as one", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
			// First see whether anything joins at all, since this rule visits every Assemble and
			// mostly finds nothing; then there is no list to allocate.
			joins := false
			for i := 1; i < len(op.Terms) && !joins; i++ {
				t := op.Terms[i-1]
				joins = t.Join(&op.Terms[i])
			}
			if !joins {
				return rewrite.Result{}
			}
			terms := make([]lower.Term, 0, len(op.Terms))
			refused := false
			from := 0 // the first term that the last of terms is made of and that may be in a sum
			for i := range op.Terms {
				if n := len(terms); n > 0 {
					// Terms of one command are added at the same time as it is. With terms of
					// different commands, one of them changes its place in the order of additions.
					t, other := terms[n-1], terms[n-1].At != op.Terms[i].At
					switch {
					case !t.Join(&op.Terms[i]):
					case other && inSum(op, from, i+1):
						refused = true
					default:
						terms[n-1] = t
						if other {
							from = i + 1
						}
						continue
					}
				}
				terms, from = append(terms, op.Terms[i]), i
			}
			if refused {
				c.Miss("a sum would be added up in another order")
			}
			if len(terms) == len(op.Terms) {
				return rewrite.Result{}
			}
			return again(a, op, terms)
		})
}

// inSum reports whether one of the terms [first, end) adds to elements that at least two others add
// to. A term joined with one of another command would be added at another time. That changes the
// last bit of such a sum, and not in all rows alike. A sum of two terms has no order.
func inSum(op *lower.Assemble, first, end int) bool {
	for i := first; i < end; i++ {
		dst := op.Terms[i].Dst()
		others := 0
		for k, hi := op.Between(dst.R0, dst.R1); k < hi; k++ {
			if k != i && op.Terms[k].Dst().Overlaps(dst) {
				others++
			}
		}
		if others > 1 {
			return true
		}
	}
	return false
}

// uselessAssemble removes an Assemble that is a block of its input.
func uselessAssemble() rewrite.Rule {
	return ruleFor("local_useless_assemble", "a copy of a block is the block: assemble(x[block]) → x[block]", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
			if len(op.Terms) != 1 {
				return c.Miss("%d terms", len(op.Terms))
			}
			t := &op.Terms[0]
			if !whole(op, t) {
				return c.Miss("the term is scaled, selects rows or covers only a part")
			}
			return rewrite.Replace(lower.NewBlock(a.Inputs()[0], t.Src()))
		})
}

// dropZeros removes terms that add zeros.
func dropZeros() rewrite.Rule {
	return ruleFor("local_drop_zeros", "a term of zeros adds nothing", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
			if !slices.ContainsFunc(a.Inputs(), isZero) {
				return rewrite.Result{}
			}
			var terms []lower.Term
			for i := range op.Terms {
				if !isZero(a.Inputs()[op.Terms[i].Input]) {
					terms = append(terms, op.Terms[i])
				}
			}
			if len(terms) == 0 {
				return rewrite.Replace(lower.NewFill(op.Rows, op.Cols, 0))
			}
			return again(a, op, terms)
		})
}

// throughBlock lets an Assemble read the matrix behind a Block.
func throughBlock() rewrite.Rule {
	return ruleFor("local_assemble_through_block", "reading a block of x is reading x", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
			if !slices.ContainsFunc(a.Inputs(), madeBy[lower.Block]) {
				return rewrite.Result{}
			}
			inputs := slices.Clone(a.Inputs())
			shown := make([]lower.Rect, len(inputs)) // by input: the rectangle of the matrix behind it
			for n, in := range inputs {
				inputs[n], shown[n] = lower.Resolve(in)
			}
			terms := slices.Clone(op.Terms)
			for i := range terms {
				r := &shown[terms[i].Input]
				terms[i].ShiftSrc(r.R0, r.C0)
			}
			return rewrite.Replace(lower.NewAssemble(op.Rows, op.Cols, terms, inputs))
		})
}

// inlineAssemble replaces terms that read an Assemble with the terms of that Assemble, if nothing
// else uses it.
func inlineAssemble() rewrite.Rule {
	return ruleFor("local_inline_assemble", "an assemble whose single use is another assemble is inlined", 1,
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) rewrite.Result {
			inner := inlinable(c, a, op)
			if inner == nil {
				return rewrite.Result{}
			}
			// Inline all without constants at once: a tall matrix may have as many parts as a
			// recurrence has steps.
			some, constants := false, make([]bool, len(inner))
			for n, o := range inner {
				constants[n] = o != nil && slices.ContainsFunc(a.Inputs()[n].Owner().Inputs(), madeBy[lower.Fill])
				some = some || o != nil && !constants[n]
			}
			if some {
				for n := range inner {
					if constants[n] {
						inner[n] = nil
					}
				}
				terms, inputs := inline(a, op, inner)
				if multiplies(len(terms), op, inner) {
					return c.Miss("the result would have %d terms", len(terms))
				}
				return rewrite.Replace(lower.NewAssemble(op.Rows, op.Cols, terms, inputs))
			}
			for n := range inner {
				if inner[n] == nil {
					continue
				}
				// What has constants goes one by one, because whether a constant would meet another
				// term depends on what is inlined beside it.
				one := make([]*lower.Assemble, len(inner))
				one[n] = inner[n]
				if terms, inputs := inline(a, op, one); !constantMeets(terms, inputs) && !multiplies(len(terms), op, one) {
					return rewrite.Replace(lower.NewAssemble(op.Rows, op.Cols, terms, inputs))
				}
				c.Miss("a constant of input %d would be added to something", n)
			}
			return rewrite.Result{}
		})
}

// inlinable returns, by input, the Assembles whose terms can be inlined, and nil where that is
// impossible.
func inlinable(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) []*lower.Assemble {
	if !slices.ContainsFunc(a.Inputs(), madeBy[*lower.Assemble]) {
		return nil
	}
	inner := make([]*lower.Assemble, len(a.Inputs()))
	ragged := make([]bool, len(inner)) // its terms have different columns
	for n, in := range a.Inputs() {
		o, ok := ownerOp[*lower.Assemble](in)
		switch {
		case !ok:
		case len(in.Clients()) != 1:
			c.Miss("input %d has other uses", n)
		default:
			inner[n], ragged[n] = o, !sameCols(o)
		}
	}
	for i := range op.Terms {
		// Terms with lists of rows through parts of different columns would become a list for each
		// part. The rows are as well chosen from the finished matrix.
		if t := &op.Terms[i]; !t.Contiguous() && ragged[t.Input] && inner[t.Input] != nil {
			inner[t.Input] = nil
			c.Miss("rows are chosen one by one from input %d, which has parts side by side", t.Input)
		}
	}
	return inner
}

// freeTerms is the number of terms that inlining may always produce.
const freeTerms = 64

// multiplies reports whether inlining produces many more terms than the outer and the inner
// Assembles have together, because several outer terms read the same inner Assemble. Without a
// limit, a chain of layers that each add up two times of their input would double the terms with
// every layer.
func multiplies(terms int, op *lower.Assemble, inner []*lower.Assemble) bool {
	most := len(op.Terms)
	for _, o := range inner {
		if o != nil {
			most += len(o.Terms)
		}
	}
	return terms > max(most, freeTerms)
}

// inline replaces terms that read an inner Assemble with its terms.
func inline(a *fgraph.Apply, op *lower.Assemble, inner []*lower.Assemble) ([]lower.Term, []*fgraph.Variable) {
	inputs := slices.Clone(a.Inputs())
	first := make([]int32, len(inner)) // by input: where the inputs of its Assemble begin
	for n, o := range inner {
		if o != nil {
			first[n] = int32(len(inputs))
			inputs = append(inputs, a.Inputs()[n].Owner().Inputs()...)
		}
	}
	var terms []lower.Term
	for i := range op.Terms {
		t := &op.Terms[i]
		o := inner[t.Input]
		if o == nil {
			terms = append(terms, *t)
			continue
		}
		src := t.Src()
		// Only the inner terms that write rows which are read. A tall inner matrix has thousands,
		// of which a step reads one or two.
		for lo, hi := o.Between(src.R0, src.R1); lo < hi; lo++ {
			if u, ok := t.Through(&o.Terms[lo]); ok {
				u.Input += first[t.Input]
				terms = append(terms, u)
			}
		}
	}
	return terms, inputs
}

// constantMeets reports whether a constant would be added to another term. A constant can be set
// but not added.
func constantMeets(terms []lower.Term, inputs []*fgraph.Variable) bool {
	for i := range terms {
		if !madeBy[lower.Fill](inputs[terms[i].Input]) {
			continue
		}
		for j := range terms {
			if j != i && terms[j].Dst().Overlaps(terms[i].Dst()) {
				return true
			}
		}
	}
	return false
}

func sameCols(op *lower.Assemble) bool {
	for i := range op.Terms {
		if op.Terms[i].DstCol != op.Terms[0].DstCol || op.Terms[i].NumCols != op.Terms[0].NumCols {
			return false
		}
	}
	return true
}

// blockOfAssemble replaces a block of an Assemble that lies in a single term with a block of the
// input of that term.
func blockOfAssemble() rewrite.Rule {
	return ruleFor("local_block_of_assemble", "a block that lies in one unscaled term of an assemble is a block of the input of the term", 1,
		func(c *rewrite.Context, a *fgraph.Apply, block lower.Block) rewrite.Result {
			r, in := block.Rect, a.Inputs()[0]
			op, ok := ownerOp[*lower.Assemble](in)
			if !ok {
				return c.Miss("the input is not an Assemble")
			}
			found := -1
			lo, hi := op.Between(r.R0, r.R1)
			for i := lo; i < hi; i++ {
				if op.Terms[i].Dst().Overlaps(r) {
					if found >= 0 {
						return c.Miss("the block lies in several terms")
					}
					found = i
				}
			}
			// What no term writes is zero.
			if found < 0 {
				return rewrite.Replace(lower.NewFill(r.Rows(), r.Cols(), 0))
			}
			t := &op.Terms[found]
			if !t.Contiguous() || t.Scale != 1 || !t.Dst().Contains(r) {
				return c.Miss("the term is scaled, selects rows or covers only a part")
			}
			return rewrite.Replace(lower.NewBlock(in.Owner().Inputs()[t.Input], r.Shift(t.SrcRow-t.DstRow, t.SrcCol-t.DstCol)))
		})
}
