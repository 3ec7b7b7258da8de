package component

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nnopt/nnopt/internal/kernel"
)

// Workspace is scratch memory and a source of random numbers for components that compute. It
// belongs to one goroutine. The zero value is ready for use. A computation that is repeated
// allocates nothing after the first time.
type Workspace struct {
	// Rand is the source for components that are Random. If it is nil, the first use creates one
	// with a fixed seed.
	Rand *rand.Rand
	// Threads compute together what is worth dividing. Nil is one thread.
	Threads *kernel.Threads

	crew    *crew // of the threads; nil until they need it
	chunks  [][]float32
	at      mark
	doubles []float64
	memos   []*memoMatrix   // free for reuse
	signs   []*kernel.Signs // likewise
	segs    []kernel.Segment
	next    []*kernel.Weights

	ownRows   kernel.QuantizedRows // of a product whose pass has none
	quantSegs quantizedSegments
	run       int // number of the run that began last; 0 before the first
	backward  []backwardWeights
	integers  []integerWeights
	each      []*kernel.Weights // see transposed
	lstm      lstmShared
	rows      rowsPass
	conv      convolutionPass
	edges     []int32
}

// Begin marks the beginning of a computation during which only components with this workspace
// change parameters. A component that runs backward repeatedly then prepares its parameters once:
// at the second time, and in computations after that at the first.
func (w *Workspace) Begin() { w.run++ }

// backwardWeights are weights that a backward pass multiplies by.
type backwardWeights struct {
	of       *weights
	version  int
	run      int             // of the last use
	prepared *kernel.Weights // nil before the first second use in a run
	ready    bool            // prepared is valid
}

// mulBackward computes dx = dy·W or, with accumulate, dx += dy·W. The bits are those of
// kernel.MulNN.
func (w *Workspace) mulBackward(p *weights, dy, dx kernel.Matrix, accumulate bool) {
	if b := w.backwardOf(p); b != nil {
		b.Mul(dy, kernel.Epilogue{Accumulate: accumulate, Threads: w.Threads}, dx)
		return
	}
	beta := float32(0)
	if accumulate {
		beta = 1
	}
	w.Threads.MulNN(1, dy, p.elements(), beta, dx)
}

// backwardOf returns the prepared form of weights at their second use in this run and after it. At
// the first use it returns nil, unless there was a second one in an earlier run.
func (w *Workspace) backwardOf(p *weights) *kernel.Weights {
	if w.run == 0 {
		return nil
	}
	// To prepare weights pays only if they are multiplied by at least twice before they change.
	// That can't be known at the first use, so that one goes without. What was used twice in an
	// earlier run (prepared is not nil) probably will be again, and is prepared at once.
	k := slices.IndexFunc(w.backward, func(b backwardWeights) bool { return b.of == p })
	if k < 0 {
		w.backward = append(w.backward, backwardWeights{of: p, version: p.version, run: w.run})
		return nil
	}
	b := &w.backward[k]
	// Between runs, parameters may change in ways that don't count as versions, such as a caller
	// that writes to them. Within a run only components with this workspace change them, and they
	// count.
	if b.run != w.run || b.version != p.version {
		b.run, b.version, b.ready = w.run, p.version, false
		if b.prepared == nil {
			return nil
		}
	}
	if !b.ready {
		if b.prepared == nil {
			b.prepared = new(kernel.Weights)
		}
		w.Threads.SetTransposed(b.prepared, p.elements())
		b.ready = true
	}
	return b.prepared
}

// integerWeights are weights that were not prepared, as integers.
type integerWeights struct {
	of      *weights
	form    form
	version int
	run     int
	list    []*kernel.QuantizedWeights // nil if they can't be quantized
}

// integersOf returns weights as integers, group by group, or nil if they can't be quantized. What
// is not prepared is quantized once a run.
func (w *Workspace) integersOf(p *weights, f form) []*kernel.QuantizedWeights {
	if p.integers[f] != nil || w.run == 0 {
		return p.quantize(f)
	}
	k := slices.IndexFunc(w.integers, func(q integerWeights) bool { return q.of == p && q.form == f })
	if k < 0 {
		k = len(w.integers)
		w.integers = append(w.integers, integerWeights{of: p, form: f})
	}
	q := &w.integers[k]
	if q.run != w.run || q.version != p.version {
		q.run, q.version, q.list = w.run, p.version, p.quantize(f)
	}
	return q.list
}

// mark is a state of the scratch memory.
type mark struct{ chunk, used int }

const firstChunk = 1 << 14

// Mark returns the state of the scratch memory, for Release.
func (w *Workspace) Mark() mark { return w.at }

// Release frees all scratch memory taken since the mark was made.
func (w *Workspace) Release(m mark) { w.at = m }

// Vector returns n elements of scratch memory with undefined contents.
func (w *Workspace) Vector(n int) []float32 {
	for {
		if w.at.chunk < len(w.chunks) {
			c := w.chunks[w.at.chunk]
			if w.at.used+n <= len(c) {
				v := c[w.at.used : w.at.used+n : w.at.used+n]
				// Align vectors to cache lines.
				w.at.used = min((w.at.used+n+15)&^15, len(c))
				return v
			}
			// The chunk is empty and still too small. Nothing refers to it, so a larger one takes
			// its place. An older vector may only be in chunks before it.
			if w.at.used == 0 {
				w.chunks[w.at.chunk] = make([]float32, max(n, 2*len(c)))
				continue
			}
			w.at = mark{chunk: w.at.chunk + 1}
			continue
		}
		size := firstChunk
		if k := len(w.chunks); k > 0 {
			// Sizes double, so a computation that is repeated soon finds everything in few chunks,
			// and none of them moves while vectors in it are in use.
			size = 2 * len(w.chunks[k-1])
		}
		w.chunks = append(w.chunks, make([]float32, max(n, size)))
	}
}

// segments returns n segments with undefined contents, valid until the next call.
func (w *Workspace) segments(n int) []kernel.Segment {
	if n > cap(w.segs) {
		w.segs = make([]kernel.Segment, n)
	}
	return w.segs[:n]
}

// quantizedSegments returns no segments, valid until the next call.
func (w *Workspace) quantizedSegments() *quantizedSegments {
	w.quantSegs = quantizedSegments{w.quantSegs.all[:0], w.quantSegs.ends[:0]}
	return &w.quantSegs
}

// Matrix returns a matrix in scratch memory with undefined contents.
func (w *Workspace) Matrix(rows, cols int) kernel.Matrix {
	return kernel.Matrix{Rows: rows, Cols: cols, Stride: cols, Data: w.Vector(rows * cols)}
}

// zeroMatrix returns a matrix of zeros in scratch memory.
func (w *Workspace) zeroMatrix(rows, cols int) kernel.Matrix {
	m := w.Matrix(rows, cols)
	clear(m.Data)
	return m
}

func (w *Workspace) random() *rand.Rand {
	if w.Rand == nil {
		w.Rand = rand.New(rand.NewPCG(3, 4))
	}
	return w.Rand
}

// newDoubles returns n elements with undefined contents, valid until the next call.
func (w *Workspace) newDoubles(n int) []float64 {
	if len(w.doubles) < n {
		w.doubles = make([]float64, n)
	}
	return w.doubles[:n]
}

// memoMatrix is a memo that is a matrix.
type memoMatrix struct{ kernel.Matrix }

// maxMemos limits the memos that a workspace keeps for reuse.
const maxMemos = 256

// transposed returns the prepared transpose of weights, valid until the next call with the same
// number.
func (w *Workspace) transposed(number int, p *weights) *kernel.Weights {
	if b := w.backwardOf(p); b != nil {
		return b
	}
	for len(w.each) <= number {
		w.each = append(w.each, new(kernel.Weights))
	}
	w.Threads.SetTransposed(w.each[number], p.elements())
	return w.each[number]
}

// newMemo returns a matrix with undefined contents for a memo. Call free when it is no longer
// needed.
func (w *Workspace) newMemo(rows, cols int) *memoMatrix {
	for k := len(w.memos) - 1; k >= 0; k-- {
		// The most recently freed one that is large enough is the warmest in the cache.
		if m := w.memos[k]; cap(m.Data) >= rows*cols {
			w.memos = append(w.memos[:k], w.memos[k+1:]...)
			m.Matrix = kernel.Matrix{Rows: rows, Cols: cols, Stride: cols, Data: m.Data[:rows*cols]}
			return m
		}
	}
	return &memoMatrix{kernel.New(rows, cols)}
}

// free makes a memo available for reuse.
func (w *Workspace) free(m *memoMatrix) {
	if len(w.memos) < maxMemos {
		w.memos = append(w.memos, m)
	}
}

// newSigns returns a memo of bits. Call freeSigns when it is no longer needed.
func (w *Workspace) newSigns() *kernel.Signs {
	k := len(w.signs) - 1
	if k < 0 {
		return new(kernel.Signs)
	}
	s := w.signs[k]
	w.signs = w.signs[:k]
	return s
}

// freeSigns makes a memo of bits available for reuse.
func (w *Workspace) freeSigns(s *kernel.Signs) {
	if len(w.signs) < maxMemos {
		w.signs = append(w.signs, s)
	}
}

// lend is called with a memo before Propagate returns it. It frees a memo that Backprop won't get.
func (w *Workspace) lend(m *memoMatrix, pass ForwardPass) {
	if pass.DropMemo {
		w.free(m)
	}
}

// memoOf returns a memo if it is a matrix of the given size.
func memoOf(memo Memo, rows, cols int) (*memoMatrix, bool) {
	m, ok := memo.(*memoMatrix)
	return m, ok && m.Rows == rows && m.Cols == cols
}

// missingMemo is the error for a memo of another component or of other rows, or for none.
func missingMemo(c Component) error {
	return fmt.Errorf("%s: backprop: the memo is missing or does not fit: %w", c.Type(), ErrShape)
}

// shared is work on rows or columns of which some can be computed at a time.
type shared interface {
	// part computes [first, next) with scratch memory of w.
	part(w *Workspace, first, next int)
}

// crew is what the threads of a workspace need: a workspace for each part that is being computed, and a
// job, so that no call allocates.
type crew struct {
	mu   sync.Mutex
	free []*Workspace
	job  sharedJob
}

func (c *crew) borrow() *Workspace {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		w := c.free[n-1]
		c.free = c.free[:n-1]
		return w
	}
	return new(Workspace)
}

func (c *crew) giveBack(w *Workspace) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, w)
}

// sharedJob is shared work with its parts.
type sharedJob struct {
	crew           *crew
	work           shared
	n, unit, parts int
}

// Part computes a part.
func (j *sharedJob) Part(i int) {
	w := j.crew.borrow()
	defer j.crew.giveBack(w)
	defer w.Release(w.Mark())
	units := (j.n + j.unit - 1) / j.unit
	j.work.part(w, i*units/j.parts*j.unit, min((i+1)*units/j.parts*j.unit, j.n))
}

// divide computes n rows or columns, at multiples of a unit, which take about the given time.
func (w *Workspace) divide(work shared, n, unit int, takes time.Duration) {
	parts := min(w.Threads.Parts(takes), n/unit)
	if parts <= 1 {
		work.part(w, 0, n)
		return
	}
	if w.crew == nil {
		w.crew = new(crew)
	}
	j := &w.crew.job
	*j = sharedJob{w.crew, work, n, unit, parts}
	w.Threads.Do(parts, j)
	*j = sharedJob{}
}

// took returns the time for elements that take some picoseconds each.
func took(rows, cols int, each time.Duration) time.Duration {
	return time.Duration(rows) * time.Duration(cols) * each / 1000
}

// byRows is a component each of whose rows depends on the rows of the same number alone.
type byRows interface {
	propagateRows(w *Workspace, in, out kernel.Matrix)
}

// backByRows is byRows for derivatives.
type backByRows interface {
	backpropRows(pass BackwardPass)
}

// rowsPass is a pass of such a component.
type rowsPass struct {
	forward  byRows
	in, out  kernel.Matrix
	backward backByRows
	pass     BackwardPass
}

func (p *rowsPass) part(w *Workspace, first, next int) {
	n := next - first
	if p.forward != nil {
		p.forward.propagateRows(w, kernel.Rows(p.in, first, n), kernel.Rows(p.out, first, n))
		return
	}
	pass := p.pass
	for _, m := range []*kernel.Matrix{&pass.InValue, &pass.OutValue, &pass.OutDeriv, &pass.InDeriv} {
		if m.Rows > 0 {
			*m = kernel.Rows(*m, first, n)
		}
	}
	p.backward.backpropRows(pass)
}

// forwardRows computes the output of a component, whose elements take some picoseconds each.
func (w *Workspace) forwardRows(c byRows, in, out kernel.Matrix, each time.Duration) {
	w.rows = rowsPass{forward: c, in: in, out: out}
	w.divide(&w.rows, out.Rows, 1, took(out.Rows, out.Cols, each))
	w.rows = rowsPass{}
}

// backwardRows is forwardRows for derivatives.
func (w *Workspace) backwardRows(c backByRows, pass BackwardPass, each time.Duration) {
	w.rows = rowsPass{backward: c, pass: pass}
	w.divide(&w.rows, pass.OutDeriv.Rows, 1, took(pass.OutDeriv.Rows, pass.OutDeriv.Cols, each))
	w.rows = rowsPass{}
}
