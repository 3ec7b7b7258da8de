package tensor_test

import (
	"fmt"
	"testing"

	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestPrintNothing prints zero values.
func TestPrintNothing(t *testing.T) {
	got := fmt.Sprint(tensor.Type{}, ", ", new(tensor.CompositeOp), ", ", new(array.Array), ", ", array.Opcode(255))
	if want := "no type, Composite{}, no array, Op(255)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
