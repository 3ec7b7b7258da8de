package array

import (
	"slices"

	"github.com/nnopt/nnopt/kernel"
)

// A hinge is max(lo, min(hi, slope·x + offset)) of float32s, or x times that: hard sigmoids and
// swishes. One instruction with a hinge takes the place of four or five, which would go through the
// block one by one. It has their bits.
type hinge struct {
	slope, offset, lo, hi float32
	gated                 bool
}

// run computes a block.
func (h *hinge) run(dst, x []float32) {
	if h.gated {
		kernel.HardSwishVec(dst, x[:len(dst)], h.slope, h.offset, h.lo, h.hi)
	} else {
		kernel.HardSigmoidVec(dst, x[:len(dst)], h.slope, h.offset, h.lo, h.hi)
	}
}

// withHinges returns a copy of the code with hinges in place of what computes them.
func (p *Program) withHinges() []instr {
	code := slices.Clone(p.code)
	if len(code) < 4 {
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
			continue
		}
		last := steps[len(steps)-1]
		code[last] = instr{typ: Float32, args: [maxArgs]int32{x}, dst: code[last].dst, numArgs: 1, hinge: h}
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
			h.gated = true
			steps = append(steps, k)
		}
	}
	return steps, h, x
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
