package computation

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/internal/errlist"
)

// CheckOptions selects checks. The zero value checks what all computations must satisfy.
type CheckOptions struct {
	// Rewrite also demands that no value changes after it was read. This holds for computations as
	// compiled, and for few optimized ones.
	Rewrite bool
	// AllowUnused permits matrices, and parts of them, that are at most set to a constant: the
	// opposite of Kaldi's check_unused_variables. A looped computation implies it.
	AllowUnused bool
}

// Check reports all faults in a computation at once: the error is a multierror, with the command and
// the kind of each. Checks of components or nodes need net (nil for none) and its nodes.
//
// The checks are Kaldi's, in Kaldi's order, with these decisions where Kaldi's code differs from
// its intent, or where Kaldi is silent:
//   - A matrix that is only set to a constant is a fault (errUnused) wherever unused parts are.
//     Kaldi means to report it and never does.
//   - An accepted matrix that nothing reads is no fault. Kaldi means to allow it; there, too,
//     accepting counts as a write.
//   - An unused part is allowed if it begins after 80 % of the matrix's rows, whatever columns it
//     spans: extending a matrix to save a copy leaves such parts. Kaldi looks at a few columns
//     only, which tells nothing.
//   - The operands that a command writes must not share an element with its other operands, except
//     that the two may be the same view if the component works in place. Kaldi compares numbers of
//     sub-matrices.
//   - A BackpropNoModelUpdate without input derivative does nothing. It passes, as in Kaldi, which
//     makes such commands when it consolidates updates.
//   - Rows of -1 make CopyRows write zeros; it does not read what was there.
//   - In a looped computation, an iteration ends with the same matrices allocated that it began
//     with.
func Check(c *Computation, net *NetworkInfo, opts CheckOptions) error {
	r := newReport(c, net)
	if r.structure(); r.bad() {
		return r.err() // nothing else could be looked up
	}
	r.commands()
	r.memos()
	a, err := analyze(r)
	if err != nil {
		return err
	}
	var carried []bool
	if c.Looped() {
		opts.AllowUnused = true
		carried = r.loop(a)
	}
	r.lifeFaults(a, carried, opts.AllowUnused)
	r.compression(a)
	r.undefined(a, opts.AllowUnused)
	r.debugInfo()
	if opts.Rewrite {
		r.rewrite(a)
	}
	return r.err()
}

// The kinds of faults that Check reports. A violation wraps one of them, so errors.Is finds them.
var (
	// errStructure: a number is out of range, such as that of a sub-matrix in a command or of a row
	// in a sub-matrix. Nothing else is checked of such a computation.
	errStructure = errors.New("number out of range")
	// errSize: the operands of a command have sizes that do not agree.
	errSize = errors.New("sizes do not agree")
	// errComponent: a command uses a component in a way that its properties do not allow.
	errComponent = errors.New("component used wrongly")
	// errRows: a vector of rows does not fit its command.
	errRows = errors.New("wrong row numbers")
	// errOverlap: a command writes where it also reads, or writes an element twice.
	errOverlap = errors.New("operands overlap")
	// errMemo: a memo is not written once and consumed once by the same component.
	errMemo = errors.New("memo misused")
	// errIO: a node that can't have input or output is accepted or provided.
	errIO = errors.New("wrong input or output")
	// errLoop: a jump has a wrong target, or an iteration changes which matrices are allocated.
	errLoop = errors.New("broken loop")
	// errLifetime: a matrix is not allocated once and freed once, or is used outside its life.
	errLifetime = errors.New("matrix used outside its life")
	// errCompression: a matrix is used while it is compressed, or loses what is needed.
	errCompression = errors.New("compression misplaced")
	// errUndefined: a part of a matrix is read before it is written.
	errUndefined = errors.New("undefined values are read")
	// errUnused: a part of a matrix is never used.
	errUnused = errors.New("part of a matrix is never used")
	// errDebugInfo: the debug information of a matrix can't be true.
	errDebugInfo = errors.New("wrong debug information")
	// errRewrite: a value changes after it was read, which must not happen before optimization.
	errRewrite = errors.New("value changed after it was read")
)

// violation is one fault in a computation.
type violation struct {
	Kind    error  // one of the errors above
	Command int    // number of the command, -1 for a fault that concerns no particular command
	Text    string // the command as Printer writes it
	Detail  string // what is wrong
}

// Error names the command, the kind and the fault.
func (v *violation) Error() string {
	if v.Command < 0 {
		return fmt.Sprintf("%v: %s", v.Kind, v.Detail)
	}
	return fmt.Sprintf("command c%d, %s: %v: %s", v.Command, v.Text, v.Kind, v.Detail)
}

// Unwrap returns the kind.
func (v *violation) Unwrap() error { return v.Kind }

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
	v := &violation{Kind: kind, Command: cmd, Detail: fmt.Sprintf(format, args...)}
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

// loop checks that an iteration of the loop can follow another: it must end with the same matrices
// allocated that it began with. It returns the matrices that are allocated at the label. Outputs
// may differ: they are not freed, and the caller has taken them before they are allocated again.
func (r *report) loop(a *analyzer) (begin []bool) {
	last := len(r.c.Commands) - 1
	label, tail := int(r.c.Commands[last].Target()), r.c.loopTail()
	live := make([]bool, len(r.c.Matrices))
	of := func(sub int32) *bool { return &live[r.c.Submatrices[sub].Matrix] }
	proper := r.c.Commands[label].Type == NoOperationLabel // if not, it is reported already
	for i, cmd := range r.c.Commands {
		if i == label {
			begin = slices.Clone(live)
		}
		switch cmd.Type {
		case AllocMatrix, AcceptInput:
			*of(cmd.View()) = true
		case DeallocMatrix:
			*of(cmd.View()) = false
		case SwapMatrix:
			if i >= tail && proper {
				r.handOver(a, i, live)
			}
			// The memory of the second is now that of the first.
			*of(cmd.View()), *of(cmd.Source()) = true, false
		}
	}
	for m := 1; m < len(live) && proper; m++ {
		if live[m] != begin[m] && !a.lives[m].isOutput {
			was, is := "free", "allocated"
			if begin[m] {
				was, is = is, was
			}
			r.addf(errLoop, last, "m%d is %s when a pass begins and %s when it ends", m, was, is)
		}
	}
	return begin
}

// handOver checks a swap at the end of the loop, which hands a matrix over to the next iteration.
func (r *report) handOver(a *analyzer, i int, live []bool) {
	cmd := r.c.Commands[i]
	to, from := r.c.Submatrices[cmd.View()].Matrix, r.c.Submatrices[cmd.Source()].Matrix
	if live[to] {
		r.addf(errLoop, i, "m%d is still allocated", to)
	}
	if !live[from] {
		r.addf(errLoop, i, "m%d is not allocated", from)
	}
	if len(a.lives[from].accesses) == 0 {
		r.addf(errLoop, i, "m%d holds nothing", from)
	}
}

// Looped reports whether the computation ends in a jump.
func (c *Computation) Looped() bool {
	n := len(c.Commands)
	return n > 0 && c.Commands[n-1].Type == GotoLabel
}

// loopTail returns the number of the first of the swaps right before the jump of a loop, which hand
// matrices over to the next iteration. Without a loop it is the number of commands.
func (c *Computation) loopTail() int {
	if !c.Looped() {
		return len(c.Commands)
	}
	i := len(c.Commands) - 1
	for i > 0 && c.Commands[i-1].Type == SwapMatrix {
		i--
	}
	return i
}
