package compile

import "github.com/nnopt/nnopt/nnet3/index"

// table finds vertices by Cindex, with open addressing and without deletion. A slot holds a tag in
// its upper half and the vertex plus one in its lower half, so that a miss rarely looks at a
// vertex. Sixteen consecutive times of a node share a block of slots, being looked up in order.
type table struct {
	slots []uint64
	used  int
}

const minTableSlots = 1 << 8

// newTable returns a table with room for about n vertices before it grows.
func newTable(n int) table {
	size := minTableSlots
	for size < 2*n {
		size *= 2
	}
	return table{slots: make([]uint64, size)}
}

// hash returns the tag of c and, before masking, the slot where the search for c begins.
func hash(c index.Cindex) (slot uint64, tag uint32) {
	h := uint64(uint32(c.Node))*0x9e3779b97f4a7c15 ^ uint64(uint32(c.Index.N))*0xc2b2ae3d27d4eb4f
	h ^= uint64(uint32(c.Index.X))*0x165667b19e3779f9 ^ uint64(uint32(c.Index.T>>4))*0x27d4eb2f165667c5
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 29
	low := uint64(uint32(c.Index.T)) & 15
	return h&^15 | low, uint32(h>>32)&^15 | uint32(low)
}

// look returns the vertex of c, or none and the free slot for it, with its tag.
func (t *table) look(vertices []vertex, c index.Cindex) (v int32, slot uint64, tag uint32) {
	slot, tag = hash(c)
	mask := uint64(len(t.slots) - 1)
	// At most half of the slots are in use, so probing is short. The tag has 28 bits of the hash
	// and 4 of the time, so a slot with the same tag nearly always has the right vertex, and a miss
	// touches one cache line.
	for slot &= mask; ; slot = (slot + 1) & mask {
		e := t.slots[slot]
		if e == 0 {
			return none, slot, tag
		}
		if uint32(e>>32) == tag {
			if v := int32(uint32(e)) - 1; vertices[v].Cindex == c {
				return v, slot, tag
			}
		}
	}
}

// enter enters vertex v, the last one of vertices, in the slot that look returned with the tag.
func (t *table) enter(slot uint64, tag uint32, v int32, vertices []vertex) {
	t.slots[slot] = uint64(tag)<<32 | uint64(uint32(v+1))
	t.used++
	if 2*t.used > len(t.slots) {
		t.grow(vertices)
	}
}

// grow doubles the table.
func (t *table) grow(vertices []vertex) {
	old := t.slots
	t.slots = make([]uint64, 2*len(old))
	mask := uint64(len(t.slots) - 1)
	for _, e := range old {
		if e == 0 {
			continue
		}
		slot, _ := hash(vertices[int32(uint32(e))-1].Cindex)
		for slot &= mask; t.slots[slot] != 0; slot = (slot + 1) & mask {
		}
		t.slots[slot] = e
	}
}
