package rewrite

// hashTable is a hash table with linear probing. Items are never removed; find ignores invalid
// ones because they equal nothing.
type hashTable[T any] struct {
	slots []slot[T]
	used  int
}

type slot[T any] struct {
	hash uint64 // 0: free
	item T
}

// find returns a pointer to the first equal item that was added with hash h, or nil. The pointer
// is valid until the next add.
func (t *hashTable[T]) find(h uint64, equal func(T) bool) *T {
	if len(t.slots) == 0 {
		return nil
	}
	h = max(h, 1)
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch s := &t.slots[i]; {
		case s.hash == 0:
			return nil
		case s.hash == h && equal(s.item):
			return &s.item
		}
	}
}

// add adds x after all items that were added with hash h before.
func (t *hashTable[T]) add(h uint64, x T) {
	h = max(h, 1)
	if 2*(t.used+1) > len(t.slots) {
		t.grow()
	}
	t.used++
	t.put(slot[T]{h, x})
}

func (t *hashTable[T]) put(s slot[T]) {
	mask := uint64(len(t.slots) - 1)
	i := s.hash & mask
	for t.slots[i].hash != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// grow doubles the table. It starts copying after a free slot, so that items of one hash keep
// their order even if they wrap around the end.
func (t *hashTable[T]) grow() {
	old := t.slots
	t.slots = make([]slot[T], max(16, 2*len(old)))
	begin := 0
	for begin < len(old) && old[begin].hash != 0 {
		begin++
	}
	for i := range old {
		if s := old[(begin+i)%len(old)]; s.hash != 0 {
			t.put(s)
		}
	}
}

// mix combines two hashes (the finalizer of SplitMix64, over their sum).
func mix(h, x uint64) uint64 {
	h ^= x + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
