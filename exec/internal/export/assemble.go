package export

import (
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
)

// assemble moves rows and columns, and adds what overlaps.
//
// The columns are cut where a term begins or ends. In each of the bands, terms whose rows don't
// overlap are put together to a layer, and the layers are added up.
func (w *writer) assemble(op *lower.Assemble, inputs []value) value {
	edges := []int32{0, op.Cols}
	for i := range op.Terms {
		t := &op.Terms[i]
		edges = append(edges, t.DstCol, t.DstCol+t.NumCols)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	var bands []value
	for i, first := range edges[:len(edges)-1] {
		bands = append(bands, w.band(op, inputs, first, edges[i+1]))
	}
	if len(bands) == 0 {
		return w.zeros(int(op.Rows), int(op.Cols))
	}
	return w.concat(1, bands)
}

// A layer has at most one source for each row.
type layer struct {
	scale   float32
	sources []source
	from    []int32 // by row: the source, or -1
	row     []int32 // and its row there
}

// A source is where rows of a layer come from: some columns of an input.
type source struct{ input, col int32 }

// band returns columns [first, end) of an assemble.
func (w *writer) band(op *lower.Assemble, inputs []value, first, end int32) value {
	var layers []*layer
	for i := range op.Terms {
		t := &op.Terms[i]
		if t.DstCol > first || t.DstCol+t.NumCols < end {
			continue
		}
		s := source{t.Input, t.SrcCol + first - t.DstCol}
		for _, pairs := range distinct(t) {
			at := slices.IndexFunc(layers, func(l *layer) bool { return l.scale == t.Scale && l.fits(pairs) })
			if at < 0 {
				at = len(layers)
				layers = append(layers, &layer{scale: t.Scale, from: slices.Repeat([]int32{-1}, int(op.Rows)), row: make([]int32, op.Rows)})
			}
			layers[at].add(s, pairs)
		}
	}
	var sum value
	for _, l := range layers {
		v := w.scaled(w.layer(l, inputs, int(end-first)), l.scale)
		if sum.name == "" {
			sum = v
		} else {
			sum = w.binary(component.OpAdd, sum, v)
		}
	}
	if sum.name == "" {
		return w.zeros(int(op.Rows), int(end-first))
	}
	return sum
}

// distinct returns the pairs of rows of a term in lists that write no row twice: nearly always one.
func distinct(t *lower.Term) (lists [][]lower.RowPair) {
	times, before := 0, int32(-1)
	for r := range t.NumRows {
		p := t.Pair(r)
		if times++; p.Dst != before {
			times, before = 1, p.Dst
		}
		if times > len(lists) {
			lists = append(lists, nil)
		}
		lists[times-1] = append(lists[times-1], p)
	}
	return lists
}

// fits reports whether none of the rows has a source.
func (l *layer) fits(pairs []lower.RowPair) bool {
	return !slices.ContainsFunc(pairs, func(p lower.RowPair) bool { return l.from[p.Dst] >= 0 })
}

func (l *layer) add(s source, pairs []lower.RowPair) {
	at := slices.Index(l.sources, s)
	if at < 0 {
		at = len(l.sources)
		l.sources = append(l.sources, s)
	}
	for _, p := range pairs {
		l.from[p.Dst], l.row[p.Dst] = int32(at), p.Src
	}
}

// layer returns some columns of a layer.
func (w *writer) layer(l *layer, inputs []value, cols int) value {
	values := lists.Map(l.sources, func(s source) value { return w.slice(inputs[s.input], 1, int(s.col), int(s.col)+cols, 1) })
	if len(values) == 1 {
		return w.take(values[0], 0, l.rowsOf(nil))
	}
	// Stretches of rows of one value are put one below the other. Where values alternate that would be
	// a lot of pieces: there the whole values are, and rows are picked from that.
	var pieces [][2]int
	for begin := 0; begin < len(l.from); {
		end := begin + 1
		for end < len(l.from) && l.from[end] == l.from[begin] {
			end++
		}
		pieces = append(pieces, [2]int{begin, end})
		begin = end
	}
	if len(pieces) > 2*len(values)+1 {
		first := make([]int32, len(values))
		for i := range values[1:] {
			first[i+1] = first[i] + int32(values[i].dims[0])
		}
		return w.take(w.concat(0, values), 0, l.rowsOf(first))
	}
	list := make([]value, len(pieces))
	for i, p := range pieces {
		if from := l.from[p[0]]; from < 0 {
			list[i] = w.zeros(p[1]-p[0], cols)
		} else {
			list[i] = w.take(values[from], 0, l.row[p[0]:p[1]])
		}
	}
	return w.concat(0, list)
}

// rowsOf returns, for each row, its number in sources that are one below the other and begin with the
// given rows, or -1 for none.
func (l *layer) rowsOf(first []int32) []int32 {
	which := slices.Clone(l.row)
	for r, from := range l.from {
		switch {
		case from < 0:
			which[r] = -1
		case first != nil:
			which[r] += first[from]
		}
	}
	return which
}
