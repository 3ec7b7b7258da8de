package fgraph

import "fmt"

// FullHistory is the feature that keeps every replacement since it was attached,
// so that the graph can be looked at as it was after each of them. Stepping past
// either end does nothing. Adding or removing outputs while it is attached is
// not kept.
type FullHistory struct {
	g     *FunctionGraph
	steps []historyStep
	at    int // how many of the steps the graph has seen
	now   []historyChange
	moves bool // the change is ours
}

type historyStep struct {
	why     Reason
	changes []historyChange
}

// historyChange says that a client read old before and reads new afterwards. The
// applies that come and go follow from that.
type historyChange struct {
	c        Client
	old, new *Variable
}

// NewFullHistory returns the feature for one graph.
func NewFullHistory() *FullHistory { return new(FullHistory) }

// OnAttach begins the record. A second FullHistory is dropped quietly.
func (h *FullHistory) OnAttach(g *FunctionGraph) error {
	if _, ok := FeatureOf[*FullHistory](g); ok {
		return ErrAlreadyAttached
	}
	if err := servesOne(h.g, g); err != nil {
		return err
	}
	*h = FullHistory{g: g}
	return nil
}

// OnDetach ends the record, which can still be read but not stepped through.
func (h *FullHistory) OnDetach(*FunctionGraph) { h.g = nil }

// OnChangeInput notes a change.
func (h *FullHistory) OnChangeInput(g *FunctionGraph, a *Apply, i int, old, new *Variable, _ Reason) {
	if h.moves || old == nil || new == nil {
		return // outputs that come and go are not kept
	}
	c := historyChange{Client{a, i}, old, new}
	// A change that is taken back at once never was.
	if last := len(h.now) - 1; g.undoing && last >= 0 && h.now[last] == (historyChange{c.c, new, old}) {
		h.now = h.now[:last]
		return
	}
	h.now = append(h.now, c)
}

// OnCommit makes a step of the changes since the last one.
func (h *FullHistory) OnCommit(_ *FunctionGraph, _ []Replacement, why Reason) {
	if h.moves || len(h.now) == 0 {
		return
	}
	h.steps = append(h.steps[:h.at], historyStep{why, h.now})
	h.at, h.now = len(h.steps), nil
}

// Len returns the number of replacements that are known.
func (h *FullHistory) Len() int { return len(h.steps) }

// Position returns how many of them the graph has seen.
func (h *FullHistory) Position() int { return h.at }

// Reason returns who asked for replacement i.
func (h *FullHistory) Reason(i int) Reason { return h.steps[i].why }

// Start takes the graph back to where it was when the feature was attached.
func (h *FullHistory) Start() error { return h.Goto(0) }

// End takes the graph to where the last replacement left it.
func (h *FullHistory) End() error { return h.Goto(len(h.steps)) }

// Prev undoes a replacement.
func (h *FullHistory) Prev() error { return h.Goto(h.at - 1) }

// Next makes a replacement again that was undone.
func (h *FullHistory) Next() error { return h.Goto(h.at + 1) }

// Goto takes the graph to where it was after k replacements. A replacement made
// there by somebody else makes those after it be forgotten. An error means that
// the graph was changed in a way that is not kept, such as by the removal of an
// input; the graph is then between the two states.
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
		for i := len(s.changes) - 1; i >= 0; i-- {
			c := s.changes[i]
			changes = append(changes, historyChange{c.c, c.new, c.old})
		}
		if err := h.g.step(changes, s.why); err != nil {
			return err
		}
	}
	for ; h.at < k; h.at++ {
		if err := h.g.step(h.steps[h.at].changes, h.steps[h.at].why); err != nil {
			return err
		}
	}
	return nil
}

// step makes changes that are known to lead from one state to another.
func (g *FunctionGraph) step(changes []historyChange, why Reason) error {
	return g.atomically(nil, why, func(why Reason) error {
		for _, c := range changes {
			if err := g.importFor(c.new, why); err != nil {
				return err
			}
			if c.c.Apply == nil || c.c.Apply.graph == g {
				g.change(c.c, c.new, why)
			}
		}
		for _, c := range changes {
			if a := c.old.owner; a != nil && a.graph == g && a.unused() {
				g.prune(a, why)
			}
		}
		if e, ok := g.settle(); !ok {
			return fmt.Errorf("%w through %v", ErrCycle, e.after)
		}
		return nil
	})
}
