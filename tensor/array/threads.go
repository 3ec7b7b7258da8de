package array

import (
	"sync"
	"time"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/kernel"
)

// crew is what the threads of a workspace need beside their arguments: a workspace for each part that
// is being computed, and the jobs, so that no call allocates.
type crew struct {
	mu   sync.Mutex
	free []*Workspace

	mapping     mapJob
	rows        rowJob
	reduction   reduceJob
	convolution convJob
	batch       batchJob
	vector      gemvJob
	norm        normJob
	pieces      piecesJob
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

// mapJob is a run of a program over a range of elements.
type mapJob struct {
	crew  *crew
	lp    *loop
	p     *Program
	lo, n int
	parts int
}

// run runs a program on n elements from lo on. Several threads do so if that is worth it.
func (ws *Workspace) run(lp *loop, p *Program, lo, n int) {
	if parts := ws.mapParts(lp, p, n); parts > 1 {
		j := &ws.crewOf().mapping
		*j = mapJob{ws.crew, lp, p, lo, n, parts}
		ws.Threads.Do(parts, j)
		*j = mapJob{}
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

// Part runs the program on a range of whole blocks, with lanes of its own.
func (j *mapJob) Part(i int) {
	first, next := piece(i, j.parts, j.n, j.lp.size)
	ws := j.crew.borrow()
	defer j.crew.giveBack(ws)
	lp := &ws.loop
	lp.follow(j.lp)
	lp.allot(j.p)
	lp.run(j.p, j.lo+first, next-first)
	lp.end()
}

// follow makes lp a loop over what l loops over.
func (lp *loop) follow(l *loop) {
	lp.shape, lp.ndim, lp.size = l.shape, l.ndim, l.size
	lp.operands = append(lp.operands[:0], l.operands...)
	for i := range lp.operands {
		lp.operands[i].held = 0 // its slots are empty
	}
}

// rowJob is a function of rows, the elements along the last dimension.
type rowJob struct {
	crew      *crew
	run       func(dst, src, y *Array, logarithm bool)
	dst       *Array
	src, y    *Array // y may be nil
	dim       int    // which is divided
	parts     int
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
			j := &ws.crewOf().rows
			*j = rowJob{ws.crew, run, dst, src, y, d, parts, logarithm}
			t.Do(parts, j)
			*j = rowJob{}
			return
		}
	}
	run(dst, src, y, logarithm)
}

// Part computes some rows.
func (j *rowJob) Part(i int) {
	first, next := piece(i, j.parts, j.dst.shape[j.dim], 1)
	ws := j.crew.borrow()
	defer j.crew.giveBack(ws)
	dst, src := &ws.headers[0], &ws.headers[1]
	*dst, *src = j.dst.stretch(j.dim, first, next), j.src.stretch(j.dim, first, next)
	if j.y == nil {
		j.run(dst, src, nil, j.logarithm)
		return
	}
	y := &ws.headers[2]
	*y = j.y.stretch(j.dim, first, next)
	j.run(dst, src, y, j.logarithm)
}

// stretch returns a part of an array along a dimension.
func (a *Array) stretch(d, first, next int) Array {
	b := *a
	b.offset += first * a.strides[d]
	b.shape[d] = next - first
	return b
}

// reduceJob is a reduction of which some results are computed at a time.
type reduceJob struct {
	crew    *crew
	r       Reduction
	out, v  *Array
	reduced reducedDims
	dim     int // which is divided
	parts   int
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
	j := &ws.crewOf().reduction
	*j = reduceJob{ws.crew, r, out, v, reduced, d, parts}
	t.Do(parts, j)
	*j = reduceJob{}
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

// Part computes some results.
func (j *reduceJob) Part(i int) {
	n := j.v.shape[j.dim]
	first, next := i*n/j.parts, (i+1)*n/j.parts
	ws := j.crew.borrow()
	defer j.crew.giveBack(ws)
	out, v := &ws.headers[0], &ws.headers[1]
	*out, *v = j.out.stretch(j.dim, first, next), j.v.stretch(j.dim, first, next)
	ws.reduce(j.r, out, v, j.reduced)
}

// convJob is a convolution with channels last of which some positions are computed at a time.
type convJob struct {
	c      *lastConvolution
	run    func(c *lastConvolution) error
	e      *Epilogue
	args   []*Array
	unit   int // positions that stay together
	parts  int
	failed error
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
	each := summedDirectly
	if c.x.dtype == Float64 {
		each = multipliedDirectly
	}
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
	j := &c.ws.crewOf().convolution
	*j = convJob{c: c, run: run, e: e, args: args, unit: unit, parts: parts}
	c.ws.Threads.Do(parts, j)
	err := j.failed
	*j = convJob{}
	return err
}

// shares reports whether products do all of the work.
func (c *lastConvolution) shares() bool {
	return c.groups == 1 && c.prepared != nil && c.complete.left == nil && (c.slide.plain() || c.inPlace())
}

// Part computes some positions.
func (j *convJob) Part(i int) {
	ws := j.c.ws.crew.borrow()
	defer j.c.ws.crew.giveBack(ws)
	ws.MaxBytes = j.c.ws.MaxBytes
	c := *j.c
	c.ws, c.complete = ws, completion{}
	c.first, c.rows = piece(i, j.parts, j.c.rows, j.unit)
	err := ws.complete(&c.complete, j.e, c.y, j.args, c.completes(j.e))
	if err == nil {
		err = j.run(&c)
	}
	c.complete.end()
	if err != nil {
		j.c.ws.crew.fail(&j.failed, err)
	}
}

// batchJob is a batch of products of which some are computed at a time.
type batchJob struct {
	ws      *Workspace
	c, a, b *Array
	n       int
	parts   int
	failed  error
}

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
	j := &ws.crewOf().batch
	*j = batchJob{ws: ws, c: c, a: a, b: b, n: n, parts: parts}
	t.Do(parts, j)
	err := j.failed
	*j = batchJob{}
	return err
}

// Part computes some products.
func (j *batchJob) Part(i int) {
	ws := j.ws.crew.borrow()
	defer j.ws.crew.giveBack(ws)
	ws.MaxBytes = j.ws.MaxBytes
	if err := ws.products(j.c, j.a, j.b, i*j.n/j.parts, (i+1)*j.n/j.parts); err != nil {
		j.ws.crew.fail(&j.failed, err)
	}
}

// fail keeps an error of a part.
func (c *crew) fail(failed *error, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*failed = err
}

// gemvJob is a product of a matrix and a vector of which some elements are computed at a time.
type gemvJob struct {
	crew        *crew
	alpha, beta float64
	a, x, y     Array
	parts       int
}

// gemv is gemvOf, by several threads if that is worth it.
func (ws *Workspace) gemv(alpha float64, a, x *Array, beta float64, y *Array) {
	t := ws.Threads
	parts := 1
	if t != nil {
		parts = min(t.Parts(time.Duration(a.Len()*a.dtype.Size())*gemvWork/1000), a.shape[0]/gemvUnit)
	}
	if parts <= 1 {
		gemvOf(alpha, a, x, beta, y)
		return
	}
	j := &ws.crewOf().vector
	*j = gemvJob{ws.crew, alpha, beta, *a, *x, *y, min(parts, 2*t.Size())}
	t.Do(j.parts, j)
	*j = gemvJob{}
}

const (
	gemvWork = 40 // for a byte of the matrix, in picoseconds
	gemvUnit = 4  // rows
)

// Part computes some elements.
func (j *gemvJob) Part(i int) {
	ws := j.crew.borrow()
	defer j.crew.giveBack(ws)
	first, next := piece(i, j.parts, j.a.shape[0], gemvUnit)
	a, x, y := &ws.headers[0], &ws.headers[1], &ws.headers[2]
	*a, *x, *y = j.a.stretch(0, first, next), j.x, j.y.stretch(0, first, next)
	gemvOf(j.alpha, a, x, j.beta, y)
}
