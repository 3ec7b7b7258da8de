package fgraph

import (
	"fmt"
	"slices"
)

// FullHistory is the feature that records every replacement since it was attached, so that the
// graph can be inspected as it was after each of them. It does not record the addition or
// removal of outputs.
type FullHistory struct {
	hidden
	g     *FunctionGraph
	steps []historyStep
	at    int // number of steps that the graph has seen
	now   []historyChange
	moves bool // Goto is changing the graph
}

type historyStep struct {
	why     Reason
	changes []historyChange
}

// historyChange records that a client changed from old to new. The applies that come and go
// follow from that.
type historyChange struct {
	c        Client
	old, new *Variable
}

// NewFullHistory returns the feature for one graph.
func NewFullHistory() *FullHistory {
	h := new(FullHistory)
	h.Feature = (*fullHistoryCallbacks)(h)
	return h
}

type fullHistoryCallbacks FullHistory

func (h *fullHistoryCallbacks) OnAttach(g *FunctionGraph) error {
	if err := attachable[*FullHistory](h.g, g); err != nil {
		return err
	}
	*h = fullHistoryCallbacks{hidden: h.hidden, g: g}
	return nil
}

// OnDetach ends the recording. The record can still be read.
func (h *fullHistoryCallbacks) OnDetach(*FunctionGraph) { h.g = nil }

func (h *fullHistoryCallbacks) OnChangeInput(g *FunctionGraph, a *Apply, i int, old, new *Variable, _ Reason) {
	if h.moves || old == nil || new == nil {
		return // outputs that come and go are not recorded
	}
	c := historyChange{Client{a, i}, old, new}
	// A change that is refused is announced twice, there and back. Both vanish here, so a step is
	// what stayed.
	if last := len(h.now) - 1; g.undoing && last >= 0 && h.now[last] == (historyChange{c.c, new, old}) {
		h.now = h.now[:last] // undone at once
		return
	}
	h.now = append(h.now, c)
}

// OnCommit makes a step of the changes since the previous one.
func (h *fullHistoryCallbacks) OnCommit(_ *FunctionGraph, _ []Replacement, why Reason) {
	if h.moves || len(h.now) == 0 {
		return
	}
	h.steps = append(h.steps[:h.at], historyStep{why, h.now})
	h.at, h.now = len(h.steps), nil
}

// Len returns the number of recorded replacements.
func (h *FullHistory) Len() int { return len(h.steps) }

// Position returns how many of them are in effect.
func (h *FullHistory) Position() int { return h.at }

// Reason returns who asked for replacement i.
func (h *FullHistory) Reason(i int) Reason { return h.steps[i].why }

// Goto takes the graph to its state after k replacements, where k is clamped to the range from 0
// to Len. If somebody then makes another replacement, the later ones are forgotten. An error
// means that the graph was changed in a way that is not recorded, such as the removal of an
// input, and is between the two states.
func (h *FullHistory) Goto(k int) error {
	if h.g == nil {
		return fmt.Errorf("%w: the history is not attached to a graph", ErrInvalid)
	}
	h.moves = true
	defer func() { h.moves = false }()
	k = max(0, min(k, len(h.steps)))
	for ; h.at > k; h.at-- {
		s := h.steps[h.at-1]
		changes := make([]historyChange, 0, len(s.changes))
		for _, c := range slices.Backward(s.changes) {
			changes = append(changes, historyChange{c.c, c.new, c.old})
		}
		if err := h.g.replay(changes, s.why); err != nil {
			return err
		}
	}
	for ; h.at < k; h.at++ {
		if err := h.g.replay(h.steps[h.at].changes, h.steps[h.at].why); err != nil {
			return err
		}
	}
	return nil
}

// replay makes changes that are known to lead from one state to another.
func (g *FunctionGraph) replay(changes []historyChange, why Reason) error {
	return g.atomically(nil, why, func(why Reason) error {
		// Changes to applies that a later change of the same step removed are skipped: those
		// applies exist in neither of the two states.
		for _, c := range changes {
			if err := g.importFor(c.new, why); err != nil {
				return err
			}
			if c.c.Apply == nil || c.c.Apply.graph == g {
				g.change(c.c, c.new, why)
			}
		}
		// Only now is it known what nothing reads any more; pruning between two changes could
		// remove what the second one uses.
		for _, c := range changes {
			if a := c.old.owner; a != nil && a.graph == g && a.unused(c.old.index) {
				g.prune(a, why)
			}
		}
		if e, ok := g.settle(); !ok {
			return fmt.Errorf("%w through %v", ErrCycle, e.after)
		}
		return nil
	})
}
