package tensor

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
)

// Errors that the errors of this package wrap.
var (
	// ErrType: an op is not defined for arguments of these types.
	ErrType = errors.New("types do not fit")
	// ErrShape: the sizes of values, known only when a function runs, do not fit.
	ErrShape = errors.New("shapes do not fit")
	// ErrAssert: an Assert failed.
	ErrAssert = errors.New("assertion failed")
	// ErrGradient: there is no gradient.
	ErrGradient = errors.New("no gradient")
)

// An Error tells what is wrong with the arguments of an op. Functions that make expressions panic with one, since in a program the
// mistake is the programmer's; Try turns it into an error value where it may be somebody else's.
type Error struct {
	Op   string
	Arg  int // which argument, from 0 on; -1 if none in particular
	Text string
}

func (e *Error) Error() string {
	if e.Arg >= 0 {
		return fmt.Sprintf("%s: argument %d: %s", e.Op, e.Arg+1, e.Text)
	}
	return fmt.Sprintf("%s: %s", e.Op, e.Text)
}

// Is makes the error be found as ErrType.
func (e *Error) Is(target error) bool { return target == ErrType }

// fail panics with an *Error.
func fail(op, format string, args ...any) {
	panic(&Error{Op: op, Arg: -1, Text: fmt.Sprintf(format, args...)})
}

// argError returns an *Error about an argument.
func argError(op fgraph.Op, arg int, format string, args ...any) *Error {
	return &Error{Op: op.String(), Arg: arg, Text: fmt.Sprintf(format, args...)}
}

// Try calls a function that makes expressions, and returns the *Error that it panics with. Other panics go on.
func Try(f func() *fgraph.Variable) (v *fgraph.Variable, err error) {
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(*Error)
			if !ok {
				panic(p)
			}
			v, err = nil, e
		}
	}()
	return f(), nil
}
