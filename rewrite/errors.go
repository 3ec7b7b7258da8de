package rewrite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

// Errors of drivers, for use with [errors.Is].
var (
	// ErrRule means that a node rewriter is malformed, or proposes what no graph could accept: a
	// replacement of a wrong type, with an op that can't be compared, or with a variable that is
	// undeclared or of another graph. The error then also wraps what is wrong, such as
	// [fgraph.ErrType].
	ErrRule = errors.New("faulty rule")
	// ErrMaxUse means that a rule fired too often, see [MaxUseError].
	ErrMaxUse = errors.New("rules do not terminate")
	// ErrPanic means that a rewriter panicked, see [PanicError].
	ErrPanic = errors.New("panic")
)

// An Error tells where a rewriter failed.
type Error struct {
	Pass  string
	Rule  string // empty if it was not a node rewriter
	place string // of the text of the rule, file and line; empty if it is none
	Node  string // the apply that the rule was shown
	Err   error

	reproduced bool // passed to Options.Reproduce
}

// Error returns the place of the failure and its cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Pass)
	if e.Rule != "" {
		b.WriteString(": rule " + placed(e.Rule, e.place))
	}
	if e.Node != "" {
		b.WriteString(": at " + e.Node)
	}
	return fmt.Sprintf("%s: %v", &b, e.Err)
}

// placed returns a name with a place, if there is one.
func placed(name, place string) string {
	if place == "" {
		return name
	}
	return name + " (" + place + ")"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A PanicError is a panic of a rewriter, recovered by its driver.
type PanicError struct {
	Value any
	At    string // where the rewriter was: folder, file and line; empty if that is not known
	Stack []byte
}

// Error returns the value of the panic, and where it was.
func (e *PanicError) Error() string {
	if e.At == "" {
		return fmt.Sprintf("%v: %v", ErrPanic, e.Value)
	}
	return fmt.Sprintf("%v: %v, at %s", ErrPanic, e.Value, e.At)
}

// Is reports whether target is [ErrPanic].
func (e *PanicError) Is(target error) bool { return target == ErrPanic }

// Unwrap returns the value of the panic if it is an error, or nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// A MaxUseError reports that a rule fired more often than its driver allows: other rules undo what it
// does, or it makes the graph larger and larger.
type MaxUseError struct {
	Rule    string
	place   string // of the text of the rule, file and line; empty if it is none
	uses    int
	nodes   int     // of the graph at its largest
	MaxUse  float64 // how often a rule may fire, as a multiple of nodes
	Lap     []Event // one round of the cycle, or the last rules that fired
	Repeats bool    // Lap is a cycle, seen twice in a row
	grown   int     // how many applies one round of the cycle adds to the graph
}

// Error returns the counts, followed by Lap with one rule per line.
func (e *MaxUseError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s fired %d times, more than MaxUse %g allows for %d applies",
		ErrMaxUse, placed(e.Rule, e.place), e.uses, e.MaxUse, e.nodes)
	switch {
	case len(e.Lap) == 0:
	case e.Repeats && e.grown > 0:
		fmt.Fprintf(&b, "; each round of %s makes the graph larger:", rewrites(len(e.Lap)))
	case e.Repeats && len(e.Lap) == 1:
		b.WriteString("; it goes on and on:")
	case e.Repeats:
		fmt.Fprintf(&b, "; these %d undo each other:", len(e.Lap))
	default:
		b.WriteString("; the last to fire were:")
	}
	for _, ev := range e.Lap {
		fmt.Fprintf(&b, "\n\t%s: %s -> %s", ev.Rule, ev.Before, ev.After)
	}
	return b.String()
}

func rewrites(n int) string {
	if n == 1 {
		return "1 rewrite"
	}
	return fmt.Sprintf("%d rewrites", n)
}

// Is reports whether target is [ErrMaxUse].
func (e *MaxUseError) Is(target error) bool { return target == ErrMaxUse }

// faulty returns the error of a replacement that a rule proposed, as [ErrRule] if the proposal is invalid
// in any state of the graph.
func faulty(err error) error {
	for _, invalid := range []error{fgraph.ErrType, fgraph.ErrCycle, fgraph.ErrMissingInput, fgraph.ErrForeign, fgraph.ErrInvalid} {
		if errors.Is(err, invalid) {
			return fmt.Errorf("%w: %w", ErrRule, err)
		}
	}
	return err
}

// vetoed reports whether a replacement was valid but refused.
func vetoed(err error) bool {
	return errors.Is(err, fgraph.ErrInconsistent) || errors.Is(err, fgraph.ErrNotRemoved)
}
