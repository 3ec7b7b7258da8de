package fgraph

import "fmt"

// History is the feature that takes a graph back to an earlier state. While a checkpoint is
// open, the graph records every change.
type History struct {
	hidden
	g     *FunctionGraph
	marks []int // position in the journal of each open checkpoint
}

// A Checkpoint identifies a state of the graph. Checkpoints nest: reverting to one ends the
// later ones.
type Checkpoint int

// NewHistory returns the feature for one graph.
func NewHistory() *History {
	h := new(History)
	h.Feature = (*historyCallbacks)(h)
	return h
}

type historyCallbacks History

func (h *historyCallbacks) OnAttach(g *FunctionGraph) error {
	if err := attachable[*History](h.g, g); err != nil {
		return err
	}
	h.g = g
	return nil
}

// OnDetach ends all checkpoints.
func (h *historyCallbacks) OnDetach(*FunctionGraph) {
	(*History)(h).Keep(0)
	h.g = nil
}

// Checkpoint opens a checkpoint. The record of changes grows until [History.Revert] or
// [History.Keep] ends it. Without a graph the result is invalid, and Revert returns an error.
func (h *History) Checkpoint() Checkpoint {
	if h.g == nil {
		return -1
	}
	h.g.open++
	h.marks = append(h.marks, len(h.g.journal))
	return Checkpoint(len(h.marks) - 1)
}

// Revert takes the graph back to the checkpoint and ends it.
func (h *History) Revert(c Checkpoint) error {
	if c < 0 || int(c) >= len(h.marks) {
		return fmt.Errorf("%w: revert to a checkpoint that has ended", ErrInvalid)
	}
	if err := h.g.locked(); err != nil {
		return err
	}
	h.g.busy = true
	defer func() { h.g.busy = false }()
	why := Reason{Pass: "revert"}
	// The marks of later checkpoints point into what is undone here, so all of them end together.
	h.g.undo(h.marks[c], why)
	h.Keep(c)
	h.g.passPanic()
	h.g.fireCommit(nil, why)
	return nil
}

// Keep ends the checkpoint and leaves the graph as it is.
func (h *History) Keep(c Checkpoint) {
	if c < 0 || int(c) >= len(h.marks) {
		return
	}
	h.g.open -= len(h.marks) - int(c)
	h.marks = h.marks[:c]
	h.g.forget(0)
}
