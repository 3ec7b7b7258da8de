package lower

import (
	"bytes"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"weak"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// constants are those of the functions of a session: equal ones are the same array, so that it is there once,
// and what products prepare of it. It keeps none alive.
type constants struct {
	mu      sync.Mutex
	seed    maphash.Seed
	tensors map[*onnx.Tensor]constant
	folded  map[uint64][]constant // what passes have made, by the hash of the elements
	known   map[constant]bool     // all of them
}

type constant = weak.Pointer[array.Array]

func newConstants() *constants {
	return &constants{seed: maphash.MakeSeed(), tensors: make(map[*onnx.Tensor]constant), folded: make(map[uint64][]constant), known: make(map[constant]bool)}
}

// leastShared is the size of a constant that is worth a look at those that are there, in bytes.
const leastShared = 1 << 12

// of is ArrayOf.
func (c *constants) of(t *onnx.Tensor, dir string) (*array.Array, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.tensors[t].Value(); a != nil {
		return a, nil
	}
	a, err := ArrayOf(t, dir)
	if err != nil {
		return nil, err
	}
	c.tensors[t] = c.know(a)
	return a, nil
}

// know notes an array.
func (c *constants) know(a *array.Array) constant {
	w := weak.Make(a)
	c.known[w] = true
	return w
}

// shared returns the array that is there for a constant.
func (c *constants) shared(a *array.Array) *array.Array {
	data, ok := bytesOf(a)
	if !ok || len(data) < leastShared {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[weak.Make(a)] {
		return a
	}
	h := maphash.Bytes(c.seed, data)
	for _, w := range c.folded[h] {
		b := w.Value()
		if b == nil || b.DType() != a.DType() || !array.SameShape(a, b) {
			continue
		}
		if other, _ := bytesOf(b); bytes.Equal(data, other) {
			return b
		}
	}
	c.folded[h] = append(c.folded[h], c.know(a))
	return a
}

// prune forgets arrays that nobody uses any more.
func (c *constants) prune() {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone := func(w constant) bool { return w.Value() == nil }
	maps.DeleteFunc(c.known, func(w constant, _ bool) bool { return gone(w) })
	maps.DeleteFunc(c.tensors, func(_ *onnx.Tensor, w constant) bool { return gone(w) })
	maps.DeleteFunc(c.folded, func(h uint64, list []constant) bool {
		list = slices.DeleteFunc(list, gone)
		c.folded[h] = list
		return len(list) == 0
	})
}

// sharing is an optimizer after which constants are shared.
type sharing struct {
	*optdb.Optimizer
	constants *constants
}

// Rewrite implements exec.Optimizer.
func (s sharing) Rewrite(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if err := s.Optimizer.Rewrite(ctx, g, rec); err != nil {
		return err
	}
	s.constants.prune()
	var pairs []fgraph.Replacement
	for v := range g.Variables() {
		if a := tensor.ConstantOf(v); a != nil && !a.IsCSR() {
			if b := s.constants.shared(a); b != a {
				pairs = append(pairs, fgraph.Replacement{Old: v, New: tensor.Constant(b)})
			}
		}
	}
	return g.ReplaceAll(pairs, fgraph.Reason{Pass: "shared_constants"})
}
