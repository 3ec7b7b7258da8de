package array_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tensor/array"
)

// attentionCase is an attention with random sizes and layouts.
type attentionCase struct {
	shape      []int // of the scores
	q, k, v, y *array.Array
	p          *array.Program
	args       []*array.Array
	turned     bool
}

func randomAttention(rng *rand.Rand) attentionCase {
	ndim := 2 + rng.IntN(3)
	shape := make([]int, ndim)
	for d := range shape {
		shape[d] = 1 + rng.IntN(4)
	}
	rows, keys, size, columns := 1+rng.IntN(90), 1+rng.IntN(70), rng.IntN(40), rng.IntN(40)
	if rng.IntN(4) == 0 { // several blocks of queries
		keys = 3000 + rng.IntN(4000)
	}
	if rng.IntN(20) == 0 {
		keys = 0
	}
	shape[ndim-2], shape[ndim-1] = rows, keys
	c := attentionCase{shape: shape, turned: ndim > 2 && rng.IntN(2) == 0}
	// Keys and values may have fewer heads, and be the same for a batch.
	shared := func(m, n int) []int {
		s := append(slices.Clone(shape[:ndim-2]), m, n)
		for d := range s[:ndim-2] {
			switch rng.IntN(3) {
			case 0:
				s[d] = 1
			case 1:
				if d == ndim-3 && s[d]%2 == 0 {
					s[d] /= 2
				}
			}
		}
		return s
	}
	c.q = randomLayout(rng, array.Float32, append(slices.Clone(shape[:ndim-1]), size)...)
	c.k, c.v = randomLayout(rng, array.Float32, shared(size, keys)...), randomLayout(rng, array.Float32, shared(keys, columns)...)
	if rng.IntN(2) == 0 {
		c.q, c.k, c.v = c.q.Clone(), c.k.Clone(), c.v.Clone()
	}
	result := append(slices.Clone(shape[:ndim-1]), columns)
	if c.turned {
		result[ndim-2], result[ndim-3] = result[ndim-3], result[ndim-2]
	}
	c.y = array.Full(array.Float32, 7, result...)
	if rng.IntN(4) > 0 { // a scale, a mask of numbers and one of bools
		broadcast := func() []int {
			s := slices.Clone(shape)
			for d := range s {
				if rng.IntN(2) == 0 {
					s[d] = 1
				}
			}
			return s
		}
		c.args = []*array.Array{randomLayout(rng, array.Float32, broadcast()...), randomLayout(rng, array.Float32, broadcast()...).Cast(array.Bool)}
		c.p = array.NewProgram(array.Float32, array.Float32, array.Bool)
		v := c.p.Append(array.Add, c.p.Append(array.Mul, 0, c.p.Constant(array.Full(array.Float32, 0.01))), 1)
		c.p.Return(c.p.Append(array.Switch, 2, v, c.p.Constant(array.Full(array.Float32, -1e30))))
	}
	return c
}

// oneByOne computes an attention by its parts.
func (c *attentionCase) oneByOne(t *testing.T) *array.Array {
	t.Helper()
	var ws array.Workspace
	ndim := len(c.shape)
	full := func(x *array.Array) *array.Array {
		if ndim < 3 {
			return x
		}
		// Each head of keys as often as there are heads of queries for it.
		heads, have := c.shape[ndim-3], x.Dim(ndim-3)
		wide := array.New(array.Float32, append(slices.Clone(c.shape[:ndim-2]), x.Dim(ndim-2), x.Dim(ndim-1))...)
		for h := range heads {
			ranges := make([]array.Range, ndim)
			for d := range ranges {
				ranges[d] = array.Range{Step: 1, Count: wide.Dim(d)}
			}
			ranges[ndim-3] = array.Range{Start: h, Step: 1, Count: 1}
			var to, from array.Array
			wide.RangeTo(&to, ranges...)
			for d := range ndim - 3 {
				ranges[d].Count = x.Dim(d)
			}
			ranges[ndim-3].Start = h * have / heads
			x.RangeTo(&from, ranges...)
			b, err := from.BroadcastTo(to.Shape()...)
			if err != nil {
				t.Fatal(err)
			}
			array.CopyTo(&to, b)
		}
		return wide
	}
	scores := array.New(array.Float32, c.shape...)
	multiply := func(y, a, b *array.Array) {
		t.Helper()
		var err error
		if ndim == 2 {
			err = ws.MatMul(y, a, b)
		} else {
			err = ws.BatchMatMul(y, a, b, nil, nil, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	multiply(scores, c.q, full(c.k))
	if c.p != nil {
		ws.Map(c.p, []*array.Array{scores}, append([]*array.Array{scores}, c.args...))
	}
	ws.Softmax(scores, scores, false)
	y := array.New(array.Float32, append(slices.Clone(c.shape[:ndim-1]), c.v.Dim(ndim-1))...)
	multiply(y, scores, full(c.v))
	if c.turned {
		order := make([]int, ndim)
		for d := range order {
			order[d] = d
		}
		order[ndim-2], order[ndim-3] = ndim-3, ndim-2
		y = y.Transpose(order...).Clone()
	}
	return y
}

// TestAttention compares attentions with their parts one by one, bit for bit, with one thread and several.
func TestAttention(t *testing.T) {
	defer divide.Always.Store(divide.Always.Load())
	rng := rand.New(rand.NewPCG(3, 4))
	var one array.Workspace
	several := array.Workspace{Threads: kernel.NewThreads(3)}
	for try := range longtest.Of(20, 150) {
		c := randomAttention(rng)
		want := c.oneByOne(t)
		for i, ws := range []*array.Workspace{&one, &several} {
			divide.Always.Store(i > 0)
			if err := ws.Attention(c.y, c.q, c.k, c.v, c.p, c.args, c.turned); err != nil {
				t.Fatal(err)
			}
			if !array.Equal(c.y, want) {
				t.Fatalf("try %d: queries of shape %v, keys of %v, values of %v, turned %t, workspace %d: other bits", try, c.q.Shape(), c.k.Shape(), c.v.Shape(), c.turned, i)
			}
		}
		divide.Always.Store(false)
	}
	several.MaxBytes = 100
	c := randomAttention(rng)
	for c.y.Len() == 0 || c.shape[len(c.shape)-1] < 50 {
		c = randomAttention(rng)
	}
	if err := several.Attention(c.y, c.q, c.k, c.v, c.p, c.args, c.turned); err == nil {
		t.Error("scores in no memory")
	}
}

// TestAttentionMemory: long sequences take memory for some rows of their scores, and calls allocate none.
func TestAttentionMemory(t *testing.T) {
	const n, size = 2048, 16
	q, k, v, y := array.Full(array.Float32, 0.5, 2, n, size), array.Full(array.Float32, 0.25, 2, size, n), array.Full(array.Float32, 3, 2, n, size), array.New(array.Float32, 2, n, size)
	var ws array.Workspace
	attend := func() {
		if err := ws.Attention(y, q, k, v, nil, nil, false); err != nil {
			t.Fatal(err)
		}
	}
	attend()
	if most := ws.Peak(); most > 512<<10 {
		t.Errorf("%d bytes for scores of %d", most, 2*n*n*4)
	}
	if got := y.Float(5); got != 3 {
		t.Errorf("the mean of threes is %v", got)
	}
	if n := alloctest.Least(100, attend); n > 100 && !raceDetector {
		t.Errorf("a call allocates %d bytes", n)
	}
}
