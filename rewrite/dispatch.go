package rewrite

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// ruleSet is what drivers know about rules before they run. It is immutable, so runs can share
// it.
type ruleSet struct {
	rules       []NodeRewriter
	names       []string
	places      []string
	depths      []int // see [Description]
	fns         []transformFunc
	description Description                 // of all rules together
	byType      map[reflect.Type]*typeRules // for the types that tracks name
	others      *typeRules                  // for all other types
	lists       []*ruleList                 // those of all types
	groups      map[int]*ruleSet            // the rules of groups among the rules
	signs       signs                       // the bits of what rules need
	siever      siever
	spare       atomic.Pointer[memory]
}

// is reports whether s was made of these rules. s may be nil.
func (s *ruleSet) is(rules []NodeRewriter) bool {
	return s != nil && len(s.rules) == len(rules) && (len(rules) == 0 || &s.rules[0] == &rules[0])
}

// describe describes a driver of rules. s may be nil or made of other rules.
func (s *ruleSet) describe(name, class string, rules []NodeRewriter) Description {
	if !s.is(rules) {
		return describeRules(name, class, rules)
	}
	d := s.description
	d.Name, d.Class = name, class
	return d
}

// A preparation is the analysis of rules, made when it is first needed.
type preparation struct {
	rules []NodeRewriter
	once  sync.Once
	set   *ruleSet
}

// get returns the rules analyzed, or nil if they are at fault. p may be nil.
func (p *preparation) get() *ruleSet { return p.record(nil) }

// record is get, and records the time that making and analyzing the rules took.
func (p *preparation) record(rec *profile.Recorder) *ruleSet {
	if p == nil {
		return nil
	}
	p.once.Do(func() {
		start := rec.Now()
		p.set, _ = newRuleSet(p.rules)
		rec.AddPrepare(rec.Since(start))
	})
	return p.set
}

// newRuleSet checks rules and sorts them by the ops that they track.
func newRuleSet(rules []NodeRewriter) (*ruleSet, error) {
	if err := checkRules(rules...); err != nil {
		return nil, err
	}
	s := &ruleSet{rules: rules, description: describeRules("", "", rules), byType: make(map[reflect.Type]*typeRules)}
	sifted := make([]bool, len(rules))
	s.siever.kinds = siftedTypes(rules)
	for _, k := range s.siever.kinds {
		s.siever.rules += len(k.rules)
		for _, i := range k.rules {
			sifted[i] = true
		}
	}
	// Descriptions first, since build needs the depths.
	for i, r := range rules {
		d := Describe(r)
		s.names, s.depths, s.fns = append(s.names, d.Name), append(s.depths, d.Depth), append(s.fns, transformOf(r))
		s.places = append(s.places, d.Place)
		if g, ok := Undescribed(r).(*Group); ok {
			s.addGroup(i, g)
		}
	}
	for _, r := range rules {
		for _, t := range r.Tracks() {
			if s.byType[t.typ] == nil {
				s.byType[t.typ] = s.build(t.typ)
			}
		}
	}
	// Lists exist for every type that some rule names, and one for all other types, which only
	// rules without tracks see. Needs are looked at by list, because a rule may need other things
	// at another op.
	s.others = s.build(nil)
	for _, l := range s.lists {
		s.prospects(l, sifted)
	}
	s.mark()
	return s, nil
}

// mark adds their bits to what is known about ops.
func (s *ruleSet) mark() {
	for typ, of := range s.signs.byType {
		t := s.byType[typ]
		if t == nil {
			t = &typeRules{any: s.others.any, depth: s.others.depth}
			s.byType[typ] = t
		}
		t.any.sign = of.all
	}
	// An op may be tracked, needed as an input, or both. Its facts say both in one look-up.
	for _, l := range s.lists {
		if l.op != nil {
			s.byType[reflect.TypeOf(l.op)].ops.set(l.op, facts{l, s.signs.of(l.op)})
		}
	}
	for _, tr := range s.signs.ops {
		t := s.byType[tr.typ]
		if _, tracked := t.ops.get(tr.op); !tracked {
			t.ops.set(tr.op, facts{t.any.list, s.signs.of(tr.op)})
		}
	}
}

// prospects finds out what the rules of a list need.
func (s *ruleSet) prospects(l *ruleList, sifted []bool) {
	for _, i := range l.rules {
		p := prospect{i, s.signs.all(needsOf(s.rules[i], l.op)), sifted[i]}
		l.prospects = append(l.prospects, p)
		// If every rule must be asked at every apply, looking at the inputs would be for nothing.
		l.selects = l.selects || p.sifted || p.needs[0] != anything
		if p.sifted {
			l.hopes |= p.needs[0]
		} else {
			l.plain = append(l.plain, p)
		}
	}
}

// addGroup analyzes the rules of a group. A group with faulty rules is left to itself.
func (s *ruleSet) addGroup(i int, g *Group) {
	if set, err := newRuleSet(g.Rules); err == nil {
		if s.groups == nil {
			s.groups = make(map[int]*ruleSet)
		}
		s.groups[i] = set
	}
}

// begin returns the functions of the rules for one run.
func (s *ruleSet) begin(opts *Options, g *fgraph.FunctionGraph) []transformFunc {
	if len(s.groups) == 0 {
		return s.fns
	}
	fns := slices.Clone(s.fns)
	for i, set := range s.groups {
		fns[i] = newGroupRun(Undescribed(s.rules[i]).(*Group), set, opts, g).Transform
	}
	return fns
}

// idle reports whether no rule tracks any op of a graph, which then need not be sorted.
func (s *ruleSet) idle(g *fgraph.FunctionGraph) bool {
	d := dispatch{ruleSet: s}
	// Where there is something to do, one of the first applies mostly tells, and the graph need not count.
	looked := 0
	for a := range g.Applies() {
		if len(d.of(a.Op()).list.rules) > 0 {
			return false
		}
		if looked++; looked == 16 {
			break
		}
	}
	for _, op := range g.Ops() {
		if len(d.of(op).list.rules) > 0 {
			return false
		}
	}
	return true
}

// memory is what a run needs, and leaves to the next one.
type memory struct {
	rules []ruleState
	facts []facts // by number of the op in the graph; without a list: not known yet
}

// memory returns cleared memory.
func (s *ruleSet) memory() *memory {
	m := s.spare.Swap(nil)
	if m == nil {
		return &memory{rules: make([]ruleState, len(s.rules))}
	}
	clear(m.rules)
	clear(m.facts)
	return m
}

// dispatch finds the rules that track an op, in the order of the rules.
type dispatch struct {
	*ruleSet
	lastTyp reflect.Type
	last    *typeRules
}

// typeRules are the rules for the ops of one Go type.
type typeRules struct {
	any   facts          // about ops without an entry in ops
	ops   opTable[facts] // about ops that some rule tracks or needs individually
	depth int            // the greatest depth of all these rules, see [Description]
}

// facts are what a driver knows about an op.
type facts struct {
	list *ruleList
	sign sign // as the op of an input
}

// ruleList is the rules that track an op.
type ruleList struct {
	at        int       // index in ruleSet.lists
	op        fgraph.Op // nil: any of a type
	rules     []int     // indices of the rules, increasing
	prospects []prospect
	plain     []prospect // those that are not sifted
	hopes     sign       // without any of these signs, no sifted rule meets its needs
	selects   bool       // some rule need not be asked about every apply
	depth     int        // that of the rules for ops of the same type
}

// opTable is a map from ops.
type opTable[T any] struct {
	plain  map[fgraph.Op]T // those that are compared by ==
	byHash map[uint64][]opEntry[T]
}

type opEntry[T any] struct {
	op    fgraph.Op
	value T
}

// get returns the value for an op that has one.
func (t *opTable[T]) get(op fgraph.Op) (value T, ok bool) {
	if t.plain != nil {
		value, ok = t.plain[op]
		return value, ok
	}
	if t.byHash != nil {
		for _, e := range t.byHash[fgraph.HashOp(op)] {
			if fgraph.OpsEqual(e.op, op) {
				return e.value, true
			}
		}
	}
	return value, false
}

// set sets the value for an op. All ops have one Go type.
func (t *opTable[T]) set(op fgraph.Op, value T) {
	if _, equals := op.(fgraph.OpEqualer); !equals && isPlain(reflect.TypeOf(op)) {
		if t.plain == nil {
			t.plain = make(map[fgraph.Op]T)
		}
		t.plain[op] = value
		return
	}
	if t.byHash == nil {
		t.byHash = make(map[uint64][]opEntry[T])
	}
	h := fgraph.HashOp(op)
	for i, e := range t.byHash[h] {
		if fgraph.OpsEqual(e.op, op) {
			t.byHash[h][i].value = value
			return
		}
	}
	t.byHash[h] = append(t.byHash[h], opEntry[T]{op, value})
}

// of returns what is known about op.
func (d *dispatch) of(op fgraph.Op) facts {
	t := d.typeOf(op)
	if f, ok := t.ops.get(op); ok {
		return f
	}
	return t.any
}

// typeOf returns the rules for the Go type of op.
func (d *dispatch) typeOf(op fgraph.Op) *typeRules {
	if typ := reflect.TypeOf(op); typ != d.lastTyp {
		t, ok := d.byType[typ]
		if !ok {
			t = d.others
		}
		d.lastTyp, d.last = typ, t
	}
	return d.last
}

// build collects the rules that may track ops of a type.
func (s *ruleSet) build(typ reflect.Type) *typeRules {
	t := &typeRules{depth: 1}
	lists := []*ruleList{{}}
	t.any.list = lists[0]
	// One list for each op that some rule tracks by itself, and one for the rest of the type.
	for _, r := range s.rules {
		for _, tr := range r.Tracks() {
			if tr.typ != typ || tr.op == nil {
				continue
			}
			if _, known := t.ops.get(tr.op); !known {
				l := &ruleList{op: tr.op}
				lists = append(lists, l)
				t.ops.set(tr.op, facts{list: l})
			}
		}
	}
	// Rules go into lists in their own order, which is the order in which they are asked. One that
	// tracks the whole type is in all of its lists.
	for i, r := range s.rules {
		tracks := r.Tracks()
		all, some := tracks == nil, tracks == nil
		for _, tr := range tracks {
			if tr.typ == typ {
				all, some = all || tr.op == nil, true
			}
		}
		if some {
			t.depth = deeper(t.depth, s.depths[i])
		}
		if all {
			for _, l := range lists {
				l.rules = append(l.rules, i)
			}
			continue
		}
		for _, tr := range tracks {
			if tr.typ == typ {
				f, ok := t.ops.get(tr.op) // not ok: the op equals nothing, not even itself
				if l := f.list; ok && (len(l.rules) == 0 || l.rules[len(l.rules)-1] != i) {
					l.rules = append(l.rules, i)
				}
			}
		}
	}
	for _, l := range lists {
		l.at, l.depth = len(s.lists), t.depth
		s.lists = append(s.lists, l)
	}
	return t
}

// isPlain reports whether == works for all values of a type.
func isPlain(t reflect.Type) bool {
	switch k := t.Kind(); k {
	case reflect.Interface:
		return false
	case reflect.Array:
		return isPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !isPlain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return t.Comparable()
}
