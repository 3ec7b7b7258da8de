package array

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
)

// An Epilogue completes the results of products of float32s: a program of which the product is the
// first input, and that has one output of its type. The other inputs have the shape of the product,
// or sizes of 1, which are broadcast. Its bits are those of Map. It is immutable.
//
// Products do a part of it themselves, before they store a result, if it begins with steps that they
// know: see kernel.Epilogue. What is left is computed a few rows at a time, while they are in a cache.
type Epilogue struct {
	whole    *Program
	steps    ownSteps
	rest     *Program // nil if nothing is left; its first input is what the product has stored
	restArgs []int    // by other input of rest, its place among all
}

// ownSteps are the steps of a kernel.Epilogue. Inputs are by number, and 0 where there is none.
type ownSteps struct {
	bias, scale, offset, residual int
	relu, lastReLU                bool
	alpha                         float32
}

// An ArgKind says what a product may do with an input of an epilogue itself.
type ArgKind uint8

// The kinds of inputs.
const (
	AnyArg  ArgKind = iota
	RowArg          // all rows of the product have the same, perhaps one number
	FullArg         // it has the shape of the product
)

// NewEpilogue returns the epilogue of a program. The kinds are those of the inputs, of which the
// first is the product.
func NewEpilogue(p *Program, kinds []ArgKind) *Epilogue {
	e := &Epilogue{whole: p}
	s := &splitting{p: p, kinds: kinds, uses: make([]int, len(p.types)), made: make([]int, len(p.types)), done: make([]bool, len(p.code))}
	for v := range s.made {
		s.made[v] = -1
	}
	for i, in := range p.code {
		s.made[in.dst] = i
		for _, a := range in.args[:in.numArgs] {
			s.uses[a]++
		}
	}
	for _, o := range p.outs {
		s.uses[o]++
	}
	for s.step(&e.steps) {
	}
	e.rest, e.restArgs = s.rest()
	return e
}

// ByProduct reports whether products of float32s do all of it themselves.
func (e *Epilogue) ByProduct() bool { return e.rest == nil }

// bySums reports whether sums of windows, channel by channel, do the steps of a product themselves: a bias, and to
// raise to zero.
func (e *Epilogue) bySums() bool {
	return e != nil && e.steps == (ownSteps{bias: e.steps.bias, relu: e.steps.relu})
}

// A splitting finds which steps of a program a product can do itself.
type splitting struct {
	p     *Program
	kinds []ArgKind
	uses  []int // by value
	made  []int // by value, the instruction that makes it, or -1
	done  []bool
	value int32 // what the product has computed so far
	stage int   // of the order of kernel.Epilogue: what may follow
}

// The stages: what has been done.
const (
	summed = iota
	biased
	raised
	scaled
	residualAdded
	raisedAgain
)

// step takes one step of the program, if the product can do it.
func (s *splitting) step(own *ownSteps) bool {
	i := slices.IndexFunc(s.p.code, func(in instr) bool { return slices.Contains(in.args[:in.numArgs], s.value) })
	// What something else reads as well has to be stored as it is.
	if i < 0 || s.uses[s.value] != 1 || s.done[i] {
		return false
	}
	in := s.p.code[i]
	if in.typ != Float32 || in.numArgs != 2 {
		return false
	}
	other := in.args[0]
	if other == s.value {
		other = in.args[1]
	}
	// The kernel has one order for its steps: bias, ReLU, scale and offset, residual, ReLU. What comes in
	// another order is left.
	stage := s.stage
	switch {
	case in.op == Add && s.kind(other) == RowArg && stage < biased:
		own.bias, stage = int(other), biased
	case in.op == Add && s.kind(other) == RowArg && stage == scaled && own.offset == 0:
		own.offset = int(other)
	case in.op == Mul && s.kind(other) == RowArg && stage < scaled:
		own.scale, stage = int(other), scaled
	case in.op == Add && stage < residualAdded && s.residual(other, own):
		stage = residualAdded
	// Of two zeros the larger one is the first, so it must be the sum.
	case in.op == Maximum && in.args[0] == s.value && s.isZero(other) && stage < raised:
		own.relu, stage = true, raised
	case in.op == Maximum && in.args[0] == s.value && s.isZero(other) && stage < raisedAgain:
		own.lastReLU, stage = true, raisedAgain
	default:
		return false
	}
	s.stage, s.value, s.done[i] = stage, in.dst, true
	return true
}

// kind returns what kind of input a value is.
func (s *splitting) kind(v int32) ArgKind {
	if v == 0 || int(v) >= s.p.inputs {
		return AnyArg
	}
	return s.kinds[v]
}

// residual reports whether a value is an input with the shape of the product, or a multiple of one.
func (s *splitting) residual(v int32, own *ownSteps) bool {
	if s.kind(v) == FullArg {
		own.residual, own.alpha = int(v), 1
		return true
	}
	i := s.made[v]
	if i < 0 || s.uses[v] != 1 || s.p.code[i].op != Mul || s.p.code[i].typ != Float32 {
		return false
	}
	args := s.p.code[i].args
	for k, a := range args[:2] {
		c := s.constant(args[1-k])
		// A factor of 0 means that there is no residual.
		if s.kind(a) == FullArg && c != nil && c.Float(0) != 0 {
			own.residual, own.alpha = int(a), float32(c.Float(0))
			s.done[i] = true
			return true
		}
	}
	return false
}

// constant returns the constant that a value is, or nil.
func (s *splitting) constant(v int32) *Array {
	for _, c := range s.p.consts {
		if c.value == v {
			return c.data
		}
	}
	return nil
}

// isZero reports whether a value is the constant 0, which is not negative.
func (s *splitting) isZero(v int32) bool {
	c := s.constant(v)
	return c != nil && c.Float(0) == 0 && !math.Signbit(c.Float(0))
}

// rest returns the program of the steps that are left, and which inputs it has behind the product.
func (s *splitting) rest() (*Program, []int) {
	if !slices.Contains(s.done, false) && s.p.outs[0] == s.value {
		return nil, nil
	}
	used := make([]bool, len(s.p.types))
	for i, in := range s.p.code {
		for _, a := range in.args[:in.numArgs] {
			used[a] = used[a] || !s.done[i]
		}
	}
	values := make([]int, len(s.p.types))
	types, args := []DType{Float32}, []int{}
	for v := 1; v < s.p.inputs; v++ {
		if used[v] {
			values[v] = len(types)
			types, args = append(types, s.p.types[v]), append(args, v-1)
		}
	}
	q := NewProgram(types...)
	values[s.value] = 0
	for _, c := range s.p.consts {
		if used[c.value] {
			values[c.value] = q.Constant(c.data)
		}
	}
	for i, in := range s.p.code {
		if s.done[i] {
			continue
		}
		list := make([]int, in.numArgs)
		for k := range list {
			list[k] = values[in.args[k]]
		}
		values[in.dst] = q.emit(in.op, in.typ, s.p.types[in.dst], list...)
	}
	return q.Return(values[s.p.outs[0]]), args
}

// A completion is an Epilogue at work on a product y, whose last dimension is its columns.
type completion struct {
	epilogue *Epilogue
	ws       *Workspace
	steps    kernel.Epilogue // for all rows
	some     kernel.Epilogue // see of
	left     *Program        // for run, or nil
	copies   [4]*Array
	cols     int  // of y
	len      int  // elements of y
	begun    bool // the loop of left is prepared
}

// complete prepares c, which is zero, to complete y. args are the inputs of the program behind the product. A product
// that does nothing by itself leaves all to run.
func (ws *Workspace) complete(c *completion, e *Epilogue, y *Array, args []*Array, byItself bool) error {
	c.epilogue, c.ws, c.cols, c.len = e, ws, y.shape[y.ndim-1], y.Len()
	if e == nil {
		return nil
	}
	ws.args = append(ws.args[:0], y)
	if !byItself {
		c.left, ws.args = e.whole, append(ws.args, args...)
	} else {
		if err := c.own(y, args); err != nil {
			return err
		}
		c.left = e.rest
		for _, k := range e.restArgs {
			ws.args = append(ws.args, args[k])
		}
	}
	return nil
}

// own prepares the steps of the product itself.
func (c *completion) own(y *Array, args []*Array) error {
	e := c.epilogue
	row := func(k, input int) ([]float32, error) {
		if input == 0 {
			return nil, nil
		}
		a := args[input-1]
		if a.Len() == 1 && c.cols > 1 {
			return c.repeated(k, a)
		}
		a, err := c.contiguous(k, a)
		if err != nil {
			return nil, err
		}
		return Slice[float32](a), nil
	}
	var err error
	if c.steps.Bias, err = row(0, e.steps.bias); err != nil {
		return err
	}
	if c.steps.Scale, err = row(1, e.steps.scale); err != nil {
		return err
	}
	if c.steps.Offset, err = row(2, e.steps.offset); err != nil {
		return err
	}
	// The kernel adds an offset wherever it scales. With zeros for it, -0 would become 0.
	if c.steps.Scale != nil && c.steps.Offset == nil {
		c.steps.Offset = c.ws.negativeZeros(len(c.steps.Scale))
	}
	c.steps.ReLU, c.steps.LastReLU = e.steps.relu, e.steps.lastReLU
	if e.steps.residual > 0 {
		a, err := c.contiguous(3, args[e.steps.residual-1])
		if err != nil {
			return err
		}
		cols := y.shape[y.ndim-1]
		c.steps.Alpha = e.steps.alpha
		c.steps.Residual = kernel.Matrix{Rows: y.Len() / max(cols, 1), Cols: cols, Stride: cols, Data: Slice[float32](a)}
	}
	return nil
}

// negativeZeros returns n of them: added to a number, they leave it as it is.
func (ws *Workspace) negativeZeros(n int) []float32 {
	if len(ws.zeros) < n {
		ws.zeros = make([]float32, n)
		fill(ws.zeros, float32(math.Copysign(0, -1)))
	}
	return ws.zeros[:n]
}

// contiguous returns a, or copy number k of it.
func (c *completion) contiguous(k int, a *Array) (*Array, error) {
	if a.Contiguous() {
		return a, nil
	}
	var err error
	c.copies[k], err = c.ws.scratchCopy(a)
	return c.copies[k], err
}

// repeated returns the number of a for each column, in copy number k.
func (c *completion) repeated(k int, a *Array) ([]float32, error) {
	c.copies[k] = new(Array)
	if err := c.ws.New(c.copies[k], Float32, c.cols); err != nil {
		return nil, err
	}
	s := Slice[float32](c.copies[k])
	fill(s, float32(a.Float(0)))
	return s, nil
}

// of returns what a product of some rows and columns does itself, until it is called again.
func (c *completion) of(first, rows, col, cols int) *kernel.Epilogue {
	s := &c.steps
	// A copy waits for the stores that made the original, which takes as long as a small product.
	if rows*cols < c.len && c.epilogue != nil {
		s = &c.some
		*s = c.steps
		if s.Bias != nil {
			s.Bias = s.Bias[col:][:cols]
		}
		if s.Scale != nil {
			s.Scale, s.Offset = s.Scale[col:][:cols], s.Offset[col:][:cols]
		}
		if s.Alpha != 0 {
			s.Residual = kernel.View(c.steps.Residual, first, rows, col, cols)
		}
	}
	s.Threads, s.Next = c.ws.Threads, nil
	// Another part of y reads the same weights, or others of the same op.
	if (first+rows-1)*c.cols+col+cols == c.len {
		s.Next = c.ws.Next
	}
	return s
}

// run does what is left for n elements of y, from lo on.
func (c *completion) run(lo, n int) {
	if c.left == nil {
		return
	}
	ws := c.ws
	if !c.begun {
		if n == c.len && ws.straight(c.left, n, ws.args[:1], ws.args) {
			return
		}
		if ws.epilogue == nil {
			ws.epilogue = new(loop)
		}
		ws.epilogue.size = ws.blockOf(c.len)
		ws.epilogue.begin(c.left, ws.args[:1], ws.args)
		c.begun = true
	}
	ws.run(ws.epilogue, c.left, lo, n)
}

// end forgets all arrays.
func (c *completion) end() {
	if c.begun {
		c.ws.epilogue.end()
	}
	if c.left != nil {
		clear(c.ws.args)
	}
	for _, a := range c.copies {
		if a != nil {
			c.ws.Release(a)
		}
	}
}
