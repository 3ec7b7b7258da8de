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

// of returns the operators that match an op, increasing.
func (t *operators) of(op fgraph.Op) []int32 {
	list := t.matching(nil, t.any, op)
	if of := t.byType[reflect.TypeOf(op)]; of != nil {
		list = t.matching(list, of.any, op)
		if len(of.byOp) > 0 {
			for _, known := range of.byOp[fgraph.HashOp(op)] {
				if fgraph.OpsEqual(known.op, op) {
					list = t.matching(list, known.operators, op)
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (t *operators) matching(list, operators []int32, op fgraph.Op) []int32 {
	for _, o := range operators {
		if t.match[o](op) {
			list = append(list, o)
		}
	}
	return list
}

// classes remembers the operators of ops in one run. A class is a list of operators; ops that none
// matches have class 0.
type classes struct {
	*operators
	lists  [][]int32
	byList map[string]int32
	byOp   map[fgraph.Op]int32
	byHash map[uint64][]classed // of ops with an equality of their own
	known  []knownApply         // by number of the apply
}

type classed struct {
	op    fgraph.Op
	class int32
}

type knownApply struct {
	apply *fgraph.Apply
	class int32
}

// mostClassed bounds how many ops are remembered.
const mostClassed = 1 << 12

func newClasses(t *operators) classes {
	return classes{operators: t, lists: [][]int32{nil}, byList: make(map[string]int32), byOp: make(map[fgraph.Op]int32)}
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
		c.known = append(c.known, make([]knownApply, max(64, id+1-len(c.known), len(c.known)))...)
	}
	c.known[id] = knownApply{a, class}
	return class
}

func (c *classes) ofOp(op fgraph.Op) int32 {
	if e, ok := op.(fgraph.OpEqualer); ok {
		return c.ofEqualer(op, e)
	}
	class, ok := c.byOp[op]
	if !ok {
		class = c.class(c.operators.of(op))
		if len(c.byOp) >= mostClassed {
			clear(c.byOp)
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
	class := c.class(c.operators.of(op))
	if len(c.byHash) >= mostClassed || len(c.byHash[h]) >= mostAlike {
		clear(c.byHash)
	}
	if c.byHash == nil {
		c.byHash = make(map[uint64][]classed)
	}
	c.byHash[h] = append(c.byHash[h], classed{op, class})
	return class
}

// mostAlike bounds how many ops with one hash are remembered.
const mostAlike = 16

// class returns the class of a list of operators.
func (c *classes) class(list []int32) int32 {
	if len(list) == 0 {
		return 0
	}
	key := make([]byte, 0, 4*len(list))
	for _, o := range list {
		key = binary.LittleEndian.AppendUint32(key, uint32(o))
	}
	class, ok := c.byList[string(key)]
	if !ok {
		class = int32(len(c.lists))
		c.byList[string(key)] = class
		c.lists = append(c.lists, list)
	}
	return class
}
