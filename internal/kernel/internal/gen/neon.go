package main

import (
	"fmt"
	"strconv"
	"strings"
)

// Functions are written in the notation of AVX, and translated for arm64. So each formula is
// written once, and the bits are the same. Go's assembler lacks most of the vector instructions
// with floats; they become words, with the text of the instruction in a comment, which a test
// compares with the disassembly.

// temp is the first of two vector registers, and scratch the general register, that the translation
// uses.
const (
	temp    = 30
	scratch = "R6"
)

// base is the general register that points at the constants.
const base = "R7"

// general has the general registers for those of amd64. Registers with numbers keep their number.
var general = map[string]string{"DI": "R0", "SI": "R1", "DX": "R2", "AX": "R3", "BX": "R4", "CX": "R5"}

// words are the instructions with three vector registers, or two, by name and shape: the bits that
// say which one it is. Those without a shape work on bytes.
var words = map[string]uint32{
	"fadd.4s": 0x4e20d400, "fsub.4s": 0x4ea0d400, "fmul.4s": 0x6e20dc00, "fdiv.4s": 0x6e20fc00, "faddp.4s": 0x6e20d400,
	"fmla.4s": 0x4e20cc00, "fmls.4s": 0x4ea0cc00, "fcmeq.4s": 0x4e20e400, "fcmgt.4s": 0x6ea0e400,
	"fmin.4s": 0x4ea0f400, "fmax.4s": 0x4e20f400, "scvtf.4s": 0x4e21d800,
	"add.4s": 0x4ea08400, "sub.4s": 0x6ea08400, "cmtst.4s": 0x4ea08c00, "fcvtns.4s": 0x4e21a800, "fcvtzs.4s": 0x4ea1b800,
	"fadd.2d": 0x4e60d400, "fsub.2d": 0x4ee0d400, "fmul.2d": 0x6e60dc00, "fdiv.2d": 0x6e60fc00, "fsqrt.2d": 0x6ee1f800, "fsqrt.4s": 0x6ea1f800, "frintn.4s": 0x4e218800,
	"frintm.4s": 0x4e219800, "frintp.4s": 0x4ea18800, "frintz.4s": 0x4ea19800,
	"fmin.2d": 0x4ee0f400, "fmax.2d": 0x4e60f400, "fmla.2d": 0x4e60cc00, "fmls.2d": 0x4ee0cc00, "fcmeq.2d": 0x4e60e400, "fcmgt.2d": 0x6ee0e400,
	"add.2d": 0x4ee08400, "sub.2d": 0x6ee08400, "cmtst.2d": 0x4ee08c00,
	"fmla.s": 0x4f801000, "fmla.d": 0x4fc01000, "fcvtl": 0x0e617800, "fcvtl2": 0x4e617800,
	"fcvtl.4h": 0x0e217800, "fcvtl2.8h": 0x4e217800, "fcvtn.4h": 0x0e216800, "fcvtn2.8h": 0x4e216800,
	"and.16b": 0x4e201c00, "orr.16b": 0x4ea01c00, "eor.16b": 0x6e201c00, "mvn.16b": 0x6e205800,
	"bsl.16b": 0x6e601c00, "bit.16b": 0x6ea01c00, "bif.16b": 0x6ee01c00,
	"smlal.h": 0x0f402000, "smlal2.h": 0x4f402000, "sdot.4b": 0x4f80e000,
	"uzp1.8h": 0x4e401800, "uzp1.16b": 0x4e001800, "uzp1.4s": 0x4e801800, "zip1.4s": 0x4e803800, "zip2.4s": 0x4e807800, "fminv": 0x6eb0f800, "fmaxv": 0x6e30f800,
	"shl.4s": 0x4f205400, "sshr.4s": 0x4f200400, "ushr.4s": 0x6f200400, "shl.2d": 0x4f405400, "ushr.2d": 0x6f400400,
}

// number is the number of a vector register.
func number(register string) uint32 {
	n, err := strconv.Atoi(register[1:])
	if err != nil {
		panic("not a vector register: " + register)
	}
	return uint32(n)
}

// word writes an instruction d = op(n, m), or d = op(n) without m.
func (e *emitter) word(op, d, n string, m ...string) {
	bits, ok := words[op]
	if !ok {
		panic("unknown instruction: " + op)
	}
	name, shape, _ := strings.Cut(op, ".")
	bits |= number(d) | number(n)<<5
	text := fmt.Sprintf("%s v%d.%s, v%d.%s", name, number(d), shape, number(n), shape)
	if len(m) > 0 {
		bits |= number(m[0]) << 16
		text += fmt.Sprintf(", v%d.%s", number(m[0]), shape)
	}
	e.line("\tWORD $0x%08x // %s\n", bits, text)
}

// fmlaBy writes d += n·m[i], for float32s or float64s.
func (e *emitter) fmlaBy(size int, d, n, m string, i int) {
	op, shape, name := "fmla.s", "4s", "s"
	bits := uint32(i&1)<<21 | uint32(i>>1)<<11
	if size == 8 {
		op, shape, name = "fmla.d", "2d", "d"
		bits = uint32(i) << 11
	}
	bits |= words[op] | number(d) | number(n)<<5 | number(m)<<16
	e.line("\tWORD $0x%08x // fmla v%d.%s, v%d.%[3]s, v%[5]d.%[6]s[%[7]d]\n", bits, number(d), shape, number(n), number(m), name, i)
}

// shift writes d = n shifted by some bits.
func (e *emitter) shift(op, d, n string, by int) {
	name, shape, _ := strings.Cut(op, ".")
	// Shifts to the right are encoded as twice the size of an element less the distance, of which
	// the shape has one size.
	code := by
	if name != "shl" {
		code = 8*map[string]int{"4s": 4, "2d": 8}[shape] - by
	}
	e.line("\tWORD $0x%08x // %s v%d.%s, v%d.%[4]s, #%[6]d\n", words[op]|uint32(code)<<16|number(d)|number(n)<<5, name, number(d), shape, number(n), by)
}

// lengthen writes d = the lower or the upper two float32s of n, as float64s.
func (e *emitter) lengthen(d, n string, upper bool) {
	op, shape := "fcvtl", "2s"
	if upper {
		op, shape = "fcvtl2", "4s"
	}
	e.line("\tWORD $0x%08x // %s v%d.2d, v%d.%s\n", words[op]|number(d)|number(n)<<5, op, number(d), number(n), shape)
}

// halves writes the conversion of four numbers between half floats, of the shape that the name of the op says, and float32s.
func (e *emitter) halves(op, d, n string) {
	name, half, _ := strings.Cut(op, ".")
	to, from := "4s", half
	if strings.HasPrefix(name, "fcvtn") {
		to, from = from, to
	}
	e.line("\tWORD $0x%08x // %s v%d.%s, v%d.%s\n", words[op]|number(d)|number(n)<<5, name, number(d), to, number(n), from)
}

// isVector reports whether an operand is a vector register, and not memory.
func isVector(o string) bool {
	return strings.ContainsRune("XYZV", rune(o[0])) && strings.Trim(o[1:], "0123456789") == ""
}

// address translates the registers of an operand.
func address(o string) string {
	if at := strings.IndexByte(o, '('); at >= 0 && strings.HasSuffix(o, ")") {
		if r, ok := general[o[at+1:len(o)-1]]; ok {
			return o[:at+1] + r + ")"
		}
		return o
	}
	if r, ok := general[o]; ok {
		return r
	}
	return o
}

// vector returns the register with an operand, which it loads to a temporary one from memory.
func (e *emitter) vector(o string, t int) string {
	if isVector(o) {
		return o
	}
	e.move(o, e.vec(t))
	return e.vec(t)
}

// integer returns the general register with an operand, or the operand if it is a number.
func (e *emitter) integer(o string) string {
	if strings.Contains(o, "(") {
		e.line("\tMOVD %s, %s\n", address(o), scratch)
		return scratch
	}
	return address(o)
}

// three are the instructions whose destination is the third operand: d = op(second, first).
var three = map[string]string{
	"VADDPS": "fadd.4s", "VSUBPS": "fsub.4s", "VMULPS": "fmul.4s", "VDIVPS": "fdiv.4s",
	"VADDPD": "fadd.2d", "VSUBPD": "fsub.2d", "VMULPD": "fmul.2d", "VDIVPD": "fdiv.2d",
	"VPADDD": "add.4s", "VPSUBD": "sub.4s", "VPADDQ": "add.2d", "VPSUBQ": "sub.2d", "VPTESTMQ": "cmtst.2d",
	"VFMADD231PS": "fmla.4s", "VFMADD231PD": "fmla.2d", "VFNMADD231PS": "fmls.4s", "VFNMADD231PD": "fmls.2d",
	"VANDPS": "and.16b", "VPAND": "and.16b", "VPOR": "orr.16b", "VPXOR": "eor.16b", "VXORPS": "eor.16b", "VORPS": "orr.16b",
}

// two are the instructions with one argument.
var two = map[string]string{"VSQRTPS": "fsqrt.4s", "VSQRTPD": "fsqrt.2d", "VCVTPS2DQ": "fcvtns.4s", "VCVTDQ2PS": "scvtf.4s"}

// shifts are the instructions that shift by a number of bits.
var shifts = map[string]string{"VPSLLD": "shl.4s", "VPSRAD": "sshr.4s", "VPSRLD": "ushr.4s", "VPSLLQ": "shl.2d", "VPSRLQ": "ushr.2d"}

// scalars are the instructions with general registers whose operands have the same order.
var scalars = map[string]string{"ADDQ": "ADD", "SUBQ": "SUB", "ANDQ": "AND", "TESTQ": "TST", "IMULQ": "MUL"}

// branches are the branches.
var branches = map[string]string{"JZ": "BEQ", "JEQ": "BEQ", "JNZ": "BNE", "JNE": "BNE", "JMP": "JMP"}

// translate writes an instruction of amd64 for arm64.
func (e *emitter) translate(name string, o []string) {
	last := o[len(o)-1]
	switch {
	// The order of cases matters: to clear a register is also an XOR, and a broadcast also begins
	// with V.
	case strings.HasSuffix(name, "XORPS") && o[0] == last && o[1] == last:
		e.line("\tVMOVI $0, V%d.B16\n", number(last))
	case three[name] != "":
		e.word(three[name], last, e.vector(o[1], temp+1), e.vector(o[0], temp))
	case name == "VROUNDPS":
		e.word(map[string]string{"$8": "frintn.4s", "$9": "frintm.4s", "$10": "frintp.4s", "$11": "frintz.4s"}[o[0]], last, e.vector(o[1], temp))
	case two[name] != "":
		e.word(two[name], last, e.vector(o[0], temp))
	case shifts[name] != "":
		by, _ := strconv.Atoi(o[0][1:])
		e.shift(shifts[name], last, e.vector(o[1], temp), by)
	case branches[name] != "":
		e.line("\t%s %s\n", branches[name], last)
	case strings.HasPrefix(name, "VMOV"):
		e.move(o[0], last)
	case strings.HasPrefix(name, "VBROADCAST"):
		e.broadcast(name, o[0], last)
	case strings.HasPrefix(name, "V"):
		e.translateVector(name, o)
	default:
		e.translateScalar(name, o)
	}
}

// move writes a move between vector registers and memory.
func (e *emitter) move(from, to string) {
	switch {
	case isVector(from) && isVector(to):
		e.line("\tVMOV V%d.B16, V%d.B16\n", number(from), number(to))
	case isVector(from):
		e.line("\tFMOVQ %s, %s\n", "F"+from[1:], address(to))
	default:
		e.line("\tFMOVQ %s, %s\n", address(from), "F"+to[1:])
	}
}

// broadcast fills a register with a number in memory. A constant in memory fills a register
// already.
func (e *emitter) broadcast(name, from, to string) {
	switch {
	case strings.HasSuffix(from, "("+base+")"):
		e.move(from, to)
	case name == "VBROADCASTSS":
		e.line("\tFMOVS %s, %s\n\tVDUP V%d.S[0], V%[3]d.S4\n", address(from), "F"+to[1:], number(to))
	default:
		e.line("\tFMOVD %s, %s\n\tVDUP V%d.D[0], V%[3]d.D2\n", address(from), "F"+to[1:], number(to))
	}
}

// translateVector writes the other instructions with vector registers.
func (e *emitter) translateVector(name string, o []string) {
	last := o[len(o)-1]
	shape := ".4s"
	if strings.HasSuffix(name, "PD") {
		shape = ".2d"
	}
	switch name[:len(name)-2] {
	case "VZEROUPP": // there is nothing to clear
	case "VMAX":
		e.extreme(shape, e.vector(o[0], temp), e.vector(o[1], temp+1), last, false)
	case "VMIN":
		e.extreme(shape, e.vector(o[0], temp), e.vector(o[1], temp+1), last, true)
	case "VFMADD213":
		// AVX adds the first operand to the product of the others, and overwrites a factor. fmla
		// overwrites the summand, so the sum is made in a temporary register.
		sum := e.vec(temp)
		e.move(o[0], sum)
		e.word("fmla"+shape, sum, o[1], last)
		e.move(sum, last)
	case "VCMP":
		e.compare(shape, o[0], e.vector(o[2], temp+1), e.vector(o[1], temp), last)
	case "VBLENDV":
		e.blend(o[0], e.vector(o[1], temp), e.vector(o[2], temp+1), last)
	default:
		panic("no translation of " + name)
	}
}

// extreme writes d = b where it is more than a, or less, and a elsewhere: also where one of them is
// NaN, or both are zeros.
func (e *emitter) extreme(shape, a, b, d string, least bool) {
	more, less := b, a
	if least {
		more, less = a, b
	}
	// The mask may not overwrite an argument that blend still needs.
	mask := d
	if d == a || d == b {
		mask = e.vec(temp)
		if a == mask {
			mask = e.vec(temp + 1)
		}
	}
	e.word("fcmgt"+shape, mask, more, less)
	e.blend(mask, b, a, d)
}

// bound writes x = max(x, limit) or min(x, limit), for a limit that is not zero. NaN stays.
func (e *emitter) bound(op, limit, x string) {
	if e.arm() {
		shape := map[string]string{"PS": ".4s", "PD": ".2d"}[op[3:]]
		e.word("f"+strings.ToLower(op[:3])+shape, e.names[x], e.names[x], e.names[limit])
		return
	}
	// Of NaN and a number, the result is the first operand.
	e.p("V%s %s, %s, %[2]s", op, x, limit)
}

// blend writes d = a where the mask is set, and b elsewhere. The mask may be d.
func (e *emitter) blend(mask, a, b, d string) {
	switch d {
	case a:
		e.word("bif.16b", d, b, mask)
	case b:
		e.word("bit.16b", d, a, mask)
	case mask:
		e.word("bsl.16b", d, a, b)
	default:
		e.move(mask, d)
		e.word("bsl.16b", d, a, b)
	}
}

// compare writes a mask: where x compares with y.
func (e *emitter) compare(shape, predicate, x, y, d string) {
	switch predicate {
	case fmt.Sprintf("$%d", equal):
		e.word("fcmeq"+shape, d, x, y)
	case fmt.Sprintf("$%d", less), fmt.Sprintf("$0x%x", less):
		e.word("fcmgt"+shape, d, y, x)
	case fmt.Sprintf("$%d", notLess):
		e.word("fcmgt"+shape, d, y, x)
		e.word("mvn.16b", d, d)
	default:
		panic("no translation of predicate " + predicate)
	}
}

// translateScalar writes the instructions with general registers.
func (e *emitter) translateScalar(name string, o []string) {
	last := address(o[len(o)-1])
	// arm64 computes in registers only. SUBS, for DECQ, sets the flags that the branch behind it
	// reads, and a store leaves them alone.
	if strings.Contains(last, "(") && (name == "ADDQ" || name == "DECQ") { // in memory
		e.line("\tMOVD %s, %s\n", last, scratch)
		e.translateScalar(name, append(o[:len(o)-1:len(o)-1], scratch))
		e.line("\tMOVD %s, %s\n", scratch, last)
		return
	}
	switch {
	case scalars[name] != "":
		first := e.integer(o[0])
		if name == "TESTQ" {
			last = e.integer(o[1])
		}
		e.line("\t%s %s, %s\n", scalars[name], first, last)
	case name == "MOVQ":
		e.line("\tMOVD %s, %s\n", address(o[0]), last)
	case name == "XORQ":
		e.line("\tMOVD ZR, %s\n", last)
	case name == "DECQ":
		e.line("\tSUBS $1, %s\n", last)
	case name == "CMPQ":
		e.line("\tCMP %s, %s\n", o[1], address(o[0]))
	case name == "PREFETCHT0":
		e.line("\tPRFM %s, PLDL1KEEP\n", last)
	case name == "RET":
		e.line("\tRET\n")
	default:
		panic("no translation of " + name)
	}
}
