package array

import (
	"fmt"
	"slices"
)

// A Program is a straight-line program of element-wise operations: what it computes for one element of its outputs from the
// corresponding elements of its inputs. NewProgram, Constant and Apply build it, Return ends it; then it is immutable.
//
// Values are named by numbers: the inputs from 0 on, then constants and results in the order in which they were added.
type Program struct {
	types  []DType // of all values
	inputs int
	consts []constant
	code   []instr
	outs   []int32

	// What Return adds: code with values in slots, of which few are alive at a time. The slots of inputs, then those of outputs,
	// come first.
	placed   []instr
	slots    []DType
	fixed    []constant
	lastRead []int32 // for each input, the last instruction that reads it
	written  []int32 // for each output, the instruction that makes it
}

type constant struct {
	value int32 // later: slot
	data  *Array
}

type instr struct {
	op      Opcode
	typ     DType // that it computes in; of its argument for a Cast
	args    [MaxArgs]int32
	dst     int32
	numArgs int8
}

// NewProgram begins a program with inputs of some types.
func NewProgram(inputs ...DType) *Program {
	return &Program{types: slices.Clone(inputs), inputs: len(inputs)}
}

// castProgram returns the program that converts elements.
func castProgram(from, to DType) *Program {
	p := NewProgram(from)
	return p.Return(p.Cast(to, 0))
}

// NumInputs returns the number of inputs.
func (p *Program) NumInputs() int { return p.inputs }

// NumOutputs returns the number of outputs of a program that was ended.
func (p *Program) NumOutputs() int { return len(p.outs) }

// NumOpcodes returns the number of operations, of which an addition of n values counts as n-1 and a conversion as one.
func (p *Program) NumOps() int { return len(p.code) }

// Type returns the type of a value.
func (p *Program) Type(value int) DType { return p.types[value] }

// OutputType returns the type of output i.
func (p *Program) OutputType(i int) DType { return p.types[p.outs[i]] }

// Constant adds a constant: the only element of data.
func (p *Program) Constant(data *Array) int {
	if data.Len() != 1 {
		panic(fmt.Sprintf("array: constant of shape %v in a program", data.Shape()))
	}
	v := p.add(data.DType())
	p.consts = append(p.consts, constant{int32(v), data.Clone().Reshape()})
	return v
}

func (p *Program) add(t DType) int {
	p.types = append(p.types, t)
	return len(p.types) - 1
}

// Cast adds a conversion, unless the value has the type already.
func (p *Program) Cast(to DType, value int) int {
	if p.types[value] == to {
		return value
	}
	dst := p.add(to)
	p.code = append(p.code, instr{op: Cast, typ: p.types[value], args: [MaxArgs]int32{int32(value)}, dst: int32(dst), numArgs: 1})
	return dst
}

// Apply adds an operation on values, which are converted to the type that it computes in. It panics where the operation is not
// defined. Cast is not an operation here.
func (p *Program) Append(op Opcode, args ...int) int {
	var buf [8]DType
	types := buf[:0]
	for _, a := range args {
		types = append(types, p.types[a])
	}
	compute, result, ok := op.Types(types...)
	if n := op.NumArgs(); !ok || n >= 0 && n != len(args) || op == Cast {
		panic(fmt.Sprintf("array: %v of %v", op, types))
	}
	switch {
	case op == Second:
		return p.emit(Second, compute, result, args[1], args[1])
	case op == Switch:
		return p.emit(Switch, compute, result, p.Cast(Bool, args[0]), p.Cast(compute, args[1]), p.Cast(compute, args[2]))
	case len(args) == 1 && op.NumArgs() < 0: // the sum of one value
		return p.emit(Identity, compute, result, p.Cast(compute, args[0]))
	case len(args) == 1:
		return p.emit(op, compute, result, p.Cast(compute, args[0]))
	}
	v := p.Cast(compute, args[0])
	for _, a := range args[1:] {
		v = p.emit(op, compute, result, v, p.Cast(compute, a))
	}
	return v
}

func (p *Program) emit(op Opcode, compute, result DType, args ...int) int {
	in := instr{op: op, typ: compute, numArgs: int8(len(args))}
	for i, a := range args {
		in.args[i] = int32(a)
	}
	dst := p.add(result)
	in.dst = int32(dst)
	p.code = append(p.code, in)
	return dst
}

// Return ends the program: values are its outputs. It returns p.
func (p *Program) Return(values ...int) *Program {
	made := make([]bool, len(p.types)) // by an operation, and no output yet
	for _, in := range p.code {
		made[in.dst] = true
	}
	for _, v := range values {
		if !made[v] {
			v = p.emit(Identity, p.types[v], p.types[v], v)
		} else {
			made[v] = false
		}
		p.outs = append(p.outs, int32(v))
	}
	p.place()
	return p
}

// place gives values slots: inputs, outputs and constants one each, others one that is free. A result may take the slot of an
// argument that is not needed any more.
func (p *Program) place() {
	last := make([]int32, len(p.types)) // the last instruction that reads a value
	for i := range last {
		last[i] = -1
	}
	for i, in := range p.code {
		for _, a := range in.args[:in.numArgs] {
			last[a] = int32(i)
		}
	}
	slot := make([]int32, len(p.types))
	for i := range slot {
		slot[i] = -1
	}
	newSlot := func(v int) {
		slot[v] = int32(len(p.slots))
		p.slots = append(p.slots, p.types[v])
	}
	for v := range p.inputs {
		newSlot(v)
		p.lastRead = append(p.lastRead, last[v])
	}
	p.written = make([]int32, len(p.outs))
	for _, v := range p.outs {
		newSlot(int(v))
	}
	for _, c := range p.consts {
		newSlot(int(c.value))
		p.fixed = append(p.fixed, constant{slot[c.value], c.data})
	}
	shared := int32(len(p.slots))
	var free [numDTypes][]int32
	p.placed = slices.Clone(p.code)
	for i := range p.placed {
		in := &p.placed[i]
		args := in.args
		for k, a := range args[:in.numArgs] {
			in.args[k] = slot[a]
			if last[a] == int32(i) && slot[a] >= shared && !slices.Contains(args[:k], a) {
				free[p.types[a]] = append(free[p.types[a]], slot[a])
			}
		}
		if v := in.dst; slot[v] < 0 {
			if list := free[p.types[v]]; len(list) > 0 {
				slot[v] = list[len(list)-1]
				free[p.types[v]] = list[:len(list)-1]
			} else {
				newSlot(int(v))
			}
		}
		in.dst = slot[in.dst]
		if o := int(in.dst) - p.inputs; o >= 0 && o < len(p.outs) {
			p.written[o] = int32(i)
		}
	}
}

// Equal reports whether the programs are the same, operation by operation.
func (p *Program) Equal(q *Program) bool {
	return p == q || p.inputs == q.inputs && slices.Equal(p.types, q.types) && slices.Equal(p.code, q.code) && slices.Equal(p.outs, q.outs) &&
		slices.EqualFunc(p.consts, q.consts, func(a, b constant) bool { return a.value == b.value && Equal(a.data, b.data) })
}

// Hash returns a hash that equal programs have in common.
func (p *Program) Hash() uint64 {
	h := uint64(p.inputs)
	mix := func(x uint64) { h = (h ^ x) * 0x9e3779b97f4a7c15; h ^= h >> 29 }
	for _, in := range p.code {
		mix(uint64(in.op)<<8 | uint64(in.typ))
		for _, a := range in.args[:in.numArgs] {
			mix(uint64(a))
		}
	}
	for _, o := range p.outs {
		mix(uint64(o))
	}
	return h
}

// A Step is an operation of a program.
type Step struct {
	Op     Opcode
	Args   []int // values
	Result int   // value
}

// Steps returns the operations in their order.
func (p *Program) Steps() []Step {
	steps := make([]Step, len(p.code))
	for i, in := range p.code {
		steps[i] = Step{Op: in.op, Result: int(in.dst)}
		for _, a := range in.args[:in.numArgs] {
			steps[i].Args = append(steps[i].Args, int(a))
		}
	}
	return steps
}

// Constants returns the constants by value number.
func (p *Program) Constants() map[int]*Array {
	m := make(map[int]*Array, len(p.consts))
	for _, c := range p.consts {
		m[int(c.value)] = c.data
	}
	return m
}

// Outputs returns the values that are the outputs.
func (p *Program) Outputs() []int {
	outs := make([]int, len(p.outs))
	for i, o := range p.outs {
		outs[i] = int(o)
	}
	return outs
}
