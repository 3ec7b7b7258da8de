package rewrite

import (
	"math/bits"
	"reflect"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// A Need is a condition on the inputs of an apply. It holds if one of its parts does.
type Need struct {
	Ops      []Track // an op that one of these selects computes an input
	Constant bool    // an input is a constant
	Through  []Track // an input is a constant, or is computed by one of these ops from a constant
	Same     bool    // two inputs are one variable, or constants
	Counts   []int   // the number of inputs is one of these
}

// A Needer is a node rewriter that proposes something only if the inputs of an apply meet
// conditions. Drivers and [Group] ask it about no other applies.
type Needer interface {
	NodeRewriter
	// Needs returns conditions, all of which the inputs of an apply of op must meet. A nil op
	// means any that the rewriter tracks. An apply without inputs meets every condition.
	Needs(op fgraph.Op) []Need
}

// needsOf returns the conditions of a rewriter, and nil if it has none.
func needsOf(r NodeRewriter, op fgraph.Op) []Need {
	if n, ok := Undescribed(r).(Needer); ok {
		return n.Needs(op)
	}
	return nil
}

// A sign is a set of what inputs may be, in bits. Tracks share bits if they are many, so signs only
// tell what inputs can't be.
type sign uint64

const (
	anything sign = 1 << iota
	constant      // an input is a constant
	number        // or is computed from a constant by an op that is seen through
	through       // an input is computed by such an op
	same          // two inputs are the same
	counted       // there is one input; the next bits mean more
)

const (
	maxCounted = 4 // inputs from here on share a bit
	firstBit   = 5 + maxCounted
	maxSigns   = 64 - firstBit
	unknown    = ^sign(0)
	// maxSeen bounds the inputs of an apply that a driver looks at for the signs of it.
	maxSeen = 64
)

// count returns the bit of a number of inputs.
func count(n int) sign { return counted << (max(1, min(n, maxCounted)) - 1) }

// signs gives tracks their bits.
type signs struct {
	byType map[reflect.Type]*typeSigns
	ops    []Track // that select one op
	used   int
}

type typeSigns struct {
	all sign // if a track selects the type
	ops opTable[sign]
}

// of returns the bits of the tracks that select op.
func (s *signs) of(op fgraph.Op) sign {
	t := s.byType[reflect.TypeOf(op)]
	if t == nil {
		return 0
	}
	one, _ := t.ops.get(op)
	return t.all | one
}

// bit returns the bit of a track.
func (s *signs) bit(t Track) sign {
	of := s.byType[t.typ]
	if of == nil {
		of = new(typeSigns)
		if s.byType == nil {
			s.byType = make(map[reflect.Type]*typeSigns)
		}
		s.byType[t.typ] = of
	}
	have := of.all
	if t.op != nil {
		have, _ = of.ops.get(t.op)
	}
	if have&^through == 0 {
		have |= 1 << (firstBit + s.used%maxSigns)
		s.used++
		of.set(t, have)
		if t.op != nil {
			s.ops = append(s.ops, t)
		}
	}
	return have &^ through
}

// see makes the ops that a track selects ops that are seen through.
func (s *signs) see(t Track) {
	have := s.bit(t)
	s.byType[t.typ].set(t, have|through)
}

func (s *typeSigns) set(t Track, to sign) {
	if t.op != nil {
		s.ops.set(t.op, to)
	} else {
		s.all = to
	}
}

// all returns the bits of which one must be among the signs of an apply, for each of the two
// conditions that exclude most.
func (s *signs) all(needs []Need) [2]sign {
	var list []sign
	for _, n := range needs {
		if any := s.any(n); any != 0 {
			list = append(list, any)
		}
	}
	const frequent = constant | number
	slices.SortStableFunc(list, func(a, b sign) int {
		if (a&frequent == 0) != (b&frequent == 0) {
			return int(a&frequent) - int(b&frequent)
		}
		return bits.OnesCount64(uint64(a)) - bits.OnesCount64(uint64(b))
	})
	list = append(list, anything, anything)
	return [2]sign(list)
}

// any returns the bits of which one must be among the signs of an apply.
func (s *signs) any(n Need) sign {
	var any sign
	if n.Constant {
		any |= constant
	}
	if n.Same {
		any |= same
	}
	for _, t := range n.Ops {
		any |= s.bit(t)
	}
	for _, t := range n.Through {
		s.see(t)
		any |= number
	}
	for _, k := range n.Counts {
		any |= count(k)
	}
	return any
}

// A prospect is a rule of a list, and the bits that it needs: one of each.
type prospect struct {
	rule   int
	needs  [2]sign
	sifted bool
}

// meets reports whether an apply with these signs meets what a rule needs.
func (p *prospect) meets(s sign) bool { return p.needs[0]&s != 0 && p.needs[1]&s != 0 }
