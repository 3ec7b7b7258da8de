package exec_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// sumLoop is a looped computation: every segment adds its input to a sum, and outputs the sum.
func sumLoop() *computation.Computation {
	c := computation.New()
	in, state, next, out := c.NewMatrix(2, 7, false), c.NewMatrix(2, 7, false), c.NewMatrix(2, 7, false), c.NewMatrix(2, 7, false)
	do := func(t computation.CommandType, args ...int32) {
		c.Commands = append(c.Commands, computation.NewCommand(t, args...))
	}
	do(computation.AllocMatrix, state)
	c.Commands = append(c.Commands, computation.NewScaledCommand(computation.SetConst, 0, state))
	do(computation.NoOperationLabel)
	do(computation.AcceptInput, in, 0)
	do(computation.AllocMatrix, next)
	do(computation.MatrixCopy, next, state)
	do(computation.MatrixAdd, next, in)
	do(computation.DeallocMatrix, in)
	do(computation.DeallocMatrix, state)
	do(computation.AllocMatrix, out)
	do(computation.MatrixCopy, out, next)
	do(computation.ProvideOutput, out, 3)
	do(computation.NoOperationMarker)
	do(computation.SwapMatrix, state, next)
	do(computation.GotoLabel, 2)
	return c
}

// TestLoop: a looped computation runs one segment at a time, forever, in constant memory.
func TestLoop(t *testing.T) {
	nn := parseNet(t, threeInputs)
	ws := new(exec.Workspace)
	comp := newComputer(t, sumLoop(), nn, exec.ComputerOptions{Workspace: ws, Poison: true})
	x := kernel.New(2, 7)
	var bytes int64
	for segment := range 50 {
		kernel.Fill(x, float32(segment))
		accept(t, comp, "a", x)
		run(t, comp)
		if got, want := output(t, comp, "out").Data[13], float32(segment*(segment+1)/2); got != want {
			t.Fatalf("segment %d: got %g, want %g", segment, got, want)
		}
		if comp.Done() {
			t.Fatal("the loop has come to an end")
		}
		if segment == 1 {
			bytes = ws.Bytes()
		}
	}
	if ws.Bytes() != bytes || ws.MaxBytes() != bytes {
		t.Errorf("memory grew from %d to %d bytes", bytes, ws.Bytes())
	}
	if err := comp.Run(context.Background()); !errors.Is(err, exec.ErrIO) {
		t.Errorf("without input: got %v", err)
	}
	comp.Reset()
	kernel.Fill(x, 4)
	accept(t, comp, "a", x)
	run(t, comp)
	if got := output(t, comp, "out").Data[0]; got != 4 {
		t.Errorf("after Reset: got %g", got)
	}
	comp.Reset()
	if ws.Trim(); ws.Bytes() != 0 {
		t.Errorf("%d bytes are left after Reset and Trim", ws.Bytes())
	}
}
