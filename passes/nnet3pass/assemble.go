package nnet3pass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/rewrite"
)

// assembleRule makes a rule for Assembles from a function that gives the replacement, or nil.
func assembleRule(name, doc string, fn func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) *fgraph.Variable) rewrite.Rule {
	return rewrite.Rule{
		Name: name, Doc: doc, Depth: 1,
		On: []rewrite.Track{rewrite.TrackType[*lower.Assemble]()},
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			if v := fn(c, a, a.Op().(*lower.Assemble)); v != nil {
				return rewrite.Result{Outputs: []*fgraph.Variable{v}}, nil
			}
			return rewrite.Result{}, nil
		},
	}
}

// again applies an Assemble with other terms to the same inputs.
func again(a *fgraph.Apply, terms []lower.Term) *fgraph.Variable {
	op := a.Op().(*lower.Assemble)
	return lower.NewAssemble(op.Rows, op.Cols, terms, a.Inputs())
}

// optimizeRowOps turns rows that are listed one by one, but follow each other, into one block.
func optimizeRowOps() rewrite.Rule {
	return assembleRule("optimize_row_ops", "rows listed one by one that follow each other are moved as one block",
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) *fgraph.Variable {
			var terms []lower.Term
			for i := range op.Terms {
				if t := &op.Terms[i]; !t.Contiguous() && t.FirstRun() == t.NumRows {
					terms = lower.CloneTerms(terms, op.Terms)
					terms[i] = t.Run(0, t.NumRows)
				}
			}
			if terms == nil {
				return nil
			}
			return again(a, terms)
		})
}

// splitRowOps turns rows listed one by one that make up two blocks into two terms.
func splitRowOps() rewrite.Rule {
	return assembleRule("split_row_ops", "rows listed one by one that make up two blocks are moved as two blocks",
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) *fgraph.Variable {
			var terms []lower.Term // nil as long as none was split
			for i := range op.Terms {
				t := &op.Terms[i]
				if !t.HasTwoRuns() {
					if terms != nil {
						terms = append(terms, *t)
					}
					continue
				}
				if terms == nil {
					terms = append(make([]lower.Term, 0, len(op.Terms)+1), op.Terms[:i]...)
				}
				cut := t.FirstRun()
				terms = append(terms, t.Run(0, cut), t.Run(cut, t.NumRows))
			}
			if terms == nil {
				return nil
			}
			return again(a, terms)
		})
}

// mergeTerms joins neighbouring blocks that come from neighbouring places of one input.
func mergeTerms() rewrite.Rule {
	return assembleRule("local_merge_terms", "blocks side by side in the result and in one input are moved as one",
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) *fgraph.Variable {
			joins := false
			for i := 1; i < len(op.Terms) && !joins; i++ {
				t := op.Terms[i-1]
				joins = t.Join(&op.Terms[i])
			}
			if !joins {
				return nil
			}
			terms := make([]lower.Term, 0, len(op.Terms))
			refused := false
			from := 0 // the first that the last of terms is made of and that may be in a sum
			for i := range op.Terms {
				if n := len(terms); n > 0 {
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
				return nil
			}
			return again(a, terms)
		})
}

// inSum reports whether one of the terms [first, end) adds to what two others add to as well. Joined with a term of another
// command it would be added at another time, which changes the last bit of such a sum, and not in all of its rows alike. A sum
// of two has no order.
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

// uselessAssemble removes an Assemble that only shows a block of its input.
func uselessAssemble() rewrite.Rule {
	return assembleRule("local_useless_assemble", "a copy of a block is the block: assemble(x[block]) → x[block]",
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) *fgraph.Variable {
			if len(op.Terms) != 1 {
				c.Miss("%d terms", len(op.Terms))
				return nil
			}
			t := &op.Terms[0]
			if !t.Contiguous() || t.Scale != 1 || t.NumRows != op.Rows || t.NumCols != op.Cols {
				c.Miss("the term is scaled, selects rows or covers only a part")
				return nil
			}
			return lower.NewBlock(a.Inputs()[0], t.Src())
		})
}

// dropZeros removes terms that add zero.
func dropZeros() rewrite.Rule {
	return assembleRule("local_drop_zeros", "a term of zeros adds nothing",
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) *fgraph.Variable {
			if !slices.ContainsFunc(a.Inputs(), isZero) {
				return nil
			}
			var terms []lower.Term
			for i := range op.Terms {
				if !isZero(a.Inputs()[op.Terms[i].Input]) {
					terms = append(terms, op.Terms[i])
				}
			}
			if len(terms) == 0 {
				return lower.NewFill(op.Rows, op.Cols, 0)
			}
			return again(a, terms)
		})
}

// throughBlock lets an Assemble take from the matrix that a Block is a part of.
func throughBlock() rewrite.Rule {
	return assembleRule("local_assemble_through_block", "taking from a block of x is taking from x",
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) *fgraph.Variable {
			if !slices.ContainsFunc(a.Inputs(), isBlock) {
				return nil
			}
			inputs := slices.Clone(a.Inputs())
			shown := make([]lower.Rect, len(inputs)) // by input: what it is of the matrix behind it
			for n, in := range inputs {
				inputs[n], shown[n] = lower.Resolve(in)
			}
			terms := slices.Clone(op.Terms)
			for i := range terms {
				r := &shown[terms[i].Input]
				terms[i].ShiftSrc(r.R0, r.C0)
			}
			return lower.NewAssemble(op.Rows, op.Cols, terms, inputs)
		})
}

// inlineAssemble takes the terms of Assembles that serve one other Assemble only over into that one.
func inlineAssemble() rewrite.Rule {
	return assembleRule("local_inline_assemble", "an assemble that only one other assemble uses becomes a part of it",
		func(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) *fgraph.Variable {
			inner := inlinable(c, a, op)
			if inner == nil {
				return nil
			}
			// All those without constants at once: a tall matrix can be put together of as many as a recurrence has steps.
			some, constants := false, make([]bool, len(inner))
			for n, o := range inner {
				constants[n] = o != nil && slices.ContainsFunc(a.Inputs()[n].Owner().Inputs(), isFill)
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
					c.Miss("%d terms would come of it", len(terms))
					return nil
				}
				return lower.NewAssemble(op.Rows, op.Cols, terms, inputs)
			}
			for n := range inner {
				if inner[n] == nil {
					continue
				}
				one := make([]*lower.Assemble, len(inner))
				one[n] = inner[n]
				if terms, inputs := inline(a, op, one); !constantMeets(terms, inputs) && !multiplies(len(terms), op, one) {
					return lower.NewAssemble(op.Rows, op.Cols, terms, inputs)
				}
				c.Miss("a constant of input %d would be added to something", n)
			}
			return nil
		})
}

// inlinable lists, by input, the Assembles whose terms can be taken over; nil where that is not so.
func inlinable(c *rewrite.Context, a *fgraph.Apply, op *lower.Assemble) []*lower.Assemble {
	if !slices.ContainsFunc(a.Inputs(), isAssemble) {
		return nil
	}
	inner := make([]*lower.Assemble, len(a.Inputs()))
	ragged := make([]bool, len(inner)) // its terms do not have the same columns
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
		if t := &op.Terms[i]; !t.Contiguous() && ragged[t.Input] && inner[t.Input] != nil {
			inner[t.Input] = nil
			c.Miss("rows of input %d, which is made of several columns, are chosen one by one", t.Input)
		}
	}
	return inner
}

// freeTerms is how many terms may come of a few that are multiplied out.
const freeTerms = 64

// multiplies reports whether terms are far more than those of the outer and the inner Assembles together, because several terms of
// the outer one take from the same inner one. A chain of layers that add up what their input has at two times doubles its terms with
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

// inline puts the terms of the inner Assembles in place of those that take from them.
func inline(a *fgraph.Apply, op *lower.Assemble, inner []*lower.Assemble) ([]lower.Term, []*fgraph.Variable) {
	inputs := append([]*fgraph.Variable(nil), a.Inputs()...)
	first := make([]int32, len(inner)) // by input: where the inputs of its Assemble are
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
		for lo, hi := o.Between(src.R0, src.R1); lo < hi; lo++ {
			if u, ok := t.Through(&o.Terms[lo]); ok {
				u.Input += first[t.Input]
				terms = append(terms, u)
			}
		}
	}
	return terms, inputs
}

// constantMeets reports whether a constant would be added to another term. It can be set, but not added.
func constantMeets(terms []lower.Term, inputs []*fgraph.Variable) bool {
	for i := range terms {
		if isFill(inputs[terms[i].Input]) && overlapsOther(terms, i) {
			return true
		}
	}
	return false
}

func isBlock(v *fgraph.Variable) bool {
	_, ok := ownerOp[lower.Block](v)
	return ok
}

func isFill(v *fgraph.Variable) bool {
	_, ok := ownerOp[lower.Fill](v)
	return ok
}

func isAssemble(v *fgraph.Variable) bool {
	_, ok := ownerOp[*lower.Assemble](v)
	return ok
}

func sameCols(op *lower.Assemble) bool {
	for i := range op.Terms {
		if op.Terms[i].DstCol != op.Terms[0].DstCol || op.Terms[i].NumCols != op.Terms[0].NumCols {
			return false
		}
	}
	return true
}

func overlapsOther(terms []lower.Term, i int) bool {
	for j := range terms {
		if j != i && terms[j].Dst().Overlaps(terms[i].Dst()) {
			return true
		}
	}
	return false
}

// blockOfAssemble takes a block of an Assemble that one term alone makes from that term's input.
func blockOfAssemble() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_block_of_assemble", Doc: "a block that one unscaled term of an assemble makes is a block of the term's input",
		On: []rewrite.Track{rewrite.TrackType[lower.Block]()}, Depth: 1,
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			r := a.Op().(lower.Block).Rect
			in := a.Inputs()[0]
			op, ok := ownerOp[*lower.Assemble](in)
			if !ok {
				return c.Miss("the input is no assemble"), nil
			}
			found := -1
			lo, hi := op.Between(r.R0, r.R1)
			for i := lo; i < hi; i++ {
				if op.Terms[i].Dst().Overlaps(r) {
					if found >= 0 {
						return c.Miss("several terms make the block"), nil
					}
					found = i
				}
			}
			if found < 0 {
				return rewrite.Result{Outputs: []*fgraph.Variable{lower.NewFill(r.Rows(), r.Cols(), 0)}}, nil
			}
			t := &op.Terms[found]
			if !t.Contiguous() || t.Scale != 1 || !t.Dst().Contains(r) {
				return c.Miss("the term is scaled, selects rows or makes only a part"), nil
			}
			v := lower.NewBlock(in.Owner().Inputs()[t.Input], r.Shift(t.SrcRow-t.DstRow, t.SrcCol-t.DstCol))
			return rewrite.Result{Outputs: []*fgraph.Variable{v}}, nil
		},
	}
}

// ownerOp is the op that makes v, if it is of type O.
func ownerOp[O fgraph.Op](v *fgraph.Variable) (O, bool) {
	if a := v.Owner(); a != nil {
		op, ok := a.Op().(O)
		return op, ok
	}
	var none O
	return none, false
}
