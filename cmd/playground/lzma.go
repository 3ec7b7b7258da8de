package main

import (
	"encoding/binary"
	"math/bits"
)

// The page has the engine as LZMA, in a text. Browsers decompress only gzip by themselves, which
// takes half as much again (6.2 MB of the engine, and 4.9 MB, on 2026-11-26). Libraries of Go for LZMA
// are not better than gzip there. The format is that of LZMA's first file format, .lzma, with these
// properties: the byte before is the context of a literal by its upper four bits, and positions are
// no context.
const (
	lzmaLC         = 4
	lzmaProperties = lzmaLC // (pb*5 + lp)*9 + lc
	lzmaDictionary = 1 << 26
)

// Matches: at least 4 bytes are found, at most 273 can be written. Chains of positions with the same
// hash are followed for some steps.
const (
	minMatch  = 4
	maxMatch  = 273
	chainSize = 64
	hashBits  = 20
)

// The places of the probabilities.
const (
	probMatch    = 0
	probRep      = 192
	probRep0     = 204
	probRep1     = 216
	probRep2     = 228
	probRep0Long = 240
	probSlot     = 432
	probSpecial  = 688
	probAlign    = 802
	probLen      = 818
	probRepLen   = 1332
	probLiteral  = 1846
	numProbs     = probLiteral + 768<<lzmaLC
)

// lzma compresses data.
func lzma(data []byte) []byte {
	e := newEncoder(data)
	e.out = append(e.out, lzmaProperties)
	e.out = binary.LittleEndian.AppendUint32(e.out, lzmaDictionary)
	e.out = binary.LittleEndian.AppendUint64(e.out, uint64(len(data)))
	for e.pos < len(data) {
		e.step()
	}
	for range 5 {
		e.shift()
	}
	return e.out
}

// An encoder compresses data.
type encoder struct {
	data []byte
	pos  int

	head, prev []int32 // of the chains of positions, by hash and by position, 0 for none, else from 1
	hashed     int     // positions in the chains
	ahead      match   // the match at aheadOf
	aheadOf    int

	state int
	reps  [4]int // the last distances, the latest one first; 1 is the byte before

	// The range coder. Bytes of 0xff wait until it is known whether a carry reaches them.
	out     []byte
	low     uint64
	rng     uint32
	cache   byte
	waiting int
	probs   [numProbs]uint16
}

type match struct{ length, distance int }

func newEncoder(data []byte) *encoder {
	e := &encoder{data: data, head: make([]int32, 1<<hashBits), prev: make([]int32, len(data)), aheadOf: -1, reps: [4]int{1, 1, 1, 1},
		rng: 1<<32 - 1, waiting: 1}
	for i := range e.probs {
		e.probs[i] = 1 << 10
	}
	return e
}

// step writes a literal or a match. It decides as the fast mode of xz does.
func (e *encoder) step() {
	m := e.matchAt(e.pos)
	rep, which := e.repAt(e.pos)
	// A repeated distance is cheap, so it may be somewhat shorter.
	if rep >= 2 && (rep+1 >= m.length || rep+2 >= m.length && m.distance > 1<<9 || rep+3 >= m.length && m.distance > 1<<15) {
		e.writeRep(rep, which)
		return
	}
	if m.length < minMatch {
		if at := e.pos - e.reps[0]; at >= 0 && e.data[at] == e.data[e.pos] {
			e.writeShortRep()
			return
		}
		e.writeLiteral()
		return
	}
	// A better match at the next byte is worth a literal.
	next := e.matchAt(e.pos + 1)
	nextRep, _ := e.repAt(e.pos + 1)
	if next.length >= m.length && next.distance < m.distance || next.length == m.length+1 && !muchNearer(m.distance, next.distance) ||
		next.length > m.length+1 || next.length >= minMatch && next.length+1 >= m.length && muchNearer(next.distance, m.distance) || nextRep+1 >= m.length {
		e.writeLiteral()
		return
	}
	e.writeMatch(m)
}

// muchNearer reports whether a distance is so much smaller that it makes up for a byte less.
func muchNearer(small, large int) bool { return small < large>>7 }

// matchAt returns the best match at a position.
func (e *encoder) matchAt(pos int) match {
	if pos == e.aheadOf {
		return e.ahead
	}
	for ; e.hashed < pos; e.hashed++ {
		e.enter(e.hashed)
	}
	e.ahead, e.aheadOf = match{}, pos
	if pos+minMatch > len(e.data) {
		return e.ahead
	}
	best := match{length: minMatch - 1}
	for at, left := e.head[e.hash(pos)], chainSize; at > 0 && left > 0; at, left = e.prev[at-1], left-1 {
		d := pos - int(at-1)
		if d > lzmaDictionary {
			break
		}
		n := e.common(pos, d)
		if n > best.length+1 || n == best.length+1 && (best.distance == 0 || !muchNearer(best.distance, d)) {
			best = match{n, d}
			if n == maxMatch {
				break
			}
		}
	}
	if best.distance > 0 {
		e.ahead = best
	}
	return e.ahead
}

// enter puts a position into its chain.
func (e *encoder) enter(pos int) {
	if pos+minMatch > len(e.data) {
		return
	}
	h := e.hash(pos)
	e.prev[pos] = e.head[h]
	e.head[h] = int32(pos) + 1
}

func (e *encoder) hash(pos int) uint32 {
	return binary.LittleEndian.Uint32(e.data[pos:]) * 0x9e3779b1 >> (32 - hashBits)
}

// common returns how many bytes at a position are those at a distance before.
func (e *encoder) common(pos, distance int) int {
	at, most := pos-distance, min(maxMatch, len(e.data)-pos)
	if at < 0 {
		return 0
	}
	n := 0
	for n < most && e.data[at+n] == e.data[pos+n] {
		n++
	}
	return n
}

// repAt returns the longest match at one of the last distances.
func (e *encoder) repAt(pos int) (length, which int) {
	for i, d := range e.reps {
		if n := e.common(pos, d); n > length {
			length, which = n, i
		}
	}
	return length, which
}

func (e *encoder) writeLiteral() {
	e.bit(probMatch+e.state<<4, 0)
	previous := byte(0)
	if e.pos > 0 {
		previous = e.data[e.pos-1]
	}
	base, b := probLiteral+768*int(previous>>(8-lzmaLC)), int(e.data[e.pos])
	m := 1
	if e.state >= 7 {
		// After a match the byte is not the one that would have continued it. As long as its bits are
		// those of that byte, they have contexts of their own.
		expected := int(e.data[e.pos-e.reps[0]])
		for i := 7; i >= 0; i-- {
			x, y := expected>>i&1, b>>i&1
			e.bit(base+(1+x)<<8+m, y)
			m = m<<1 | y
			if x != y {
				break
			}
		}
	}
	for m < 1<<8 {
		y := b >> (7 - (bits.Len(uint(m)) - 1)) & 1
		e.bit(base+m, y)
		m = m<<1 | y
	}
	switch {
	case e.state < 4:
		e.state = 0
	case e.state < 10:
		e.state -= 3
	default:
		e.state -= 6
	}
	e.pos++
}

// after returns the state after something, which depends on whether a literal came before.
func (e *encoder) after(literal, other int) int {
	if e.state < 7 {
		return literal
	}
	return other
}

func (e *encoder) writeMatch(m match) {
	e.bit(probMatch+e.state<<4, 1)
	e.bit(probRep+e.state, 0)
	e.writeLength(probLen, m.length)
	e.state = e.after(7, 10)
	e.writeDistance(m)
	e.reps = [4]int{m.distance, e.reps[0], e.reps[1], e.reps[2]}
	e.pos += m.length
}

// writeDistance writes a distance: its two upper bits and their place, and the others.
func (e *encoder) writeDistance(m match) {
	d := uint32(m.distance - 1)
	slot, low := int(d), 0
	if d >= 4 {
		low = bits.Len32(d) - 2
		slot = 2*(low+1) + int(d>>low&1)
	}
	e.tree(probSlot+min(m.length-2, 3)<<6, 6, slot)
	base := (2 | slot&1) << low
	switch {
	case slot < 4:
	case slot < 14:
		e.reverse(probSpecial+base-slot-1, low, int(d)-base)
	default:
		for i := low - 1; i >= 4; i-- {
			e.rng >>= 1
			if d>>i&1 == 1 {
				e.low += uint64(e.rng)
			}
			e.normalize()
		}
		e.reverse(probAlign, 4, int(d&15))
	}
}

func (e *encoder) writeRep(length, which int) {
	e.bit(probMatch+e.state<<4, 1)
	e.bit(probRep+e.state, 1)
	if which == 0 {
		e.bit(probRep0+e.state, 0)
		e.bit(probRep0Long+e.state<<4, 1)
	} else {
		e.bit(probRep0+e.state, 1)
		e.bit(probRep1+e.state, min(which-1, 1))
		if which > 1 {
			e.bit(probRep2+e.state, which-2)
		}
		d := e.reps[which]
		copy(e.reps[1:which+1], e.reps[:which])
		e.reps[0] = d
	}
	e.writeLength(probRepLen, length)
	e.state = e.after(8, 11)
	e.pos += length
}

// writeShortRep writes one byte that is at the last distance.
func (e *encoder) writeShortRep() {
	e.bit(probMatch+e.state<<4, 1)
	e.bit(probRep+e.state, 1)
	e.bit(probRep0+e.state, 0)
	e.bit(probRep0Long+e.state<<4, 0)
	e.state = e.after(9, 11)
	e.pos++
}

func (e *encoder) writeLength(base, length int) {
	n := length - 2
	switch {
	case n < 8:
		e.bit(base, 0)
		e.tree(base+2, 3, n)
	case n < 16:
		e.bit(base, 1)
		e.bit(base+1, 0)
		e.tree(base+130, 3, n-8)
	default:
		e.bit(base, 1)
		e.bit(base+1, 1)
		e.tree(base+258, 8, n-16)
	}
}

// tree writes n bits, the highest first, each in the context of those before.
func (e *encoder) tree(base, n, value int) {
	m := 1
	for i := n - 1; i >= 0; i-- {
		b := value >> i & 1
		e.bit(base+m, b)
		m = m<<1 | b
	}
}

// reverse is tree with the lowest bit first.
func (e *encoder) reverse(base, n, value int) {
	m := 1
	for i := range n {
		b := value >> i & 1
		e.bit(base+m, b)
		m = m<<1 | b
	}
}

// bit writes a bit with a probability, which it adapts.
func (e *encoder) bit(at, b int) {
	p := &e.probs[at]
	bound := e.rng >> 11 * uint32(*p)
	if b == 0 {
		e.rng = bound
		*p += (1<<11 - *p) >> 5
	} else {
		e.low += uint64(bound)
		e.rng -= bound
		*p -= *p >> 5
	}
	e.normalize()
}

func (e *encoder) normalize() {
	for e.rng < 1<<24 {
		e.rng <<= 8
		e.shift()
	}
}

// shift writes the highest byte of low, unless a carry could still change it.
func (e *encoder) shift() {
	if e.low < 0xff000000 || e.low >= 1<<32 {
		carry := byte(e.low >> 32)
		for b := e.cache; e.waiting > 0; e.waiting-- {
			e.out = append(e.out, b+carry)
			b = 0xff
		}
		e.cache = byte(e.low >> 24)
	}
	e.waiting++
	e.low = uint64(uint32(e.low) << 8)
}
