package compile

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// emitter turns steps into a computation.
type emitter struct {
	*stepper
	comp *computation.Computation
	// wholes has, by matrix, a sub-matrix that covers it.
	wholes []int32
	// fromUser and toUser say, by matrix, whether the caller supplies it, and gets it.
	fromUser, toUser []bool
	scratch          scratch
	sources          []sourceRows // by leaf of the current part
	ints             []int32      // room for index vectors
	split            rowSplit
}

// emit makes the computation.
func (e *emitter) emit(debugInfo bool) error {
	// First which derivatives exist: it decides on the number of matrices.
	e.findNeededDerivs()
	e.comp = computation.New()
	if err := e.reserve(); err != nil {
		return err
	}
	e.newMatrices()
	// A component looks at the indexes of both sides, so it comes after all steps are known, and
	// before commands name the result.
	if err := e.precompute(); err != nil {
		return err
	}
	e.acceptInputs(&e.segments[0])
	// All matrices are allocated and zeroed at the start and freed at the end, as Kaldi's compiler
	// does. Passes move that; here plainness is what makes the result easy to check against Kaldi.
	for m := 1; m < len(e.wholes); m++ {
		if !e.fromUser[m] {
			e.command(computation.AllocMatrix, e.wholes[m])
			e.scaled(computation.SetConst, 0, e.wholes[m])
		}
	}
	for i := range e.segments {
		e.forward(i)
	}
	if e.interrupt.err != nil {
		return e.interrupt.err
	}
	if err := e.backward(); err != nil {
		return err
	}
	for m := 1; m < len(e.wholes); m++ {
		if !e.toUser[m] {
			e.command(computation.DeallocMatrix, e.wholes[m])
		}
	}
	for i := range e.steps {
		if st := &e.steps[i]; st.kind == inputStep && st.spec.HasDeriv {
			e.command(computation.ProvideOutput, st.deriv, st.node)
		}
	}
	if debugInfo {
		e.debugInfo()
	}
	return nil
}

// reserve makes room for the computation. It fails if the matrices are too large.
func (e *emitter) reserve() error {
	matrices, rows := 1, 0
	for i := range e.steps {
		matrices++
		if e.steps[i].needDeriv {
			matrices++
		}
		n := e.steps[i].rows.count
		if cols := e.net.nodes[e.steps[i].node].dim; n > computation.MaxElements/max(cols, 1) {
			return fmt.Errorf("%w: node %q would have a matrix of %d rows and %d columns; ask for fewer rows at once", errBadRequest, e.net.name(e.steps[i].node), n, cols)
		}
		if rows += n; rows > 2*maxRows { // a row of a component is also a row of its input
			return fmt.Errorf("%w: more than %d rows to compute, those of all %d sequences; ask for fewer at once", errBadRequest, 2*maxRows, len(e.lanes))
		}
	}
	c := e.comp
	c.Matrices = slices.Grow(c.Matrices, matrices)
	c.Submatrices = slices.Grow(c.Submatrices, 2*matrices)
	c.Commands = slices.Grow(c.Commands, 5*matrices)
	e.wholes = make([]int32, 1, matrices)
	e.fromUser = make([]bool, 1, matrices)
	e.toUser = make([]bool, 1, matrices)
	return nil
}

// request returns the request of the first segment. Only it may ask for derivatives.
func (e *emitter) request() *computation.Request { return e.segments[0].request }

// findNeededDerivs marks the steps whose derivative is needed: inputs and outputs if the request
// says so, steps with parameters to train, and all steps that depend on such a step.
func (e *emitter) findNeededDerivs() {
	req := e.request()
	if !wantsDerivatives(req) {
		return
	}
	// Steps are in the order of dependencies, so one pass sees the sources of a step before the
	// step.
	for i := range e.steps {
		st := &e.steps[i]
		switch st.kind {
		case inputStep:
			st.needDeriv = st.spec.HasDeriv
		case outputStep:
			st.needDeriv = st.spec.HasDeriv || e.dependsOnDeriv(st)
		case gatherStep:
			st.needDeriv = e.dependsOnDeriv(st)
		case componentStep:
			st.needDeriv = req.NeedModelDerivative && e.net.nodes[st.node].trainable || st.input >= 0 && e.steps[st.input].needDeriv
		case rangeStep:
			st.needDeriv = e.steps[st.input].needDeriv
		}
	}
}

// dependsOnDeriv reports whether a row of a step with a descriptor depends on a step with
// needDeriv.
func (e *emitter) dependsOnDeriv(st *step) bool {
	for _, v := range st.rows.vertices {
		for _, d := range e.graph.dependencies(v) {
			if d >= 0 && e.steps[e.stepOf[d]].needDeriv {
				return true
			}
		}
	}
	return false
}

// newMatrices makes a matrix for the value of each step and, if needed, one for its derivative.
// Parts of a descriptor and dim-ranges are columns of these matrices.
func (e *emitter) newMatrices() {
	for i := range e.steps {
		st := &e.steps[i]
		n := &e.net.nodes[st.node]
		if st.kind == rangeStep {
			from := &e.steps[st.input]
			st.value = e.comp.NewSubMatrix(from.value, 0, -1, n.dimOffset, n.dim)
			if st.needDeriv {
				st.deriv = e.comp.NewSubMatrix(from.deriv, 0, -1, n.dimOffset, n.dim)
			}
			continue
		}
		contiguous := false
		switch st.kind {
		case componentStep:
			contiguous = n.properties.Has(component.OutputContiguous)
		case gatherStep: // the component-node follows its hidden node
			contiguous = e.net.nodes[st.node+1].properties.Has(component.InputContiguous)
		}
		newMatrix := func(fromUser, toUser bool) int32 {
			whole := e.comp.NewMatrix(st.rows.count, n.dim, contiguous)
			e.wholes = append(e.wholes, whole)
			e.fromUser, e.toUser = append(e.fromUser, fromUser), append(e.toUser, toUser)
			return whole
		}
		isInput, isOutput := st.kind == inputStep, st.kind == outputStep
		st.value = newMatrix(isInput, isOutput)
		if st.needDeriv {
			st.deriv = newMatrix(isOutput && st.spec.HasDeriv, isInput && st.spec.HasDeriv)
		}
		if st.kind == gatherStep || st.kind == outputStep {
			st.valueParts, st.derivParts = e.newParts(n, st.value), e.newParts(n, st.deriv)
		}
	}
}

// newParts makes sub-matrices for the parts of a descriptor and returns the first.
func (e *emitter) newParts(n *node, whole int32) int32 {
	if whole == 0 || len(n.terms.parts) == 1 {
		return whole
	}
	first, offset := int32(len(e.comp.Submatrices)), 0
	for i := range n.terms.parts {
		e.comp.NewSubMatrix(whole, 0, -1, offset, n.terms.parts[i].cols)
		offset += n.terms.parts[i].cols
	}
	return first
}

// precompute shows components that are not simple the indexes of their input and output.
func (e *emitter) precompute() error {
	for i := range e.steps {
		st := &e.steps[i]
		n := &e.net.nodes[st.node]
		if st.kind != componentStep || n.kind != generalNode {
			continue
		}
		var in []index.Index
		if st.input >= 0 {
			in = e.steps[st.input].rows.indexes(e.graph, e.lanes)
		}
		out := st.rows.indexes(e.graph, e.lanes)
		data, err := n.general.PrecomputeIndexes(in, out, st.needDeriv)
		if err != nil {
			return fmt.Errorf("%w: node %q: %w", nnet3.ErrNetwork, e.net.name(st.node), err)
		}
		if data != nil {
			st.precomputed = int32(len(e.comp.PrecomputedIndexes))
			e.comp.PrecomputedIndexes = append(e.comp.PrecomputedIndexes,
				computation.PrecomputedIndexesInfo{Data: data, InputIndexes: in, OutputIndexes: out})
		}
	}
	return nil
}

// command appends a command.
func (e *emitter) command(t computation.CommandType, args ...int32) { e.scaled(t, 1, args...) }

// scaled appends a command with an alpha.
func (e *emitter) scaled(t computation.CommandType, alpha float32, args ...int32) {
	e.comp.Commands = append(e.comp.Commands, computation.NewScaledCommand(t, alpha, args...))
}

// acceptInputs appends the commands that accept the inputs of a segment.
func (e *emitter) acceptInputs(seg *segment) {
	for _, st := range e.steps[seg.first : seg.first+len(seg.inputs)] {
		e.command(computation.AcceptInput, st.value, st.node)
	}
}

// keep returns a copy of an index vector for the computation.
func (e *emitter) keep(rows []int32) []int32 {
	if cap(e.ints)-len(e.ints) < len(rows) {
		e.ints = make([]int32, 0, max(len(rows), 1<<12))
	}
	start := len(e.ints)
	e.ints = append(e.ints, rows...)
	return e.ints[start:len(e.ints):len(e.ints)]
}

// debugInfo sets the Cindexes of the rows of every matrix.
func (e *emitter) debugInfo() {
	total := 0
	for _, m := range e.comp.Matrices {
		total += int(m.Rows)
	}
	all := make([]index.Cindex, 0, total)
	e.comp.MatrixDebugInfo = make([]computation.MatrixDebugInfo, len(e.comp.Matrices))
	for i := range e.steps {
		st := &e.steps[i]
		if st.kind == rangeStep {
			continue
		}
		start := len(all)
		for _, ix := range st.rows.indexes(e.graph, e.lanes) {
			all = append(all, index.Cindex{Node: st.node, Index: ix})
		}
		rows := all[start:len(all):len(all)]
		e.comp.MatrixDebugInfo[e.comp.Submatrices[st.value].Matrix] = computation.MatrixDebugInfo{Cindexes: rows}
		if st.deriv != 0 {
			e.comp.MatrixDebugInfo[e.comp.Submatrices[st.deriv].Matrix] = computation.MatrixDebugInfo{IsDeriv: true, Cindexes: slices.Clone(rows)}
		}
	}
}
