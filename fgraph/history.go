package fgraph

import "fmt"

// History is the feature that takes a graph back to an earlier state. While a
// checkpoint is open the graph notes every change.
type History struct {
	g     *FunctionGraph
	marks []int // place in the journal of every open checkpoint
}

// A Checkpoint stands for a state of the graph. Checkpoints nest: going back to
// one ends those that came after it.
type Checkpoint int

// NewHistory returns the feature for one graph.
func NewHistory() *History { return new(History) }

// OnAttach makes the feature work for g. A second one is dropped quietly.
func (h *History) OnAttach(g *FunctionGraph) error {
	if _, ok := FeatureOf[*History](g); ok {
		return ErrAlreadyAttached
	}
	if err := servesOne(h.g, g); err != nil {
		return err
	}
	h.g = g
	return nil
}

// OnDetach ends all checkpoints and the work of the feature.
func (h *History) OnDetach(*FunctionGraph) {
	for len(h.marks) > 0 {
		h.Keep(Checkpoint(len(h.marks) - 1))
	}
	h.g = nil
}

// Checkpoint opens a checkpoint. It has to be ended by [History.Revert] or
// [History.Keep], as the record of changes grows until then. Without a graph
// there is nothing to go back to, and Revert says so.
func (h *History) Checkpoint() Checkpoint {
	if h.g == nil {
		return -1
	}
	h.g.open++
	h.marks = append(h.marks, len(h.g.journal))
	return Checkpoint(len(h.marks) - 1)
}

// Revert takes the graph back to where it was at the checkpoint, which ends.
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
	h.g.undo(h.marks[c], why)
	h.end(c)
	h.g.passPanic()
	h.g.fireCommit(nil, why)
	return nil
}

// Keep ends the checkpoint and leaves the graph as it is.
func (h *History) Keep(c Checkpoint) {
	if c >= 0 && int(c) < len(h.marks) {
		h.end(c)
	}
}

func (h *History) end(c Checkpoint) {
	h.g.open -= len(h.marks) - int(c)
	h.marks = h.marks[:c]
	h.g.forget(0)
}
