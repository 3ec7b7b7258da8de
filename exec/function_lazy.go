package exec

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/heap"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// What only a branch of an IfElse needs is computed only if that branch is taken. The steps of a function stay
// one list in one order, whose memory is planned as if all of them ran: a step has branches, and is left out if
// none of them is taken. Nothing is searched for or visited in a call.

// A decision is the place in the order where it becomes known which branch of an IfElse is taken.
type decision struct {
	branch int32   // the first of the two
	guard  []int32 // the branches that need the IfElse; none if it is always needed
	value  *fgraph.Variable
	slot   int32 // of the value
	doubt  int32 // the step that computes it, if that is ahead, otherwise -1
}

// A planned apply has the branches that need it, none if it is always needed, and the decisions in front of it.
// It is ahead if it is computed before it is known whether it is needed. If it fails, that is a failure of those
// who read it.
type planned struct {
	apply  *fgraph.Apply
	guard  []int32
	before []decision
	ahead  bool
}

// plannedOrder returns the order in which the applies of a graph are computed. If there are IfElses, conditions
// come before what depends on them.
//
// That is Kahn's algorithm, as in [fgraph.FunctionGraph.Toposort], in which decisions are nodes: one waits for
// its condition, and what only branches need waits for their decisions. These last edges may close a cycle: what
// an IfElse needs, and the condition of a later one by way of it, may be needed by a branch of the later one,
// too. So if nothing else is left, an apply is computed without waiting for decisions, whenever the IfElses on
// which was not decided are needed. If only decisions are left, an IfElse is given up: what its branches need is
// computed whenever it is needed itself.
func plannedOrder(g *fgraph.FunctionGraph) ([]planned, error) {
	order, err := g.Toposort()
	if err != nil {
		return nil, err
	}
	plan := make([]planned, 0, len(order))
	guards := tensor.GuardsOf(g, slices.Values(order))
	if guards == nil {
		for _, a := range order {
			plan = append(plan, planned{apply: a})
		}
		return plan, nil
	}
	l := newLazySort(g, order, guards)
	var pending []decision
	for {
		node, ok := l.next()
		if !ok {
			return plan, nil
		}
		l.done[node] = true
		if k := int(node); k < len(guards.Ifs) {
			// A decision that still waits for others came from the last queue, when nothing else was left: it
			// is given up.
			if l.undecided[k] == 0 {
				guard, ahead := l.decided(guards.Of(guards.Ifs[k]))
				pending = append(pending, decision{branch: int32(2 * k), guard: guard, value: guards.Ifs[k].Inputs()[0]})
				l.made[k], l.ahead[k] = true, ahead
			}
		} else {
			a := order[k-len(guards.Ifs)]
			guard, ahead := l.decided(guards.Of(a))
			plan = append(plan, planned{a, guard, pending, ahead})
			pending = nil
		}
		for _, n := range l.after[node] {
			l.waits[n]--
			l.offer(n)
		}
		for _, n := range l.later[node] {
			l.undecided[n]--
			l.offer(n)
		}
	}
}

// A lazySort sorts nodes: the decisions, and behind them applies in an order that is right but for decisions.
type lazySort struct {
	guards           *tensor.Guards
	after, later     [][]int32 // what waits for a node, and what does unless nothing else is left
	waits, undecided []int32   // how many nodes a node waits for, in both ways
	done             []bool
	made, ahead      []bool // decisions, and those that are made although nobody may need the IfElse
	// What waits for nothing; applies that wait only for decisions, and decisions that do.
	ready, early, late heap.Heap[int32]
}

func newLazySort(g *fgraph.FunctionGraph, order []*fgraph.Apply, guards *tensor.Guards) *lazySort {
	n := len(guards.Ifs) + len(order)
	l := &lazySort{guards: guards, after: make([][]int32, n), later: make([][]int32, n), waits: make([]int32, n), undecided: make([]int32, n), done: make([]bool, n), made: make([]bool, len(guards.Ifs)), ahead: make([]bool, len(guards.Ifs))}
	place := make([]int32, g.NumApplyIDs())
	for i, a := range order {
		place[a.ID()] = int32(len(guards.Ifs) + i)
	}
	wait := func(before *fgraph.Apply, after int32) {
		if before != nil { // no input or constant
			p := place[before.ID()]
			l.after[p] = append(l.after[p], after)
			l.waits[after]++
		}
	}
	needed := func(node int32, a *fgraph.Apply) {
		for _, b := range guards.Of(a) {
			l.later[b/2] = append(l.later[b/2], node)
			l.undecided[node]++
		}
	}
	for k, a := range guards.Ifs {
		node, p := int32(k), place[a.ID()]
		// The decision stands between the condition and the IfElse.
		wait(a.Inputs()[0].Owner(), node)
		needed(node, a)
		l.after[node] = append(l.after[node], p)
		l.waits[p]++
	}
	for _, a := range order {
		for _, v := range a.Inputs() {
			wait(v.Owner(), place[a.ID()])
		}
		needed(place[a.ID()], a)
	}
	// Who reads memory comes before who overwrites it.
	g.Orderings(func(before, after *fgraph.Apply) { wait(before, place[after.ID()]) })
	for node := range int32(n) {
		l.offer(node)
	}
	return l
}

// offer queues a node that waits for nothing, or only for decisions.
func (l *lazySort) offer(node int32) {
	switch {
	case l.waits[node] > 0 || l.done[node]:
	case l.undecided[node] == 0:
		l.ready.Push(node, 0)
	case int(node) >= len(l.guards.Ifs):
		l.early.Push(node, 0)
	default:
		l.late.Push(node, 0)
	}
}

// next takes the node that comes next: the first that waits for nothing.
func (l *lazySort) next() (int32, bool) {
	for _, queue := range []*heap.Heap[int32]{&l.ready, &l.early, &l.late} {
		for len(*queue) > 0 {
			// A node is offered again whenever it waits for less, so it may have left another queue before.
			if node := queue.Pop().Key; !l.done[node] {
				return node, true
			}
		}
	}
	return 0, false
}

// decided returns the branches of a guard whose decisions are made; in place of any other branch, it returns
// those that need the IfElse of that branch. It reports whether one of the branches may be taken although
// nothing needs the apply. If a node did not wait for a decision, its inputs did not wait either, so they are
// there.
func (l *lazySort) decided(guard []int32) (found []int32, ahead bool) {
	if !slices.ContainsFunc(guard, func(b int32) bool { return !l.made[b/2] }) {
		return guard, slices.ContainsFunc(guard, func(b int32) bool { return l.ahead[b/2] })
	}
	seen := slices.Clone(guard)
	for i := 0; i < len(seen); i++ {
		outer := l.guards.Of(l.guards.Ifs[seen[i]/2])
		switch {
		case l.made[seen[i]/2]:
			found = append(found, seen[i])
		case len(outer) == 0:
			return nil, true
		default:
			for _, b := range outer {
				if !slices.Contains(seen, b) {
					seen = append(seen, b)
				}
			}
		}
	}
	return found, true
}

// movable returns which inputs of an IfElse may give their memory to an output: those whose memory is their
// own, and is not needed afterwards.
func (f *Function) movable(s *step) []bool {
	moves := make([]bool, len(s.in))
	for i, slot := range s.in[1:] {
		k := len(s.out)
		list := s.in[1:][i/k*k:][:k]
		moves[1+i] = f.roots[slot] == slot && f.kinds[slot] == computed && slices.Contains(s.free, slot) &&
			!slices.Contains(list[i%k+1:], slot) // of several places of a list the last one
	}
	return moves
}

// doubt notes which inputs of the steps are computed ahead.
func (f *Function) doubt() {
	by := make([]int32, f.slots) // by slot: a step that is ahead, or -1
	for i := range by {
		by[i] = -1
	}
	for i := range f.steps {
		s := &f.steps[i]
		for k, d := range s.before {
			s.before[k].doubt = by[d.slot]
		}
		for k, slot := range s.in {
			if by[slot] >= 0 && s.doubts == nil {
				s.doubts = slices.Repeat([]int32{-1}, len(s.in))
			}
			if by[slot] >= 0 {
				s.doubts[k] = by[slot]
			}
		}
		if s.ahead {
			f.ahead = true
			for _, slot := range s.out {
				by[slot] = int32(i)
			}
		}
	}
}

// doubted returns the fault of an input that a step needs.
func (r *Runner) doubted(s *step, o *operands) error {
	for k, i := range s.doubts {
		if i < 0 || r.faults[i] == nil {
			continue
		}
		if n := len(s.out); s.choice && k > 0 && ((k-1)/n == 0) != (o.in[0].Int(0) != 0) {
			continue // of the other branch
		}
		return r.faults[i]
	}
	return nil
}

// decide notes which branch of an IfElse is taken: none if there is no condition.
func (r *Runner) decide(d *decision) {
	needed := r.needs(d.guard) && (d.doubt < 0 || r.faults[d.doubt] == nil)
	then := needed && r.headers[d.slot].Int(0) != 0
	r.taken[d.branch], r.taken[d.branch+1] = then, needed && !then
}

// needs reports whether a branch of a guard is taken, or there is none.
func (r *Runner) needs(guard []int32) bool {
	for _, b := range guard {
		if r.taken[b] {
			return true
		}
	}
	return len(guard) == 0
}

// choose computes an IfElse.
func (r *Runner) choose(ws *array.Workspace, s *step, o *operands) error {
	k, first := len(s.out), 1
	if o.in[0].Int(0) == 0 {
		first += k
	}
	for i, out := range o.out {
		in := o.in[first+i]
		if s.moves[first+i] {
			// The memory changes hands. The step frees the input afterwards, which therefore must not have it
			// any more.
			*out, *in = *in, array.Array{}
			continue
		}
		if err := ws.New(out, in.DType(), in.Shape()...); err != nil {
			return err
		}
		array.CopyTo(out, in)
	}
	return nil
}
