package exec

import (
	"cmp"
	"slices"
	"sort"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The memory of what steps compute is planned when a function is compiled, as far as sizes are known then. A
// value that no result shows has a place in a block, which a Runner allots once; a result has memory of its own,
// so that who keeps it keeps nothing else. In a call nothing is asked for or given back.
//
// What is known only in a call is left to the workspace: sizes that depend on values, what is computed for a
// branch of an IfElse, what kernels need until they end. The latter uses what is free of the block meanwhile.

// A Memory says how much memory a call needs for what it computes, in bytes. Arguments and constants, and what
// ops prepare of constants, are not in it, nor is what ops need until they end.
type Memory struct {
	// Block is the memory of values that no result shows; those that are not needed at once share it. Live
	// is the most that they need at once: no plan needs less.
	Block   int64 `json:"block_bytes"`
	Live    int64 `json:"live_bytes"`
	Results int64 `json:"result_bytes"` // of results, which have memory of their own
	Values  int   `json:"values"`       // how many values and results are planned
	// Unknown counts the values and results whose memory depends on the call, because their sizes do or
	// because a branch of an IfElse computes them.
	Unknown int `json:"unknown"`
}

// Peak returns the bytes of all that is planned.
func (m Memory) Peak() int64 { return m.Block + m.Results }

// Memory returns how much memory a call needs.
func (f *Function) Memory() Memory { return f.memory.memory }

// A home is the place of a value in the block of a runner; it has memory of its own if that is displayed.
type home struct {
	dtype  array.DType
	n      int // elements
	offset int // bytes
}

// bytes returns the size, rounded up to what buffers begin at.
func (h home) bytes() int {
	return (h.n*h.dtype.Size() + array.Alignment - 1) &^ (array.Alignment - 1)
}

// A memoryPlan says where values are.
type memoryPlan struct {
	homes  []home // by root; nil if nothing is planned
	rooms  []room // by step
	memory Memory
}

// settle gives values their places. Lives are known by then; free keeps what has none.
func (f *Function) settle() {
	lives := f.lives()
	if len(lives) > maxPlanned {
		f.memory.memory.Unknown = len(lives)
		return
	}
	limit := f.limit()
	homes := make([]home, len(lives))
	unknown := 0
	for i, l := range lives {
		if h, ok := homeOf(l.value, limit); ok && !l.lazy {
			homes[i] = h
		} else {
			unknown++
		}
	}
	f.memory = f.arranged(lives, homes)
	f.memory.memory.Unknown = unknown
	if f.memory.memory.Peak() > limit {
		// A call says which apply finds no memory left.
		f.memory = memoryPlan{memory: Memory{Unknown: len(lives)}}
		return
	}
	f.openSizes(lives, homes)
	f.placed = make([]bool, f.slots)
	for i, l := range lives {
		f.placed[l.root] = homes[i].n > 0 || f.open.has(i)
	}
	for i := range f.steps {
		f.steps[i].free, f.steps[i].dead = f.divide(f.steps[i].free)
	}
	for i := range f.regions {
		f.regions[i].free, f.regions[i].dead = f.divide(f.regions[i].free)
	}
}

// limit bounds the memory of a call.
func (f *Function) limit() int64 { return cmp.Or(f.opts.MaxBytes, array.DefaultMaxBytes) }

// arranged returns a plan for values with homes, whose offsets it finds. A home of no elements is none.
func (f *Function) arranged(lives []life, homes []home) memoryPlan {
	var spans []span
	var roots []int32
	p := memoryPlan{homes: make([]home, f.slots)}
	for i, l := range lives {
		h := homes[i]
		if h.n == 0 {
			continue
		}
		p.memory.Values++
		p.homes[l.root] = h
		if f.kinds[l.root] == displayed {
			p.memory.Results += int64(h.bytes())
			continue
		}
		l.span.size = h.bytes()
		spans, roots = append(spans, l.span), append(roots, l.root)
	}
	p.memory.Block, p.memory.Live = int64(arrange(spans)), mostLive(spans)
	for k, root := range roots {
		p.homes[root].offset = spans[k].offset
	}
	p.rooms = f.findRooms(spans, p)
	return p
}

// findRooms finds for each step the largest part of the block that nobody needs during it, for what its op needs
// until it ends. In regions there are two steps at a time, and there is none.
func (f *Function) findRooms(spans []span, p memoryPlan) []room {
	rooms := make([]room, len(f.steps))
	if len(spans) > maxGreedy {
		return rooms
	}
	var live []span // by offset
	end := int(p.memory.Block)
	region := f.regions
	for i := range f.steps {
		live = slices.DeleteFunc(live, func(s span) bool { return s.end < i })
		for ; len(spans) > 0 && spans[0].start == i; spans = spans[1:] {
			at := sort.Search(len(live), func(k int) bool { return live[k].offset > spans[0].offset })
			live = slices.Insert(live, at, spans[0])
		}
		for len(region) > 0 && region[0].next <= i {
			region = region[1:]
		}
		s := &f.steps[i]
		// An output without a home is taken from the workspace while the op runs. It outlives the step, and the
		// room belongs to others then.
		if len(region) > 0 && region[0].first <= i || slices.ContainsFunc(s.out, func(k int32) bool { return f.roots[k] == k && p.homes[k].n == 0 }) {
			continue
		}
		from := 0
		for _, l := range append(live, span{offset: end}) {
			if n := l.offset - from; n > rooms[i].bytes {
				rooms[i] = room{from, n}
			}
			from = l.offset + l.size
		}
	}
	return rooms
}

// divide divides slots into those without a home and those with one.
func (f *Function) divide(slots []int32) (without, with []int32) {
	for _, slot := range slots {
		if f.settled(slot) {
			with = append(with, slot)
		} else {
			without = append(without, slot)
		}
	}
	return without, with
}

// settled reports whether the memory of a slot is planned.
func (f *Function) settled(slot int32) bool { return f.placed != nil && f.placed[slot] }

// settle gives the runner the memory of a plan.
func (r *Runner) settle(p memoryPlan) {
	f := r.f
	r.settled, r.memory, r.stands, r.again = true, p, false, nil
	r.ws.MaxBytes = max(f.limit()-p.memory.Peak(), 1)
	if p.homes == nil {
		return
	}
	r.places = make([]array.Memory, f.slots)
	if need := int(p.memory.Block); r.block.Bytes() < need {
		r.block = array.NewBlock(need)
	}
	for slot, h := range p.homes {
		if h.n > 0 && f.kinds[slot] != displayed { // see placeResults
			r.places[slot] = r.block.At(h.offset, h.dtype, h.n)
		}
	}
	for i := range f.steps {
		r.steps[i].room = nil
		if room := p.rooms[i]; room.bytes > 0 {
			r.steps[i].room = &array.Room{Block: r.block, At: room.offset, N: room.bytes}
		}
		if out := f.steps[i].out; slices.ContainsFunc(out, f.settled) {
			r.steps[i].places = r.places[out[0]:][:len(out)] // their slots follow each other
		}
	}
}

// poisonDead overwrites the memory of values that no later step reads, so that a read of it shows in tests.
func (r *Runner) poisonDead(slots []int32) {
	for _, slot := range slots {
		r.places[slot].Poison()
	}
}

// A life is that of the memory of a value.
type life struct {
	span
	value *fgraph.Variable
	root  int32
	lazy  bool // it is computed for a branch of an IfElse, or moved by one
}

// lives returns what is computed, in the order of the steps.
func (f *Function) lives() []life {
	lanes, until := make([]int32, len(f.steps)), make([]int, len(f.steps)) // by step: until the end of its region
	for i := range until {
		until[i] = i
	}
	for r, g := range f.regions {
		for k, lane := range g.lanes {
			for _, i := range lane {
				lanes[i], until[i] = int32(2*(r+1)+k), g.next-1
			}
		}
	}
	list := make([]life, 0, f.slots)
	at := make([]int32, f.slots) // by root: 1 + its place in the list
	for i := range f.steps {
		s := &f.steps[i]
		for k, slot := range s.out {
			if f.roots[slot] == slot {
				list = append(list, life{span{start: i, first: lanes[i]}, s.apply.Outputs()[k], slot, len(s.guard) > 0 || s.choice})
				at[slot] = int32(len(list))
			}
		}
		for _, slots := range [][]int32{s.in, s.out} {
			for _, slot := range slots {
				n := at[f.roots[slot]]
				if n == 0 {
					continue // of an argument or a constant
				}
				l := &list[n-1]
				if l.last != 0 && l.last == lanes[i]^1 || l.end > i {
					l.end, l.last = until[i], 0 // both lanes use it
				} else {
					l.end, l.last = i, lanes[i]
				}
				l.until = until[i]
			}
		}
		for k, moves := range s.moves {
			if moves {
				list[at[s.in[k]]-1].lazy = true
			}
		}
	}
	return list
}

// homeOf returns the home of a value without its offset. It reports false if the size is not known, beyond a
// limit, or 0.
func homeOf(v *fgraph.Variable, limit int64) (home, bool) {
	t := tensor.TypeOf(v)
	bytes := t.Bytes()
	if bytes == 0 || bytes > limit {
		return home{}, false
	}
	return home{dtype: t.DType(), n: int(bytes) / t.DType().Size()}, true
}

// mostLive returns the most bytes that are needed at once.
func mostLive(spans []span) int64 {
	var live, most int64
	ends := order(spans, func(a, b *span) int { return cmp.Compare(a.end, b.end) })
	for i := range spans {
		for ; spans[ends[0]].end < spans[i].start; ends = ends[1:] {
			live -= int64(spans[ends[0]].size)
		}
		live += int64(spans[i].size)
		most = max(most, live)
	}
	return most
}
