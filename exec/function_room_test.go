package exec_test

import (
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// appending is a function of a cache [2, n, 3], new positions [2, m, 3] and another cache: it appends, hands the second
// one on, and reads all of it; the last output is no cache with something appended.
func appending(t *testing.T) *exec.Function {
	t.Helper()
	open := tensor.NewType(array.Float64, 2, tensor.Unknown, 3)
	past, x, other := fgraph.NewInput(open, "past"), fgraph.NewInput(open, "x"), fgraph.NewInput(open, "other")
	all := tensor.Join(1, past, tensor.Tanh(x))
	sums := tensor.Add(tensor.Sum(all, 1), tensor.Sum(other, 1), tensor.Sum(tensor.Exp(past), 1))
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{past, x, other}, []*fgraph.Variable{all, other, sums, tensor.Join(1, tensor.Exp(past), x)}, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func drawn(r *rand.Rand, n int) *array.Array {
	a := array.New(array.Float64, 2, n, 3)
	for i := range a.Len() {
		a.SetFloat(i, r.Float64()-0.5)
	}
	return a
}

// TestLendRoom: a cache that grows in its room is what it is without one, and the elements that were there are not
// written again; without enough room, or where another argument is in the room, it is copied.
func TestLendRoom(t *testing.T) {
	f := appending(t)
	r, g := f.NewRunner(), rand.New(rand.NewPCG(1, 2))
	past, other := drawn(g, 4), drawn(g, 5)
	for round, size := range []int{16, 16, 16, 9, 64, 3} {
		room := array.New(array.Float64, 2, size, 3)
		for step := range 6 {
			x := drawn(g, step%3) // also nothing
			want, err := f.Call(t.Context(), past.Clone(), x, other)
			if err != nil {
				t.Fatal(err)
			}
			if round == 2 && step == 3 { // the second cache is in the room, where the first one would write
				other = room.Beginning(2, size, 3)
				if want, err = f.Call(t.Context(), past.Clone(), x, other.Clone()); err != nil {
					t.Fatal(err)
				}
			}
			was := past.Begins(room)
			r.LendRoom(0, room)
			r.LendRoom(1, other)
			r.LendRoom(3, array.New(array.Float64, 2, 99, 3))
			got, err := r.Run(t.Context(), past, x, other)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if !array.Equal(got[i], want[i]) {
					t.Fatalf("round %d, step %d: output %d is %v, want %v", round, step, i, got[i], want[i])
				}
			}
			fits := want[0].Dim(1) <= size && (round != 2 || step < 3)
			if grown := got[0].Begins(room); grown != fits {
				t.Fatalf("round %d, step %d: %d positions in a room of %d: %t (before: %t)", round, step, want[0].Dim(1), size, grown, was)
			}
			if !got[1].SharesMemory(other) {
				t.Fatal("what is handed on was copied")
			}
			if past = got[0].Clone(); fits {
				past = room.Beginning(got[0].Shape()...)
			}
		}
		past, other = drawn(g, round), drawn(g, 5)
	}
}

// TestLendRoomToCheck: a function that checks itself uses no room, as arguments must not be where results are.
func TestLendRoomToCheck(t *testing.T) {
	x := fgraph.NewInput(tensor.NewType(array.Float64, tensor.Unknown), "x")
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Join(0, x, tensor.Exp(x))}, exec.FunctionOptions{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	room := array.New(array.Float64, 9)
	r := f.NewRunner()
	r.LendRoom(0, room)
	got, err := r.Run(t.Context(), room.Beginning(2))
	if err != nil || got[0].SharesMemory(room) || got[0].String() != "[0.0, 0.0, 1.0, 1.0]" {
		t.Errorf("%v, %v", got, err)
	}
}
