package component

import (
	"sync"
	"time"

	"github.com/nnopt/nnopt/kernel"
)

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
