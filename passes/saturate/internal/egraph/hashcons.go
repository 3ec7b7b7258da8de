package egraph

import (
	"math/bits"
	"slices"
)

// table finds nodes by op and inputs. It is open addressed; a slot is the upper half of the hash
// and the node + 1. Nothing is deleted: what a slot says of a node that has changed since is not
// found, because the node is compared as it is now, and goes away when the table grows.
type table struct {
	slots []uint64
	mask  uint64
	used  int
}

func (t *table) init(size int) {
	t.slots = make([]uint64, size)
	t.mask = uint64(size - 1)
	t.used = 0
}

// full reports whether five eighths of the slots are used.
func (t *table) full() bool { return 8*t.used >= 5*len(t.slots) }

func (t *table) put(slot int, hash uint64, n uint32) {
	t.slots[slot] = hash&^(1<<32-1) | uint64(n+1)
	t.used++
}

const (
	hashK1 = 0x9e3779b97f4a7c15
	hashK2 = 0xd6e8feb86659fd93
)

func hashSmall(head, a, b uint32) uint64 {
	hi, lo := bits.Mul64((uint64(head)<<32|uint64(a))^hashK1, (uint64(b)|uint64(a)<<40)^hashK2)
	return mix(hi ^ lo)
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^hashK2, hashK1)
	return hi ^ lo
}

func hashWide(head uint32, kids []uint32) uint64 {
	h := mix(uint64(head)<<32 | uint64(len(kids)))
	for _, k := range kids {
		h = mix(h ^ uint64(k))
	}
	return h
}

// lookupSmall returns the live node of up to two inputs, or none and a free slot.
func (g *Graph) lookupSmall(h uint64, head, a, b uint32) (uint32, int) {
	t := &g.table
	for i := h & t.mask; ; i = (i + 1) & t.mask {
		s := t.slots[i]
		if s == 0 {
			return none, int(i)
		}
		if (s^h)>>32 == 0 {
			n := uint32(s) - 1
			if d := &g.nodes[n]; d.head == head && d.a == a && d.b == b {
				return n, int(i)
			}
		}
	}
}

func (g *Graph) lookupWide(h uint64, head uint32, kids []uint32) (uint32, int) {
	t := &g.table
	for i := h & t.mask; ; i = (i + 1) & t.mask {
		s := t.slots[i]
		if s == 0 {
			return none, int(i)
		}
		if (s^h)>>32 == 0 {
			n := uint32(s) - 1
			if d := &g.nodes[n]; d.head == head && int(d.b) == len(kids) && equalIDs(g.wide.kids[d.a:d.a+d.b], kids) {
				return n, int(i)
			}
		}
	}
}

func equalIDs(a, b []uint32) bool {
	for i, x := range a {
		if x != b[i] {
			return false
		}
	}
	return true
}

func (g *Graph) hash(n uint32) uint64 {
	d := &g.nodes[n]
	if d.shape() == wideShape {
		return hashWide(d.head, g.wide.kids[d.a:d.a+d.b])
	}
	return hashSmall(d.head, d.a, d.b)
}

// grow makes room in the table.
func (g *Graph) grow() {
	live := len(g.nodes) - g.dead
	size := len(g.table.slots)
	if len(g.nodes) >= 1<<12 {
		live = max(live, g.room/2)
	}
	for size < 3*live+64 {
		size *= 2
	}
	g.table.init(size)
	t := &g.table
	for n := range g.nodes {
		if n%pollEvery == 0 && g.stopped() {
			return // the graph is not used any more
		}
		if g.nodes[n].dead() {
			continue
		}
		h := g.hash(uint32(n))
		i := h & t.mask
		for t.slots[i] != 0 {
			i = (i + 1) & t.mask
		}
		t.put(int(i), h, uint32(n))
	}
}

// Lookup returns the class of an op applied to classes, if the graph has such a node.
func (g *Graph) Lookup(op Op, inputs ...Class) (Class, bool) {
	kids := make([]uint32, len(inputs))
	for i, c := range inputs {
		kids[i] = g.find(uint32(c))
	}
	if g.lang.sigs[g.ops[op].sym].Commutes {
		slices.Sort(kids)
	}
	n := g.lookup(op, kids)
	if n == none {
		return 0, false
	}
	return Class(g.find(g.nodes[n].class)), true
}

// lookup returns the live node of an op applied to classes, sorted if it commutes, or none.
func (g *Graph) lookup(op Op, kids []uint32) uint32 {
	head := uint32(op) | uint32(min(len(kids), wideShape))<<shapeBits
	if len(kids) >= wideShape {
		n, _ := g.lookupWide(hashWide(head, kids), head, kids)
		return n
	}
	var pair [2]uint32
	copy(pair[:], kids)
	n, _ := g.lookupSmall(hashSmall(head, pair[0], pair[1]), head, pair[0], pair[1])
	return n
}
