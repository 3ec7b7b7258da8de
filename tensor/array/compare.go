package array

import (
	"math"
	"slices"
)

// Equal reports whether the arrays have the same type, shape and elements. NaN equals NaN, and
// zeros of different signs differ.
func Equal(a, b *Array) bool {
	if a.dtype != b.dtype || !SameShape(a, b) {
		return false
	}
	if a.dtype == String {
		return stringDistance(a, b) == 0
	}
	// Weights, of which there may be many, lie in the same order.
	if !a.IsCSR() && !b.IsCSR() && SameLayout(a, b) && a.InMemoryOrder().Contiguous() {
		x, y := a.InMemoryOrder(), b.InMemoryOrder()
		switch a.dtype {
		case Float32:
			return slices.EqualFunc(Slice[float32](x), Slice[float32](y), func(x, y float32) bool {
				return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
			})
		case Float64:
			return slices.EqualFunc(Slice[float64](x), Slice[float64](y), func(x, y float64) bool {
				return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y
			})
		}
	}
	for i := range a.Len() {
		if a.dtype == Int64 || a.dtype == Uint64 {
			if a.Int(i) != b.Int(i) {
				return false
			}
			continue
		}
		x, y := a.Float(i), b.Float(i)
		if math.Float64bits(x) != math.Float64bits(y) && !(x != x && y != y) {
			return false
		}
	}
	return true
}

// Hash returns the same hash for equal arrays.
func Hash(a *Array) uint64 {
	h := uint64(a.dtype) + 1
	mix := func(x uint64) { h = (h ^ x) * 0x9e3779b97f4a7c15; h ^= h >> 32 }
	for _, n := range a.Shape() {
		mix(uint64(n))
	}
	// A few elements tell apart the constants that programs have. They are at four places, since those of weights
	// in a file may have to be read from there.
	n := a.Len()
	for i := range min(n, 16) {
		at := i
		if n > 16 {
			at = i/4*(n/4) + i%4
		}
		x := a.Float(at)
		if x != x {
			x = math.NaN() // all NaN have one hash
		}
		mix(math.Float64bits(x))
	}
	return h
}

// SameShape reports whether the arrays have the same shape.
func SameShape(a, b *Array) bool { return a.ndim == b.ndim && a.shape == b.shape }

// MaxRelDiff returns the largest relative difference between corresponding elements: their
// difference divided by the larger absolute value, or by 1 if both are smaller. It is +Inf if the
// shapes differ, or if only one of two elements is NaN or that infinity. Integers that no float64
// holds are compared exactly, and strings are the same or +Inf apart.
func MaxRelDiff(a, b *Array) float64 {
	if !SameShape(a, b) {
		return math.Inf(1)
	}
	if a.dtype == String || b.dtype == String {
		return stringDistance(a, b)
	}
	most := 0.0
	for i := range a.Len() {
		x, y := a.Float(i), b.Float(i)
		switch {
		case a.dtype == Int64 && b.dtype == Int64:
			most = max(most, intRelDiff(a.Int(i), b.Int(i)))
		case a.dtype == Uint64 && b.dtype == Uint64:
			most = max(most, uintRelDiff(uint64(a.Int(i)), uint64(b.Int(i))))
		case x == y || x != x && y != y:
		case x != x || y != y || math.IsInf(x, 0) || math.IsInf(y, 0):
			return math.Inf(1)
		default:
			most = max(most, math.Abs(x-y)/max(math.Abs(x), math.Abs(y), 1))
		}
	}
	return most
}

// Distance returns the norm of the difference of two arrays, relative to the norm of the second: 0 if
// they are [Equal], and +Inf if shapes or types differ, or if only one of two elements is NaN or that
// infinity.
func Distance(a, b *Array) float64 {
	if a.dtype != b.dtype || !SameShape(a, b) {
		return math.Inf(1)
	}
	if Equal(a, b) {
		return 0
	}
	if a.dtype == String {
		return math.Inf(1)
	}
	difference, norm := 0.0, 0.0
	for i := range a.Len() {
		x, y := a.Float(i), b.Float(i)
		if !math.IsInf(y, 0) && y == y {
			norm += float64(y * y)
		}
		switch {
		case x == y || x != x && y != y:
		case x != x || y != y || math.IsInf(x, 0) || math.IsInf(y, 0):
			return math.Inf(1)
		default:
			difference += float64((x - y) * (x - y))
		}
	}
	d := math.Sqrt(difference / norm)
	switch {
	case difference == 0: // but for the signs of zeros, or integers that are nearly the same
		return math.SmallestNonzeroFloat64
	case d != d: // squares overflow
		return math.Inf(1)
	}
	return d
}

// intRelDiff returns the relative difference of two integers.
func intRelDiff(x, y int64) float64 {
	if x < y {
		x, y = y, x
	}
	return float64(uint64(x)-uint64(y)) / max(math.Abs(float64(x)), math.Abs(float64(y)), 1)
}

// uintRelDiff is intRelDiff for unsigned integers.
func uintRelDiff(x, y uint64) float64 {
	return float64(max(x, y)-min(x, y)) / max(float64(max(x, y)), 1)
}

// Uniform reports whether all elements are equal, and returns the first. An array is not
// uniform if it has no elements, or integers that a float64 may not hold.
func Uniform(a *Array) (v float64, ok bool) {
	n := a.Len()
	if n == 0 {
		return 0, false
	}
	v = a.Float(0)
	if (a.dtype == Int64 || a.dtype == Uint64) && math.Abs(v) > 1<<53 {
		return 0, false
	}
	for i := 1; i < n; i++ {
		if x := a.Float(i); math.Float64bits(x) != math.Float64bits(v) {
			return 0, false
		}
	}
	return v, true
}
