package array

import (
	"math"

	"github.com/nnopt/nnopt/kernel/elementary"
)

// A scaledSum is the number s·exp(m).
type scaledSum struct{ m, s float64 }

func (a scaledSum) add(x float64) scaledSum {
	switch {
	case x != x:
		a.m, a.s = x, 1
	// exp(-Inf) is 0, which adds nothing. The difference x - m would be NaN if m is -Inf, too.
	case x == math.Inf(-1):
	case x == a.m:
		a.s++
	case x < a.m:
		a.s += elementary.Exp(x - a.m)
	// A new maximum scales down what has been added. All exponents are negative, so nothing
	// overflows.
	case x > a.m:
		a.m, a.s = x, float64(a.s*elementary.Exp(a.m-x))+1
	}
	return a
}

// plus returns the sum of a and b.
func (a scaledSum) plus(b scaledSum) scaledSum {
	switch {
	case a.m != a.m || b.s == 0: // NaN, or nothing to add
		return a
	case a.s == 0 || b.m != b.m:
		return b
	case a.m == b.m: // both may be infinite
		return scaledSum{a.m, a.s + b.s}
	case a.m > b.m:
		return scaledSum{a.m, a.s + float64(b.s*elementary.Exp(b.m-a.m))}
	}
	return scaledSum{b.m, float64(a.s*elementary.Exp(a.m-b.m)) + b.s}
}

func (ws *Workspace) logSumExp(out, v *Array, red reducedDims) {
	acc := make([]scaledSum, out.Len())
	first := scaledSum{m: math.Inf(-1)}
	plus := each(first, scaledSum.plus).rows
	if v.dtype == Float32 {
		f := each(first, func(a scaledSum, x float32) scaledSum { return a.add(float64(x)) })
		f.join = plus
		fold(ws, LogSumExp, acc, v, red, f)
	} else {
		f := each(first, scaledSum.add)
		f.join = plus
		fold(ws, LogSumExp, acc, v, red, f)
	}
	for i, a := range acc {
		v := a.m
		if a.s > 0 {
			v += elementary.Log(a.s)
		}
		out.SetFloat(i, v)
	}
}
