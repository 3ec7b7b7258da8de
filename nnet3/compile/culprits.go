package compile

// Bounds of the search for missing inputs. Its cost is in the rows that it adds to the graph, with
// their edges some tens of megabytes.
const (
	maxExplainedSteps = 1 << 20
	maxExplainedRows  = 1 << 17 // rows new to the builder
	maxDiveSteps      = 1 << 14
)

// blamed is a vertex that outputs need, and the position in search.found of the one that needs it.
type blamed struct{ vertex, parent int32 }

// search follows everything that outputs need, even where one missing input made the builder stop.
type search struct {
	*builder
	found   []blamed          // in the order of discovery, looked at or not
	missing map[int32][]int32 // by input-node
	first   map[int32]int32   // by input-node, the position in found of the first missing row
	rows    int               // of the graph when the search began
	edges   int               // likewise
}

func newSearch(b *builder) *search {
	return &search{builder: b, missing: map[int32][]int32{}, first: map[int32]int32{}, rows: len(b.graph.vertices), edges: len(b.graph.deps)}
}

// add adds a vertex, unless it was found before.
func (s *search) add(v, parent int32) {
	if x := &s.graph.vertices[v]; !x.blamed {
		x.blamed = true
		s.found = append(s.found, blamed{v, parent})
	}
}

// run searches to the end or until the search gets too costly, and reports whether it reached the
// end. It goes hop by hop, so that it finds what is near first. If it is cut short before it finds
// a missing input, as in a deep network, it dives, because one example is better than none.
func (s *search) run() bool {
	for i := 0; i < len(s.found); i++ {
		if i == maxExplainedSteps || s.isCostly() || s.interrupt.came() {
			if len(s.missing) == 0 {
				s.dive(i)
			}
			return false
		}
		s.look(int32(i))
	}
	return true
}

// isCostly reports whether the graph has grown too much. A row has about two dependencies.
func (s *search) isCostly() bool {
	return len(s.graph.vertices)-s.rows > maxExplainedRows || len(s.graph.deps)-s.edges > 2*maxExplainedRows
}

// dive continues depth first with the vertices from position from on, the last one first.
func (s *search) dive(from int) {
	var stack []int32
	next := len(s.found) - 1
	for range maxDiveSteps {
		if len(stack) == 0 {
			if next < from {
				return
			}
			stack = append(stack, int32(next))
			next--
		}
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		// The rows that this one lacks go on the stack in reverse, so that the first is looked at
		// next.
		known := len(s.found)
		s.look(at)
		for i := len(s.found) - 1; i >= known; i-- {
			stack = append(stack, int32(i))
		}
	}
}

// look records a missing input, or finds what else a vertex lacks.
func (s *search) look(at int32) {
	v := s.found[at].vertex
	if node := s.graph.vertices[v].Node; s.net.nodes[node].kind == inputNode {
		if len(s.missing[node]) == 0 {
			s.first[node] = at
		}
		s.missing[node] = append(s.missing[node], v)
		return
	}
	if s.expandAgain(v) != nil {
		return
	}
	for _, d := range s.culprits(v) {
		s.add(d, at)
	}
}
