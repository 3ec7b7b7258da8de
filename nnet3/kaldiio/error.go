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
	Name   string // of the file or stream
	Offset int64  // in bytes from the start of the stream
	Line   int    // counted from 1; 0 in binary input
	Token  string // the last token that was read, if any
	What   string // what is wrong, in words
	Err    error  // ErrCorrupt, ErrTruncated or the error of the source
}

// Error returns one line: place, fault, context.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Name != "" {
		b.WriteString(e.Name + ": ")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d (byte %d): %s", e.Line, e.Offset, e.What)
	} else {
		fmt.Fprintf(&b, "byte %d: %s", e.Offset, e.What)
	}
	if e.Token != "" {
		fmt.Fprintf(&b, " (after %s)", fileio.Excerpt(e.Token, 0))
	}
	if e.Err != nil && e.Err != ErrCorrupt && e.Err != errOtherKind {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
