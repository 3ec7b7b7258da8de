package kaldiio

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// Errors that an *Error wraps. A failure of the source itself (a disk, a pipe) is wrapped as it is.
var (
	// ErrCorrupt means that the input violates the format.
	ErrCorrupt = errors.New("malformed input")
	// ErrTruncated means that the input ends too early.
	ErrTruncated = errors.New("input ends too early")

	// errOtherKind is ErrCorrupt for an object of the wrong kind that may be intact.
	errOtherKind = fmt.Errorf("another kind of object: %w", ErrCorrupt)
)

// Error says where reading failed, and why.
type Error struct {
	name   string // of the file or stream
	offset int64  // in bytes from the start of the stream
	line   int    // counted from 1; 0 in binary input
	token  string // the last token that was read, if any
	what   string // what is wrong, in words
	err    error  // ErrCorrupt, ErrTruncated or the error of the source
}

// Error returns one line: place, fault, context.
func (e *Error) Error() string {
	var b strings.Builder
	if e.name != "" {
		b.WriteString(e.name + ": ")
	}
	if e.line > 0 {
		fmt.Fprintf(&b, "line %d (byte %d): %s", e.line, e.offset, e.what)
	} else {
		fmt.Fprintf(&b, "byte %d: %s", e.offset, e.what)
	}
	if e.token != "" {
		fmt.Fprintf(&b, " (after %s)", fileio.Excerpt(e.token, 0))
	}
	if e.err != nil && e.err != ErrCorrupt && e.err != errOtherKind {
		b.WriteString(": " + e.err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }
