package rewrite

import (
	"reflect"

	"github.com/nnopt/nnopt/fgraph"
)

// dispatch finds the rules that track an op, in the order of the rules.
type dispatch struct {
	rules   []NodeRewriter
	byType  map[reflect.Type]*typeRules
	lastTyp reflect.Type
	last    *typeRules
}

// typeRules are the rules for the ops of one Go type.
type typeRules struct {
	any  []int                // rules for ops that no rule tracks by themselves
	byOp map[uint64][]opRules // the others, by hash
}

type opRules struct {
	op    fgraph.Op
	rules []int
}

func newDispatch(rules []NodeRewriter) *dispatch {
	return &dispatch{rules: rules, byType: make(map[reflect.Type]*typeRules)}
}

// of returns the places of the rules that track op.
func (d *dispatch) of(op fgraph.Op) []int {
	if typ := reflect.TypeOf(op); typ != d.lastTyp {
		t, ok := d.byType[typ]
		if !ok {
			t = d.build(typ)
			d.byType[typ] = t
		}
		d.lastTyp, d.last = typ, t
	}
	if d.last.byOp != nil {
		for _, o := range d.last.byOp[fgraph.HashOp(op)] {
			if fgraph.OpsEqual(o.op, op) {
				return o.rules
			}
		}
	}
	return d.last.any
}

// build sorts the rules that may track ops of a type.
func (d *dispatch) build(typ reflect.Type) *typeRules {
	t := &typeRules{}
	var ops []fgraph.Op
	for i, r := range d.rules {
		all := false
		tracks := r.Tracks()
		for _, tr := range tracks {
			if tr.typ == typ {
				all = all || tr.op == nil
				if tr.op != nil {
					ops = append(ops, tr.op)
				}
			}
		}
		if all || tracks == nil {
			t.any = append(t.any, i)
		}
	}
	if len(ops) == 0 {
		return t
	}
	t.byOp = make(map[uint64][]opRules)
	for _, op := range ops {
		t.add(op, d.rules)
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
