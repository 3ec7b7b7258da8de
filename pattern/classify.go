package pattern

import (
	"encoding/binary"
	"reflect"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// operators finds the operators of patterns that match an op.
type operators struct {
	match  []func(fgraph.Op) bool
	byType map[reflect.Type]*tracked
	any    []int32 // operators that may match every op
}

// tracked is the operators that may match ops of one Go type.
type tracked struct {
	any  []int32
	byOp map[uint64][]trackedOp
}

type trackedOp struct {
	op        fgraph.Op
	operators []int32
}

// add returns the number of a new operator.
func (t *operators) add(op Operator) int32 {
	o := int32(len(t.match))
	t.match = append(t.match, op.Match)
	if len(op.Tracks) == 0 {
		t.any = append(t.any, o)
		return o
	}
	if t.byType == nil {
		t.byType = make(map[reflect.Type]*tracked)
	}
	for _, track := range op.Tracks {
		list := t.byType[track.Type()]
		if list == nil {
			list = &tracked{byOp: make(map[uint64][]trackedOp)}
			t.byType[track.Type()] = list
		}
		list.add(track.Op(), o)
	}
	return o
}

func (t *tracked) add(op fgraph.Op, o int32) {
	if op == nil {
		t.any = append(t.any, o)
		return
	}
	h := fgraph.HashOp(op)
	for i, known := range t.byOp[h] {
		if fgraph.OpsEqual(known.op, op) {
			t.byOp[h][i].operators = append(known.operators, o)
			return
		}
	}
	t.byOp[h] = append(t.byOp[h], trackedOp{op, []int32{o}})
}

// appendMatching appends those of some operators that match op.
func (t *operators) appendMatching(list, some []int32, op fgraph.Op) []int32 {
	for _, o := range some {
		if t.match[o](op) {
			list = append(list, o)
		}
	}
	return list
}

// classes finds the operators of ops in one run. A class is a list of operators; ops that none
// matches have class 0.
type classes struct {
	*operators
	lists  [][]int32
	single []int32 // for each operator, the class of it alone, or 0
	byList map[string]int32
	byOp   map[fgraph.Op]int32
	byHash map[uint64][]classed // of ops with an equality of their own
	known  []knownApply         // by number of the apply

	typ     reflect.Type // of the last op
	tracked *tracked     // what byType has for it
	list    []int32
	key     []byte
}

type classed struct {
	op    fgraph.Op
	class int32
}

type knownApply struct {
	apply *fgraph.Apply
	class int32
}

const (
	mostClassed = 1 << 12 // how many ops are remembered
	mostAlike   = 16      // how many of these may have one hash
	fewMatches  = 4       // remembering an op costs as much as comparing it with so many operators
)

func newClasses(t *operators) classes {
	return classes{operators: t, lists: [][]int32{nil}, single: make([]int32, len(t.match))}
}

// of returns the class of the op of an apply.
func (c *classes) of(a *fgraph.Apply) int32 {
	id := a.ID()
	if uint(id) < uint(len(c.known)) {
		if k := &c.known[id]; k.apply == a {
			return k.class
		}
	}
	class := c.ofOp(a.Op())
	if id < 0 {
		return class
	}
	if id >= len(c.known) {
		n := a.Graph().NumApplyIDs()
		c.known = append(make([]knownApply, 0, n+n/8), c.known...)[:n+n/8]
	}
	c.known[id] = knownApply{a, class}
	return class
}

func (c *classes) ofOp(op fgraph.Op) int32 {
	if typ := reflect.TypeOf(op); typ != c.typ {
		c.typ, c.tracked = typ, c.byType[typ]
	}
	t := c.tracked
	switch e, equals := op.(fgraph.OpEqualer); {
	case t == nil && len(c.any) <= fewMatches, t != nil && len(t.byOp) == 0 && len(c.any)+len(t.any) <= fewMatches:
		return c.find(op)
	case equals:
		return c.ofEqualer(op, e)
	}
	class, ok := c.byOp[op]
	if !ok {
		class = c.find(op)
		if len(c.byOp) >= mostClassed || c.byOp == nil {
			c.byOp = make(map[fgraph.Op]int32)
		}
		c.byOp[op] = class
	}
	return class
}

func (c *classes) ofEqualer(op fgraph.Op, e fgraph.OpEqualer) int32 {
	h := e.HashOp()
	for _, known := range c.byHash[h] {
		if e.EqualOp(known.op) {
			return known.class
		}
	}
	class := c.find(op)
	if len(c.byHash) >= mostClassed || len(c.byHash[h]) >= mostAlike || c.byHash == nil {
		c.byHash = make(map[uint64][]classed)
	}
	c.byHash[h] = append(c.byHash[h], classed{op, class})
	return class
}

// find returns the class of an op of type c.typ.
func (c *classes) find(op fgraph.Op) int32 {
	c.list = c.appendMatching(c.list[:0], c.any, op)
	if t := c.tracked; t != nil {
		c.list = c.appendMatching(c.list, t.any, op)
		if len(t.byOp) > 0 {
			for _, known := range t.byOp[fgraph.HashOp(op)] {
				if fgraph.OpsEqual(known.op, op) {
					c.list = c.appendMatching(c.list, known.operators, op)
				}
			}
		}
	}
	switch len(c.list) {
	case 0:
		return 0
	case 1:
		class := &c.single[c.list[0]]
		if *class == 0 {
			*class = c.newClass()
		}
		return *class
	}
	slices.Sort(c.list)
	c.list = slices.Compact(c.list)
	c.key = c.key[:0]
	for _, o := range c.list {
		c.key = binary.LittleEndian.AppendUint32(c.key, uint32(o))
	}
	class, ok := c.byList[string(c.key)]
	if !ok {
		if class = c.newClass(); c.byList == nil {
			c.byList = make(map[string]int32)
		}
		c.byList[string(c.key)] = class
	}
	return class
}

// newClass makes a class of c.list.
func (c *classes) newClass() int32 {
	c.lists = append(c.lists, slices.Clone(c.list))
	return int32(len(c.lists) - 1)
}
