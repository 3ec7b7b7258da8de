package main

import "math"

// block is how many float32s a function of vectors takes at a time. Reductions keep that many
// partial results.
const block = 16

type vectors struct{ *emitter }

// writeVectors writes the functions on vectors of whole blocks of float32s.
func writeVectors(e *emitter) {
	e.constants = table{"consts", 4, floats}
	e.bitwise = func(op string) string {
		if e.lanes == 16 {
			return "VP" + op + "D"
		}
		return "V" + op + "PS"
	}
	g := &vectors{e}
	g.writeConstants()
	g.exponentials()
	if e.lanes < 16 {
		// These move memory more than they compute: wider vectors would not help.
		g.arithmetic()
	}
}

func float(name string, x float32) constant { return constant{name, uint64(math.Float32bits(x))} }

// floats are the constants of exp.go, which has the formulas.
var floats = []constant{
	float("log2e", 1.44269504088896341), float("ln2High", 0.693359375), float("ln2Low", -2.12194440e-4),
	float("magic", 12582912),
	float("exp0", 1.9875691500e-4), float("exp1", 1.3981999507e-3), float("exp2", 8.3334519073e-3),
	float("exp3", 4.1665795894e-2), float("exp4", 1.6666665459e-1), float("exp5", 5.0000001201e-1),
	float("one", 1), float("two", 2), float("least", -104), float("most", 89), float("far", 20),
	float("minusInf", float32(math.Inf(-1))),
	{"sign", 1 << 31}, {"abs", 1<<31 - 1}, {"bias", 127},
}
