package lower

import (
	"bytes"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"unsafe"
	"weak"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// constants finds the constants of the functions of a session again: equal ones are the same array, so that
// there is one of it, and one form that products have prepared. Its references are weak, so a constant goes
// with the last function that has it.
type constants struct {
	mu      sync.Mutex
	seed    maphash.Seed
	tensors map[*onnx.Tensor]constant
	places  map[place][]constant  // by their memory: passes make views
	folded  map[uint64][]constant // by the hash of their elements
}

type constant = weak.Pointer[array.Array]

// place is where elements are: those of an array in use, so that nothing else is there.
type place struct {
	at    uintptr
	bytes int
}

func placeOf(data []byte) place {
	return place{uintptr(unsafe.Pointer(unsafe.SliceData(data))), len(data)}
}

func newConstants() *constants {
	return &constants{seed: maphash.MakeSeed(), tensors: make(map[*onnx.Tensor]constant), places: make(map[place][]constant), folded: make(map[uint64][]constant)}
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
	c.tensors[t] = weak.Make(a)
	if data, ok := bytesOf(a); ok {
		c.places[placeOf(data)] = append(c.places[placeOf(data)], weak.Make(a))
	}
	return a, nil
}

// shared returns the array that is there for a constant.
func (c *constants) shared(a *array.Array) *array.Array {
	data, ok := bytesOf(a)
	if !ok || len(data) < leastShared {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := like(a, c.places[placeOf(data)], func([]byte) bool { return true }); b != nil {
		return b
	}
	h := maphash.Bytes(c.seed, data)
	if b := like(a, c.folded[h], func(other []byte) bool { return bytes.Equal(data, other) }); b != nil {
		return b
	}
	c.places[placeOf(data)] = append(c.places[placeOf(data)], weak.Make(a))
	c.folded[h] = append(c.folded[h], weak.Make(a))
	return a
}

// like returns the array of a list that is of the type and the shape of a, and has equal elements.
func like(a *array.Array, list []constant, equal func([]byte) bool) *array.Array {
	for _, w := range list {
		b := w.Value()
		if b == nil || b.DType() != a.DType() || !array.SameShape(a, b) {
			continue
		}
		if data, _ := bytesOf(b); equal(data) {
			return b
		}
	}
	return nil
}

// prune forgets arrays that nobody uses any more.
func (c *constants) prune() {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.tensors, func(_ *onnx.Tensor, w constant) bool { return w.Value() == nil })
	prune(c.places)
	prune(c.folded)
}

func prune[K comparable](m map[K][]constant) {
	for k, list := range m {
		if m[k] = slices.DeleteFunc(list, func(w constant) bool { return w.Value() == nil }); len(m[k]) == 0 {
			delete(m, k)
		}
	}
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
