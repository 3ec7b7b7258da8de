package rewrite

import (
	"math/bits"
	"reflect"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// A Need is a condition on the inputs of an apply: an op that one of Ops selects computes one of
// them or, if Constant is set, one is a constant.
type Need struct {
	Ops      []Track
	Constant bool
}

// A Needer is a node rewriter that proposes something only if the inputs of an apply meet
// conditions. Drivers and [Group] ask it about no other applies.
type Needer interface {
	NodeRewriter
	// Needs returns conditions, all of which the inputs of an apply of op must meet. A nil op
	// stands for any that the rewriter tracks. An apply without inputs meets every condition.
	Needs(op fgraph.Op) []Need
}

// needsOf returns the conditions of a rewriter, and nil if it has none.
func needsOf(r NodeRewriter, op fgraph.Op) []Need {
	if n, ok := undescribed(r).(Needer); ok {
		return n.Needs(op)
	}
	return nil
}

// A sign is a set of what inputs may be, in bits. Tracks share bits if they are many, so signs only
// tell what inputs can't be.
type sign uint64

const (
	anything  sign = 1 << 0
	constant  sign = 1 << 1
	unknown        = ^sign(0)
	firstBit       = 2
	mostSigns      = 64 - firstBit
	// mostSeen bounds the inputs of an apply that a driver looks at for the signs of it.
	mostSeen = 64
)

// signs gives tracks their bits.
type signs struct {
	byType map[reflect.Type]*typeSigns
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
	if have == 0 {
		have = 1 << (firstBit + s.used%mostSigns)
		s.used++
		if t.op != nil {
			of.ops.set(t.op, have)
		} else {
			of.all = have
		}
	}
	return have
}

// all returns the bits of which one must be among the signs of an apply, for each of the two
// conditions that exclude most.
func (s *signs) all(needs []Need) [2]sign {
	var list []sign
	for _, n := range needs {
		var any sign
		if n.Constant {
			any = constant
		}
		for _, t := range n.Ops {
			any |= s.bit(t)
		}
		if any != 0 {
			list = append(list, any)
		}
	}
	slices.SortStableFunc(list, func(a, b sign) int {
		if (a|b)&constant != 0 && a&constant != b&constant {
			return int(a&constant) - int(b&constant) // constants are frequent
		}
		return bits.OnesCount64(uint64(a)) - bits.OnesCount64(uint64(b))
	})
	list = append(list, anything, anything)
	return [2]sign(list)
}

// A prospect is a rule of a list, and the bits that it needs: one of each.
type prospect struct {
	rule   int
	needs  [2]sign
	sifted bool
}

// meets reports whether an apply with these signs meets what a rule needs.
func (p *prospect) meets(s sign) bool { return p.needs[0]&s != 0 && p.needs[1]&s != 0 }
