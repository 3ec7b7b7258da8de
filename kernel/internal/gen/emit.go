package main

import (
	"bytes"
	"fmt"
)

// isa is what differs between the instruction sets.
type isa struct {
	name   string
	suffix string // of the names of functions
	reg    string // the letter of a vector register
	lanes  int
	zero   string // the instruction that clears a register

	// What tiles do with the registers.
	vecs int // the width of a full panel
	w, x int // the first register for W, and for x
	numX int
}

var isas = []isa{
	{name: "avx512", suffix: "AVX512", reg: "Z", lanes: 16, zero: "VPXORD", vecs: 4, w: 24, x: 28, numX: 4},
	{name: "avx2", suffix: "AVX2", reg: "Y", lanes: 8, zero: "VXORPS", vecs: 2, w: 12, x: 14, numX: 2},
}

// emitter writes assembly for an instruction set.
type emitter struct {
	isa
	buf bytes.Buffer
}

// p writes an instruction.
func (e *emitter) p(format string, args ...any) { e.line("\t"+format+"\n", args...) }

// line writes text as it is.
func (e *emitter) line(format string, args ...any) { fmt.Fprintf(&e.buf, format, args...) }

func (e *emitter) label(l string) { e.line("%s:\n", l) }

// vec is the name of a vector register.
func (e *emitter) vec(i int) string { return fmt.Sprintf("%s%d", e.reg, i) }
