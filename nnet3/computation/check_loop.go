package computation

import "slices"

// loop checks that an iteration of the loop can follow another: it must end with the same matrices
// allocated that it began with. It returns the matrices that are allocated at the label. Outputs
// may differ: they are not freed, and the caller has taken them before they are allocated again.
func (r *report) loop(a *analyzer) (begin []bool) {
	last := len(r.c.Commands) - 1
	label, tail := int(r.c.Commands[last].Target()), r.c.loopTail()
	live := make([]bool, len(r.c.Matrices))
	of := func(sub int32) *bool { return &live[r.c.Submatrices[sub].Matrix] }
	proper := r.c.Commands[label].Type == NoOperationLabel // if not, it is reported already
	for i, cmd := range r.c.Commands {
		if i == label {
			begin = slices.Clone(live)
		}
		switch cmd.Type {
		case AllocMatrix, AcceptInput:
			*of(cmd.View()) = true
		case DeallocMatrix:
			*of(cmd.View()) = false
		case SwapMatrix:
			if i >= tail && proper {
				r.handOver(a, i, live)
			}
			// The memory of the second is now that of the first.
			*of(cmd.View()), *of(cmd.Source()) = true, false
		}
	}
	for m := 1; m < len(live) && proper; m++ {
		if live[m] != begin[m] && !a.lives[m].isOutput {
			was, is := "free", "allocated"
			if begin[m] {
				was, is = is, was
			}
			r.addf(ErrLoop, last, "m%d is %s when a pass begins and %s when it ends", m, was, is)
		}
	}
	return begin
}

// handOver checks a swap at the end of the loop, which hands a matrix over to the next iteration.
func (r *report) handOver(a *analyzer, i int, live []bool) {
	cmd := r.c.Commands[i]
	to, from := r.c.Submatrices[cmd.View()].Matrix, r.c.Submatrices[cmd.Source()].Matrix
	if live[to] {
		r.addf(ErrLoop, i, "m%d is still allocated", to)
	}
	if !live[from] {
		r.addf(ErrLoop, i, "m%d is not allocated", from)
	}
	if len(a.lives[from].accesses) == 0 {
		r.addf(ErrLoop, i, "m%d holds nothing", from)
	}
}

// Looped reports whether the computation ends in a jump.
func (c *Computation) Looped() bool {
	n := len(c.Commands)
	return n > 0 && c.Commands[n-1].Type == GotoLabel
}

// loopTail returns the number of the first of the swaps right before the jump of a loop, which hand
// matrices over to the next iteration. Without a loop it is the number of commands.
func (c *Computation) loopTail() int {
	if !c.Looped() {
		return len(c.Commands)
	}
	i := len(c.Commands) - 1
	for i > 0 && c.Commands[i-1].Type == SwapMatrix {
		i--
	}
	return i
}
