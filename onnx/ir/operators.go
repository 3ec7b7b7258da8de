package ir

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// An Operator is what is known of the nodes of a type. The zero value of each field promises nothing.
type Operator struct {
	Domain, Type string
	// MinInputs and MaxInputs bound the number of inputs, -1 for any number.
	MinInputs, MaxInputs int
	// Commutes says that the order of the inputs does not matter.
	Commutes bool
	// Random says that two applies to the same inputs may give different results.
	Random bool
	// Infer sets the types of the results, as far as they can be told. Without it they are those of Body, or unknown.
	Infer func(*Call)
	// Body builds the results from other operators, all of ONNX: what the operator means. It is nil for those that
	// package onnx/lower computes itself.
	Body func(*Builder) []*fgraph.Variable
}

// Operators are a set of operators. It does not change; With returns a larger one.
type Operators struct {
	byName map[string]*Operator
}

// Standard returns ONNX's own operators.
func Standard() *Operators { return standardOperators() }

var standardOperators = sync.OnceValue(func() *Operators { return new(Operators).With(standard...) })

// With returns the set with more operators, which take the place of those with the same names.
func (l *Operators) With(list ...Operator) *Operators {
	more := &Operators{byName: maps.Clone(l.byName)}
	if more.byName == nil {
		more.byName = make(map[string]*Operator)
	}
	for _, o := range list {
		more.byName[qualified(o.Domain, o.Type)] = &o
	}
	return more
}

// All returns the operators, sorted by domain and type.
func (l *Operators) All() []*Operator {
	return slices.SortedFunc(maps.Values(l.byName), func(a, b *Operator) int {
		return cmp.Or(strings.Compare(a.Domain, b.Domain), strings.Compare(a.Type, b.Type))
	})
}

// Lookup returns an operator, or nil.
func (l *Operators) Lookup(domain, typ string) *Operator { return l.byName[qualified(domain, typ)] }

// ErrType means that an operator can't have inputs of such types.
var ErrType = errors.New("onnx: the types don't fit")

// Apply applies an operator to inputs, nil for those that are left out. The types of the results are
// those that can be told. The error is an ErrType.
func (l *Operators) Apply(op *Op, inputs ...*fgraph.Variable) (*fgraph.Apply, error) {
	in := written(slices.Clone(inputs))
	types, err := l.Infer(op, in)
	if err != nil {
		return nil, err
	}
	return fgraph.NewApply(op, in, lists.Map(types, func(t Type) fgraph.Type { return t })...), nil
}

// written returns inputs without those that are left out at the end, where nothing need be written for one.
func written(in []*fgraph.Variable) []*fgraph.Variable {
	for len(in) > 0 && (in[len(in)-1] == nil || IsOmitted(in[len(in)-1])) {
		in = in[:len(in)-1]
	}
	for i, v := range in {
		if v == nil {
			in[i] = Missing()
		}
	}
	return in
}

// Op returns an op with one output and these attributes.
func (l *Operators) Op(name string, attributes ...*onnx.Attribute) *Op {
	return l.NewOp(Op{Type: name, Attributes: attributes})
}

// Make is Apply for an op of ONNX's own with one output and these attributes.
func (l *Operators) Make(name string, attributes []*onnx.Attribute, inputs ...*fgraph.Variable) (*fgraph.Variable, error) {
	a, err := l.Apply(l.Op(name, attributes...), inputs...)
	if err != nil {
		return nil, err
	}
	return a.Out(), nil
}

// Infer returns the types of the results of an op.
func (l *Operators) Infer(op *Op, inputs []*fgraph.Variable) ([]Type, error) {
	c := &Call{Op: op, operators: l, inputs: inputs, out: make([]Type, op.Outputs)}
	o := op.operator
	if o == nil {
		return c.out, nil
	}
	if n := len(inputs) - op.Captures(); n < o.MinInputs || o.MaxInputs >= 0 && n > o.MaxInputs {
		return nil, fmt.Errorf("%w: %s has %d inputs", ErrType, op.Name(), n)
	}
	if o.Infer == nil && o.Body == nil {
		return c.out, nil
	}
	// That too little is known is no fault of the model: what was set before Infer ended stays.
	if err := c.infer(); err != nil && !errors.Is(err, errUnranked) {
		return nil, fmt.Errorf("%w: %s: %w", ErrType, op.Name(), err)
	}
	return c.out, nil
}

// A Call is an op with its inputs whose results are given types. Where a method can't tell, because
// an input has no shape say, its result says so.
type Call struct {
	*Op
	operators *Operators
	inputs    []*fgraph.Variable
	out       []Type
}

// errInfer is what Fail panics with.
type errInfer struct{ error }

// errUnranked ends Infer, or a Body, for which an input says too little.
var errUnranked = errors.New("the shape of an input is not known")

func (c *Call) infer() error {
	return guarded(func() {
		c.checkElements()
		c.checkLists()
		if c.operator.Infer != nil {
			c.operator.Infer(c)
			return
		}
		for k, v := range c.build().results {
			if v != nil {
				c.Set(k, TypeOf(v))
			}
		}
	})
}

// guarded returns the error that a function ends with.
func guarded(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			switch p := p.(type) {
			case errInfer:
				err = p.error
			case runtime.Error:
				// A missing input, or a shape that an operator can't have, for which nothing asked.
				err = fmt.Errorf("its inputs and attributes don't fit together: %w", p)
			default:
				panic(p)
			}
		}
	}()
	f()
	return nil
}

// Fail says that the op can't have such inputs, and ends Infer.
func (c *Call) Fail(format string, args ...any) { panic(errInfer{fmt.Errorf(format, args...)}) }

// failIf fails if a condition holds.
func (c *Call) failIf(wrong bool, format string, args ...any) {
	if wrong {
		c.Fail(format, args...)
	}
}

// Set sets the type of a result, if there is one.
func (c *Call) Set(k int, t Type) {
	if k < len(c.out) {
		c.out[k] = t
	}
}

// numInputs returns the number of inputs, those that are left out included, without captured values.
func (c *Call) numInputs() int { return len(c.inputs) - c.Captures() }

// has reports whether there is an input.
func (c *Call) has(k int) bool { return k < c.numInputs() && !IsOmitted(c.inputs[k]) }

// input returns an input, nil if there is none.
func (c *Call) input(k int) *fgraph.Variable {
	if !c.has(k) {
		return nil
	}
	return c.inputs[k]
}

// In returns the type of an input, the zero Type if there is none.
func (c *Call) In(k int) Type {
	if !c.has(k) {
		return Type{}
	}
	return TypeOf(c.inputs[k])
}

// Elem returns the type of elements of an input.
func (c *Call) Elem(k int) onnx.DataType { return c.In(k).Elem() }

// shape returns the shape of an input.
func (c *Call) shape(k int) (dims []Dim, ranked bool) { return c.In(k).Shape() }

// maxNumbers bounds the elements that Numbers returns. Axes and padding are fewer.
const maxNumbers = 1 << 10

// numbers returns the elements of an input of integers if all are known, and not too many for something
// that shapes depend on.
func (c *Call) numbers(k int) ([]int64, bool) {
	if !c.has(k) {
		return nil, false
	}
	if x := ValueOf(c.inputs[k]); x != nil && (x.Len() < 0 || x.Len() > maxNumbers) {
		return nil, false
	}
	return NumbersOf(c.inputs[k])
}

// axis returns an axis that may count from the end, of n.
func (c *Call) axis(axis int64, n int) int {
	c.failIf(axis < -int64(n) || axis >= int64(n), "there is no axis %d of %d", axis, n)
	if axis < 0 {
		axis += int64(n)
	}
	return int(axis)
}

// meet returns a size that is both d and e.
func (c *Call) meet(d, e Dim) Dim {
	m, ok := d.meet(e)
	c.failIf(!ok, "the sizes %v and %v differ", d, e)
	return m
}

// broadcast returns the shape that shapes are broadcast to.
func (c *Call) broadcast(shapes ...[]Dim) []Dim {
	var out []Dim
	for _, s := range shapes {
		if len(s) > len(out) {
			out = slices.Concat(slices.Repeat([]Dim{Known(1)}, len(s)-len(out)), out)
		}
		for i, d := range s {
			k := len(out) - len(s) + i
			out[k] = c.broadcastDim(out[k], d)
		}
	}
	return out
}

// broadcastDim returns the size that two sizes are broadcast to. If one of them can't be 1, it is that
// one, because the other can only be the same or 1.
func (c *Call) broadcastDim(d, e Dim) Dim {
	switch {
	case d.Same(e), e.Is(1):
		return d
	case d.Is(1):
		return e
	case d.Differs(Known(1)):
		c.failIf(e.Differs(Known(1)) && d.Differs(e), "sizes %v and %v can't be broadcast", d, e)
		// e is not 1, so both are the same, and a number says more than an expression.
		if _, ok := e.Number(); ok {
			return e
		}
		return d
	case e.Differs(Known(1)), d.within(e):
		return e
	case e.within(d):
		return d
	}
	return UnknownDim
}

// within reports whether d is e or less, and 0 only if e is, as min(512,n) is within n. If it is less,
// then it can be broadcast to e only if it is 1.
func (d Dim) within(e Dim) bool {
	list, ok := d.arguments("min")
	if !ok {
		return false
	}
	found := false
	for _, x := range list {
		low, _ := x.bounds(0)
		if found = found || x == e; x != e && low < 1 {
			return false
		}
	}
	return found
}
