package rewrite

import (
	"reflect"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// ruleSet is what drivers know about rules before they run. It is immutable, so runs can share
// it.
type ruleSet struct {
	rules       []NodeRewriter
	names       []string
	depths      []int // see [Description]
	fns         []transformFunc
	description Description                 // of all rules together
	byType      map[reflect.Type]*typeRules // for the types that tracks name
	others      *typeRules                  // for all other types
	lists       []*ruleList                 // those of all types
	groups      map[int]*ruleSet            // the rules of groups among the rules
	siever      siever
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
	for i, r := range rules {
		d := Describe(r)
		s.names, s.depths, s.fns = append(s.names, d.Name), append(s.depths, d.Depth), append(s.fns, transformOf(r))
		if g, ok := undescribed(r).(*Group); ok {
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
	s.others = s.build(nil)
	for _, l := range s.lists {
		for _, i := range l.rules {
			if sifted[i] {
				l.sifters++
			}
		}
	}
	return s, nil
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
func (s *ruleSet) begin(opts *Options) []transformFunc {
	if len(s.groups) == 0 {
		return s.fns
	}
	fns := slices.Clone(s.fns)
	for i, set := range s.groups {
		fns[i] = newGroupRun(undescribed(s.rules[i]).(*Group), set, opts).Transform
	}
	return fns
}

// dispatch finds the rules that track an op, in the order of the rules.
type dispatch struct {
	*ruleSet
	lastTyp reflect.Type
	last    *typeRules
}

// typeRules are the rules for the ops of one Go type.
type typeRules struct {
	any   *ruleList               // rules for ops without an entry in plain or byOp
	plain map[fgraph.Op]*ruleList // rules for ops that some rule tracks individually, if they are compared by ==
	byOp  map[uint64][]opRules    // the same for other types, by hash
	depth int                     // the greatest depth of all these rules, see [Description]
}

type opRules struct {
	op    fgraph.Op
	rules *ruleList
}

// ruleList is the rules that track an op.
type ruleList struct {
	at      int   // index in ruleSet.lists
	rules   []int // indices of the rules, increasing
	sifters int   // how many of them may be sifted
}

// tracks reports whether there is any rule for ops of the type.
func (t *typeRules) tracks() bool { return len(t.any.rules) > 0 || t.plain != nil || t.byOp != nil }

// of returns the rules that track op.
func (d *dispatch) of(op fgraph.Op) *ruleList {
	t := d.typeOf(op)
	if l := t.find(op); l != nil {
		return l
	}
	return t.any
}

// find returns the rules for an op that some rule tracks individually, or nil.
func (t *typeRules) find(op fgraph.Op) *ruleList {
	if t.plain != nil {
		return t.plain[op]
	}
	if t.byOp != nil {
		for _, o := range t.byOp[fgraph.HashOp(op)] {
			if fgraph.OpsEqual(o.op, op) {
				return o.rules
			}
		}
	}
	return nil
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
	t.any = lists[0]
	for _, r := range s.rules {
		for _, tr := range r.Tracks() {
			if tr.typ == typ && tr.op != nil && t.find(tr.op) == nil {
				l := new(ruleList)
				lists = append(lists, l)
				t.add(tr.op, l)
			}
		}
	}
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
				l := t.find(tr.op) // nil: the op equals nothing, not even itself
				if l != nil && (len(l.rules) == 0 || l.rules[len(l.rules)-1] != i) {
					l.rules = append(l.rules, i)
				}
			}
		}
	}
	for _, l := range lists {
		l.at = len(s.lists)
		s.lists = append(s.lists, l)
	}
	return t
}

// add adds the list for an op.
func (t *typeRules) add(op fgraph.Op, l *ruleList) {
	if _, equals := op.(fgraph.OpEqualer); !equals && isPlain(reflect.TypeOf(op)) {
		if t.plain == nil {
			t.plain = make(map[fgraph.Op]*ruleList)
		}
		t.plain[op] = l
		return
	}
	if t.byOp == nil {
		t.byOp = make(map[uint64][]opRules)
	}
	h := fgraph.HashOp(op)
	t.byOp[h] = append(t.byOp[h], opRules{op, l})
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
