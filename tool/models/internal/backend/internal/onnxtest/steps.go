package onnxtest

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/onnx"
)

// A step adds a node of an operator to a model, of a value with elements of some types.
type step struct {
	op           string
	since, until int64 // versions of ONNX; until is 0 if there is no end
	elems        []onnx.DataType
	rank         int  // the least number of dimensions
	exact        bool // only of values whose bits are known, since the result jumps
	free         bool // of any type that there is
	make         func(b *builder, op string, x *value) *value
}

var all struct {
	once sync.Once
	list []step
}

// steps returns all steps. Those of control flow take others in turn.
func steps() []step {
	// Not where the variable is declared: bodies are made of steps again, and Go refuses such a cycle.
	all.once.Do(func() {
		all.list = slices.Concat(elementSteps, shapeSteps, sizeSteps, reductionSteps, netSteps, quantizedSteps, controlSteps())
	})
	return all.list
}

func find(op string) *step {
	for i, s := range steps() {
		if s.op == op {
			return &steps()[i]
		}
	}
	return nil
}

// kernels has a line for each operator and type that ONNX Runtime has a kernel for, behind a tab with a number
// whose bits are the versions.
//
//go:embed testdata/kernels.txt
var kernels string

var kernelTable = sync.OnceValue(func() map[string]int64 {
	table := make(map[string]int64)
	for line := range strings.Lines(kernels) {
		if op, versions, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			table[op], _ = strconv.ParseInt(versions, 10, 64)
		}
	}
	return table
})

// kernelKey names an operator with a type of elements in the table of kernels.
func kernelKey(op string, elem onnx.DataType) string { return fmt.Sprint(op, " ", elem) }

// takes reports whether the step can be taken of a value.
func (s *step) takes(b *builder, x *value) bool {
	if b.opset < s.since || s.until > 0 && b.opset > s.until || x.rank() < s.rank || s.exact && !x.exact || !slices.Contains(s.elems, x.elem) {
		return false
	}
	return b.all || s.free || kernelTable()[kernelKey(s.op, x.elem)]>>b.opset&1 == 1
}

// maxElements bounds the elements of a value.
const maxElements = 2000

// step takes a random step of a random value.
func (b *builder) step() {
	list := steps()
	for range 50 {
		s := &list[b.IntN(len(list))]
		x := b.some()
		if x == nil || !s.takes(b, x) {
			continue
		}
		s.make(b, s.op, x)
		// The node stays, but nothing is computed of what is large, or sizes would multiply.
		b.pool = slices.DeleteFunc(b.pool, func(v *value) bool { return !v.small() })
		return
	}
}

func (v *value) small() bool {
	for _, s := range v.shape {
		if product(s) > maxElements || len(s) > 5 {
			return false
		}
	}
	return true
}

// some returns a value, more often one of the last.
func (b *builder) some() *value {
	if len(b.pool) == 0 {
		return nil
	}
	if b.chance(0.6) {
		return b.pool[len(b.pool)-1-b.IntN(min(3, len(b.pool)))]
	}
	return b.pool[b.IntN(len(b.pool))]
}

// other returns a value of the type of x that can be broadcast with it, a new constant or input if there is
// none, and the shape of both. The result of a condition on the shape has to hold.
func (b *builder) other(x *value) (*value, [][]int) {
	for range 4 {
		y := b.some()
		if y.elem != x.elem {
			continue
		}
		if shape, ok := b.joint(x, y); ok {
			return y, shape
		}
	}
	// Of the last dimensions of x, some have a size of 1.
	n := b.IntN(x.rank() + 1)
	ones := make([]bool, n)
	for i := range ones {
		ones[i] = b.chance(0.3)
	}
	shape := b.each(func(k int) []int {
		s := slices.Clone(x.shape[k][x.rank()-n:])
		for i := range s {
			if ones[i] {
				s[i] = 1
			}
		}
		return s
	})
	y := &value{shape: shape}
	if y.fixed() && (b.depth > 0 || b.chance(0.7)) {
		y = b.drawn(x.elem, shape[0]...)
	} else {
		y = b.fresh(x.elem, shape)
	}
	both, _ := b.joint(x, y)
	return y, both
}

func (b *builder) joint(x, y *value) ([][]int, bool) {
	ok := true
	shape := b.each(func(k int) []int {
		s, fits := broadcast(x.shape[k], y.shape[k])
		ok = ok && fits && len(s) <= 5 && product(s) <= maxElements
		return s
	})
	return shape, ok
}

// axis draws a dimension of x, the number that means it (it may count from the end if that may be), and the
// shape without it.
func (b *builder) axis(x *value, negative bool) (axis, number int) {
	axis = b.IntN(x.rank())
	if negative && b.chance(0.4) {
		return axis, axis - x.rank()
	}
	return axis, axis
}
