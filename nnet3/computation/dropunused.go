package computation

import "slices"

// DropUnused drops the matrices, sub-matrices, vectors of rows and precomputed indexes that no
// command uses, and renumbers the others. The numbers in c must be in range.
func (c *Computation) DropUnused() {
	of := [1 << argAccess]renumbering{
		argView:        newRenumbering(len(c.Submatrices)),
		argPrecomputed: newRenumbering(len(c.PrecomputedIndexes)),
		argIndexes:     newRenumbering(len(c.Indexes)),
		argMulti:       newRenumbering(len(c.IndexesMulti)),
		argRanges:      newRenumbering(len(c.IndexesRanges)),
	}
	subs := of[argView]
	of[argWhole], of[argOptional] = subs, subs
	// each calls f for every such number in the commands.
	each := func(f func(r renumbering, number *int32)) {
		for i := range c.Commands {
			cmd := &c.Commands[i]
			for k, kind := range argKinds[cmd.Type] {
				if what, _ := kind.split(); of[what] != nil {
					f(of[what], &cmd.Args[k])
				}
			}
		}
	}
	// eachLocation calls f for every sub-matrix in IndexesMulti.
	eachLocation := func(f func(sub *int32)) {
		for _, list := range c.IndexesMulti {
			for i := range list {
				if list[i][0] > 0 {
					f(&list[i][0])
				}
			}
		}
	}
	// The vectors go before the sub-matrices, and these before the matrices, because what only an
	// unused one names is unused.
	each(renumbering.use)
	c.IndexesMulti = keep(c.IndexesMulti, of[argMulti])
	eachLocation(func(sub *int32) { subs.use(sub) })
	matrices := newRenumbering(len(c.Matrices))
	for _, reserved := range []renumbering{of[argPrecomputed], subs, matrices} {
		reserved[0] = 0
	}
	for s := range c.Submatrices {
		if subs[s] >= 0 {
			matrices.use(&c.Submatrices[s].Matrix)
		}
	}
	c.Indexes, c.IndexesRanges = keep(c.Indexes, of[argIndexes]), keep(c.IndexesRanges, of[argRanges])
	c.PrecomputedIndexes, c.Submatrices = keep(c.PrecomputedIndexes, of[argPrecomputed]), keep(c.Submatrices, subs)
	c.Matrices, c.MatrixDebugInfo = keep(c.Matrices, matrices), keep(c.MatrixDebugInfo, matrices)
	each(renumbering.renumber)
	eachLocation(func(sub *int32) { subs.renumber(sub) })
	for s := range c.Submatrices {
		matrices.renumber(&c.Submatrices[s].Matrix)
	}
}

// renumbering has the new number of each thing, -1 for one that is dropped.
type renumbering []int32

func newRenumbering(n int) renumbering { return slices.Repeat(renumbering{-1}, n) }

// use marks a thing as used. Its new number is set by keep.
func (r renumbering) use(number *int32)      { r[*number] = 0 }
func (r renumbering) renumber(number *int32) { *number = r[*number] }

// keep returns the used things of a list and sets their new numbers.
func keep[T any](list []T, r renumbering) []T {
	var out []T
	for i := range list {
		if r[i] >= 0 {
			r[i] = int32(len(out))
			out = append(out, list[i])
		}
	}
	return out
}
