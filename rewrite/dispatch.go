package rewrite

import (
	"reflect"

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
	for _, r := range rules {
		d := Describe(r)
		s.names, s.depths, s.fns = append(s.names, d.Name), append(s.depths, d.Depth), append(s.fns, transformOf(r))
	}
	for _, r := range rules {
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
	any   []int                // indices of rules for ops without an entry in byOp
	byOp  map[uint64][]opRules // rules for ops that some rule tracks individually, by hash
	depth int                  // the greatest depth of all these rules, see [Description]
}

type opRules struct {
	op    fgraph.Op
	rules []int
}

// of returns the indices of the rules that track op.
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

// build collects the rules that may track ops of a type.
func (s *ruleSet) build(typ reflect.Type) *typeRules {
	t := &typeRules{depth: 1}
	var ops []fgraph.Op
	for i, r := range s.rules {
		tracks := r.Tracks()
		all, some := tracks == nil, tracks == nil
		for _, tr := range tracks {
			if tr.typ == typ {
				all, some = all || tr.op == nil, true
				if tr.op != nil {
					ops = append(ops, tr.op)
				}
			}
		}
		if all {
			t.any = append(t.any, i)
		}
		if some {
			t.depth = deeper(t.depth, s.depths[i])
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

func (t *typeRules) add(op fgraph.Op, rules []NodeRewriter) {
	h := fgraph.HashOp(op)
	for _, o := range t.byOp[h] {
		if fgraph.OpsEqual(o.op, op) {
			return
		}
	}
	o := opRules{op: op}
	for i, r := range rules {
		if matches(r.Tracks(), op) {
			o.rules = append(o.rules, i)
		}
	}
	t.byOp[h] = append(t.byOp[h], o)
}
