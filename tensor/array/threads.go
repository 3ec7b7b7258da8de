package array

import (
	"sync"
	"time"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
)

// crew is what the threads of a workspace need beside their arguments: a workspace for each part that
// is being computed, and the jobs, so that no call allocates.
type crew struct {
	mu   sync.Mutex
	free []*Workspace

	mapping     job[mapArgs]
	rows        job[rowArgs]
	reduction   job[reduceArgs]
	convolution job[convArgs]
	batch       job[batchArgs]
	vector      job[gemvArgs]
	norm        job[normArgs]
	attention   job[*attention]
	pieces      job[func(ws *Workspace, first, next int)]
	tries       job[func(ws *Workspace, first, next int) error]
}

// crewOf returns the crew of a workspace with threads.
func (ws *Workspace) crewOf() *crew {
	if ws.crew == nil {
		ws.crew = new(crew)
	}
	return ws.crew
}

// borrow returns a workspace for a part, until it is given back.
func (c *crew) borrow() *Workspace {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		ws := c.free[n-1]
		c.free = c.free[:n-1]
		return ws
	}
	return new(Workspace)
}

func (c *crew) giveBack(ws *Workspace) {
	ws.headers = [3]Array{} // keep nothing alive
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, ws)
}

// piece returns the beginning and the end of part i of n things that are divided at multiples of a
// unit.
func piece(i, parts, n, unit int) (first, next int) {
	units := (n + unit - 1) / unit
	return i * units / parts * unit, min((i+1)*units/parts*unit, n)
}

// moved is what it takes to read or write a byte, in picoseconds.
const moved = 50

// A job is work on n things, of which some are done at a time. Workspaces keep one of each kind, and its function
// captures nothing, so that no call allocates.
type job[T any] struct {
	crew           *crew
	maxBytes       int64
	args           T
	do             func(ws *Workspace, args *T, first, next int) error
	n, unit, parts int
	failed         error
}

// run does the work in parts, which begin at multiples of unit, by several threads, each with a workspace of its own.
func (j *job[T]) run(ws *Workspace, parts, n, unit int, args T, do func(ws *Workspace, args *T, first, next int) error) error {
	*j = job[T]{ws.crew, ws.MaxBytes, args, do, n, unit, parts, nil}
	ws.Threads.Do(parts, j)
	err := j.failed
	*j = job[T]{} // keep nothing alive
	return err
}

// Part does a part.
func (j *job[T]) Part(i int) {
	ws := j.crew.borrow()
	defer j.crew.giveBack(ws)
	ws.MaxBytes = j.maxBytes
	first, next := piece(i, j.parts, j.n, j.unit)
	if err := j.do(ws, &j.args, first, next); err != nil {
		j.crew.mu.Lock()
		defer j.crew.mu.Unlock()
		j.failed = err
	}
}

// mapArgs are those of a run of a program over a range of elements.
type mapArgs struct {
	lp *loop
	p  *Program
	lo int
}

// run runs a program on n elements from lo on. Several threads do so if that is worth it.
func (ws *Workspace) run(lp *loop, p *Program, lo, n int) {
	if parts := ws.mapParts(lp, p, n); parts > 1 {
		ws.crewOf().mapping.run(ws, parts, n, lp.size, mapArgs{lp, p, lo}, runBlocks)
		return
	}
	lp.run(p, lo, n)
}

// blockOf returns how many of n elements are computed at a time.
func (ws *Workspace) blockOf(n int) int {
	if ws.Threads != nil && divide.Always.Load() {
		return min(n, 2)
	}
	return min(n, blockSize)
}

// mapParts returns in how many parts to divide a run.
func (ws *Workspace) mapParts(lp *loop, p *Program, n int) int {
	if ws.Threads == nil || n <= lp.size {
		return 1
	}
	bytes := 0
	for i := range lp.operands {
		if o := &lp.operands[i]; !o.uniform && !o.repeated {
			bytes += o.dtype.Size()
		}
	}
	takes := time.Duration(n) * time.Duration(p.Work()+moved*bytes) / 1000
	return min(ws.Threads.Parts(takes), (n+lp.size-1)/lp.size)
}

// runBlocks runs the program on a range of whole blocks, with lanes of its own.
func runBlocks(ws *Workspace, a *mapArgs, first, next int) error {
	lp := &ws.loop
	lp.follow(a.lp)
	lp.allot(a.p)
	lp.run(a.p, a.lo+first, next-first)
	lp.end()
	return nil
}

// follow makes lp a loop over what l loops over.
func (lp *loop) follow(l *loop) {
	lp.shape, lp.ndim, lp.size = l.shape, l.ndim, l.size
	lp.operands = append(lp.operands[:0], l.operands...)
	for i := range lp.operands {
		lp.operands[i].held = 0 // its slots are empty
	}
}

// rowArgs are those of a function of rows, the elements along the last dimension.
type rowArgs struct {
	run       func(dst, src, y *Array, logarithm bool)
	dst       *Array
	src, y    *Array // y may be nil
	dim       int    // which is divided
	logarithm bool
}

// eachRows calls run for all rows of arrays, several threads at a time if that is worth it. An element
// takes some picoseconds.
func (ws *Workspace) eachRows(each time.Duration, dst, src, y *Array, logarithm bool, run func(dst, src, y *Array, logarithm bool)) {
	d := 0
	for d < int(dst.ndim)-1 && dst.shape[d] == 1 {
		d++
	}
	if t := ws.Threads; t != nil && d < int(dst.ndim)-1 {
		if parts := min(t.Parts(time.Duration(dst.Len())*each/1000), dst.shape[d]); parts > 1 {
			ws.crewOf().rows.run(ws, parts, dst.shape[d], 1, rowArgs{run, dst, src, y, d, logarithm}, runRows)
			return
		}
	}
	run(dst, src, y, logarithm)
}

// runRows computes some rows.
func runRows(ws *Workspace, a *rowArgs, first, next int) error {
	dst, src, y := &ws.headers[0], &ws.headers[1], a.y
	*dst, *src = a.dst.stretch(a.dim, first, next), a.src.stretch(a.dim, first, next)
	if y != nil {
		y = &ws.headers[2]
		*y = a.y.stretch(a.dim, first, next)
	}
	a.run(dst, src, y, a.logarithm)
	return nil
}

// stretch returns a part of an array along a dimension.
func (a *Array) stretch(d, first, next int) Array {
	b := *a
	b.offset += first * a.strides[d]
	b.shape[d] = next - first
	return b
}

// reduceArgs are those of a reduction of which some results are computed at a time.
type reduceArgs struct {
	r       Reduction
	out, v  *Array
	reduced reducedDims
	dim     int // which is divided
}

// reduceShared is reduce, if it is worth dividing by results. It reports false if not, and does nothing.
func (ws *Workspace) reduceShared(r Reduction, out, v *Array, reduced reducedDims) bool {
	d, last := 0, int(v.ndim)-1
	for d < last && v.shape[d] == 1 {
		d++
	}
	t := ws.Threads
	if t == nil || last < 0 {
		return false
	}
	n, terms := v.shape[d], reduced.len()
	byRows := reducedByRows(v, &reduced)
	unit, few := 1, 2*t.Size()
	if byRows && d == last {
		// Neighbours stay together, or their sums would be made in the other order. And short pieces
		// of rows are read at half the speed of memory, since each begins where nothing was read
		// ahead.
		unit, few = 16, shortRow*t.Size()
	}
	if n < few && terms > r.blockOf(byRows) && r.inBlocks(v.dtype) {
		return false // fold divides the terms
	}
	parts := min(t.Parts(r.takes(out.Len(), terms)), n/unit)
	if unit > 1 {
		parts = min(parts, t.Size())
	}
	if parts <= 1 {
		return false
	}
	ws.crewOf().reduction.run(ws, parts, n, 1, reduceArgs{r, out, v, reduced, d}, reduceSome)
	return true
}

// shortRow is the number of elements of a piece of rows that takes longer than what lies in one piece.
const shortRow = 4096

// inBlocks reports whether the terms of a result may be made in blocks.
func (r Reduction) inBlocks(d DType) bool { return r != Prod || !d.IsFloat() }

// takes is how long a reduction takes one thread.
func (r Reduction) takes(results, terms int) time.Duration {
	return time.Duration(results) * time.Duration(terms) * reduceWork[r] / 1000
}

// reduceWork is what an element of a reduction takes, in picoseconds.
var reduceWork = [NumReductions]time.Duration{Sum: 300, Prod: 1000, Max: 1000, Min: 1000, All: 1000, Any: 1000, LogSumExp: 10_000}

// reduceSome computes some results.
func reduceSome(ws *Workspace, a *reduceArgs, first, next int) error {
	out, v := &ws.headers[0], &ws.headers[1]
	*out, *v = a.out.stretch(a.dim, first, next), a.v.stretch(a.dim, first, next)
	ws.reduce(a.r, out, v, a.reduced)
	return nil
}

// convArgs are those of a convolution with channels last of which some positions are computed at a time.
type convArgs struct {
	c    *lastConvolution
	run  func(c *lastConvolution) error
	e    *Epilogue
	args []*Array
}

// shared is run, by several threads if that is worth it. Where products do all of the work, they are
// what threads share; otherwise each computes some positions.
func (c *lastConvolution) shared(e *Epilogue, args []*Array, run func(c *lastConvolution) error) error {
	if c.shares() {
		return run(c)
	}
	return c.divided(e, args, run)
}

// divided is run, by several threads if that is worth it, each for some positions.
func (c *lastConvolution) divided(e *Epilogue, args []*Array, run func(c *lastConvolution) error) error {
	t := c.ws.Threads
	if t == nil || c.x.dtype == Float64 {
		return run(c)
	}
	// All parts read all weights, and their products should not be too low.
	least := minLastRows / 2
	if divide.Always.Load() {
		least = 1
	}
	takes := kernel.ProductTime(c.rows, c.out*c.groups, c.terms)
	if left := c.complete.left; left != nil {
		takes += time.Duration(c.y.Len()*left.Work()) / 1000
	}
	return c.inParts(min(t.Parts(takes), c.rows/least), 1, e, args, run)
}

// sharedDirect is shared for sums without products, line by line.
func (c *lastConvolution) sharedDirect(e *Epilogue, args []*Array, run func(c *lastConvolution) error) error {
	each := ofFloats(c.x.dtype, summedDirectly, multipliedDirectly)
	c.runs = c.slide.runs(c.runs[:0]) // which parts read
	line := c.slide.out[2]
	return c.inParts(c.ws.partsOf(c.y.Len()*c.terms*each, c.rows, line), line, e, args, run)
}

// What a multiply-add takes in a convolution without products, in picoseconds: by the kernel of float32s, and others.
const (
	summedDirectly     = 100
	multipliedDirectly = 1000
)

// inParts is run for a number of parts.
func (c *lastConvolution) inParts(parts, unit int, e *Epilogue, args []*Array, run func(c *lastConvolution) error) error {
	if parts <= 1 {
		return run(c)
	}
	// As many parts for each thread, or some would wait for the last ones.
	if size := c.ws.Threads.Size(); parts > size {
		parts -= parts % size
	}
	return c.ws.crewOf().convolution.run(c.ws, parts, c.rows, unit, convArgs{c, run, e, args}, runPositions)
}

// shares reports whether products do all of the work.
func (c *lastConvolution) shares() bool {
	return c.groups == 1 && c.prepared != nil && c.complete.left == nil && (c.slide.plain() || c.inPlace())
}

// runPositions computes some positions.
func runPositions(ws *Workspace, a *convArgs, first, next int) error {
	c := *a.c
	c.ws, c.complete, c.first, c.rows = ws, completion{}, first, next
	defer c.complete.end()
	if err := ws.complete(&c.complete, a.e, c.y, a.args, c.completes(a.e)); err != nil {
		return err
	}
	return a.run(&c)
}

// batchArgs are those of a batch of products of which some are computed at a time.
type batchArgs struct{ c, a, b *Array }

// sharedProducts computes the products of a batch: side by side if there are enough of them, or
// otherwise one after the other, each by all threads.
func (ws *Workspace) sharedProducts(c, a, b *Array) error {
	d := int(c.ndim) - 2
	size := c.shape[d] * c.shape[d+1]
	n := c.Len() / size
	t := ws.Threads
	if t == nil || n < t.Size() {
		return ws.products(c, a, b, 0, n)
	}
	parts := min(t.Parts(kernel.ProductTime(n*c.shape[d], c.shape[d+1], a.shape[d+1])), n)
	if parts <= 1 {
		return ws.products(c, a, b, 0, n)
	}
	return ws.crewOf().batch.run(ws, parts, n, 1, batchArgs{c, a, b}, func(ws *Workspace, p *batchArgs, first, next int) error {
		return ws.products(p.c, p.a, p.b, first, next)
	})
}

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
