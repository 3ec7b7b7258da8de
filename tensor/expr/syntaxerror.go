package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/tensor"
)

// ErrSyntax is wrapped by every error of this package.
var ErrSyntax = errors.New("bad expression")

// A SyntaxError says what is wrong with an expression, and where.
type SyntaxError struct {
	Column int // in bytes, from 1
	Text   string
	Err    error // the cause, if there is one, such as a *tensor.Error
}

// At returns the column.
func (e *SyntaxError) At() int { return e.Column }

// Error leaves out the middle of a long text, which may quote what was read.
func (e *SyntaxError) Error() string {
	const most = 300
	text := e.Text
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most/2], "") + " … " + strings.ToValidUTF8(text[len(text)-most/2:], "")
	}
	return fmt.Sprintf("column %d: %s", e.Column, text)
}

// Is reports whether target is ErrSyntax.
func (e *SyntaxError) Is(target error) bool { return target == ErrSyntax }

// Unwrap returns the cause.
func (e *SyntaxError) Unwrap() error { return e.Err }

// fail panics with the error of a function or op. Scope.parse adds the column.
func fail(name, format string, args ...any) {
	panic(&tensor.Error{Op: name, Arg: -1, Text: fmt.Sprintf(format, args...)})
}
