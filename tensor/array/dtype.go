package array

import "fmt"

// A DType is an element type.
type DType uint8

// The element types.
const (
	Bool DType = iota
	Int8
	Uint8
	Int32
	Int64
	Float32
	Float64
	numDTypes
)

var dtypeNames = [numDTypes]string{"bool", "int8", "uint8", "int32", "int64", "float32", "float64"}

// String returns NumPy's name of the type.
func (d DType) String() string {
	if d < numDTypes {
		return dtypeNames[d]
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
func (d DType) IsFloat() bool { return d >= Float32 }

// Size returns the size of an element in bytes.
func (d DType) Size() int { return [numDTypes]int{1, 1, 1, 4, 8, 4, 8}[d] }

// Float returns the type itself if it is a float, otherwise Float64.
func (d DType) Float() DType {
	if d.IsFloat() {
		return d
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

// Holds reports whether the type has every value of another type. Float64 has most values of Int64,
// but not all.
func (d DType) Holds(other DType) bool {
	return Upcast(d, other) == d && !(other == Int64 && d.IsFloat())
}

// Upcast returns the smallest type that holds the values of all types, as in NumPy: of an int32 and
// a float32 it is Float64. Of an int8 and a uint8 it is Int32, since there is no int16. The order of
// the types is irrelevant, but a part of them may have a larger type than all: an int8, a uint8 and
// a float32 make a Float32.
func Upcast(first DType, others ...DType) DType {
	integer, float := Bool, Bool // the smallest types of all integers, and of all floats
	wide := false                // a float32 does not have all of the integers
	note := func(d DType) {
		switch {
		case d.IsFloat():
			float = max(float, d)
			return
		case d >= Int32:
			wide = true
			integer = max(integer, d)
		case min(integer, d) == Int8 && max(integer, d) == Uint8:
			integer = Int32
		default:
			integer = max(integer, d)
		}
	}
	note(first)
	for _, d := range others {
		note(d)
	}
	switch {
	case float == Bool:
		return integer
	case wide:
		return Float64
	}
	return float
}

// Element is the constraint of elements of arrays.
type Element interface {
	bool | number
}

// number is the constraint of elements that arithmetic is defined for.
type number interface {
	integer | float
}

type integer interface {
	int8 | uint8 | int32 | int64
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
	case uint8:
		return Uint8
	case int32:
		return Int32
	case int64:
		return Int64
	case float32:
		return Float32
	}
	return Float64
}
