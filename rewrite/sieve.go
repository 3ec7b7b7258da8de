package rewrite

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/fgraph"
)

// A Sifter is a node rewriter of a kind that can be sifted: a sieve tells quickly which of many such
// rewriters are worth asking about an apply. The drivers and [Group] use it. Rewriters of one kind
// have the same Go type.
type Sifter interface {
	NodeRewriter
	// Sieve makes the sieve of rules, all of which have the Go type of the receiver. It returns a
	// function that begins to sift for one run, on one goroutine, or nil if the rules can't be
	// sifted. The function is safe for concurrent use. A type that embeds a Sifter inherits this
	// method, so Sieve has to look at the types of rules.
	Sieve(rules []NodeRewriter) func() Sift
}

// A Sift appends to list the positions of the rules that have to be asked about n, and returns the
// list. The others would propose nothing. Their order does not matter.
type Sift func(n *fgraph.Apply, list []int) []int

// kind is the rules of a set that are sifted together.
type kind struct {
	rules []int       // indices in the set
	begin func() Sift // nil if they can't be sifted
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
	made  atomic.Pointer[[]kind]
}

const (
	// fee is how many attempts of a rule cost about as much as adding it to a sieve.
	fee = 32
	// maxAsked is how many sifted rules that an apply may meet the needs of are asked without
	// sifting, which costs about as much.
	maxAsked = 2
	// maxListed is how many sifted rules may be in a list if their needs are looked at one by one.
	maxListed = 64
)

// get returns the sieves, or nil as long as few attempts have been made: most runs are short, and
// end before a sieve has saved what it costs. more is how many attempts sieves might have saved
// since the last call.
func (s *siever) get(set *ruleSet, more int) []kind {
	made := s.made.Load()
	if made == nil && len(s.kinds) > 0 && s.owed.Add(int64(more)) >= int64(fee*s.rules) {
		s.once.Do(func() {
			list := slices.Clone(s.kinds)
			for i, k := range list {
				rules := make([]NodeRewriter, len(k.rules))
				for j, at := range k.rules {
					rules[j] = Undescribed(set.rules[at])
				}
				list[i].begin = rules[0].(Sifter).Sieve(rules)
			}
			s.made.Store(&list)
		})
		made = s.made.Load()
	}
	if made == nil {
		return nil
	}
	return *made
}
