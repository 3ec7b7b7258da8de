package compile

import (
	"slices"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// forward appends the forward commands of a segment: inputs, a permanent no-op after them, step after step, outputs, and a
// marker at the end.
func (e *emitter) forward(number int) {
	seg := &e.segments[number]
	if number > 0 { // the first segment's inputs come before the allocations
		for i := seg.first; i < seg.first+seg.inputs; i++ {
			e.accept(e.steps[i].value, e.steps[i].node)
		}
	}
	e.command(computation.NoOperationPermanent)
	for i := seg.first + seg.inputs; i < seg.last && !e.interrupt.came(); i++ {
		switch st := &e.steps[i]; st.kind {
		case gatherStep, outputStep:
			e.forwardDescriptor(st)
		case componentStep:
			e.propagate(i)
		}
	}
	for _, k := range seg.outputs {
		e.command(computation.ProvideOutput, e.steps[k].value, e.steps[k].node)
	}
	e.command(computation.NoOperationMarker)
}

// memo returns the memo slot of the component of step i, 0 for none.
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

// forwardDescriptor appends the commands that compute the value of a descriptor, part by part.
func (e *emitter) forwardDescriptor(st *step) {
	t := e.net.nodes[st.node].terms
	for i := range t.parts {
		p := &t.parts[i]
		view := st.valueParts + int32(i)
		e.constants(st, t, p, view)
		if p.first == p.last {
			continue
		}
		if e.gatherPart(st, t, p, false) {
			for k := range e.sources {
				e.addSource(view, t.leaves[int(p.first)+k].scale, &e.sources[k])
			}
			continue
		}
		for _, group := range e.groupByScale(st, t, p, false) {
			for _, list := range splitLocations(group.lists) {
				e.addList(view, group.scale, list)
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
	// The constant depends on what is computable in each row: set it in runs of rows.
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

// gatherPart finds the sources of each leaf of a part. It reports whether each leaf can have commands of its own, because
// its scale is like no other's, or because it has one source, which covers more than half of the rows.
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
		for j := range n {
			if !leaves[k].scaled || !leaves[j].scaled || j != k && e.sources[j].present > 0 && leaves[j].scale == leaves[k].scale {
				return false
			}
		}
	}
	return true
}

// scaleGroup has the locations with one scale, a list for each row.
type scaleGroup struct {
	scale float32
	lists [][]location
}

// groupByScale turns the gathered sources of a part into lists of locations, a group for each scale, ascending.
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
	slices.SortFunc(groups, func(a, b scaleGroup) int {
		switch {
		case a.scale < b.scale:
			return -1
		case a.scale > b.scale:
			return 1
		}
		return 0
	})
	return groups
}

// locate returns the location of the source of a row, in a value or in a derivative.
func (e *emitter) locate(src *sourceRows, row int, deriv bool) location {
	s := src.step
	if s == several {
		s = src.steps[row]
	}
	sub := e.steps[s].value
	if deriv {
		sub = e.steps[s].deriv
	}
	return location{sub, src.rows[row]}
}

// addSource appends a command that adds the rows of one leaf to a view.
func (e *emitter) addSource(view int32, scale float32, src *sourceRows) {
	switch src.step {
	case none:
	case several:
		list := make([]location, len(src.rows))
		for row := range list {
			list[row] = noLocation
			if src.rows[row] >= 0 {
				list[row] = e.locate(src, row, false)
			}
		}
		e.addList(view, scale, list)
	default:
		e.addRows(view, scale, e.steps[src.step].value, src.rows)
	}
}

// addList appends a command that adds a location to each row of a view.
func (e *emitter) addList(view int32, scale float32, list []location) {
	if sub, rows, ok := singleSource(list); ok {
		e.addRows(view, scale, sub, rows)
		return
	}
	e.comp.IndexesMulti = append(e.comp.IndexesMulti, list)
	e.scaled(computation.AddRowsMulti, scale, view, int32(len(e.comp.IndexesMulti)-1))
}

// addRows appends a command that adds rows of one view to another.
func (e *emitter) addRows(view int32, scale float32, from int32, rows []int32) {
	if isIdentity(rows, e.comp.Submatrices[from].NumRows) {
		e.scaled(computation.MatrixAdd, scale, view, from)
		return
	}
	e.comp.Indexes = append(e.comp.Indexes, e.keep(rows))
	e.scaled(computation.AddRows, scale, view, from, int32(len(e.comp.Indexes)-1))
}
