// Package constants finds the constants of functions again.
package constants

import (
	"bytes"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"unsafe"
	"weak"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Table has the constants of the functions of a session: equal ones are the same array, so that
// there is one of it, and one form that products have prepared. Its references are weak, so a constant goes
// with the last function that has it.
type Table struct {
	mu      sync.Mutex
	seed    maphash.Seed
	tensors map[*onnx.Tensor]constant
	own     map[span]bool       // the memory of tensors of the model
	places  map[span][]constant // by their memory: passes make views
	folded  map[uint64][]*made  // by the hash of some of their elements
}

// A made constant is one that passes have made, not one of the model.
type made struct {
	constant
	hash uint64 // of all elements; 0 is not known
}

type constant = weak.Pointer[array.Array]

// span is where elements are in memory: those of an array in use, so that nothing else is there.
type span struct {
	at    uintptr
	bytes int
}

func spanOf(data []byte) span {
	return span{uintptr(unsafe.Pointer(unsafe.SliceData(data))), len(data)}
}

// New returns a table for the constants of a model.
func New(m *onnx.Model) *Table {
	c := &Table{seed: maphash.MakeSeed(), tensors: make(map[*onnx.Tensor]constant), own: make(map[span]bool), places: make(map[span][]constant), folded: make(map[uint64][]*made)}
	if m.Graph != nil {
		for _, t := range m.Graph.Initializers {
			c.own[spanOf(t.Raw)] = true
		}
	}
	return c
}

// leastShared is the size of a constant that is worth a look at those that are there, in bytes.
const leastShared = 1 << 12

// Of is lower.ArrayOf.
func (c *Table) Of(t *onnx.Tensor, dir string) (*array.Array, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.tensors[t].Value(); a != nil {
		return a, nil
	}
	a, err := lower.ArrayOf(t, dir)
	if err != nil {
		return nil, err
	}
	c.tensors[t] = weak.Make(a)
	if data, ok := lower.BytesOf(a); ok {
		c.places[spanOf(data)] = append(c.places[spanOf(data)], weak.Make(a))
	}
	return a, nil
}

// Shared returns the array that is there for a constant.
func (c *Table) Shared(a *array.Array) *array.Array {
	data, ok := lower.BytesOf(a.InMemoryOrder())
	if !ok || len(data) < leastShared {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := spanOf(data)
	for _, w := range c.places[at] {
		if b := w.Value(); sameLayout(a, b) {
			return b
		}
	}
	// Passes make the same view of a tensor of the model each time, so nobody has to read it.
	if !c.own[at] {
		if b := c.equal(a, data); b != nil {
			return b
		}
	}
	c.places[at] = append(c.places[at], weak.Make(a))
	return a
}

// equal returns the made constant that is equal to a, whose elements are data. If none is, a becomes one. All
// elements are read only if some of them are those of another one.
func (c *Table) equal(a *array.Array, data []byte) *array.Array {
	f, key := &made{constant: weak.Make(a)}, array.Hash(a)
	list := c.folded[key]
	c.folded[key] = append(list, f)
	for _, g := range list {
		b := g.Value()
		if !sameLayout(a, b) {
			continue
		}
		other, _ := lower.BytesOf(b.InMemoryOrder())
		if c.hash(f, data) == c.hash(g, other) && bytes.Equal(data, other) {
			c.folded[key] = list
			return b
		}
	}
	return nil
}

func (c *Table) hash(f *made, data []byte) uint64 {
	if f.hash == 0 {
		f.hash = maphash.Bytes(c.seed, data) | 1
	}
	return f.hash
}

// sameLayout reports whether b is an array of the type and the layout of a.
func sameLayout(a, b *array.Array) bool {
	return b != nil && b.DType() == a.DType() && array.SameLayout(a, b)
}

// Prune forgets arrays that nobody uses any more.
func (c *Table) Prune() {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.tensors, func(_ *onnx.Tensor, w constant) bool { return w.Value() == nil })
	prune(c.places)
	prune(c.folded)
}

func prune[K comparable, C interface{ Value() *array.Array }](m map[K][]C) {
	for k, list := range m {
		if m[k] = slices.DeleteFunc(list, func(w C) bool { return w.Value() == nil }); len(m[k]) == 0 {
			delete(m, k)
		}
	}
}
