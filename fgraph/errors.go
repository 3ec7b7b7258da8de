package fgraph

import (
	"errors"
	"fmt"
)

// Errors of graphs and features, for use with [errors.Is].
var (
	// ErrCycle means that a change would make a variable depend on itself.
	ErrCycle = errors.New("cycle")
	// ErrType means that a variable can't replace another one because of its type.
	ErrType = errors.New("incompatible type")
	// ErrMissingInput means that an imported expression depends on a variable that is
	// neither a constant nor an input of the graph.
	ErrMissingInput = errors.New("missing input")
	// ErrForeign means that an apply or a variable belongs to another graph.
	ErrForeign = errors.New("belongs to another graph")
	// ErrInvalid means that an argument makes no sense, such as an input that has an owner.
	ErrInvalid = errors.New("invalid argument")
	// ErrInconsistent means that a feature objects to the state of the graph.
	ErrInconsistent = errors.New("inconsistent graph")
	// ErrNotRemoved means that a replacement left something in the graph that it was meant
	// to remove.
	ErrNotRemoved = errors.New("replacement did not remove")
	// ErrNotAllowed means that a [Guard] forbade a change. It wraps ErrInconsistent, so a
	// pass that goes on after an objection also goes on after a refusal.
	ErrNotAllowed = fmt.Errorf("%w: the change is not allowed", ErrInconsistent)
	// ErrNoHandler means that a pass brought in an op that overwrites an input before a
	// [DestroyHandler] was attached to check it.
	ErrNoHandler = errors.New("no op may overwrite an input before a DestroyHandler is attached, which a database does right before position 50")
	// ErrAlreadyAttached makes Attach drop a feature silently.
	ErrAlreadyAttached = errors.New("feature already attached")
	// ErrDeclaration means that an op does not do what it declares, such as one that overwrites an
	// input that its DestroyMap leaves out. Graphs don't run ops: who does may check it.
	ErrDeclaration = errors.New("it does not do what it declares")
	// ErrCheck means that Check found a fault.
	ErrCheck = errors.New("graph check")
)
