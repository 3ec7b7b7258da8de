package array

import (
	"time"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
)

const (
	// scoreBytes is how much of the scores of a head is computed at a time. They go through four steps,
	// and should be in the second-level cache meanwhile, beside the panels of a factor.
	scoreBytes = 256 << 10
	// minScoreRows is the least number of rows, if there are as many: fewer wait for the factors.
	minScoreRows = 24
)

// An attention is a computation of Attention. Each head is some blocks of rows of its queries.
type attention struct {
	y, q, k, v *Array
	p          *Program
	args       []*Array
	turned     bool
	heads      int
	rows, keys int
	most       int // rows of a block
	blocks     int // of a head
}

// attentionMemory is what a workspace keeps for it, so that no call allocates.
type attentionMemory struct {
	job          attention
	keys, values Factor
	q, k, v, y   Array // of a head
	from, to     Array // of a block
	headers      []Array
	list         []*Array
}

// Attention sets y, which is contiguous, to softmax(s)·v for each head, where s is q·k, to which p is
// applied, if there is one. Its other inputs are args. Arrays are float32s, except for args, and have one
// number n of dimensions: the last two are matrices, the one before has heads, of which k and v may have
// fewer, each for several in a row, and any others are a batch. In those dimensions q and y have one
// shape, and sizes of 1 of the others are broadcast. The args broadcast to the scores. If y is turned, its
// heads and rows have exchanged their places.
//
// Scores are computed for some rows of a head at a time, and never stored as a whole. The bits are those
// of BatchMatMul, Map, Softmax and BatchMatMul.
func (ws *Workspace) Attention(y, q, k, v *Array, p *Program, args []*Array, turned bool) error {
	n := int(q.ndim)
	if y.Len() == 0 {
		return nil
	}
	if k.shape[n-1] == 0 { // sums of nothing
		CopyTo(y, Full(Float32, 0))
		return nil
	}
	for _, x := range []**Array{&q, &k, &v} {
		copied, release, err := ws.forProducts(*x)
		if err != nil {
			return err
		}
		defer release()
		*x = copied
	}
	t := &ws.attentionMemory().job
	defer func() { *t = attention{} }() // keep nothing alive
	*t = attention{y: y, q: q, k: k, v: v, p: p, args: args, turned: turned, heads: product(q.shape[:n-2]), rows: q.shape[n-2], keys: k.shape[n-1]}
	t.most = max(scoreBytes/(4*t.keys), minScoreRows)
	// Most kernels have tiles of six rows. Of 43 rows a half are in tiles of five, which take 1.04 times as long a row.
	t.most = min(t.most-t.most%6, t.rows)
	if ws.Threads != nil && divide.Always.Load() {
		t.most = 2
	}
	t.blocks = (t.rows + t.most - 1) / t.most
	units := t.heads * t.blocks
	if ws.Threads != nil {
		if parts := min(ws.Threads.Parts(t.time()), units); parts > 1 {
			return ws.crewOf().attention.run(ws, parts, units, 1, t, func(ws *Workspace, t **attention, first, next int) error {
				return (*t).units(ws, first, next)
			})
		}
	}
	return t.units(ws, 0, units)
}

// attentionMemory returns the memory of a workspace for it.
func (ws *Workspace) attentionMemory() *attentionMemory {
	if ws.attention == nil {
		ws.attention = new(attentionMemory)
	}
	return ws.attention
}

// time is about how long one thread takes.
func (t *attention) time() time.Duration {
	n := t.heads * t.rows
	return kernel.ProductTime(n, t.keys, t.q.shape[t.q.ndim-1]) + kernel.ProductTime(n, t.v.shape[t.v.ndim-1], t.keys) +
		time.Duration(n*t.keys)*softened/1000
}

// units computes blocks [first, next) of all blocks of all heads.
func (t *attention) units(ws *Workspace, first, next int) error {
	m := ws.attentionMemory()
	if len(m.headers) < len(t.args)+1 {
		m.headers, m.list = make([]Array, len(t.args)+1), make([]*Array, len(t.args)+1)
		for i := range m.list {
			m.list[i] = &m.headers[i]
		}
	}
	defer func() { // keep nothing alive
		clear(m.headers)
		m.q, m.k, m.v, m.y, m.from, m.to = Array{}, Array{}, Array{}, Array{}, Array{}, Array{}
	}()
	scores := &m.headers[0]
	if err := ws.New(scores, Float32, t.most, t.keys); err != nil {
		return err
	}
	memory := *scores
	defer func() { ws.Release(&memory) }()
	head := -1
	q, k, v, y, from, to := &m.q, &m.k, &m.v, &m.y, &m.from, &m.to
	for u := first; u < next; u++ {
		h, block := u/t.blocks, u%t.blocks
		lo := block * t.most
		rows := min(t.most, t.rows-lo)
		if h != head {
			head = h
			*q, *k, *v, *y = t.matrix(t.q, h), t.matrix(t.k, h), t.matrix(t.v, h), t.result(h)
			if t.prepares(q) {
				m.keys.become(k, nil, nil)
				m.values.become(v, nil, nil)
			}
		}
		*scores = memory
		scores.shape[0] = rows
		*from, *to = q.stretch(0, lo, lo+rows), y.stretch(0, lo, lo+rows)
		if err := t.product(ws, scores, from, k, &m.keys); err != nil {
			return err
		}
		if t.p != nil {
			for i, a := range t.args {
				part := t.matrix(a, h)
				if part.shape[0] > 1 {
					part = part.stretch(0, lo, lo+rows)
				}
				m.headers[i+1] = part
			}
			ws.Map(t.p, m.list[:1], m.list[:len(t.args)+1])
		}
		ws.Softmax(scores, scores, false)
		if err := t.product(ws, to, scores, v, &m.values); err != nil {
			return err
		}
	}
	return nil
}

// prepares reports whether the factors of a head are prepared for several blocks of its queries. Queries
// that are read down their columns are left to MatMul: the order of sums may depend on that.
func (t *attention) prepares(q *Array) bool {
	return t.blocks > 1 && q.shape[1] > 0 && rowsFit(q.shape[0], q.shape[1], q.strides[0], q.strides[1])
}

// product sets c to a·b, where f is b, if that has been prepared.
func (t *attention) product(ws *Workspace, c, a, b *Array, f *Factor) error {
	if t.prepares(&ws.attention.q) {
		return ws.mulFactor(c, a, f, new(kernel.Epilogue))
	}
	return ws.MatMul(c, a, b)
}

// matrix returns the matrix of an array that belongs to a head.
func (t *attention) matrix(a *Array, head int) Array {
	at := a.offset
	for d := int(t.q.ndim) - 3; d >= 0; d-- {
		size := t.q.shape[d]
		// A head of keys serves as many in a row as there are for each. One that is broadcast serves all.
		at += head % size * a.shape[d] / size * a.strides[d]
		head /= size
	}
	return a.matrixAt(at)
}

// result returns the matrix of the result of a head.
func (t *attention) result(head int) Array {
	if !t.turned {
		return t.matrix(t.y, head)
	}
	y := *t.y
	d := int(y.ndim) - 2
	y.shape[d], y.shape[d-1], y.strides[d], y.strides[d-1] = y.shape[d-1], y.shape[d], y.strides[d-1], y.strides[d]
	return t.matrix(&y, head)
}
