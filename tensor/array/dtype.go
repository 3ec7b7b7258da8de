package array

import (
	"fmt"
	"math"
)

// A DType is an element type.
type DType uint8

// The element types. Float16 floats are stored, and computed with as float32s: see [F16] and [BF16].
const (
	Bool DType = iota
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	BFloat16
	Float32
	Float64
	numDTypes
)

var dtypeNames = [numDTypes]string{
	"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
}

// String returns NumPy's name of the type.
func (d DType) String() string {
	switch {
	case d < numDTypes:
		return dtypeNames[d]
	case d == String:
		return "string"
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// DTypes returns all element types.
func DTypes() []DType {
	list := make([]DType, numDTypes)
	for d := range list {
		list[d] = DType(d)
	}
	return list
}

// ParseDType returns the type with the given name, and whether there is one.
func ParseDType(name string) (DType, bool) {
	for d, n := range dtypeNames {
		if n == name {
			return DType(d), true
		}
	}
	return 0, false
}

// IsFloat reports whether the elements are floating-point numbers.
func (d DType) IsFloat() bool { return d >= Float16 && d < numDTypes }

// IsHalf reports whether the elements are floating-point numbers of 16 bits.
func (d DType) IsHalf() bool { return d == Float16 || d == BFloat16 }

// IsInteger reports whether the elements are integers, whose arithmetic wraps around.
func (d DType) IsInteger() bool { return d >= Int8 && d <= Uint64 }

// IsUnsigned reports whether the elements are integers that are never negative.
func (d DType) IsUnsigned() bool { return d >= Uint8 && d <= Uint64 }

// Size returns the size of an element in bytes, of a string without its text.
func (d DType) Size() int {
	if d == String {
		return 16
	}
	return [numDTypes]int{1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8}[d]
}

// Largest returns the largest finite number of a type of floats.
func (d DType) Largest() float64 {
	switch d {
	case Float16:
		return 65504
	case BFloat16:
		return 0x1.fep127
	case Float32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

// Float returns the type itself if it is a float, otherwise Float64. It is the type of quotients and
// means.
func (d DType) Float() DType {
	if d.IsFloat() {
		return d
	}
	return Float64
}

// real returns the type in which functions such as the square root are computed: that of floats
// itself, and of integers and bools the smallest one that holds them, as in NumPy. That of an int64
// is Float64, although it does not hold all of them.
func (d DType) real() DType {
	switch {
	case d.IsFloat():
		return d
	case d.Size() == 1:
		return Float16
	case d.Size() == 2:
		return Float32
	}
	return Float64
}

// Number returns the type in which elements are added up and multiplied: Int64 for bools, otherwise
// the type itself.
func (d DType) Number() DType {
	if d == Bool {
		return Int64
	}
	return d
}

// Sum returns the type of sums and products of many elements: 64 bits for integers, and the type itself
// for floats.
func (d DType) Sum() DType {
	switch {
	case d.IsFloat():
		return d
	case d.IsUnsigned():
		return Uint64
	}
	return Int64
}

// Holds reports whether the type has every value of another type. Float64 has most values of Int64
// and Uint64, but not all.
func (d DType) Holds(other DType) bool {
	return Upcast(d, other) == d && !(d.IsFloat() && other.IsInteger() && other.Size() == 8)
}

// upcasts has the smallest type that holds the values of two types. None is enough for int64s and
// uint64s: there it is Float64, as in NumPy.
var upcasts = func() (table [numDTypes][numDTypes]DType) {
	for a := range numDTypes {
		for b := range numDTypes {
			table[a][b] = upcast(a, b)
		}
	}
	return table
}()

func upcast(a, b DType) DType {
	if a > b {
		a, b = b, a
	}
	switch {
	case a == b || a == Bool:
		return b
	case a == Float16 && b == BFloat16:
		return Float32
	case b.IsFloat() && !a.IsFloat():
		// All that Real holds has the 8 bits of precision that a bfloat16 has.
		if r := a.real(); r > Float16 {
			return max(b, r)
		}
		return b
	case a.IsUnsigned() == b.IsUnsigned() || b.IsFloat():
		return b
	case a.Size() > b.Size(): // signed, and holds the unsigned one
		return a
	case b == Uint64:
		return Float64
	}
	return [...]DType{1: Int16, 2: Int32, 4: Int64}[b.Size()]
}

// Upcast returns the smallest type that holds the values of all types, as in NumPy: of an int32 and
// a float32 it is Float64, and of an int8 and a uint8 it is Int16. The order of the types is
// irrelevant, but a part of them may have a larger type than all: an int8, a uint8 and a float16
// make a float16.
func Upcast(first DType, others ...DType) DType {
	if len(others) == 1 {
		return upcasts[first][others[0]]
	}
	integer, float := Bool, Bool // the smallest types of all integers, and of all floats
	least := Bool                // the smallest float type that holds each of the integers
	note := func(d DType) {
		if d.IsFloat() {
			float = upcasts[float][d]
			return
		}
		if d != Bool {
			least = max(least, d.real())
		}
		integer = upcasts[integer][d]
	}
	note(first)
	for _, d := range others {
		note(d)
	}
	switch {
	case float == Bool:
		return integer
	case least <= Float16:
		return float
	}
	return upcasts[float][least]
}

// Element is the constraint of elements of arrays.
type Element interface {
	bool | number | F16 | BF16
}

// number is the constraint of elements that arithmetic is defined for.
type number interface {
	integer | float
}

type integer interface {
	signed | unsigned
}

type signed interface {
	int8 | int16 | int32 | int64
}

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

type float interface {
	float32 | float64
}

// dtypeOf returns the DType of a Go type.
func dtypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case bool:
		return Bool
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case F16:
		return Float16
	case BF16:
		return BFloat16
	case float32:
		return Float32
	}
	return Float64
}
