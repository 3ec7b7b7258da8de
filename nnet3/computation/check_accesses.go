package computation

import "slices"

// lifeFaults checks the lives of the matrices. That none is allocated or freed twice was checked
// before. carried holds the matrices that are allocated at both ends of a loop iteration, and so
// never freed; it is nil without a loop.
func (r *report) lifeFaults(a *analyzer, carried []bool, allowUnused bool) {
	for m := 1; m < len(a.lives); m++ {
		l := &a.lives[m]
		if l.allocate < 0 {
			r.addf(errLifetime, -1, "m%d is never allocated", m)
			continue
		}
		if l.deallocate < 0 && !l.isOutput && (carried == nil || !carried[m]) {
			r.addf(errLifetime, int(l.allocate), "m%d is never freed", m)
		}
		if l.deallocate >= 0 && l.deallocate < l.allocate {
			r.addf(errLifetime, int(l.deallocate), "m%d is freed before it is allocated", m)
		}
		// The first fault of a matrix is enough: the others mostly follow from it.
		for _, acc := range l.accesses {
			if acc.command < l.allocate {
				r.addf(errLifetime, int(acc.command), "m%d is not allocated yet", m)
				break
			}
			if l.deallocate >= 0 && acc.command > l.deallocate {
				r.addf(errLifetime, int(acc.command), "m%d is freed already, by command c%d", m, l.deallocate)
				break
			}
		}
		used := func(acc access) bool { return r.c.Commands[acc.command].Type != SetConst }
		if !allowUnused && !slices.ContainsFunc(l.accesses, used) {
			r.addf(errUnused, int(l.allocate), "m%d is never used", m)
		}
	}
}

// undefined checks that each variable is used, and written before it is read.
func (r *report) undefined(a *analyzer, allowUnused bool) {
	for v, accesses := range a.accesses {
		// Compression concerns the whole matrix, whether or not every part of it holds something.
		first := slices.IndexFunc(accesses, func(acc access) bool {
			t := r.c.Commands[acc.command].Type
			return t != CompressMatrix && t != DecompressMatrix
		})
		if first >= 0 {
			if acc := accesses[first]; acc.kind != writes {
				r.addf(errUndefined, int(acc.command), "%s has not been written", a.variables.describe(r.c, int32(v)))
			}
			continue
		}
		cell := a.variables.cell(int32(v))
		if !allowUnused && int64(cell.RowOffset)*10 < int64(r.c.Matrices[cell.Matrix].Rows)*8 {
			r.addf(errUnused, -1, "%s", a.variables.describe(r.c, int32(v)))
		}
	}
}

// rewrite checks that a variable is not written after it was read (and only read).
func (r *report) rewrite(a *analyzer) {
	for v, accesses := range a.accesses {
		read := int32(-1)
		for _, acc := range accesses {
			if acc.kind == reads {
				read = acc.command
			} else if read >= 0 {
				r.addf(errRewrite, int(acc.command), "%s was read by command c%d", a.variables.describe(r.c, int32(v)), read)
				break
			}
		}
	}
}

// reluType is the only component whose backward pass needs no more than the sign of the output.
const reluType = "RectifiedLinearComponent"

// compression checks that a matrix is decompressed before it is used again, that compression spans
// the marker between the forward and the backward part, and that it loses nothing that is needed.
func (r *report) compression(a *analyzer) {
	marker := slices.IndexFunc(r.c.Commands, func(cmd Command) bool { return cmd.Type == NoOperationMarker })
	for m := range a.lives {
		accesses := a.lives[m].accesses
		for k, acc := range accesses {
			switch r.c.Commands[acc.command].Type {
			case CompressMatrix:
				r.compressed(m, accesses[k:], marker)
			case DecompressMatrix:
				if k == 0 || r.c.Commands[accesses[k-1].command].Type != CompressMatrix {
					r.addf(errCompression, int(acc.command), "m%d is not compressed", m)
				}
			}
		}
	}
}

// compressed checks one compression of matrix m, the first of the accesses.
func (r *report) compressed(m int, accesses []access, marker int) {
	at := int(accesses[0].command)
	if len(accesses) < 2 || r.c.Commands[accesses[1].command].Type != DecompressMatrix {
		r.addf(errCompression, at, "m%d is not decompressed before it is used again, or never used again", m)
		return
	}
	// Compression saves memory only if the matrix waits for the backward part.
	if back := int(accesses[1].command); marker < 0 || at > marker || back < marker {
		r.addf(errCompression, at, "m%d is not compressed before and decompressed after the marker", m)
	}
	if r.c.Commands[at].Alpha != 0 {
		return
	}
	if len(accesses) != 3 || !r.needsOnlySign(m, r.c.Commands[accesses[2].command]) {
		r.addf(errCompression, at, "only signs of m%d are kept, which is enough for one use as output value of the backward pass of a %s", m, reluType)
	}
}

// needsOnlySign reports whether a command reads only the signs of matrix m.
func (r *report) needsOnlySign(m int, cmd Command) bool {
	if !cmd.Type.IsBackprop() {
		return false
	}
	if info, known := r.net.component(cmd.Component()); known && info.Type != reluType {
		return false
	}
	is := func(s int32) bool { return int(r.c.Submatrices[s].Matrix) == m }
	return is(cmd.Output()) && !is(cmd.Input()) && !is(cmd.OutputDeriv()) && !is(cmd.InputDeriv())
}

// debugInfo checks that the debug information of each matrix can be true.
func (r *report) debugInfo() {
	for m, info := range r.c.MatrixDebugInfo {
		if len(info.Cindexes) != int(r.c.Matrices[m].Rows) {
			r.addf(errDebugInfo, -1, "%d rows described of m%d, which has %d", len(info.Cindexes), m, r.c.Matrices[m].Rows)
			continue
		}
		for row, ci := range info.Cindexes {
			if ci.Index.N < 0 || ci.Node < 0 || r.net != nil && len(r.net.Nodes) > 0 && int(ci.Node) >= len(r.net.Nodes) {
				r.addf(errDebugInfo, -1, "row %d of m%d is node %d, n %d", row, m, ci.Node, ci.Index.N)
				break
			}
		}
	}
}
