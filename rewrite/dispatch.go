package rewrite

import (
	"reflect"

	"github.com/nnopt/nnopt/fgraph"
)

// ruleSet is what drivers need to know of rules before they show them anything. It does not change any more, so that runs can
// share it.
type ruleSet struct {
	rules  []NodeRewriter
	names  []string
	fns    []TransformFunc             // what the rules do
	byType map[reflect.Type]*typeRules // for the types that tracks name
	others *typeRules                  // for all other types
}

// rulesOf returns what is known of the rules already, or finds it out.
func rulesOf(known *ruleSet, rules []NodeRewriter) (*ruleSet, error) {
	if known != nil && len(known.rules) == len(rules) && (len(rules) == 0 || &known.rules[0] == &rules[0]) {
		return known, nil
	}
	return newRuleSet(rules)
}

// newRuleSet checks rules, and sorts them by the ops that they track.
func newRuleSet(rules []NodeRewriter) (*ruleSet, error) {
	if err := CheckRules(rules...); err != nil {
		return nil, err
	}
	s := &ruleSet{rules: rules, names: make([]string, len(rules)), fns: make([]TransformFunc, len(rules)),
		byType: make(map[reflect.Type]*typeRules)}
	for i, r := range rules {
		s.names[i], s.fns[i] = NameOf(r), FuncOf(r)
		for _, t := range r.Tracks() {
			if s.byType[t.typ] == nil {
				s.byType[t.typ] = s.build(t.typ)
			}
		}
	}
	s.others = s.build(nil)
	return s, nil
}

// dispatch finds the rules that track an op, in the order of the rules.
type dispatch struct {
	*ruleSet
	lastTyp reflect.Type
	last    *typeRules
}

// typeRules are the rules for the ops of one Go type.
type typeRules struct {
	any   []int                // rules for ops that no rule tracks by themselves
	byOp  map[uint64][]opRules // the others, by hash
	reach int                  // how far all of these look, 0 if that is not known
}

type opRules struct {
	op    fgraph.Op
	rules []int
}

// of returns the places of the rules that track op.
func (d *dispatch) of(op fgraph.Op) []int {
	t := d.typeOf(op)
	if t.byOp != nil {
		for _, o := range t.byOp[fgraph.HashOp(op)] {
			if fgraph.OpsEqual(o.op, op) {
				return o.rules
			}
		}
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

// build sorts the rules that may track ops of a type.
func (s *ruleSet) build(typ reflect.Type) *typeRules {
	t := &typeRules{reach: 1}
	var ops []fgraph.Op
	for i, r := range s.rules {
		all, some := false, false
		tracks := r.Tracks()
		for _, tr := range tracks {
			if tr.typ == typ {
				all, some = all || tr.op == nil, true
				if tr.op != nil {
					ops = append(ops, tr.op)
				}
			}
		}
		if all || tracks == nil {
			t.any = append(t.any, i)
		}
		if all || some || tracks == nil {
			t.reach = further(t.reach, ReachOf(r))
		}
	}
	if len(ops) == 0 {
		return t
	}
	t.byOp = make(map[uint64][]opRules)
	for _, op := range ops {
		t.add(op, s.rules)
	}
	return t
}

// further returns the larger reach; 0 is unlimited.
func further(a, b int) int {
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

func (t *typeRules) add(op fgraph.Op, rules []NodeRewriter) {
	h := fgraph.HashOp(op)
	for _, o := range t.byOp[h] {
		if fgraph.OpsEqual(o.op, op) {
			return
		}
	}
	o := opRules{op: op}
	for i, r := range rules {
		tracks := r.Tracks()
		if tracks == nil || matches(tracks, op) {
			o.rules = append(o.rules, i)
		}
	}
	t.byOp[h] = append(t.byOp[h], o)
}

func matches(tracks []Track, op fgraph.Op) bool {
	for _, t := range tracks {
		if t.Matches(op) {
			return true
		}
	}
	return false
}
