package fgraph

import (
	"hash/maphash"
	"reflect"
)

// An Op is what an [Apply] computes. It is a comparable Go value: two applies of
// equal ops on the same inputs are the same computation. An op that cannot be
// compared with ==, because it is a pointer or holds a slice, says what equality
// means through [OpEqualer].
type Op interface {
	// String is the name that the op is printed under.
	String() string
}

// OpEqualer is implemented by ops for which == is not the equality they mean.
// Equal ops have equal hashes.
type OpEqualer interface {
	EqualOp(Op) bool
	HashOp() uint64
}

// A Type says what values a [Variable] may take. It is a comparable Go value.
type Type interface {
	String() string
	// Accepts reports whether a value of type u may stand wherever one of this
	// type is expected.
	Accepts(u Type) bool
}

// DataEqualer is implemented by types whose constants can be compared. It
// decides which constants merging may unite, so it has to be stricter than ==
// where == is not what the data means: zeros of both signs differ, a NaN equals
// itself. Equal data have equal hashes.
type DataEqualer interface {
	EqualData(a, b any) bool
	HashData(any) uint64
}

// DataFormatter is implemented by types that print the data of their nameless
// constants themselves.
type DataFormatter interface {
	FormatData(any) string
}

// A DialectType is a [Type] that belongs to a dialect: a vocabulary of types and
// ops, such as that of tensors. Passes may be written for one dialect.
type DialectType interface {
	Type
	Dialect() string
}

// An Alias ties an output of an op to an input.
type Alias struct{ Output, Input int }

// A Viewer is an op some outputs of which share memory with an input, without
// changing it. An output is listed at most once.
type Viewer interface {
	ViewMap() []Alias
}

// A Destroyer is an op that overwrites inputs. An output that takes the place of
// the input is named in the alias; Output is -1 if there is none.
type Destroyer interface {
	DestroyMap() []Alias
}

// A RegionViewer is a [Viewer] that can say which part of its input an output
// shows. Views of disjoint parts of one variable do not alias. The answer
// composes along a chain of views.
type RegionViewer interface {
	Viewer
	// ViewRegion returns what output out shows, in the coordinates of the
	// input that it views.
	ViewRegion(out int) Region
}

// An AliasTolerator is a [Destroyer] that works although an input that it
// destroys has an alias among its other inputs.
type AliasTolerator interface {
	Destroyer
	// ToleratesAlias reports whether inputs destroyed and other may share
	// memory; same tells that they are one and the same variable.
	ToleratesAlias(destroyed, other int, same bool) bool
}

// A Region is the rectangle of rows [R0, R1) and columns [C0, C1).
type Region struct{ R0, R1, C0, C1 int }

// Empty reports whether the region has no cell.
func (r Region) Empty() bool { return r.R0 >= r.R1 || r.C0 >= r.C1 }

// Overlaps reports whether the regions have a cell in common.
func (r Region) Overlaps(s Region) bool {
	return max(r.R0, s.R0) < min(r.R1, s.R1) && max(r.C0, s.C0) < min(r.C1, s.C1)
}

// Within returns what r, given in the coordinates of s, covers in the
// coordinates that s is given in. What would stick out of s is cut off.
func (r Region) Within(s Region) Region {
	return Region{
		R0: min(s.R0+r.R0, s.R1), R1: min(s.R0+r.R1, s.R1),
		C0: min(s.C0+r.C0, s.C1), C1: min(s.C0+r.C1, s.C1),
	}
}

// OpsEqual reports whether a and b are the same op.
func OpsEqual(a, b Op) bool {
	if e, ok := a.(OpEqualer); ok {
		return e.EqualOp(b)
	}
	if _, ok := b.(OpEqualer); ok {
		return false
	}
	return a == b
}

// seed is drawn once per process. Hashes decide in which bucket something is
// looked for, never what is found, so that results do not depend on it.
var seed = maphash.MakeSeed()

// HashOp returns a hash of the op that agrees with [OpsEqual]. It differs from
// one process to the next.
func HashOp(op Op) uint64 {
	if e, ok := op.(OpEqualer); ok {
		return e.HashOp()
	}
	return maphash.Comparable(seed, op)
}

// EqualData reports whether a and b, data of constants of type t, are known to
// be the same. Without [DataEqualer] they are if they are comparable and ==.
func EqualData(t Type, a, b any) bool {
	if e, ok := t.(DataEqualer); ok {
		return e.EqualData(a, b)
	}
	return isComparable(a) && isComparable(b) && a == b
}

// HashData returns a hash that agrees with [EqualData]. The second result is
// false if the data equal nothing, not even themselves.
func HashData(t Type, data any) (uint64, bool) {
	if e, ok := t.(DataEqualer); ok {
		return e.HashData(data), true
	}
	if !isComparable(data) || data != data { // a NaN
		return 0, false
	}
	return maphash.Comparable(seed, data), true
}

func isComparable(x any) bool { return x == nil || reflect.ValueOf(x).Comparable() }

// HashType returns a hash of a type. Equal types have equal hashes.
func HashType(t Type) uint64 { return maphash.Comparable(seed, t) }
