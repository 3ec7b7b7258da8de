package session_test

import (
	"runtime"
	"testing"

	"github.com/nnopt/nnopt/exec/session/internal/constants"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestSharedConstants: constants are the same array if all their elements are equal and lie in the same order, not if
// some are, whether they are looked at for the first time or not.
func TestSharedConstants(t *testing.T) {
	c := constants.New(&onnx.Model{})
	made := func(at int) *array.Array {
		a := array.Full(array.Float32, 1, 64, 64)
		a.SetFloat(at, 2)
		return a
	}
	const n = 5
	var first [n]*array.Array
	for round := range 3 {
		for k := range n {
			a := made(70 + k)
			if b := c.Shared(a); round == 0 {
				first[k] = a
				if b != a {
					t.Fatalf("constant %d is taken for another one", k)
				}
			} else if b != first[k] {
				t.Fatalf("round %d: constant %d is there twice", round, k)
			}
			// One of another round may be there still.
			if turned := a.Transpose(1, 0); !array.Equal(c.Shared(turned), turned) {
				t.Fatalf("constant %d, transposed, is taken for another one", k)
			}
		}
	}
	runtime.KeepAlive(first)
}
