package lower

import (
	"fmt"

	"github.com/nnopt/nnopt/internal/heap"
)

// stepKind says what a step of a schedule does.
type stepKind uint8

const (
	stepOp      stepKind = iota // an apply runs
	stepTerm                    // a term of an Assemble moves
	stepReady                   // all terms of an Assemble are done; nothing to do
	stepFill                    // a constant matrix is filled
	stepAccept                  // a graph input arrives
	stepProvide                 // a graph output leaves
	stepMarker                  // the forward part ends
)

// step is one thing to do, with the preferred time.
type step struct {
	kind    stepKind
	n       int32 // apply: number in the list of applies; term: number of the term; accept, provide: number of the port
	key     int64 // the position in the original computation
	waits   int32 // how many steps it still waits for
	clients int32 // the first edge to a step that waits for this one, from 1; 0 for none
}

// stepEdge leads to a step that waits for another one.
type stepEdge struct{ to, next int32 }

// A scheduler orders steps as close to the original order as the graph allows: of the steps that
// wait for none, the one that comes first in the original computation is next. Terms carry the
// number of the command that they come from, so data moves where the compiler put it: before the
// component that reads the result in a forward pass, after the one that made it in a backward pass.
type scheduler struct {
	steps []step
	edges []stepEdge
	order []int32 // the result
}

func (s *scheduler) add(kind stepKind, n int32, key int64) int32 {
	s.steps = append(s.steps, step{kind: kind, n: n, key: key})
	return int32(len(s.steps) - 1)
}

// before makes step b wait for step a.
func (s *scheduler) before(a, b int32) {
	s.edges = append(s.edges, stepEdge{b, s.steps[a].clients})
	s.steps[a].clients = int32(len(s.edges))
	s.steps[b].waits++
}

func (s *scheduler) run() error {
	var q heap.Heap[int64]
	for i := range s.steps {
		if s.steps[i].waits == 0 {
			q.Push(s.steps[i].key, int32(i))
		}
	}
	// Kahn's algorithm with a heap in place of a queue, in n log n. Ties go to the step that was
	// added first, so the order is the same in every run.
	for len(q) > 0 {
		i := q.Pop().N
		s.order = append(s.order, i)
		for e := s.steps[i].clients; e != 0; e = s.edges[e-1].next {
			c := s.edges[e-1].to
			if s.steps[c].waits--; s.steps[c].waits == 0 {
				q.Push(s.steps[c].key, c)
			}
		}
	}
	// A graph has no circles, but the demands of features may add one, such as a value that is to
	// be read after it is destroyed.
	if len(s.order) != len(s.steps) {
		return fmt.Errorf("lower: %d of %d steps wait for each other", len(s.steps)-len(s.order), len(s.steps))
	}
	return nil
}
