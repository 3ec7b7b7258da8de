package nnet3

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/go-multierror"
)

// maxFaults is how many faults are collected before the rest is left out.
const maxFaults = 50

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
func (f *faults) err() error {
	switch len(f.errs) {
	case 0:
		return nil
	case 1:
		return f.errs[0]
	}
	return &multierror.Error{Errors: f.errs, ErrorFormat: formatFaults}
}

// mostFaults is how many faults the text of an error lists.
const mostFaults = 100

// formatFaults prints a line for each fault.
func formatFaults(errs []error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d faults:", len(errs))
	for i, err := range errs {
		if i == mostFaults {
			fmt.Fprintf(&b, "\n\tand %d more", len(errs)-i)
			break
		}
		b.WriteString("\n\t" + strings.ReplaceAll(err.Error(), "\n", "\n\t"))
	}
	return b.String()
}
