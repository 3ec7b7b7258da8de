package nnet3

import (
	"errors"

	"github.com/nnopt/nnopt/internal/errlist"
)

// maxFaults is how many faults are collected before "and more" takes the place of the rest.
const maxFaults = 49

// faults collects what is wrong with a config or a network.
type faults struct{ errs []error }

func (f *faults) full() bool { return len(f.errs) >= maxFaults }

func (f *faults) add(err error) {
	if f.full() {
		return
	}
	f.errs = append(f.errs, err)
	if f.full() {
		f.errs = append(f.errs, errors.New("and more"))
	}
}

// err returns nil for no fault, the fault if there is one, and else a multierror.
func (f *faults) err() error { return errlist.Join(f.errs) }
