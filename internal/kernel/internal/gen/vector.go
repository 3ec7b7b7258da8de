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
	// The first one rounds to an integer n, which its last bits then are; with the biases of two exponents, for
	// the halves of n, and with that of 2**n/2.
	float("magicTwice", 12582912+2*127), float("magicHalf", 12582912+126),
	float("exp0", 1.9875691500e-4), float("exp1", 1.3981999507e-3), float("exp2", 8.3334519073e-3),
	float("exp3", 4.1665795894e-2), float("exp4", 1.6666665459e-1), float("exp5", 5.0000001201e-1),
	float("one", 1), float("two", 2), float("least", -104), float("most", 89), float("far", 20),
	float("half", 0.5), float("wide", 11),
	float("erfc0", 0.28205883502960205), float("erfc1", 0.2829740643501282), float("erfc2", 0.2376202642917633), float("erfc3", 0.23054181039333344),
	float("erfc4", -0.11334241926670074), float("erfc5", 0.45018500089645386), float("erfc6", -0.7057485580444336), float("erfc7", 0.45634785294532776),
	float("erfc8", -0.135147824883461), float("erfc9", 0.01451097335666418),
	float("erfA0", 1.1283791065216064), float("erfA1", 0.1904057413339615), float("erfA2", 0.05274863913655281),
	float("erfA3", 0.003765589790418744), float("erfA4", 0.00028488278621807694), float("erfA5", 2.0501011022133753e-06),
	float("erfB1", 0.5020754337310791), float("erfB2", 0.11410882323980331),
	float("erfB3", 0.01496916078031063), float("erfB4", 0.0011625302722677588), float("erfB5", 3.8091864553280175e-05),
	float("erfEnd", 3.92), float("low", -20),
	float("minusInf", float32(math.Inf(-1))),
	{"sign", 1 << 31}, {"abs", 1<<31 - 1},
	float("magic", 12582912), float("expFar", 86), // magicTwice without exponents; up to where no half of n is needed
}
