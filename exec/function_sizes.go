package exec

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// The sizes of most values follow from those of the arguments. A program of integers, which is made with the
// function, computes them at a call whose arguments have other sizes than those of the call before. So memory is
// planned also for sizes that are open, and what does not fit is refused before anything is computed.
//
// A plan has room for more than it was made for, so that sizes that grow by one in each call, as those of a decoder do,
// need few plans, and one for smaller sizes than before remains as it is.

// openSizes are those of values that are known from the sizes of arguments.
type openSizes struct {
	lives   []life
	homes   []home  // those of no elements are open, or there is none
	counts  []int32 // by life: where the program has its number of elements; -1 if it is not open
	inputs  []inputSize
	code    []sizeOp
	program int // how many values the program has
}

// An inputSize is a size of an argument: the first values of a program.
type inputSize struct{ input, dim int32 }

// A sizeOp computes the value of a program behind those before.
type sizeOp struct {
	op   array.Opcode
	a, b int32 // values
	n    int64 // the value, if a < 0
}

// has reports whether a life is open.
func (o *openSizes) has(i int) bool { return o != nil && o.counts[i] >= 0 }

// openSizes makes the program of a function, if any sizes are open.
func (f *Function) openSizes(lives []life, homes []home) {
	open := func(i int) bool {
		return homes[i].n == 0 && !lives[i].lazy && tensor.TypeOf(lives[i].value).Bytes() == 0 && !tensor.TypeOf(lives[i].value).IsCSR()
	}
	if !slices.ContainsFunc(lives, func(l life) bool { return slices.Contains(tensor.TypeOf(l.value).Shape(), tensor.Unknown) }) {
		return
	}
	b := &sizeBuilder{f: f, shapes: tensor.ShapesOf(f.graph), inputs: make(map[inputSize]int32), values: make(map[*fgraph.Variable]int32)}
	o := &openSizes{lives: lives, homes: homes, counts: make([]int32, len(lives))}
	var all []*fgraph.Variable // the sizes of what is open
	for i := range lives {
		if o.counts[i] = -1; open(i) {
			all = append(all, b.shapes.Shape(lives[i].value)...)
		}
	}
	// Values are numbered from the sizes of inputs on, so these must all be known before any code is emitted.
	b.leaves(all)
	found := false
	for i, l := range lives {
		if open(i) {
			if n, ok := b.count(l.value); ok {
				o.counts[i], found = n, true
			}
		}
	}
	if found {
		o.inputs, o.code, o.program = b.order, b.code, len(b.order)+len(b.code)
		f.open = o
	}
}

// A sizeBuilder makes the program of sizes.
type sizeBuilder struct {
	f      *Function
	shapes *tensor.Shapes
	inputs map[inputSize]int32
	order  []inputSize
	values map[*fgraph.Variable]int32 // -1 for what no program computes
	code   []sizeOp
}

// leaves finds the sizes of inputs that the scalars are computed of: they come first.
func (b *sizeBuilder) leaves(todo []*fgraph.Variable) {
	seen := make(map[*fgraph.Variable]bool)
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[v] || v.Owner() == nil {
			continue
		}
		seen[v] = true
		if at, ok := b.inputSize(v); !ok {
			todo = append(todo, v.Owner().Inputs()...)
		} else if _, ok := b.inputs[at]; !ok {
			b.inputs[at], b.order = int32(len(b.order)), append(b.order, at)
		}
	}
}

// inputSize returns which size of an input a scalar is.
func (b *sizeBuilder) inputSize(v *fgraph.Variable) (inputSize, bool) {
	op, ok := tensor.OpOf(v).(tensor.ShapeIOp)
	if !ok {
		return inputSize{}, false
	}
	i := slices.Index(b.f.graph.Inputs(), v.Owner().Inputs()[0])
	return inputSize{int32(i), int32(op.D)}, i >= 0
}

// count returns the value that is the number of elements of a tensor.
func (b *sizeBuilder) count(v *fgraph.Variable) (int32, bool) {
	n := b.emit(sizeOp{a: -1, n: 1})
	for _, d := range b.shapes.Shape(v) {
		m := b.value(d, 0)
		if m < 0 {
			return 0, false
		}
		n = b.emit(sizeOp{op: array.Mul, a: n, b: m})
	}
	return n, true
}

func (b *sizeBuilder) emit(op sizeOp) int32 {
	b.code = append(b.code, op)
	return int32(len(b.order) + len(b.code) - 1)
}

// maxSizeDepth bounds how deep a size is computed.
const maxSizeDepth = 100

// value returns the value of the program that is a scalar, -1 if it depends on more than sizes.
func (b *sizeBuilder) value(v *fgraph.Variable, depth int) int32 {
	n, ok := b.values[v]
	if !ok {
		n = b.compute(v, depth)
		b.values[v] = n
	}
	return n
}

func (b *sizeBuilder) compute(v *fgraph.Variable, depth int) int32 {
	if a := tensor.ConstantOf(v); a != nil && a.Len() == 1 && !a.DType().IsFloat() {
		return b.emit(sizeOp{a: -1, n: a.Int(0)})
	}
	if at, ok := b.inputSize(v); ok {
		return b.inputs[at]
	}
	a := v.Owner()
	if a == nil || depth > maxSizeDepth || tensor.TypeOf(v).DType() != array.Int64 || tensor.TypeOf(v).NDim() > 0 {
		return -1
	}
	switch op := a.Op().(type) {
	case tensor.Elemwise:
		if op.Op != array.Cast {
			return b.operation(op.Op, b.inputsOf(a, depth))
		}
	case *tensor.CompositeOp:
		return b.composite(op.Program(), b.inputsOf(a, depth), slices.Index(a.Outputs(), v))
	}
	return -1
}

// inputsOf returns the values that are the inputs of an apply.
func (b *sizeBuilder) inputsOf(a *fgraph.Apply, depth int) []int32 {
	list := make([]int32, len(a.Inputs()))
	for i, v := range a.Inputs() {
		list[i] = b.value(v, depth+1)
	}
	return list
}

// operation returns the value of an operation on values, -1 if no program computes it.
func (b *sizeBuilder) operation(op array.Opcode, in []int32) int32 {
	switch op {
	case array.Add, array.Sub, array.Mul, array.IntDiv, array.Maximum, array.Minimum:
	default:
		return -1
	}
	if len(in) == 0 || slices.Contains(in, -1) {
		return -1
	}
	n := in[0]
	for _, m := range in[1:] {
		n = b.emit(sizeOp{op: op, a: n, b: m})
	}
	return n
}

// composite returns the value of an output of an element-wise program.
func (b *sizeBuilder) composite(p *array.Program, values []int32, output int) int32 {
	for v := range p.Values() {
		n := int32(-1)
		switch {
		case v.Type != array.Int64:
		case v.Constant != nil:
			n = b.emit(sizeOp{a: -1, n: v.Constant.Int(0)})
		case v.Op != array.Cast:
			args := make([]int32, len(v.Args))
			for i, k := range v.Args {
				args[i] = values[k]
			}
			n = b.operation(v.Op, args)
		}
		values = append(values, n)
	}
	return values[p.Results()[output]]
}

// sizes are what a runner knows of the sizes of its call.
type sizes struct {
	values []int64 // of the program
	dims   []int   // of the arguments, which they belong to
	fit    bool    // memory is planned for them
}

// fit makes the memory of the runner fit the sizes of the arguments. It reports whether there is new memory. The error
// wraps array.ErrTooLarge if values need more than there may be, or ErrArgument if one has a size that can't be.
func (r *Runner) fit() (changed bool, err error) {
	o := r.f.open
	if o == nil {
		if changed = !r.settled; changed {
			r.settle(r.f.memory)
		}
		return changed, nil
	}
	if r.sizes.values == nil {
		r.sizes = sizes{values: make([]int64, o.program), dims: make([]int, len(o.inputs))}
	}
	same := r.sizes.fit
	// If this call fails below, the next one with the same sizes must not find that there is memory for them.
	r.sizes.fit = false
	for i, at := range o.inputs {
		if n := r.headers[r.f.inputs[at.input]].Dim(int(at.dim)); n != r.sizes.dims[i] {
			r.sizes.dims[i], same = n, false
		}
	}
	if same {
		r.sizes.fit = true
		return false, nil
	}
	o.run(r.sizes)
	outgrown := !r.settled
	limit := r.f.limit()
	for i, k := range o.counts {
		if k < 0 {
			continue
		}
		n, l := r.sizes.values[k], &o.lives[i]
		size := int64(tensor.TypeOf(l.value).DType().Size())
		if n < 0 || n > limit/size {
			return false, fmt.Errorf("%w: %v would take %d times %d bytes, and there may be %d", array.ErrTooLarge, l.value, n, size, limit)
		}
		outgrown = outgrown || int(n) > r.memory.homes[l.root].n
	}
	if outgrown {
		p, err := r.grown(limit)
		if err != nil {
			return false, err
		}
		r.settle(p)
	}
	r.sizes.fit = true
	return outgrown, nil
}

// grown returns a plan for the sizes of this call. It has room for those of earlier ones and, if this is not the first
// one, for larger ones, unless that is too much.
func (r *Runner) grown(limit int64) (memoryPlan, error) {
	o := r.f.open
	need, roomy := slices.Clone(o.homes), slices.Clone(o.homes)
	for i, k := range o.counts {
		if k < 0 {
			continue
		}
		l := &o.lives[i]
		n := max(int(r.sizes.values[k]), 1) // what is empty has a home, too, or it would never be given back
		need[i] = home{dtype: tensor.TypeOf(l.value).DType(), n: n}
		roomy[i] = need[i]
		if r.settled && r.memory.homes != nil {
			if had := r.memory.homes[l.root].n; had < n {
				roomy[i].n = 2 * n // what is not used takes addresses, but no memory
			} else {
				roomy[i].n = had
			}
		}
	}
	p := r.f.arranged(o.lives, roomy)
	// With room to grow it is too much. What this call needs itself may still fit.
	if p.memory.Peak() > limit {
		if p = r.f.arranged(o.lives, need); p.memory.Live+p.memory.Results > limit {
			return p, fmt.Errorf("%w: the values of a call need %d bytes at once, and there may be %d", array.ErrTooLarge, p.memory.Live+p.memory.Results, limit)
		}
	}
	return p, nil
}

// run computes the values of the program for the sizes of arguments. What overflows becomes the largest number, which
// nothing has memory for.
func (o *openSizes) run(s sizes) {
	v := s.values
	for i, n := range s.dims {
		v[i] = int64(n)
	}
	for i, c := range o.code {
		at := len(s.dims) + i
		if c.a < 0 {
			v[at] = c.n
			continue
		}
		x, y := v[c.a], v[c.b]
		switch c.op {
		case array.Add:
			v[at] = x + y
		case array.Sub:
			v[at] = x - y
		case array.Mul:
			v[at] = multiplied(x, y)
		case array.IntDiv:
			if v[at] = 0; y != 0 {
				// IntDiv rounds down, and Go toward zero.
				if v[at] = x / y; x%y != 0 && (x < 0) != (y < 0) {
					v[at]--
				}
			}
		case array.Maximum:
			v[at] = max(x, y)
		case array.Minimum:
			v[at] = min(x, y)
		}
	}
}

func multiplied(x, y int64) int64 {
	if x < 0 || y < 0 {
		return x * y
	}
	if hi, lo := bits.Mul64(uint64(x), uint64(y)); hi == 0 && lo <= math.MaxInt64 {
		return int64(lo)
	}
	return math.MaxInt64
}
