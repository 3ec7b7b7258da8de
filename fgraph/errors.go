package fgraph

import (
	"errors"
	"fmt"
)

// Errors that the graph and its features report, to be asked for with
// [errors.Is].
var (
	// ErrCycle is wrapped when a change would make a variable depend on itself.
	ErrCycle = errors.New("cycle")
	// ErrType is wrapped by [TypeError].
	ErrType = errors.New("incompatible type")
	// ErrMissingInput is wrapped by [MissingInputError].
	ErrMissingInput = errors.New("missing input")
	// ErrForeign is wrapped when an apply or a variable of one graph is handed
	// to another one.
	ErrForeign = errors.New("belongs to another graph")
	// ErrInvalid is wrapped when a graph is asked for something that makes no
	// sense, such as an input with an owner.
	ErrInvalid = errors.New("invalid argument")
	// ErrInconsistent is wrapped by the objections of features that validate.
	ErrInconsistent = errors.New("inconsistent graph")
	// ErrNotRemoved is wrapped when a replacement left behind what it promised
	// to remove.
	ErrNotRemoved = errors.New("replacement did not remove")
	// ErrNotAllowed is wrapped when a [Guard] does not allow a change. It wraps
	// ErrInconsistent, so that a pass that goes on after an objection goes on
	// after this one too.
	ErrNotAllowed = fmt.Errorf("%w: the change is not allowed", ErrInconsistent)
	// ErrNoHandler is wrapped when a pass brings in an op that overwrites its
	// input, and nothing is there to see whether it may.
	ErrNoHandler = errors.New("no op may overwrite its input yet, as no DestroyHandler is attached; in a database that comes right before position 50")
	// ErrAlreadyAttached makes Attach drop a feature quietly.
	ErrAlreadyAttached = errors.New("feature already attached")
	// ErrCheck is wrapped by everything that Check finds.
	ErrCheck = errors.New("graph check")
)

// A MissingInputError tells that something to be imported depends on a variable
// that is neither a constant nor an input of the graph.
type MissingInputError struct {
	Variable *Variable
	Client   *Apply // what needs it, nil if it is used directly
	Index    int    // which input of Client
}

func (e *MissingInputError) Error() string {
	if e.Client == nil {
		return fmt.Sprintf("%v %v: it is neither an input of the graph nor a constant", ErrMissingInput, e.Variable)
	}
	return fmt.Sprintf("%v %v, used as input %d of %v: it is neither an input of the graph nor a constant",
		ErrMissingInput, e.Variable, e.Index, e.Client)
}

// Is makes the error be found as [ErrMissingInput].
func (e *MissingInputError) Is(target error) bool { return target == ErrMissingInput }

// A TypeError tells that a variable of one type cannot take the place of
// another one.
type TypeError struct {
	Old, New *Variable
	Why      Reason
}

func (e *TypeError) Error() string {
	if e.Old == nil || e.New == nil {
		return ErrType.Error()
	}
	return fmt.Sprintf("%v: %v cannot replace %v: type %v does not accept %v", ErrType, e.New, e.Old, e.Old.typ, e.New.typ)
}

// Is makes the error be found as [ErrType].
func (e *TypeError) Is(target error) bool { return target == ErrType }
