package compile

import (
	"context"
	"errors"
	"testing"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// A fuse is a context that is done after so many checks.
type fuse struct {
	context.Context
	looks int
}

func (f *fuse) Err() error {
	if f.looks--; f.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestInterrupt interrupts compilations wherever they check their context. The error is the cause.
func TestInterrupt(t *testing.T) {
	withDeriv := ask(rowsOf{"input": at(1, 0, 900)}, rowsOf{"output": at(1, 0, 900)})
	withDeriv.NeedModelDerivative, withDeriv.Outputs[0].HasDeriv = true, true
	uncomputable := ask(rowsOf{"input": at(1, 0, 2)}, rowsOf{"output": at(1, 0, 900)})
	for _, c := range []struct {
		name  string
		req   *computation.Request
		want  error
		least int // looks
	}{
		{"two sequences", ask(rowsOf{"input": at(2, 0, 900)}, rowsOf{"output": at(2, 0, 900)}), nil, 10},
		{"training", withDeriv, nil, 10},
		{"not computable", uncomputable, ErrNotComputable, 5},
	} {
		nn := parse(t, recurrent...)
		for looks := 0; ; looks++ {
			comp, err := CompileContext(&fuse{context.Background(), looks}, nn, c.req, Options{})
			if errors.Is(err, context.Canceled) && comp == nil {
				continue
			}
			if !errors.Is(err, c.want) {
				t.Errorf("%s: after %d looks: %v", c.name, looks, err)
			}
			if looks < c.least {
				t.Errorf("%s: looks %d times, want %d or more", c.name, looks, c.least)
			}
			break
		}
	}
}
