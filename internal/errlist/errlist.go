// Package errlist makes one error of several.
package errlist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
)

// maxShown is how many faults the text of an error lists.
const maxShown = 50

// Join returns several errors as one, whose text is that of [Text]. It returns a single error as it
// is, and nil for none.
func Join(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return &multierror.Error{Errors: slices.Clip(errs), ErrorFormat: func(errs []error) string { return Text(errs, 0) }}
}

// Text lists errors and says how many there are in all: these, and more. A single error is its text.
func Text(errs []error, more int) string {
	if len(errs) == 1 && more == 0 {
		return errs[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d faults:", len(errs)+more)
	shown := errs[:min(len(errs), maxShown)]
	for _, err := range shown {
		b.WriteString("\n\t" + strings.ReplaceAll(err.Error(), "\n", "\n\t"))
	}
	if more += len(errs) - len(shown); more > 0 {
		fmt.Fprintf(&b, "\n\tand %d more", more)
	}
	return b.String()
}
