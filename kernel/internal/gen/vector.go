package main

import (
	"fmt"
	"math"
)

// block is how many elements a function of vectors treats at a time, with either instruction set. Reductions keep that many
// partial results.
const block = 16

// writeVectors writes functions on vectors of whole blocks.
func writeVectors(e *emitter) {
	g := &vectors{emitter: e}
	g.constants()
	g.exponentials()
	if e.lanes == 8 {
		// These move memory more than they compute: wider vectors would not help.
		g.arithmetic()
	}
}

type vectors struct {
	*emitter
}

// constant is a number that stands in memory.
type constant struct {
	name string
	bits uint32
}

func float(name string, x float32) constant { return constant{name, math.Float32bits(x)} }

// constants are those of exp.go, which has the formulas.
var constants = []constant{
	float("log2e", 1.44269504088896341),
	float("ln2High", 0.693359375),
	float("ln2Low", -2.12194440e-4),
	float("magic", 12582912),
	float("exp0", 1.9875691500e-4),
	float("exp1", 1.3981999507e-3),
	float("exp2", 8.3334519073e-3),
	float("exp3", 4.1665795894e-2),
	float("exp4", 1.6666665459e-1),
	float("exp5", 5.0000001201e-1),
	float("one", 1),
	float("two", 2),
	float("least", -104),
	float("most", 89),
	float("far", 20),
	float("minusInf", float32(math.Inf(-1))),
	{"sign", 1 << 31},
	{"abs", 1<<31 - 1},
	{"bias", 127},
}

// constants writes the table of constants, each a vector long.
func (g *vectors) constants() {
	g.line("\n")
	for i, c := range constants {
		for l := range g.lanes {
			g.line("DATA consts<>+%d(SB)/4, $0x%08x // %s\n", 4*(i*g.lanes+l), c.bits, c.name)
		}
	}
	g.line("GLOBL consts<>(SB), RODATA|NOPTR, $%d\n", 4*len(constants)*g.lanes)
}

// k is a constant as an operand.
func (g *vectors) k(name string) string {
	for i, c := range constants {
		if c.name == name {
			return fmt.Sprintf("consts<>+%d(SB)", 4*i*g.lanes)
		}
	}
	panic("no constant " + name)
}

// function is a function of some vectors and numbers. Its body is written once for every vector register that a block takes:
// it is told which one, and at returns the operand for the elements of an argument.
type function struct {
	name    string
	vectors []string
	numbers []string // loaded to the last registers, downwards
	sums    string   // the type of partial results, if there are any
	before  func()
	body    func(i int, at func(v string) string)
	after   func()
}

// pointers are the registers for vectors.
var pointers = []string{"DI", "SI", "DX", "R8", "R10", "R11"}

func (g *vectors) function(f function) {
	size := 8*len(f.vectors) + 8 + 4*len(f.numbers)
	decl := ""
	for i, v := range f.vectors {
		if i > 0 {
			decl += ", "
		}
		decl += v
	}
	decl += " *float32, blocks int"
	for _, v := range f.numbers {
		decl += ", " + v + " float32"
	}
	if f.sums != "" {
		size = (size + 7) &^ 7
		decl += ", sums *[16]" + f.sums
	}
	total := size
	if f.sums != "" {
		total += 8
	}
	g.line("\n// func %s%s(%s)\nTEXT ·%[1]s%[2]s(SB), NOSPLIT, $0-%[4]d\n", f.name, g.suffix, decl, total)
	at := map[string]string{}
	for i, v := range f.vectors {
		at[v] = pointers[i]
		g.p("MOVQ %s+%d(FP), %s", v, 8*i, pointers[i])
	}
	g.p("MOVQ blocks+%d(FP), CX", 8*len(f.vectors))
	for i, v := range f.numbers {
		g.p("VBROADCASTSS %s+%d(FP), %s", v, 8*len(f.vectors)+8+4*i, g.number(i))
	}
	if f.sums != "" {
		g.p("MOVQ sums+%d(FP), R9", size)
	}
	if f.before != nil {
		f.before()
	}
	g.p("XORQ AX, AX")
	g.label("next")
	for i := range block / g.lanes {
		f.body(i, func(v string) string { return fmt.Sprintf("%d(%s)(AX*1)", 4*i*g.lanes, at[v]) })
	}
	g.p("ADDQ $%d, AX", 4*block)
	g.p("DECQ CX")
	g.p("JNZ  next")
	if f.after != nil {
		f.after()
	}
	g.p("VZEROUPPER")
	g.p("RET")
}

// number is the register that holds the i-th number.
func (g *vectors) number(i int) string { return g.vec(15 - i) }
