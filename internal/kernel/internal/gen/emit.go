package main

import (
	"bytes"
	"fmt"
	"strings"
)

// isa is what differs between the instruction sets.
type isa struct {
	name   string
	arch   string
	suffix string // of the names of functions
	reg    string // the letter of a vector register
	lanes  int    // float32s in a vector register
	zero   string // the instruction that clears a register

	// Registers of tiles.
	vecs int // the width of a full panel
	w, x int // the first register for W, and for x
	numX int

	laneRows int // the largest number of rows of a kernel of narrow products
}

var isas = []isa{
	{name: "avx512", arch: "amd64", suffix: "AVX512", reg: "Z", lanes: 16, zero: "VPXORD", vecs: 4, w: 24, x: 28, numX: 4, laneRows: 6},
	{name: "avx2", arch: "amd64", suffix: "AVX2", reg: "Y", lanes: 8, zero: "VXORPS", vecs: 2, w: 12, x: 14, numX: 2, laneRows: 3},
	{name: "neon", arch: "arm64", suffix: "NEON", reg: "V", lanes: 4, zero: "VXORPS", vecs: 4, w: 24, x: 24, numX: 6, laneRows: 3},
}

// emitter writes assembly for an instruction set.
type emitter struct {
	isa
	buf       bytes.Buffer
	constants table
	names     map[string]string   // operands by name
	rotate    int                 // how far the vector registers are renumbered
	bitwise   func(string) string // the instruction for AND, OR and XOR
	functions []string            // that Go calls, with their parameters
	uses      []string            // constants that instructions name, in order
	pointed   bool                // the address of the constants is needed, on arm64
}

// arm reports whether the code is for arm64.
func (e *emitter) arm() bool { return e.arch == "arm64" }

// p writes instructions, which "; " separates. Operands may be constants of the table, or names: of
// registers, of the arguments of a function, and of the elements of its vectors. AND, OR and XOR
// are replaced by the instructions that do this to vectors. As always in Go's assembly the
// destination comes last, and the subtrahend first.
func (e *emitter) p(format string, args ...any) {
	for _, instruction := range strings.Split(fmt.Sprintf(format, args...), "; ") {
		name, rest, _ := strings.Cut(instruction, " ")
		switch name {
		case "AND", "OR", "XOR":
			name = e.bitwise(name)
		}
		operands := strings.TrimLeft(rest, " ")
		list := strings.Split(operands, ", ")
		for i, o := range list {
			list[i] = e.operand(o)
		}
		if e.arm() {
			e.translate(name, list)
			continue
		}
		// Spaces in front of the operands stay.
		e.line("\t%s\n", strings.TrimRight(name+" "+rest[:len(rest)-len(operands)]+strings.Join(list, ", "), " "))
	}
}

// operand resolves a name. It returns anything else unchanged.
func (e *emitter) operand(name string) string {
	if o, ok := e.names[name]; ok {
		return o
	}
	if at := e.constant(name); at != "" {
		e.uses = append(e.uses, name)
		return at
	}
	return name
}

// constant returns the operand for a constant of the table, or nothing if there is no such
// constant.
func (e *emitter) constant(name string) string {
	for i, c := range e.constants.list {
		switch {
		case c.name != name:
		case e.arm():
			e.pointed = true
			return fmt.Sprintf("%d(%s)", i*e.width(), base)
		default:
			return fmt.Sprintf("%s<>+%d(SB)", e.constants.label, i*e.width())
		}
	}
	return ""
}

// line writes text as it is.
func (e *emitter) line(format string, args ...any) { fmt.Fprintf(&e.buf, format, args...) }

func (e *emitter) label(l string) { e.line("%s:\n", l) }

// vec is the name of a vector register.
func (e *emitter) vec(i int) string { return fmt.Sprintf("%s%d", e.reg, (i+e.rotate)%32) }

// width is the size of a vector register in bytes.
func (e *emitter) width() int { return 4 * e.lanes }

// registers names vector registers, from the given one on.
func (e *emitter) registers(first int, names ...string) {
	for i, n := range names {
		e.names[n] = e.vec(first + i)
	}
}

// end writes the end of a function.
func (e *emitter) end() { e.p("VZEROUPPER; RET") }

// table is a table of constants. Each fills a vector register.
type table struct {
	label string
	size  int // of an element, in bytes
	list  []constant
}

type constant struct {
	name string
	bits uint64
}

// writeConstants writes the table.
func (e *emitter) writeConstants() {
	t := &e.constants
	e.line("\n")
	for i, c := range t.list {
		for at := 0; at < e.width(); at += t.size {
			e.line("DATA %s<>+%d(SB)/%d, $0x%0*x // %s\n", t.label, i*e.width()+at, t.size, 2*t.size, c.bits, c.name)
		}
	}
	e.line("GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", t.label, len(t.list)*e.width())
}

// polynomial computes p, a polynomial of x with the given coefficients, the highest first, of the type of
// the table of constants.
func (e *emitter) polynomial(p, x, coefficients string) {
	list, typ := strings.Fields(coefficients), "S"
	if e.constants.size == 8 {
		typ = "D"
	}
	if e.arm() {
		e.polynomialNEON(p, x, list)
		return
	}
	for i, c := range list {
		if i == 0 {
			e.p("VMOVUP%s %s, %s", typ, c, p)
		} else {
			e.p("VFMADD213P%s %s, %s, %s", typ, c, x, p)
		}
	}
}

// polynomialNEON is polynomial where a fused instruction overwrites the summand: it loads every
// coefficient to the register that takes the next sum.
func (e *emitter) polynomialNEON(p, x string, coefficients []string) {
	// Two registers take turns: one has the sum so far, and the coefficient in the other becomes
	// the next sum.
	sums := []string{e.vec(temp), e.names[p]}
	at := len(coefficients) % 2 // the last sum is in p
	from, fmla := e.operand, "fmla.4s"
	if e.constants.size == 8 { // registers are for the constants of all else
		from, fmla = e.constant, "fmla.2d"
	}
	for i, c := range coefficients {
		sum := sums[(at+i)%2]
		e.move(from(c), sum)
		if i > 0 {
			e.word(fmla, sum, sums[(at+i+1)%2], e.names[x])
		}
	}
}

// writeMask writes a table of 32-bit words. Words n-t to 2n-1-t are a mask of the first t of n
// lanes.
func (e *emitter) writeMask(label string, n int) {
	e.line("\n")
	for i := range n {
		v := "0xffffffffffffffff"
		if i >= n/2 {
			v = "0"
		}
		e.line("DATA %s<>+%d(SB)/8, $%s\n", label, 8*i, v)
	}
	e.line("GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", label, 8*n)
}

// open writes the head of a function with parameters as Go writes them, and loads each into its
// register. "-" leaves one in memory.
func (e *emitter) open(name, params string, registers ...string) {
	list, size := parse(params)
	e.functions = append(e.functions, fmt.Sprintf("%s%s(%s)", name, e.suffix, params))
	e.line("\n// func %s%s(%s)\nTEXT ·%[1]s%[2]s(SB), NOSPLIT, $0-%[4]d\n", name, e.suffix, params, size)
	for i, p := range list {
		switch {
		case registers[i] == "-":
		case p.typ == "float32":
			e.p("VBROADCASTSS %s+%d(FP), %s", p.name, p.at, registers[i])
		default:
			e.p("MOVQ %s+%d(FP), %s", p.name, p.at, registers[i])
		}
	}
}

type param struct {
	name, typ string
	at        int // the offset among the arguments
}

// parse returns the parameters, and the size of all arguments.
func parse(params string) (list []param, size int) {
	for _, p := range strings.Split(params, ", ") {
		name, typ, _ := strings.Cut(p, " ")
		list = append(list, param{name: name, typ: typ})
	}
	// A name without a type has that of the next one, as in Go.
	for i := len(list) - 2; i >= 0; i-- {
		if list[i].typ == "" {
			list[i].typ = list[i+1].typ
		}
	}
	for i := range list {
		width := 8
		if list[i].typ == "float32" {
			width = 4
		}
		// Arguments are aligned to their size. go vet compares the offsets with the declarations.
		list[i].at = (size + width - 1) &^ (width - 1)
		size = list[i].at + width
	}
	return list, size
}

// blockBytes is how many bytes of its vectors a function takes at a time, with either instruction
// set: 16 float32s or 8 float64s.
const blockBytes = 64

// pointers are the registers for vectors.
var pointers = []string{"DI", "SI", "DX", "R8", "R10", "R11"}

// function is a function of vectors and numbers.
type function struct {
	name   string
	params string // vectors; then "blocks int"; then numbers; then "sums", the partial results, in R9
	before func()
	body   func(i int) // for each vector i of a block; the names of vectors are operands
	after  func()

	// Some bodies are long chains of instructions that wait for each other. With AVX-512 as many blocks as
	// there are streams are computed together, one instruction of each at a time, and with AVX2 the vectors
	// of a block: a processor looks ahead by fewer instructions than two bodies have.
	streams   int
	registers func(stream int) // names the registers of a stream
}

// function writes a function. The registers for numbers are the last ones, downwards, or for arm64 the
// last ones that constants leave.
func (e *emitter) function(f function) {
	list, _ := parse(f.params)
	var registers []string
	vectors, numbers := map[string]string{}, 0
	for _, p := range list {
		register := "CX"
		switch {
		case p.typ == "float32":
			switch {
			case e.arm():
				register = e.vec(temp - 1 - numbers)
			case e.lanes == 16:
				register = e.vec(31 - numbers)
			default:
				register = e.vec(15 - numbers)
			}
			e.names[p.name] = register
			numbers++
		case strings.HasPrefix(p.typ, "*["):
			register = "R9"
		case p.typ != "int":
			register = pointers[len(vectors)]
			vectors[p.name] = register
		}
		registers = append(registers, register)
	}
	if f.registers != nil {
		f.registers(0)
	}
	e.open(f.name, f.params, registers...)
	hoisted := e.hoist(f, vectors)
	if f.before != nil {
		f.before()
	}
	if e.arm() {
		// Loads of arm64 with an offset have no index, so every pointer moves. On amd64 one index
		// moves for all of them.
		e.label("next")
		e.body(f, vectors)
		for _, register := range pointers[:len(vectors)] {
			e.p("ADDQ $%d, %s", blockBytes, register)
		}
		e.p("DECQ CX; JNZ next")
	} else {
		e.p("XORQ AX, AX")
		woven := f.streams > 1 && e.lanes == 16
		if woven {
			e.p("SUBQ $%d, CX; JLT  few", f.streams)
			e.label("several")
			e.weave(f, vectors, f.streams)
			e.p("ADDQ $%d, AX; SUBQ $%d, CX; JGE  several", f.streams*blockBytes, f.streams)
			e.label("few")
			e.p("ADDQ $%d, CX; JZ   done", f.streams)
			f.registers(0)
		}
		e.label("next")
		e.body(f, vectors)
		e.p("ADDQ $%d, AX; DECQ CX; JNZ  next", blockBytes)
		if woven {
			e.label("done")
		}
	}
	if f.after != nil {
		f.after()
	}
	e.end()
	for _, p := range list {
		delete(e.names, p.name)
	}
	for _, c := range hoisted {
		delete(e.names, c)
	}
}

// body writes what a function does with a block.
func (e *emitter) body(f function, vectors map[string]string) {
	if f.registers != nil && e.lanes == 8 {
		e.weave(f, vectors, 2)
		return
	}
	for i := range blockBytes / e.width() {
		for v, register := range vectors {
			e.names[v] = fmt.Sprintf("%d(%s)(AX*1)", i*e.width(), register)
			if e.arm() {
				e.names[v] = fmt.Sprintf("%d(%s)", i*e.width(), register)
			}
		}
		f.body(i)
	}
}

// weave writes several bodies, one instruction of each at a time. So what adds to the same register does so
// in the order of the blocks.
func (e *emitter) weave(f function, vectors map[string]string, streams int) {
	text := e.buf
	bodies := make([][]string, streams)
	for s := range bodies {
		e.buf = bytes.Buffer{}
		f.registers(s)
		for v, register := range vectors {
			e.names[v] = fmt.Sprintf("%d(%s)(AX*1)", s*e.width(), register)
		}
		f.body(s % (blockBytes / e.width()))
		bodies[s] = strings.SplitAfter(e.buf.String(), "\n")
	}
	e.buf = text
	for i := range bodies[0] {
		for _, b := range bodies {
			e.line("%s", b[i])
		}
	}
}

// firstHoisted and lastHoisted are the vector registers that hold constants on arm64.
const firstHoisted, lastHoisted = 16, 27

// hoist loads constants that the body of a function uses, as many as there are registers, and the
// address of the others. It writes the body once, to see which ones there are. It returns those
// that have registers.
func (e *emitter) hoist(f function, vectors map[string]string) (hoisted []string) {
	if !e.arm() {
		return nil
	}
	// Writing the body twice is simpler than asking it beforehand: which constants it needs depends
	// on the formulas, on the number of vectors of a block and on constants that another
	// instruction has loaded.
	text := e.buf
	e.buf, e.uses, e.pointed = bytes.Buffer{}, nil, false
	e.body(f, vectors)
	used := e.uses
	if f.before != nil {
		f.before()
	}
	e.buf = text
	if e.pointed {
		e.line("\tMOVD $%s<>(SB), %s\n", e.constants.label, base)
	}
	for _, c := range used {
		// The first ones that are used get registers. A constant has a name from then on, so a
		// second use is no second register.
		if r := firstHoisted + len(hoisted); r <= lastHoisted && e.names[c] == "" {
			e.p("VMOVUPS %s, %s", c, e.vec(r))
			e.names[c] = e.vec(r)
			hoisted = append(hoisted, c)
		}
	}
	return hoisted
}
