package rewrite

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/fgraph"
)

// A Sifter is a node rewriter of a kind that can be sifted: a [Sieve] tells quickly which of many
// such rewriters are worth asking about an apply. The drivers and [Group] use it. Rewriters of one
// kind have the same Go type.
type Sifter interface {
	NodeRewriter
	// Sieve returns the sieve of rules, all of which have the Go type of the receiver, or nil if
	// they can't be sifted. A type that embeds a Sifter inherits this method, so Sieve has to
	// look at the types of rules.
	Sieve(rules []NodeRewriter) Sieve
}

// A Sieve tells which rules of a list can propose something. It is immutable, and safe for
// concurrent use.
type Sieve interface {
	// Begin returns the function that sifts for one run, on one goroutine.
	Begin() Sift
}

// A Sift appends to list the positions of the rules that have to be asked about n, and returns the
// list. The others would propose nothing. Their order does not matter.
type Sift func(n *fgraph.Apply, list []int) []int

// kind is the rules of a set that are sifted together.
type kind struct {
	rules []int // indices in the set
	sieve Sieve
}

// sieves are the kinds of the rules of a set, and what is left.
type sieves struct {
	kinds  []kind
	sifted []bool // by rule
	plain  []rest // for each list of rules
}

// rest is the rules of a list that are not sifted, if many are.
type rest struct {
	many      bool
	prospects []prospect
	hopes     sign // the signs at which sifting may find something
}

// siftedTypes returns the rules of a set that may be sifted, by Go type.
func siftedTypes(rules []NodeRewriter) []kind {
	var kinds []kind
	var types []reflect.Type
	for i, r := range rules {
		r = Undescribed(r)
		if _, ok := r.(Sifter); !ok {
			continue
		}
		at := slices.Index(types, reflect.TypeOf(r))
		if at < 0 {
			at = len(types)
			types, kinds = append(types, reflect.TypeOf(r)), append(kinds, kind{})
		}
		kinds[at].rules = append(kinds[at].rules, i)
	}
	return slices.DeleteFunc(kinds, func(k kind) bool { return len(k.rules) < 2 })
}

// siever makes the sieves of a set of rules as soon as they pay.
type siever struct {
	kinds []kind // without sieves
	rules int    // in kinds
	once  sync.Once
	owed  atomic.Int64
	made  atomic.Pointer[sieves]
}

// fee is how many attempts of a rule cost about as much as adding it to a sieve: 4.5 µs in place of
// 0.12 µs, measured with 77 rules on tensors on 22 November 2026.
const fee = 32

// get returns the sieves, or nil as long as few attempts have been made. more is how many attempts
// sieves might have saved since the last call.
func (s *siever) get(set *ruleSet, more int) *sieves {
	if made := s.made.Load(); made != nil || s.owed.Add(int64(more)) < int64(fee*s.rules) {
		return made
	}
	s.once.Do(func() { s.made.Store(set.newSieves(s.kinds)) })
	return s.made.Load()
}

func (s *ruleSet) newSieves(kinds []kind) *sieves {
	made := &sieves{sifted: make([]bool, len(s.rules))}
	for _, k := range kinds {
		rules := make([]NodeRewriter, len(k.rules))
		for i, at := range k.rules {
			rules[i] = Undescribed(s.rules[at])
		}
		if k.sieve = rules[0].(Sifter).Sieve(rules); k.sieve == nil {
			continue
		}
		made.kinds = append(made.kinds, k)
		for _, at := range k.rules {
			made.sifted[at] = true
		}
	}
	for _, l := range s.lists {
		made.plain = append(made.plain, l.unsifted(made.sifted))
	}
	return made
}

// mostAsked is how many sifted rules that an apply may meet the needs of are asked without sifting,
// which costs about as much.
const mostAsked = 2

// mostListed is how many sifted rules may be in a list if their needs are looked at one by one.
const mostListed = 64

// unsifted returns the rest of a list.
func (l *ruleList) unsifted(sifted []bool) rest {
	var r rest
	for _, p := range l.prospects {
		if sifted[p.rule] {
			r.hopes |= p.needs[0]
		} else {
			r.prospects = append(r.prospects, p)
		}
	}
	r.many = len(l.prospects)-len(r.prospects) > mostListed
	return r
}
