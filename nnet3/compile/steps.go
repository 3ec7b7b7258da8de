package compile

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// stepKind says what a step does.
type stepKind uint8

const (
	inputStep     stepKind = iota // takes a matrix from the caller
	gatherStep                    // gathers the input of a component
	outputStep                    // gathers an output for the caller
	componentStep                 // runs a component
	rangeStep                     // is columns of another step
)

// step computes the rows of one matrix.
type step struct {
	kind stepKind
	node int32
	rows rows
	// input is the step that a componentStep takes its input from, none if it has no input, or the
	// step that a rangeStep views.
	input int32
	spec  *computation.IoSpecification // of an inputStep or outputStep

	needDeriv    bool
	value, deriv int32 // sub-matrices; deriv is 0 if there is none
	// valueParts and derivParts are the first of the consecutive sub-matrices for the parts of a
	// descriptor. With a single part they equal value and deriv.
	valueParts, derivParts int32
	precomputed            int32
}

// matrix returns the sub-matrix of the step's value or derivative.
func (s *step) matrix(deriv bool) int32 {
	if deriv {
		return s.deriv
	}
	return s.value
}

// segment is a request, what the builder made of it, and its steps.
type segment struct {
	request         *computation.Request
	inputs, outputs []ioRows
	needed          []int32 // the vertices that the outputs are computed from
	first, last     int     // its steps, of which the first are its inputs
	outputSteps     []int32 // in the order of the request
}

// A view identifies a rangeStep: the columns that a dim-range-node takes of a step.
type view struct{ from, node int32 }

// stepper divides the computation into steps.
type stepper struct {
	net      *network
	graph    *graph
	lanes    lanes
	phaser   phaser
	steps    []step
	segments []segment
	// stepOf and rowOf have, by vertex, the step that computes it and its position in the step.
	stepOf, rowOf []int32
	views         map[view]int32 // the rangeStep of each view
	interrupt     *interrupt
}

// addSegment appends the steps of a segment: inputs, then phase after phase.
func (s *stepper) addSegment(seg *segment) error {
	s.stepOf = extend(s.stepOf, len(s.graph.vertices))
	s.rowOf = extend(s.rowOf, len(s.graph.vertices))
	seg.first, seg.outputSteps = len(s.steps), make([]int32, len(seg.outputs))
	outputOf := make(map[int32]int, len(seg.outputs))
	for i := range seg.outputs {
		outputOf[seg.outputs[i].node] = i
	}
	for _, in := range seg.inputs {
		s.add(step{kind: inputStep, node: in.node, rows: in.rows, input: none, spec: in.spec})
	}
	err := s.phaser.phases(seg.needed, func(node int32, vertices []int32) error {
		if s.interrupt.came() {
			return s.interrupt.err
		}
		switch n := &s.net.nodes[node]; n.kind {
		case outputNode:
			// The rows of an output are in the order of the request and not of time.
			i := outputOf[node]
			seg.outputSteps[i] = int32(len(s.steps))
			s.add(step{kind: outputStep, node: node, rows: seg.outputs[i].rows, input: none, spec: seg.outputs[i].spec})
		case simpleNode:
			// A vertex of a simple component stands for its input, too, since both have the same
			// index: two steps with the same rows, and only the second is what others depend on.
			r := inOrder(slices.Clone(vertices), len(s.lanes))
			s.steps = append(s.steps, step{kind: gatherStep, node: n.source, rows: r, input: none})
			s.add(step{kind: componentStep, node: node, rows: r, input: int32(len(s.steps) - 1)})
		case generalNode:
			s.addGeneral(node, slices.Clone(vertices))
		case rangeNode:
			s.addRange(node, vertices)
		}
		return nil
	})
	seg.last = len(s.steps)
	return err
}

// add appends a step and makes its vertices known to later steps.
func (s *stepper) add(st step) {
	id := int32(len(s.steps))
	for i, v := range st.rows.vertices {
		s.stepOf[v], s.rowOf[v] = id, int32(i)
	}
	s.steps = append(s.steps, st)
}

// addRange appends a step for each step whose columns a dim-range-node takes. It views all rows of
// that step, requested or not.
func (s *stepper) addRange(node int32, vertices []int32) {
	if s.views == nil {
		s.views = map[view]int32{}
	}
	last, id := int32(none), int32(none) // usually all vertices are of one step
	// A range of columns is a view, so it costs nothing to view rows that were not asked for. It
	// would cost a copy to have those that are asked for in one matrix.
	for _, v := range vertices {
		src := s.graph.dependencies(v)[0]
		if from := s.stepOf[src]; from != last {
			var ok bool
			if id, ok = s.views[view{from, node}]; !ok {
				id = int32(len(s.steps))
				s.views[view{from, node}] = id
				s.steps = append(s.steps, step{kind: rangeStep, node: node, rows: s.steps[from].rows, input: from})
			}
			last = from
		}
		s.stepOf[v], s.rowOf[v] = id, s.rowOf[src]
	}
}

// addGeneral appends the steps of a component that is not simple. Its input has all rows that its
// rows need.
func (s *stepper) addGeneral(node int32, vertices []int32) {
	var inputs []int32
	for _, v := range vertices {
		for _, d := range s.graph.dependencies(v) {
			if d >= 0 {
				inputs = append(inputs, d)
			}
		}
	}
	// Rows share most of what they need. Sorted, the repetitions are neighbors, and the matrix is
	// in the order in which components expect it.
	s.phaser.sortVertices(inputs)
	inputs = slices.Compact(inputs)
	in, out := inOrder(inputs, len(s.lanes)), inOrder(vertices, len(s.lanes))
	from := int32(none)
	if len(inputs) > 0 {
		from = int32(len(s.steps))
		s.steps = append(s.steps, step{kind: gatherStep, node: s.net.nodes[node].source, rows: in, input: none})
	}
	s.add(step{kind: componentStep, node: node, rows: out, input: from})
}

// lanes are the sequences (values of n) of a request if all of them are alike. The graph is built
// only for the first lane, and each vertex stands for a row of every lane. This makes minibatches
// cheap to compile. It is exact, because no descriptor or component mixes sequences. Other requests
// have a single lane, and each vertex has its own n.
type lanes []int32

// rows maps vertices to the rows of a matrix.
type rows struct {
	vertices []int32
	order    []int32 // vertex i in lane l is row order[i·lanes + l]; if order is nil, row i·lanes + l
	count    int     // the number of rows
}

// row returns the row of vertex i in lane l.
func (r *rows) row(i, l, lanes int) int {
	k := i*lanes + l
	if r.order != nil {
		return int(r.order[k])
	}
	return k
}

// inOrder returns a rows without an order.
func inOrder(vertices []int32, lanes int) rows {
	return rows{vertices: vertices, count: len(vertices) * lanes}
}

// withOrder returns a rows with an order, unless that is the natural one.
func withOrder(vertices, order []int32) rows {
	r := rows{vertices: vertices, order: order, count: len(order)}
	for i, row := range order {
		if int(row) != i {
			return r
		}
	}
	r.order = nil
	return r
}

// indexes returns the index of every row.
func (r *rows) indexes(g *graph, l lanes) []index.Index {
	ix := make([]index.Index, r.count)
	for i, v := range r.vertices {
		at := g.vertices[v].Index
		if len(l) == 1 {
			ix[r.row(i, 0, 1)] = at
			continue
		}
		for k, n := range l {
			at.N = n
			ix[r.row(i, k, len(l))] = at
		}
	}
	return ix
}
