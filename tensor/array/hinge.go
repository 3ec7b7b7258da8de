package array

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/kernel"
)

// A hinge is a function of float32s that consists of straight lines, or x times one; or what GELU comes
// to, x·erfc(-t) or x·erfc(-x/root)·factor; or what quantizes. One instruction with a hinge takes the place of several, which would go through the
// block one by one. It has their bits.
type hinge struct {
	kind                  hingeKind
	slope, offset, lo, hi float32
}

type hingeKind uint8

const (
	hardSigmoid hingeKind = iota // max(lo, min(hi, slope·x + offset))
	hardSwish                    // x times that
	leakyReLU                    // max(max(x, slope·x), lo)
	gelu                         // x·erfc(-t), of two arguments
	geluOf                       // x·erfc(-x/slope)·offset
	codes                        // min(hi, max(lo, round(x/scale) + zero)) as bytes, of three arguments
)

// runHinge computes a block of n elements.
func (in *instr) runHinge(l []lane, n int) {
	h, to, x := in.hinge, &l[in.dst], l[in.args[0]].f[:n]
	if h.kind == codes {
		bytes := to.u8
		if in.to == Int8 {
			bytes = bytesOf(to.i8)
		}
		kernel.CodesVec(bytes[:n], x, l[in.args[1]].f, l[in.args[2]].f, h.lo, h.hi)
		return
	}
	dst := to.f[:n]
	switch h.kind {
	case gelu:
		kernel.GELUVec(dst, x, l[in.args[1]].f)
	case geluOf:
		kernel.GELUOfVec(dst, x, h.slope, h.offset)
	case hardSigmoid:
		kernel.HardSigmoidVec(dst, x, h.slope, h.offset, h.lo, h.hi)
	case hardSwish:
		kernel.HardSwishVec(dst, x, h.slope, h.offset, h.lo, h.hi)
	case leakyReLU:
		kernel.LeakyReLUVec(dst, x, h.slope, h.lo)
	}
}

// withHinges returns a copy of the code with hinges in place of what computes them.
func (p *Program) withHinges() []instr {
	code := slices.Clone(p.code)
	// Each of them has one of these.
	if !slices.ContainsFunc(code, func(in instr) bool { return in.op == Maximum || in.op == Erfc }) {
		return code
	}
	f := &folding{p: p, uses: make([]int, len(p.types))}
	for _, in := range code {
		for _, a := range in.args[:in.numArgs] {
			f.uses[a]++
		}
	}
	for _, o := range p.outs {
		f.uses[o]++
	}
	gone := make([]bool, len(code))
	for i := range code {
		steps, h, x := f.match(i)
		if h == nil {
			steps, h, x = f.leaky(i)
		}
		in := instr{typ: Float32, args: [maxArgs]int32{x}, numArgs: 1, hinge: h}
		if h == nil {
			steps, in = f.gelu(i)
		}
		if in.hinge == nil {
			steps, in = f.codes(i)
		}
		if in.hinge == nil {
			continue
		}
		// It stands where the last step stood. Its arguments are there by then, and nobody else reads what lies
		// between.
		last := steps[len(steps)-1]
		in.dst = code[last].dst
		code[last] = in
		for _, k := range steps[:len(steps)-1] {
			gone[k] = true
		}
	}
	kept := code[:0]
	for i, in := range code {
		if !gone[i] {
			kept = append(kept, in)
		}
	}
	return kept
}

// A folding looks for hinges in a program.
type folding struct {
	p    *Program
	uses []int // of values
}

// match returns the instructions of a hinge that begins with one, and its argument, or nothing.
func (f *folding) match(i int) (steps []int, h *hinge, x int32) {
	if f.p.code[i].op != Mul {
		return nil, nil, 0
	}
	h = new(hinge)
	v := int32(-1)
	for k, step := range []struct {
		op Opcode
		to *float32
	}{{Mul, &h.slope}, {Add, &h.offset}, {Minimum, &h.hi}, {Maximum, &h.lo}} {
		if k > 0 {
			if i = f.reader(v, i); i < 0 {
				return nil, nil, 0
			}
		}
		in := f.p.code[i]
		other, c, ok := f.withConstant(in)
		if !ok || in.op != step.op || k > 0 && other != v {
			return nil, nil, 0
		}
		if k == 0 {
			x = other
		}
		*step.to = c
		v, steps = in.dst, append(steps, i)
	}
	// The larger of zeros of both signs depends on their order, but the sum is no negative zero if
	// the offset is not zero.
	if h.offset == 0 || h.lo != h.lo || h.hi != h.hi || h.slope != h.slope || h.offset != h.offset {
		return nil, nil, 0
	}
	if k := f.reader(v, i); k >= 0 {
		in := f.p.code[k]
		if in.op == Mul && in.typ == Float32 && (in.args[0] == x && in.args[1] == v || in.args[0] == v && in.args[1] == x) {
			h.kind = hardSwish
			steps = append(steps, k)
		}
	}
	return steps, h, x
}

// leaky is match for leaky ReLUs.
func (f *folding) leaky(i int) (steps []int, h *hinge, x int32) {
	if f.p.code[i].op != Mul {
		return nil, nil, 0
	}
	x, slope, ok := f.withConstant(f.p.code[i])
	v := f.p.code[i].dst
	k := f.reader(v, i)
	if !ok || !(slope > 0) || k < 0 {
		return nil, nil, 0
	}
	// With a positive slope both have the same sign, and so the order does not matter.
	in := f.p.code[k]
	if in.op != Maximum || in.typ != Float32 || in.args[0] != x && in.args[1] != x {
		return nil, nil, 0
	}
	h = &hinge{kind: leakyReLU, slope: slope, lo: float32(math.Inf(-1))}
	steps = []int{i, k}
	// Of zeros the larger one is the first.
	if last := f.reader(in.dst, k); last >= 0 && f.p.code[last].op == Maximum && f.p.code[last].args[0] == in.dst {
		if _, lo, ok := f.withConstant(f.p.code[last]); ok && lo == lo {
			h.lo, steps = lo, append(steps, last)
		}
	}
	return steps, h, x
}

// gelu is match for x·erfc(-t), of any t or of x divided by a constant: it returns the instruction with the hinge, but for its result.
func (f *folding) gelu(i int) (steps []int, in instr) {
	neg := f.p.code[i]
	if neg.op != Neg || neg.typ != Float32 {
		return nil, instr{}
	}
	k := f.reader(neg.dst, i)
	if k < 0 || f.p.code[k].op != Erfc {
		return nil, instr{}
	}
	tail := f.p.code[k].dst
	last := f.reader(tail, k)
	if last < 0 || f.p.code[last].op != Mul {
		return nil, instr{}
	}
	x := f.p.code[last].args[0]
	if x == tail {
		x = f.p.code[last].args[1]
	}
	steps, t := []int{i, k, last}, neg.args[0]
	div := slices.IndexFunc(f.p.code, func(in instr) bool { return in.dst == t && in.op == TrueDiv && in.args[0] == x })
	if div >= 0 && f.uses[t] == 1 {
		if _, root, ok := f.withConstant(f.p.code[div]); ok {
			h := &hinge{kind: geluOf, slope: root, offset: 1}
			steps = append([]int{div}, steps...)
			if half := f.reader(f.p.code[last].dst, last); half >= 0 && f.p.code[half].op == Mul {
				if _, factor, ok := f.withConstant(f.p.code[half]); ok {
					h.offset, steps = factor, append(steps, half)
				}
			}
			return steps, instr{typ: Float32, args: [maxArgs]int32{x}, numArgs: 1, hinge: h}
		}
	}
	return steps, instr{typ: Float32, args: [maxArgs]int32{x, t}, numArgs: 2, hinge: &hinge{kind: gelu}}
}

// codes is match for min(hi, max(lo, round(x/scale) + zero)) as bytes, in this order: it returns the instruction with the
// hinge, but for its result.
func (f *folding) codes(i int) (steps []int, in instr) {
	first := f.p.code[i]
	if first.op != TrueDiv || first.typ != Float32 {
		return nil, instr{}
	}
	h, zero := &hinge{kind: codes}, int32(0)
	steps = []int{i}
	for _, op := range []Opcode{Round, Add, Maximum, Minimum, Cast} {
		v := f.p.code[i].dst
		if i = f.reader(v, i); i < 0 || f.p.code[i].op != op {
			return nil, instr{}
		}
		step := f.p.code[i]
		other, c, ok := f.withConstant(step)
		switch {
		case op == Add && step.typ == Float32 && step.args[0] == v:
			zero = step.args[1]
		case op == Add && step.typ == Float32:
			zero = step.args[0]
		case op == Maximum && ok && other == v && c == c:
			h.lo = c
		case op == Minimum && ok && other == v && c == c:
			h.hi = c
		case op == Round, op == Cast && (step.to == Uint8 || step.to == Int8):
		default:
			return nil, instr{}
		}
		steps = append(steps, i)
	}
	return steps, instr{typ: Float32, to: f.p.code[i].to, args: [maxArgs]int32{first.args[0], first.args[1], zero}, numArgs: 3, hinge: h}
}

// reader returns the only instruction behind i that reads a value, or -1.
func (f *folding) reader(v int32, i int) int {
	if f.uses[v] != 1 {
		return -1
	}
	for k := i + 1; k < len(f.p.code); k++ {
		if in := f.p.code[k]; slices.Contains(in.args[:in.numArgs], v) {
			return k
		}
	}
	return -1
}

// withConstant takes an instruction of float32s with a constant apart.
func (f *folding) withConstant(in instr) (other int32, c float32, ok bool) {
	if in.typ != Float32 || in.numArgs != 2 {
		return 0, 0, false
	}
	for k, a := range in.args[:2] {
		for _, fixed := range f.p.consts {
			if fixed.value == a && in.args[1-k] != a {
				return in.args[1-k], float32(fixed.data.Float(0)), true
			}
		}
	}
	return 0, 0, false
}
