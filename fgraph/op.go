package fgraph

import (
	"hash/maphash"
	"reflect"
)

// An Op is what an [Apply] computes. It is a comparable Go value: two applies of equal ops to
// the same inputs are the same computation. An op for which == does not work, because it is a
// pointer or contains a slice, implements [OpEqualer].
type Op interface {
	// String returns the name that the op is printed under.
	String() string
}

// OpEqualer is implemented by ops that define their own equality instead of ==. Equal ops have
// equal hashes.
type OpEqualer interface {
	EqualOp(Op) bool
	HashOp() uint64
}

// A Type describes the values that a [Variable] may take. It is a comparable Go value.
type Type interface {
	String() string
	// Accepts reports whether a value of type u may be used wherever a value of this type is
	// expected.
	Accepts(u Type) bool
}

// DataEqualer is implemented by types whose constants can be compared. It decides which
// constants may be merged, so it compares representations where == does not: positive and
// negative zero differ, and a NaN equals itself. Equal data have equal hashes.
type DataEqualer interface {
	EqualData(a, b any) bool
	HashData(any) uint64
}

// DataFormatter is implemented by types that print the data of constants without a name.
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

// A Viewer is an op some of whose outputs share memory with an input, without changing it.
// ViewMap lists each output at most once.
type Viewer interface {
	ViewMap() []Alias
}

// A Destroyer is an op that overwrites inputs. An alias names the output that occupies the
// memory of the input; Output is -1 if there is none.
type Destroyer interface {
	DestroyMap() []Alias
}

// Destroys reports whether an op overwrites any of its inputs.
func Destroys(op Op) bool {
	d, ok := op.(Destroyer)
	return ok && len(d.DestroyMap()) > 0
}

// A RegionViewer is a [Viewer] that knows which region of its input an output shows. Views of
// disjoint regions of one variable do not alias. Regions compose along a chain of views.
type RegionViewer interface {
	Viewer
	// ViewRegion returns the region that output out shows, in the coordinates of the input
	// that it views.
	ViewRegion(out int) Region
}

// An AliasTolerator is a [Destroyer] that works even if an input that it destroys has an alias
// among its other inputs.
type AliasTolerator interface {
	Destroyer
	// ToleratesAlias reports whether inputs destroyed and other may share memory. If same is
	// set, they are the same variable.
	ToleratesAlias(destroyed, other int, same bool) bool
}

// A Region is the rectangle of rows [R0, R1) and columns [C0, C1).
type Region struct{ R0, R1, C0, C1 int }

// empty reports whether the region has no cell.
func (r Region) empty() bool { return r.R0 >= r.R1 || r.C0 >= r.C1 }

// overlaps reports whether the regions have a cell in common.
func (r Region) overlaps(s Region) bool {
	return max(r.R0, s.R0) < min(r.R1, s.R1) && max(r.C0, s.C0) < min(r.C1, s.C1)
}

// within converts r from coordinates relative to s to the coordinates of s itself, and clips it
// to s.
func (r Region) within(s Region) Region {
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

// seed is drawn once per process. Hashes select buckets, never results, so no result depends on
// it.
var seed = maphash.MakeSeed()

// HashOp returns a hash of the op that is consistent with [OpsEqual]. It differs between
// processes.
func HashOp(op Op) uint64 {
	if e, ok := op.(OpEqualer); ok {
		return e.HashOp()
	}
	return maphash.Comparable(seed, op)
}

// EqualData reports whether a and b, the data of constants of type t, are known to be equal. For
// a type that is not a [DataEqualer] they are if == works and holds.
func EqualData(t Type, a, b any) bool {
	if e, ok := t.(DataEqualer); ok {
		return e.EqualData(a, b)
	}
	return isComparable(a) && isComparable(b) && a == b
}

// HashData returns a hash that is consistent with [EqualData]. The second result is false if the
// data equal nothing, not even themselves.
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

// HashType returns a hash of a type, equal for equal types.
func HashType(t Type) uint64 { return maphash.Comparable(seed, t) }
