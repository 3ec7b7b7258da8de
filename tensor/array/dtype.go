package array

import "fmt"

// A DType is an element type.
type DType uint8

// The element types.
const (
	Bool DType = iota
	Int64
	Float32
	Float64
	numDTypes
)

var dtypeNames = [numDTypes]string{"bool", "int64", "float32", "float64"}

// String returns NumPy's name of the type.
func (d DType) String() string {
	if d < numDTypes {
		return dtypeNames[d]
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
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
func (d DType) Size() int { return [numDTypes]int{1, 8, 4, 8}[d] }

// Float returns the type itself if it is a float, otherwise Float64.
func (d DType) Float() DType {
	if d.IsFloat() {
		return d
	}
	return Float64
}

// Upcast returns the smallest type that holds the values of all types, as in NumPy: of an int64 and
// a float32 it is Float64.
func Upcast(first DType, others ...DType) DType {
	for _, d := range others {
		first = upcast(first, d)
	}
	return first
}

func upcast(a, b DType) DType {
	if a > b {
		a, b = b, a
	}
	if a == Int64 && b == Float32 {
		return Float64
	}
	return b
}

// Element is the constraint of elements of arrays.
type Element interface {
	bool | int64 | float32 | float64
}

// number is the constraint of elements that arithmetic is defined for.
type number interface {
	int64 | float32 | float64
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
	case int64:
		return Int64
	case float32:
		return Float32
	}
	return Float64
}
