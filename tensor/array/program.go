package array

import (
	"fmt"
	"slices"
	"strings"
)

// A Program is a straight-line program of element-wise operations. It computes an element of each
// output from the corresponding elements of its inputs. NewProgram, Constant, Cast, Append and
// Inline build it; Return ends it, and then it is immutable.
//
// Values have numbers: the inputs from 0, then constants and results in the order in which they
// were added.
type Program struct {
	types  []DType // of all values
	inputs int
	consts []constant
	code   []instr
	outs   []int32

	// Return adds the code with values in slots, of which few are live at a time. The first slots
	// are those of the inputs, then those of the outputs.
	placed   []instr
	slots    []DType
	fixed    []constant
	lastRead []int32 // for each input, the last instruction that reads it
	written  []int32 // for each output, the instruction that makes it
	stages   bool    // an input is read after an output is made
	places   []int32 // for each slot, how many of its type are before it
	counts   []typeCount
}

// typeCount is the number of slots of a type.
type typeCount struct {
	dtype DType
	n     int
}

type constant struct {
	value int32 // later: slot
	data  *Array
}

type instr struct {
	op      Opcode
	typ     DType // in which it computes; for a Cast, of the argument
	to      DType // of its result
	numArgs int8
	args    [maxArgs]int32
	dst     int32
	wide    int32               // of placed code: the first of two slots for half floats as float32s
	hinge   *hinge              // of placed code: it takes the place of the operation
	float32 *blockFunc[float32] // of placed code: what computes an operation of float32s; otherwise nil
}

// NewProgram starts a program with inputs of the given types.
func NewProgram(inputs ...DType) *Program {
	return &Program{types: slices.Clone(inputs), inputs: len(inputs)}
}

// castProgram returns a program that converts elements.
func castProgram(from, to DType) *Program {
	p := NewProgram(from)
	return p.Return(p.Cast(to, 0))
}

// NumInputs returns the number of inputs.
func (p *Program) NumInputs() int { return p.inputs }

// NumOutputs returns the number of outputs, once Return has ended the program.
func (p *Program) NumOutputs() int { return len(p.outs) }

// NumOps returns the number of operations. A sum of n values counts as n-1, and a conversion as
// one.
func (p *Program) NumOps() int { return len(p.code) }

// Type returns the type of a value.
func (p *Program) Type(value int) DType { return p.types[value] }

// OutputType returns the type of output i.
func (p *Program) OutputType(i int) DType { return p.types[p.outs[i]] }

// Constant adds a constant, the only element of data, and returns its value.
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

// Cast appends a conversion and returns its result, or the value itself if it has the type.
func (p *Program) Cast(to DType, value int) int {
	if p.types[value] == to {
		return value
	}
	dst := p.add(to)
	p.code = append(p.code, instr{op: Cast, typ: p.types[value], to: to, args: [maxArgs]int32{int32(value)}, dst: int32(dst), numArgs: 1})
	return dst
}

// Append appends an operation other than Cast, and returns its result. It converts the arguments to
// the type in which the operation computes, and panics if the operation is not defined for them.
func (p *Program) Append(op Opcode, args ...int) int {
	var buf [8]DType
	types := buf[:0]
	for _, a := range args {
		types = append(types, p.types[a])
	}
	compute, result, ok := op.Types(types...)
	if n := op.NumArgs(); !ok || n >= 0 && n != len(args) || op == Cast {
		panic(fmt.Sprintf("array: %v of %v", op, slices.Clone(types)))
	}
	switch {
	// The value is copied. What it is broadcast to affects only the shape of the output, which
	// the caller of Map has computed.
	case op == Second:
		return p.emit(Second, compute, result, args[1], args[1])
	case op == Switch:
		return p.emit(Switch, compute, result, p.Cast(Bool, args[0]), p.Cast(compute, args[1]), p.Cast(compute, args[2]))
	case len(args) == 1 && op.NumArgs() < 0: // a sum of one value
		return p.emit(Identity, compute, result, p.Cast(compute, args[0]))
	case len(args) == 1:
		return p.emit(op, compute, result, p.Cast(compute, args[0]))
	}
	// Sums and products of several values go from left to right, as they would one by one.
	v := p.Cast(compute, args[0])
	for _, a := range args[1:] {
		v = p.emit(op, compute, result, v, p.Cast(compute, a))
	}
	return v
}

func (p *Program) emit(op Opcode, compute, result DType, args ...int) int {
	in := instr{op: op, typ: compute, to: result, numArgs: int8(len(args))}
	for i, a := range args {
		in.args[i] = int32(a)
	}
	dst := p.add(result)
	in.dst = int32(dst)
	p.code = append(p.code, in)
	return dst
}

// Inline appends the operations of q, which Return has ended, with values of p as inputs. It
// returns the values of the outputs.
func (p *Program) Inline(q *Program, inputs ...int) []int {
	values, known := make([]int, len(q.types)), make([]bool, len(q.types))
	for i, v := range inputs {
		values[i], known[i] = v, true
	}
	value := func(v int32) int {
		if !known[v] { // a constant
			k := slices.IndexFunc(q.consts, func(c constant) bool { return c.value == v })
			values[v], known[v] = p.Constant(q.consts[k].data), true
		}
		return values[v]
	}
	for _, in := range q.code {
		args := make([]int, in.numArgs)
		for i := range args {
			args[i] = value(in.args[i])
		}
		// Append has made it a copy: what the value is broadcast to is no part of a program.
		if in.op == Second {
			in.op, args = Identity, args[:1]
		}
		values[in.dst], known[in.dst] = p.emit(in.op, in.typ, q.types[in.dst], args...), true
	}
	outs := make([]int, len(q.outs))
	for i, o := range q.outs {
		outs[i] = value(o)
	}
	return outs
}

// Return ends the program, whose outputs are the given values, and returns it.
func (p *Program) Return(values ...int) *Program {
	made := make([]bool, len(p.types)) // by an operation, and not an output yet
	for _, in := range p.code {
		made[in.dst] = true
	}
	for _, v := range values {
		// A slot of an output is written by the instruction that makes it. An input, a constant or
		// a second output of one value needs an instruction of its own.
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

// place assigns slots to values: inputs, outputs and constants have one each; other values share
// slots. A result may take the slot of an argument that is dead.
func (p *Program) place() {
	// Phase 1: how long values live. The code is straight, so a value is dead behind the last
	// instruction that reads it.
	code := p.withHinges()
	last := make([]int32, len(p.types)) // the last instruction that reads a value
	for i := range last {
		last[i] = -1
	}
	for i, in := range code {
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
	// Phase 2: slots that are not shared. Operands come first, because a run addresses them by
	// their numbers, then constants, which are filled before the first block and must survive all
	// blocks.
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
	// Half floats are computed with as float32s, in two slots that all instructions have in common.
	halves := len(p.slots)
	for i := range code {
		if in := &code[i]; in.typ.IsHalf() || in.op == Cast && in.to.IsHalf() {
			if in.wide = int32(halves); len(p.slots) == halves {
				p.slots = append(p.slots, Float32, Float32)
			}
		}
	}
	// Phase 3: all other values, in the order of the code. A slot is free from the instruction on
	// that reads its value for the last time, and that instruction may already use it for its
	// result: kernels read an element before they write it.
	shared := int32(len(p.slots))
	var free [numDTypes][]int32
	p.placed = code
	for i := range p.placed {
		in := &p.placed[i]
		args := in.args
		for k, a := range args[:in.numArgs] {
			in.args[k] = slot[a]
			// An argument that occurs twice is freed once.
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
		if in.typ == Float32 && in.to == Float32 && in.op != Cast && in.op != Switch {
			in.float32 = &float32Kernels[in.op]
		}
		// A run compares this with the last instruction that reads an input: see staged.
		if o := int(in.dst) - p.inputs; o >= 0 && o < len(p.outs) {
			p.written[o] = int32(i)
		}
	}
	for _, read := range p.lastRead {
		for _, made := range p.written {
			p.stages = p.stages || read > made
		}
	}
	p.countSlots()
}

// countSlots numbers the slots of each type, so that a run gets memory for them in one piece.
func (p *Program) countSlots() {
	var counts [numDTypes]int
	for _, t := range p.slots {
		p.places = append(p.places, int32(counts[t]))
		counts[t]++
	}
	for t, n := range counts {
		if n > 0 {
			p.counts = append(p.counts, typeCount{DType(t), n})
		}
	}
}

// Equal reports whether the programs have the same operations.
func (p *Program) Equal(q *Program) bool {
	return p == q || p.inputs == q.inputs && slices.Equal(p.types, q.types) && slices.Equal(p.code, q.code) && slices.Equal(p.outs, q.outs) &&
		slices.EqualFunc(p.consts, q.consts, func(a, b constant) bool { return a.value == b.value && Equal(a.data, b.data) })
}

// Hash returns the same hash for equal programs.
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

// nameOf returns the name of an operation. That of a cast has the type of its result.
func (p *Program) nameOf(in instr) string {
	if in.op == Cast {
		return "cast{" + p.types[in.dst].String() + "}"
	}
	return in.op.String()
}

// maxText bounds the number of operations that String prints.
const maxText = 12

// String prints the outputs as expressions such as add(sin(i0), cos(i0)), or the number of
// operations of a long program.
func (p *Program) String() string {
	if len(p.code) > maxText {
		return fmt.Sprintf("%d ops", len(p.code))
	}
	texts := make([]string, len(p.types))
	for i := range p.inputs {
		texts[i] = fmt.Sprintf("i%d", i)
	}
	for _, c := range p.consts {
		texts[c.value] = c.data.String()
	}
	for _, in := range p.code {
		args := make([]string, in.numArgs)
		for i := range args {
			args[i] = texts[in.args[i]]
		}
		text := p.nameOf(in) + "(" + strings.Join(args, ", ") + ")"
		if len(text) > 20*maxText { // shared values are printed repeatedly
			return fmt.Sprintf("%d ops", len(p.code))
		}
		texts[in.dst] = text
	}
	outs := make([]string, len(p.outs))
	for i, o := range p.outs {
		outs[i] = texts[o]
	}
	return strings.Join(outs, "; ")
}
