package tensor

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
)

// Errors of this package wrap one of these.
var (
	ErrType     = errors.New("types do not fit")  // an op is not defined for the types of its arguments
	ErrShape    = errors.New("shapes do not fit") // sizes that are known only at run time do not fit
	ErrAssert   = errors.New("assertion failed")  // the condition of an Assert is false
	ErrGradient = errors.New("no gradient")       // there is no gradient
)

// An Error says what is wrong with the arguments of an op. Functions that build expressions panic
// with one, since the mistake is in the program; [Try] turns the panic into an error.
type Error struct {
	Op   string
	Arg  int // the argument, from 0; -1 if it is none in particular
	Text string
}

// Error counts arguments from 1.
func (e *Error) Error() string {
	if e.Arg >= 0 {
		return fmt.Sprintf("%s: argument %d: %s", e.Op, e.Arg+1, e.Text)
	}
	return fmt.Sprintf("%s: %s", e.Op, e.Text)
}

// Is reports whether target is ErrType.
func (e *Error) Is(target error) bool { return target == ErrType }

// fail panics with an *Error.
func fail(op, format string, args ...any) {
	panic(&Error{Op: op, Arg: -1, Text: fmt.Sprintf(format, args...)})
}

// opError returns an *Error about an op.
func opError(op fgraph.Op, format string, args ...any) *Error {
	return argError(op, -1, format, args...)
}

// argError returns an *Error about an argument.
func argError(op fgraph.Op, arg int, format string, args ...any) *Error {
	return &Error{Op: op.String(), Arg: arg, Text: fmt.Sprintf(format, args...)}
}

// Try calls a function that builds an expression, and returns the *Error that it panics with. It
// passes other panics on.
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
