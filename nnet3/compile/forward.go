package compile

import (
	"cmp"
	"slices"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// forward appends the forward commands of a segment: inputs, permanent no-op, steps, outputs,
// marker.
func (e *emitter) forward(number int) {
	seg := &e.segments[number]
	if number > 0 { // the first segment's inputs come before the allocations
		e.acceptInputs(seg)
	}
	e.command(computation.NoOperationPermanent)
	for i := seg.first + len(seg.inputs); i < seg.last && !e.interrupt.came(); i++ {
		switch st := &e.steps[i]; st.kind {
		case gatherStep, outputStep:
			e.descriptor(st, false)
		case componentStep:
			e.propagate(i)
		}
	}
	for _, k := range seg.outputSteps {
		e.command(computation.ProvideOutput, e.steps[k].value, e.steps[k].node)
	}
	e.command(computation.NoOperationMarker)
}

// memo returns the memo slot for the component of step i, 0 for none.
func (e *emitter) memo(i int) int32 {
	st := &e.steps[i]
	if st.needDeriv && e.net.nodes[st.node].properties.Has(component.UsesMemo) {
		return int32(i)
	}
	return 0
}

func (e *emitter) propagate(i int) {
	st := &e.steps[i]
	n := &e.net.nodes[st.node]
	in, stats := int32(0), int32(0)
	if st.input >= 0 {
		in = e.steps[st.input].value
	}
	if e.request().StoreComponentStats && n.properties.Has(component.StoresStats) {
		stats = 1
	}
	e.command(computation.Propagate, n.component, st.precomputed, in, st.value, e.memo(i), stats)
}

// descriptor appends the commands for a descriptor, part by part: they compute its value, or, with
// deriv, return its derivative to its sources.
func (e *emitter) descriptor(st *step, deriv bool) {
	t := e.net.nodes[st.node].terms
	for i := range t.parts {
		p := &t.parts[i]
		view := st.valueParts + int32(i)
		if deriv {
			view = st.derivParts + int32(i)
		} else {
			e.constants(st, t, p, view)
		}
		if p.first == p.last {
			continue
		}
		// Usually a term comes from one step with one scale, and gets a command for itself.
		// Otherwise rows from several steps are mixed by location, so that the number of commands
		// is that of terms, and not of steps in a recurrence.
		if e.gatherPart(st, t, p, deriv) {
			for k := range e.sources {
				e.moveLeaf(view, t.leaves[int(p.first)+k].scale, &e.sources[k], deriv)
			}
			continue
		}
		for _, group := range e.groupByScale(st, t, p, deriv) {
			for _, list := range splitLocations(group.lists) {
				e.moveList(view, group.scale, list, deriv)
			}
		}
	}
}

// constants appends the commands that set a part to its constant.
func (e *emitter) constants(st *step, t *terms, p *part, view int32) {
	if p.fixed {
		if p.constant != 0 {
			e.scaled(computation.SetConst, p.constant, view)
		}
		return
	}
	// The constant depends on what is computable in each row, so set it in runs of rows.
	values := make([]float32, st.rows.count)
	for i, v := range st.rows.vertices {
		c := t.constantAt(p, e.graph, e.graph.dependencies(v), &e.scratch)
		for l := range e.lanes {
			values[st.rows.row(i, l, len(e.lanes))] = c
		}
	}
	for first := 0; first < len(values); {
		last := first + 1
		for last < len(values) && values[last] == values[first] {
			last++
		}
		if values[first] != 0 {
			rows := view
			if last-first < len(values) {
				rows = e.comp.NewSubMatrix(view, first, last-first, 0, -1)
			}
			e.scaled(computation.SetConst, values[first], rows)
		}
		first = last
	}
}

// gatherPart finds the sources of each leaf of a part. It reports whether each leaf can have its
// own commands, because its scale is unique or a single source has over half of the rows.
func (e *emitter) gatherPart(st *step, t *terms, p *part, deriv bool) bool {
	n := int(p.last - p.first)
	if n > cap(e.sources) {
		e.sources = append(e.sources[:cap(e.sources)], make([]sourceRows, n-cap(e.sources))...)
	}
	e.sources = e.sources[:n]
	for k := range n {
		e.gather(st, p.first+int32(k), deriv, &e.sources[k])
	}
	leaves := t.leaves[p.first:p.last]
	for k := range n {
		src := &e.sources[k]
		if src.present == 0 || leaves[k].scaled && src.step != several && 2*src.present > st.rows.count {
			continue
		}
		// Rows of several steps with the same scale may complement each other in one command, as
		// the two cases of a Switch do. Taken apart by leaves they would be two.
		for j := range n {
			if !leaves[k].scaled || !leaves[j].scaled || j != k && e.sources[j].present > 0 && leaves[j].scale == leaves[k].scale {
				return false
			}
		}
	}
	return true
}

// scaleGroup has the locations with the same scale, a list for each row.
type scaleGroup struct {
	scale float32
	lists [][]location
}

// groupByScale turns the gathered sources of a part into lists of locations, by ascending scale.
func (e *emitter) groupByScale(st *step, t *terms, p *part, deriv bool) []scaleGroup {
	var groups []scaleGroup
	for i, v := range st.rows.vertices {
		for l := range e.lanes {
			row := st.rows.row(i, l, len(e.lanes))
			for k := range e.sources {
				src := &e.sources[k]
				if src.rows[row] < 0 {
					continue
				}
				scale := t.leaves[int(p.first)+k].scaleAt(e.graph.vertices[v].Index)
				g := slices.IndexFunc(groups, func(g scaleGroup) bool { return g.scale == scale })
				if g < 0 {
					g = len(groups)
					groups = append(groups, scaleGroup{scale, make([][]location, st.rows.count)})
				}
				groups[g].lists[row] = append(groups[g].lists[row], e.locate(src, row, deriv))
			}
		}
	}
	slices.SortFunc(groups, func(a, b scaleGroup) int { return cmp.Compare(a.scale, b.scale) })
	return groups
}

// locate returns the location of the source of a row, in a value or in a derivative.
func (e *emitter) locate(src *sourceRows, row int, deriv bool) location {
	s := src.step
	if s == several {
		s = src.steps[row]
	}
	return location{e.steps[s].matrix(deriv), src.rows[row]}
}

// moveLeaf appends commands that add the rows of one leaf to a view, or, with deriv, the view to
// the derivatives of these rows.
func (e *emitter) moveLeaf(view int32, scale float32, src *sourceRows, deriv bool) {
	switch src.step {
	case none:
	case several:
		list := make([]location, len(src.rows))
		for row := range list {
			list[row] = noLocation
			if src.rows[row] >= 0 {
				list[row] = e.locate(src, row, deriv)
			}
		}
		e.moveList(view, scale, list, deriv)
	default:
		e.moveRows(view, scale, e.steps[src.step].matrix(deriv), src.rows, deriv)
	}
}

// moveList appends commands that add a location to each row of a view, or, with deriv, vice versa.
func (e *emitter) moveList(view int32, scale float32, list []location, deriv bool) {
	if sub, rows, ok := singleSource(list); ok {
		e.moveRows(view, scale, sub, rows, deriv)
		return
	}
	// A row may be the source of several others, which is no trouble to read. Backward it is the
	// destination of several, and no command may write a row twice; hence the lists are split
	// first.
	if !deriv {
		e.multi(computation.AddRowsMulti, scale, view, list)
		return
	}
	for _, l := range e.splitRepeated(list) {
		if sub, rows, ok := singleSource(l); ok {
			e.moveRows(view, scale, sub, rows, deriv)
		} else {
			e.multi(computation.AddToRowsMulti, scale, view, l)
		}
	}
}

// multi appends a command between a view and a list of locations.
func (e *emitter) multi(t computation.CommandType, scale float32, view int32, list []location) {
	e.comp.IndexesMulti = append(e.comp.IndexesMulti, list)
	e.scaled(t, scale, view, int32(len(e.comp.IndexesMulti)-1))
}

// moveRows appends commands that add rows of another view to a view, or, with deriv, vice versa.
func (e *emitter) moveRows(view int32, scale float32, other int32, rows []int32, deriv bool) {
	to, from := view, other
	if deriv {
		to, from = other, view
	}
	n := e.comp.Submatrices[other].NumRows
	switch {
	// A whole matrix in order needs no list of rows.
	case isIdentity(rows, n):
		e.scaled(computation.MatrixAdd, scale, to, from)
	case deriv:
		e.addToRows(to, scale, from, rows, n)
	default:
		e.addRows(to, scale, from, e.keep(rows))
	}
}

// addRows appends a command that adds the given rows of a view to another view.
func (e *emitter) addRows(to int32, scale float32, from int32, rows []int32) {
	e.comp.Indexes = append(e.comp.Indexes, rows)
	e.scaled(computation.AddRows, scale, to, from, int32(len(e.comp.Indexes)-1))
}
