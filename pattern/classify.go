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
	graph  *fgraph.FunctionGraph
	known  []int32 // by number of the op in the graph: the class, plus 1

	list []int32
	key  []byte
}

func newClasses(t *operators) classes {
	return classes{operators: t, lists: [][]int32{nil}, single: make([]int32, len(t.match))}
}

// of returns the class of the op of an apply.
func (c *classes) of(a *fgraph.Apply) int32 {
	g := a.Graph()
	if g == nil {
		return c.find(a.Op())
	}
	if g != c.graph {
		c.graph, c.known = g, nil
	}
	n := g.OpNumber(a)
	if n >= len(c.known) {
		c.known = append(c.known, make([]int32, n+1-len(c.known)+max(32, n/4))...)
	}
	if c.known[n] == 0 {
		c.known[n] = c.find(a.Op()) + 1
	}
	return c.known[n] - 1
}

// find returns the class of an op.
func (c *classes) find(op fgraph.Op) int32 {
	c.list = c.appendMatching(c.list[:0], c.any, op)
	if t := c.byType[reflect.TypeOf(op)]; t != nil {
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
