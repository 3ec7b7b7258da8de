package heap_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/heap"
)

// TestHeap compares heaps of random items, pushed and popped in turns, with sorted lists.
func TestHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h heap.Heap[float64]
		var list []heap.Item[float64]
		for n := range r.Int32N(100) {
			if r.IntN(3) == 0 && len(list) > 0 {
				slices.SortFunc(list, func(a, b heap.Item[float64]) int {
					return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.N, b.N))
				})
				if got := h.Pop(); got != list[0] || len(h) != len(list)-1 {
					t.Fatalf("%v comes out before %v", got, list[0])
				}
				list = list[1:]
			}
			key := float64(r.IntN(8))
			h.Push(key, n)
			list = append(list, heap.Item[float64]{Key: key, N: n})
		}
	}
}
