// Package heap is a queue by priority.
package heap

import "cmp"

// An Item is a number with its key.
type Item[K cmp.Ordered] struct {
	Key K
	N   int32
}

func (a Item[K]) less(b Item[K]) bool { return a.Key < b.Key || a.Key == b.Key && a.N < b.N }

// A Heap has the item with the least key first; of equal keys it is the one with the least number. So the order in which items
// come out is that of their keys and numbers, and not of their coming. Four children a node are in one line of a cache.
type Heap[K cmp.Ordered] []Item[K]

// Push adds an item.
func (h *Heap[K]) Push(key K, n int32) {
	x := Item[K]{key, n}
	s := append(*h, x)
	*h = s
	i := len(s) - 1
	for i > 0 && x.less(s[(i-1)/4]) {
		s[i] = s[(i-1)/4]
		i = (i - 1) / 4
	}
	s[i] = x
}

// Pop removes and returns the first item of a heap that is not empty.
func (h *Heap[K]) Pop() Item[K] {
	s := *h
	first, x := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return first
	}
	i := 0
	for c := 1; c < len(s); c = 4*i + 1 {
		least := c
		for j := c + 1; j < min(c+4, len(s)); j++ {
			if s[j].less(s[least]) {
				least = j
			}
		}
		if !s[least].less(x) {
			break
		}
		s[i], i = s[least], least
	}
	s[i] = x
	return first
}
