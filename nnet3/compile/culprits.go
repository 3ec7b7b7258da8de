package compile

// Bounds of the search for what is missing. The rows that it adds to the graph are what costs: together with what leads to them
// they may come to some tens of megabytes.
const (
	maxExplainedSteps = 1 << 20
	maxExplainedRows  = 1 << 17 // that the builder had not looked at
	maxDiveSteps      = 1 << 14
)

// blamed is a vertex that outputs can't do without, and the place in the search of the one that needs it, or none.
type blamed struct{ vertex, parent int32 }

// search follows everything that outputs can't do without, even where the builder gave up because one missing input is enough.
type search struct {
	*builder
	found   []blamed // those looked at and those to look at, in the order in which they were found
	missing map[int32][]int32
	first   map[int32]int32 // by input-node like missing: the place of the first one
	rows    int             // of the graph when the search began
	edges   int
}

func newSearch(b *builder) *search {
	return &search{builder: b, missing: map[int32][]int32{}, first: map[int32]int32{}, rows: len(b.graph.vertices), edges: len(b.graph.deps)}
}

// add appends a vertex, unless it was found before.
func (s *search) add(v, parent int32) {
	if x := &s.graph.vertices[v]; !x.blamed {
		x.blamed = true
		s.found = append(s.found, blamed{v, parent})
	}
}

// run searches to the end, or until it has cost enough, and reports whether it came to the end. It goes hop by hop, so that what is
// near is found first. If that finds nothing that is missing before it is cut short, as in a deep network, it goes straight down from
// where it is, because one example is worth more than none.
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

// isCostly reports whether the graph has grown enough. A row has two dependencies or so.
func (s *search) isCostly() bool {
	return len(s.graph.vertices)-s.rows > maxExplainedRows || len(s.graph.deps)-s.edges > 2*maxExplainedRows
}

// dive goes on from the places that were not looked at, the last one first, depth first.
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
		new := len(s.found)
		s.look(at)
		for i := len(s.found) - 1; i >= new; i-- {
			stack = append(stack, int32(i))
		}
	}
}

// look notes an input that is missing, or finds out what else a vertex lacks.
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
