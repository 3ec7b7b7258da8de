package computation

// loop checks that a pass of the loop can follow on itself: the matrices that are allocated when it begins are allocated
// when it ends. Outputs are left out: nobody frees them, and the caller has had them when they are allocated again.
func (r *report) loop(a *Analyzer) {
	last := len(r.c.Commands) - 1
	label := int(r.c.Commands[last].Arg1)
	if r.c.Commands[label].Type != NoOperationLabel {
		return // reported already
	}
	live := make([]bool, len(r.c.Matrices))
	var begin []bool
	tail := r.c.loopTail()
	for i, cmd := range r.c.Commands {
		switch cmd.Type {
		case AllocMatrix, AcceptInput:
			live[r.c.Submatrices[cmd.Arg1].Matrix] = true
		case DeallocMatrix:
			live[r.c.Submatrices[cmd.Arg1].Matrix] = false
		case SwapMatrix:
			to, from := r.c.Submatrices[cmd.Arg1].Matrix, r.c.Submatrices[cmd.Arg2].Matrix
			if i >= tail {
				if live[to] {
					r.addf(ErrLoop, i, "m%d is still allocated", to)
				}
				if !live[from] {
					r.addf(ErrLoop, i, "m%d is not allocated", from)
				}
				if a.LastMatrixAccess(from) < 0 {
					r.addf(ErrLoop, i, "m%d holds nothing", from)
				}
			}
			live[to], live[from] = true, false
		case NoOperationLabel:
			if i == label {
				begin = append(begin, live...)
			}
		}
	}
	for m := 1; m < len(live); m++ {
		if live[m] != begin[m] && !a.MatrixAccesses[m].IsOutput {
			was, is := "free", "allocated"
			if begin[m] {
				was, is = is, was
			}
			r.addf(ErrLoop, last, "m%d is %s when a pass begins and %s when it ends", m, was, is)
		}
	}
}

// liveAtLabel returns which matrices are allocated where the loop begins.
func (r *report) liveAtLabel() []bool {
	live := make([]bool, len(r.c.Matrices))
	for _, cmd := range r.c.Commands[:r.c.Commands[len(r.c.Commands)-1].Arg1] {
		switch cmd.Type {
		case AllocMatrix, AcceptInput:
			live[r.c.Submatrices[cmd.Arg1].Matrix] = true
		case DeallocMatrix:
			live[r.c.Submatrices[cmd.Arg1].Matrix] = false
		case SwapMatrix:
			live[r.c.Submatrices[cmd.Arg1].Matrix] = true
			live[r.c.Submatrices[cmd.Arg2].Matrix] = false
		}
	}
	return live
}
