package egraph

import (
	"cmp"
	"slices"
)

// index lists the nodes of each class, sorted by symbol, in one piece, with their inputs.
type index struct {
	entries []entry
	dirty   []uint32 // classes to lay anew
	waste   int      // entries that no class uses
	pruned  int      // live nodes that are left out
}

// entry is a copy of a node.
type entry struct {
	head, a, b, node uint32
}

// symBit is the bit of a symbol in masks. The last bit means facts.
func symBit(s Symbol) uint32 { return 1 << (uint32(s) % 31) }

const factBit = 1 << 31

// refresh brings the index up to date. It lays the classes that have changed anew, or all if that
// is not much more.
func (g *Graph) refresh() bool {
	x := &g.index
	// The matcher reads entries much more often than they change, so they are copies in one piece,
	// in the order of classes. Laying all of them anew restores that order and leaves no waste. It
	// is worth while from an eighth of the classes on; below that, only what is dirty is laid.
	if 8*len(x.dirty) > g.roots || 2*x.waste > len(x.entries) {
		if need := g.live(); cap(x.entries) < need {
			x.entries = make([]entry, 0, g.next2(need, g.room)+need)
		}
		x.entries, x.dirty, x.waste = x.entries[:0], x.dirty[:0], 0
		for c := range g.classes {
			if g.up[c] == uint32(c) {
				g.classes[c].size = 0
				g.lay(uint32(c))
			}
			if c%pollEvery == 0 && g.stopped() {
				return false
			}
		}
		return true
	}
	for i, c := range x.dirty {
		if c == g.find(c) {
			g.lay(c)
		} else if k := g.find(c); g.classes[k].dirty != g.delta.now {
			// A class that lost a union after it was queued leaves its changes to the winner, which
			// may have been queued itself.
			g.classes[k].dirty = g.delta.now
			g.lay(k)
		}
		if i%pollEvery == 0 && g.stopped() {
			return false
		}
	}
	x.dirty = x.dirty[:0]
	return true
}

// lay writes the entries of a class, in place if there is room, or else at the end.
func (g *Graph) lay(c uint32) {
	x := &g.index
	d := &g.classes[c]
	x.pruned -= int(d.hidden)
	d.hidden = 0
	begin := len(x.entries)
	mask := uint32(0)
	last := none
	prune := d.flags&prunedFlag != 0
	sorted := true
	lastSym := Symbol(0)
	for n := d.nodes; n != none; n = g.inClass[n] {
		nd := &g.nodes[n]
		// Dead nodes leave the list of their class here, where all of it is read anyway.
		if nd.dead() {
			if last != none {
				g.inClass[last] = g.inClass[n]
				d.count--
			}
			continue
		}
		last = n
		if prune && nd.shape() != 0 {
			d.hidden++
			continue
		}
		s := g.ops[nd.op()].sym
		// Lists are often sorted already, as two of them that were joined, or one to which a node
		// was added.
		if s < lastSym || s == lastSym && len(x.entries) > begin && x.entries[len(x.entries)-1].node > n {
			sorted = false
		}
		lastSym = s
		mask |= symBit(s)
		x.entries = append(x.entries, entry{nd.head, nd.a, nd.b, n})
	}
	if last != none {
		d.lastNode = last
	}
	x.pruned += int(d.hidden)
	list := x.entries[begin:]
	if !sorted {
		g.sortEntries(list)
	}
	// The entries were written at the end, since how many there are was not known. If they fit,
	// they move to where the class was.
	if d.size > 0 && len(list) <= int(d.size) {
		x.waste += int(d.size) - len(list)
		copy(x.entries[d.start:], list)
		x.entries = x.entries[:begin]
	} else {
		x.waste += int(d.size)
		d.start = uint32(begin)
	}
	d.size = uint32(len(list))
	d.mask = mask
}

// sortEntries sorts by symbol, then by age.
func (g *Graph) sortEntries(list []entry) {
	ops := g.ops
	slices.SortFunc(list, func(p, q entry) int {
		return cmp.Or(cmp.Compare(ops[p.head&opMask].sym, ops[q.head&opMask].sym), cmp.Compare(p.node, q.node))
	})
}
