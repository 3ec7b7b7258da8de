package array

import "time"

// partsOf returns in how many parts to divide work on n things, at multiples of unit, that takes one
// thread some picoseconds: 1 if that is not worth it.
func (ws *Workspace) partsOf(picoseconds, n, unit int) int {
	if ws.Threads == nil || n <= unit {
		return 1
	}
	return min(ws.Threads.Parts(time.Duration(picoseconds)/1000), (n+unit-1)/unit)
}

// pieces calls do for pieces of n things, which begin at multiples of unit and take one thread some
// picoseconds altogether: several threads at a time if that is worth it, each with a workspace of its
// own.
func (ws *Workspace) pieces(picoseconds, n, unit int, do func(ws *Workspace, first, next int)) {
	if parts := ws.partsOf(picoseconds, n, unit); parts > 1 {
		ws.inParts(parts, n, unit, do)
		return
	}
	do(ws, 0, n)
}

// inParts is pieces for a number of parts.
func (ws *Workspace) inParts(parts, n, unit int, do func(ws *Workspace, first, next int)) {
	ws.crewOf().pieces.run(ws, parts, n, unit, do, func(ws *Workspace, do *func(ws *Workspace, first, next int), first, next int) error {
		(*do)(ws, first, next)
		return nil
	})
}

// tryPieces is pieces for what may fail.
func (ws *Workspace) tryPieces(picoseconds, n, unit int, do func(ws *Workspace, first, next int) error) error {
	parts := ws.partsOf(picoseconds, n, unit)
	if parts <= 1 {
		return do(ws, 0, n)
	}
	return ws.crewOf().tries.run(ws, parts, n, unit, do, func(ws *Workspace, do *func(ws *Workspace, first, next int) error, first, next int) error {
		return (*do)(ws, first, next)
	})
}

// Copy is CopyTo, by several threads if that is worth it.
func (ws *Workspace) Copy(dst, src *Array) {
	n := dst.Len()
	parts := ws.partsOf(2*moved*n*dst.dtype.Size(), n, leastMoved)
	if parts <= 1 || src.IsCSR() || dst.Overlaps(src) {
		CopyTo(dst, src)
		return
	}
	src = src.broadcastAs(dst)
	copyPart := kinds[dst.dtype].copy
	ws.inParts(parts, parts, 1, func(_ *Workspace, first, next int) {
		for i := first; i < next; i++ {
			copyPart(dst, src, i, parts)
		}
	})
}

// leastMoved is the least number of elements of a part: cache lines of different threads stay apart.
const leastMoved = 64
