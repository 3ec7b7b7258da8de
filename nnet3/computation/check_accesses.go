package computation

// matrixAccesses checks the lives of the matrices. That none is allocated or freed twice has been checked already.
func (r *report) matrixAccesses(a *Analyzer, opts CheckOptions) {
	var carried []bool // live at both ends of a pass of the loop, so never freed
	if r.c.Looped() {
		carried = r.liveAtLabel()
	}
	for m := 1; m < len(a.MatrixAccesses); m++ {
		life := &a.MatrixAccesses[m]
		if life.Allocate < 0 {
			r.addf(ErrLifetime, -1, "m%d is never allocated", m)
			continue
		}
		if life.Deallocate < 0 && !life.IsOutput && (carried == nil || !carried[m]) {
			r.addf(ErrLifetime, int(life.Allocate), "m%d is never freed", m)
		}
		if life.Deallocate >= 0 && life.Deallocate < life.Allocate {
			r.addf(ErrLifetime, int(life.Deallocate), "m%d is freed before it is allocated", m)
		}
		for _, acc := range life.Accesses {
			if acc.Command < life.Allocate {
				r.addf(ErrLifetime, int(acc.Command), "m%d is not allocated yet", m)
				break
			}
			if life.Deallocate >= 0 && acc.Command > life.Deallocate {
				r.addf(ErrLifetime, int(acc.Command), "m%d is freed already, by command c%d", m, life.Deallocate)
				break
			}
		}
		if !opts.AllowUnused && r.onlySet(life) {
			r.addf(ErrUnused, int(life.Allocate), "m%d is never used", m)
		}
	}
}

// onlySet reports whether a matrix is never accessed but to set it to a constant.
func (r *report) onlySet(life *MatrixAccesses) bool {
	for _, acc := range life.Accesses {
		if r.c.Commands[acc.Command].Type != SetConst {
			return false
		}
	}
	return true
}

// undefined checks that each variable is written before it is read, and used at all.
func (r *report) undefined(a *Analyzer, opts CheckOptions) {
	for v, accesses := range a.VariableAccesses {
		used := false
		for _, acc := range accesses {
			// Compressing concerns all of a matrix, whether there is something in every part of it or not.
			if t := r.c.Commands[acc.Command].Type; t == CompressMatrix || t == DecompressMatrix {
				continue
			}
			used = true
			if acc.Type != WriteAccess {
				r.addf(ErrUndefined, int(acc.Command), "%s has not been written", a.Variables.Describe(r.c, int32(v)))
			}
			break
		}
		if used || opts.AllowUnused {
			continue
		}
		m := a.Variables.Matrix(int32(v))
		if cell := a.Variables.Cell(int32(v)); int64(cell.RowOffset)*10 < int64(r.c.Matrices[m].Rows)*8 {
			r.addf(ErrUnused, -1, "%s", a.Variables.Describe(r.c, int32(v)))
		}
	}
}

// rewrite checks that a variable is not written any more after it was read (and only read).
func (r *report) rewrite(a *Analyzer) {
	for v, accesses := range a.VariableAccesses {
		read := int32(-1)
		for _, acc := range accesses {
			if acc.Type == ReadAccess {
				read = acc.Command
			} else if read >= 0 {
				r.addf(ErrRewrite, int(acc.Command), "%s was read by command c%d", a.Variables.Describe(r.c, int32(v)), read)
				break
			}
		}
	}
}

// reluType is the one component for whose backward pass the sign of the output is enough.
const reluType = "RectifiedLinearComponent"

// compression checks that a matrix is decompressed before it is used again, that compression spans the middle of the
// computation, between forward and backward, and that nothing that is needed gets lost.
func (r *report) compression(a *Analyzer) {
	middle := -1
	for i, cmd := range r.c.Commands {
		if cmd.Type == NoOperationMarker {
			middle = i
			break
		}
	}
	for m := range a.MatrixAccesses {
		accesses := a.MatrixAccesses[m].Accesses
		for k, acc := range accesses {
			switch r.c.Commands[acc.Command].Type {
			case CompressMatrix:
				r.compressed(m, accesses[k:], middle)
			case DecompressMatrix:
				if k == 0 || r.c.Commands[accesses[k-1].Command].Type != CompressMatrix {
					r.addf(ErrCompression, int(acc.Command), "m%d is not compressed", m)
				}
			}
		}
	}
}

// compressed checks one compression of matrix m, the first of the accesses.
func (r *report) compressed(m int, accesses []Access, middle int) {
	at := int(accesses[0].Command)
	if len(accesses) < 2 || r.c.Commands[accesses[1].Command].Type != DecompressMatrix {
		r.addf(ErrCompression, at, "m%d is not decompressed before it is used again, or never used again", m)
		return
	}
	if back := int(accesses[1].Command); middle < 0 || at > middle || back < middle {
		r.addf(ErrCompression, at, "m%d is not compressed before and decompressed after the marker", m)
	}
	if r.c.Commands[at].Alpha != 0 {
		return
	}
	if len(accesses) != 3 || !r.needsOnlySign(m, r.c.Commands[accesses[2].Command]) {
		r.addf(ErrCompression, at, "only signs of m%d are kept, which is enough for one use as output value of the backward pass of a %s", m, reluType)
	}
}

// needsOnlySign reports whether a command reads nothing of matrix m but signs.
func (r *report) needsOnlySign(m int, cmd Command) bool {
	if !cmd.Type.IsBackprop() {
		return false
	}
	if info, known := r.net.component(cmd.Arg1); known && info.Type != reluType {
		return false
	}
	is := func(s int32) bool { return int(r.c.Submatrices[s].Matrix) == m }
	return is(cmd.Arg4) && !is(cmd.Arg3) && !is(cmd.Arg5) && !is(cmd.Arg6)
}

// debugInfo checks that what the debug information says of each matrix can be true.
func (r *report) debugInfo() {
	for m, info := range r.c.MatrixDebugInfo {
		if len(info.Cindexes) != int(r.c.Matrices[m].Rows) {
			r.addf(ErrDebugInfo, -1, "%d rows described of m%d, which has %d", len(info.Cindexes), m, r.c.Matrices[m].Rows)
			continue
		}
		for row, ci := range info.Cindexes {
			if ci.Index.N < 0 || ci.Node < 0 || r.net != nil && len(r.net.Nodes) > 0 && int(ci.Node) >= len(r.net.Nodes) {
				r.addf(ErrDebugInfo, -1, "row %d of m%d is node %d, n %d", row, m, ci.Node, ci.Index.N)
				break
			}
		}
	}
}
