package computation

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/internal/errlist"
)

// The kinds of faults that Check reports. A Violation wraps one of them, so errors.Is finds them.
var (
	// ErrStructure: a number is out of range, such as that of a sub-matrix in a command or of a row
	// in a sub-matrix. Nothing else is checked of such a computation.
	ErrStructure = errors.New("number out of range")
	// ErrSize: the operands of a command have sizes that do not agree.
	ErrSize = errors.New("sizes do not agree")
	// ErrComponent: a command uses a component in a way that its properties do not allow.
	ErrComponent = errors.New("component used wrongly")
	// ErrRows: a vector of rows does not fit its command.
	ErrRows = errors.New("wrong row numbers")
	// ErrOverlap: a command writes where it also reads, or writes an element twice.
	ErrOverlap = errors.New("operands overlap")
	// ErrMemo: a memo is not written once and consumed once by the same component.
	ErrMemo = errors.New("memo misused")
	// ErrIO: a node that can't have input or output is accepted or provided.
	ErrIO = errors.New("wrong input or output")
	// ErrLoop: a jump has a wrong target, or an iteration changes which matrices are allocated.
	ErrLoop = errors.New("broken loop")
	// ErrLifetime: a matrix is not allocated once and freed once, or is used outside its life.
	ErrLifetime = errors.New("matrix used outside its life")
	// ErrCompression: a matrix is used while it is compressed, or loses what is needed.
	ErrCompression = errors.New("compression misplaced")
	// ErrUndefined: a part of a matrix is read before it is written.
	ErrUndefined = errors.New("undefined values are read")
	// ErrUnused: a part of a matrix is never used.
	ErrUnused = errors.New("part of a matrix is never used")
	// ErrDebugInfo: the debug information of a matrix can't be true.
	ErrDebugInfo = errors.New("wrong debug information")
	// ErrRewrite: a value changes after it was read, which must not happen before optimization.
	ErrRewrite = errors.New("value changed after it was read")
)

// Violation is one fault in a computation.
type Violation struct {
	Kind    error  // one of the errors above
	Command int    // number of the command, -1 for a fault that concerns no particular command
	Text    string // the command as Printer writes it
	Detail  string // what is wrong
}

// Error names the command, the kind and the fault.
func (v *Violation) Error() string {
	if v.Command < 0 {
		return fmt.Sprintf("%v: %s", v.Kind, v.Detail)
	}
	return fmt.Sprintf("command c%d, %s: %v: %s", v.Command, v.Text, v.Kind, v.Detail)
}

// Unwrap returns the kind.
func (v *Violation) Unwrap() error { return v.Kind }

// maxViolations bounds the faults that are listed.
const maxViolations = 200

// report collects violations.
type report struct {
	c       *Computation
	net     *NetworkInfo
	printer *Printer
	errs    *multierror.Error
	more    int // how many were not recorded
}

func newReport(c *Computation, net *NetworkInfo) *report {
	p := NewPrinter(c, net)
	p.MaxRuns = 6
	return &report{c: c, net: net, printer: p}
}

// addf records a violation of the given kind by command number cmd, -1 for none in particular.
func (r *report) addf(kind error, cmd int, format string, args ...any) {
	if r.bad() && len(r.errs.Errors) == maxViolations {
		r.more++
		return
	}
	v := &Violation{Kind: kind, Command: cmd, Detail: fmt.Sprintf(format, args...)}
	if cmd >= 0 {
		v.Text = r.printer.Command(cmd)
	}
	r.errs = multierror.Append(r.errs, v)
}

func (r *report) bad() bool { return r.errs.ErrorOrNil() != nil }

// err returns what was recorded, nil for nothing.
func (r *report) err() error {
	if !r.bad() {
		return nil
	}
	more := r.more
	r.errs.ErrorFormat = func(errs []error) string { return "computation: " + errlist.Text(errs, more) }
	return r.errs
}
