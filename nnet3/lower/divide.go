package lower

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// A Carry is what one program of a divided chain hands over of a matrix.
type Carry struct {
	Matrix int32   // of the computation that was lowered
	Rows   []int32 // those of its rows that are handed over, ascending
	Cols   int32
}

// Divide makes every program of the chain a computation of its own. A matrix that a program takes over
// from the program before it becomes an input of the node that the function names, and a matrix that it
// hands over becomes an output of that node, reduced to the rows that are read later. Divide returns
// what each program takes over, in the order of matrices. A program gets that from the one before it;
// the first program of a loop also gets it from the last one. Emit then takes the programs one by one,
// and callers may keep what is carried in between, or take it from runs for other requests.
func (ch *Chain) Divide(node func(matrix int32) int32) ([][]Carry, error) {
	d := divider{ch: ch, needed: make([]map[int32][]bool, len(ch.Programs))}
	// All programs are looked at before any is changed: which rows a program must hand over depends
	// on those after it, and in a loop on itself.
	d.findReads()
	d.follow()
	taken := make([][]Carry, len(ch.Programs))
	// The sets of rows are final now. They are copied out before the graphs change, because
	// takeRows and giveRows of neighbors must agree on them.
	for k, p := range ch.Programs {
		for _, port := range p.Inputs {
			if port.Carried == 0 {
				continue
			}
			if c := (Carry{Matrix: port.Carried, Rows: trueRows(d.needed[k][port.Carried])}); len(c.Rows) > 0 {
				c.Cols = TypeOf(p.Graph.Inputs()[slices.Index(p.Inputs, port)]).Cols
				taken[k] = append(taken[k], c)
			}
		}
	}
	for k, p := range ch.Programs {
		if err := d.takeRows(p, taken[k], node); err != nil {
			return nil, fmt.Errorf("segment %d: %w", k+1, err)
		}
		// What a program gives is by definition what the next one takes. The last one gives to the
		// program that the loop begins with, so the loop's state has the same rows at both of its
		// ends.
		var given []Carry
		if next := d.next(k); next >= 0 {
			given = taken[next]
		}
		if err := d.giveRows(p, given, node); err != nil {
			return nil, fmt.Errorf("segment %d: %w", k+1, err)
		}
	}
	return taken, nil
}

// divideReason is the reason of the changes that Divide makes.
var divideReason = fgraph.Reason{Pass: "divide"}

// A divider is a call of Divide.
type divider struct {
	ch     *Chain
	needed []map[int32][]bool // by program and carried matrix: the rows that are read in it or later
	passes []passing
}

// A passing is rows of a matrix that a program passes on as rows of another one without using them
// itself.
type passing struct {
	program  int
	from, to int32 // matrices
	rows     []RowPair
}

// next returns the program that follows, or -1 after the last one.
func (d *divider) next(k int) int {
	if k+1 < len(d.ch.Programs) {
		return k + 1
	}
	return d.ch.Loop
}

// findReads finds the rows that each program reads itself, and those that it passes on.
func (d *divider) findReads() {
	for k, p := range d.ch.Programs {
		d.needed[k] = make(map[int32][]bool)
		// To pass a matrix on is not to need it. A recurrent network hands its whole past along, of
		// which later chunks read a few rows; if passing on counted as a use, every stream would
		// carry all of it forever.
		handed := make(map[*fgraph.Variable][]int32) // by variable: the matrices that it leaves as; 0 for the caller
		for i, v := range p.Graph.Outputs() {
			handed[v] = append(handed[v], p.Outputs[i].Carried)
		}
		for i, x := range p.Graph.Inputs() {
			m := p.Inputs[i].Carried
			if m == 0 {
				continue
			}
			rows := make([]bool, TypeOf(x).Rows)
			d.needed[k][m] = rows
			all := make([]RowPair, len(rows))
			for r := range all {
				all[r] = RowPair{Dst: int32(r), Src: int32(r)}
			}
			d.handOn(k, m, all, handed[x])
			for _, c := range x.Clients() {
				if c.Apply == nil {
					continue // an output
				}
				d.read(k, m, c, handed)
			}
		}
	}
}

// read notes what an apply reads of a matrix.
func (d *divider) read(k int, m int32, c fgraph.Client, handed map[*fgraph.Variable][]int32) {
	rows := d.needed[k][m]
	switch op := c.Apply.Op().(type) {
	case Block:
		markRows(rows, op.R0, op.R1)
	case *Assemble:
		out := c.Apply.Out()
		// An Assemble whose result only leaves, as of a window that slides over the past, passes
		// rows on to other rows. One with any other reader really reads them.
		onlyHanded := len(handed[out]) == len(out.Clients()) && !slices.Contains(handed[out], 0)
		for i := range op.Terms {
			t := &op.Terms[i]
			if int(t.Input) != c.Index {
				continue
			}
			pairs := make([]RowPair, t.NumRows)
			for r := range t.NumRows {
				pairs[r] = t.Pair(r)
			}
			if onlyHanded {
				d.handOn(k, m, pairs, handed[out])
				continue
			}
			for _, pair := range pairs {
				rows[pair.Src] = true
			}
		}
	default:
		markRows(rows, 0, int32(len(rows)))
	}
}

// handOn notes that rows of a matrix leave as rows of others. What the caller gets counts as read.
func (d *divider) handOn(k int, from int32, rows []RowPair, to []int32) {
	for _, m := range to {
		if m > 0 {
			d.passes = append(d.passes, passing{k, from, m, rows})
			continue
		}
		for _, pair := range rows {
			d.needed[k][from][pair.Src] = true
		}
	}
}

func markRows(rows []bool, r0, r1 int32) {
	for r := r0; r < r1; r++ {
		rows[r] = true
	}
}

// follow lets programs need what they pass on to those that need it.
func (d *divider) follow() {
	// The least fixed point: rows only ever become needed, and there are finitely many, so this
	// ends; going backward, one round does without a loop, and each turn of a loop that rows pass
	// through adds one.
	for again := true; again; {
		again = false
		for _, p := range slices.Backward(d.passes) {
			next := d.next(p.program)
			if next < 0 {
				continue
			}
			from, to := d.needed[p.program][p.from], d.needed[next][p.to]
			for _, pair := range p.rows {
				if to != nil && to[pair.Dst] && !from[pair.Src] {
					from[pair.Src], again = true, true
				}
			}
		}
	}
}

func trueRows(rows []bool) (list []int32) {
	for r, yes := range rows {
		if yes {
			list = append(list, int32(r))
		}
	}
	return list
}

// takeRows makes inputs of what a program takes over.
func (d *divider) takeRows(p *Program, taken []Carry, node func(int32) int32) error {
	// Backward, because inputs are removed and the parts are appended behind.
	for i := len(p.Inputs) - 1; i >= 0; i-- {
		port := p.Inputs[i]
		if port.Carried == 0 {
			continue
		}
		x := p.Graph.Inputs()[i]
		t := TypeOf(x)
		at := slices.IndexFunc(taken, func(c Carry) bool { return c.Matrix == port.Carried })
		var rows []int32
		if at >= 0 {
			rows = taken[at].Rows
		}
		if port.Node = node(port.Carried); len(rows) == int(t.Rows) {
			p.Inputs[i] = port
			continue
		}
		if len(rows) > 0 {
			part := fgraph.NewInput(MatrixType{Rows: int32(len(rows)), Cols: t.Cols}, x.Name())
			if err := p.Graph.AddInput(part); err != nil {
				return err
			}
			p.Inputs = append(p.Inputs, port)
			if err := d.readPart(p, x, part, rows, port.At); err != nil {
				return err
			}
		} else if err := d.forget(p, x); err != nil {
			return err
		}
		if err := p.Graph.RemoveInput(i, divideReason); err != nil {
			return err
		}
		p.Inputs = slices.Delete(p.Inputs, i, i+1)
	}
	return nil
}

// readPart lets what reads a matrix read the part of it that has the given rows. Where that can't
// be said, it reads the matrix with zeros in place of the other rows. A single such matrix for all
// would be a value with several uses, which passes leave alone.
func (d *divider) readPart(p *Program, x, part *fgraph.Variable, rows []int32, at int32) error {
	t := TypeOf(x)
	runs := runTerms(rows, t.Cols, at, func(t *Term, whole, part int32) { t.DstRow, t.SrcRow = whole, part })
	for _, c := range slices.Clone(x.Clients()) {
		if c.Apply == nil {
			continue // an output
		}
		var v *fgraph.Variable
		switch op := c.Apply.Op().(type) {
		case Block: // its rows are among those that are read
			// All rows of the block are needed, hence consecutive in the part as well.
			n, _ := slices.BinarySearch(rows, op.R0)
			v = NewBlock(part, op.Shift(int32(n)-op.R0, 0))
		case *Assemble:
			v = op.readRuns(c, part, runs)
		default:
			continue
		}
		// New applies keep the position of the old ones, by which the schedule orders them.
		if a := v.Owner(); a != nil && a.Graph() == nil {
			a.SetOrigin(c.Apply.Origin())
		}
		if err := p.Graph.Replace(c.Apply.Out(), v, divideReason); err != nil {
			return err
		}
	}
	// What is left are ops that need all rows, and outputs that hand the matrix on.
	if len(x.Clients()) == 0 {
		return nil
	}
	return p.Graph.Replace(x, NewAssemble(t.Rows, t.Cols, runs, []*fgraph.Variable{part}), divideReason)
}

// readRuns returns what the Assemble makes if the input of a client consists of runs of another
// matrix.
func (o *Assemble) readRuns(c fgraph.Client, part *fgraph.Variable, runs []Term) *fgraph.Variable {
	inputs := append(slices.Clone(c.Apply.Inputs()), part)
	var terms []Term
	for i := range o.Terms {
		t := &o.Terms[i]
		if int(t.Input) != c.Index {
			terms = append(terms, *t)
			continue
		}
		for k := range runs {
			if u, ok := t.Through(&runs[k]); ok {
				u.Input = int32(len(inputs) - 1)
				terms = append(terms, u)
			}
		}
	}
	return NewAssemble(o.Rows, o.Cols, terms, inputs)
}

// forget replaces a matrix of which nothing is needed by zeros, where the program passes it on.
func (d *divider) forget(p *Program, x *fgraph.Variable) error {
	t := TypeOf(x)
	return p.Graph.Replace(x, NewAssemble(t.Rows, t.Cols, nil, nil), divideReason)
}

// giveRows makes outputs of what a program hands over.
func (d *divider) giveRows(p *Program, given []Carry, node func(int32) int32) error {
	values := make([]*fgraph.Variable, len(p.Outputs))
	for i, port := range p.Outputs {
		if port.Carried == 0 {
			continue
		}
		at := slices.IndexFunc(given, func(c Carry) bool { return c.Matrix == port.Carried })
		if at < 0 {
			continue
		}
		v, rows := p.Graph.Outputs()[i], given[at].Rows
		// Copy the rows when they are made. At the end of the program the whole layer would have to
		// live that long for a few of its rows.
		port.At = madeAt(v)
		p.Outputs[i].At = port.At
		if p.Outputs[i].Node = node(port.Carried); len(rows) < int(TypeOf(v).Rows) {
			cols := TypeOf(v).Cols
			terms := runTerms(rows, cols, port.At, func(t *Term, whole, part int32) { t.DstRow, t.SrcRow = part, whole })
			values[i] = NewAssemble(int32(len(rows)), cols, terms, []*fgraph.Variable{v})
		}
	}
	if err := p.ReplaceOutputs(values, divideReason); err != nil {
		return err
	}
	// The other outputs have no taker. With its outputs, what only made them leaves the graph.
	for i, port := range slices.Backward(p.Outputs) {
		if port.Carried > 0 && port.Node < 0 {
			if err := p.Graph.RemoveOutput(i, divideReason); err != nil {
				return err
			}
			p.Outputs = slices.Delete(p.Outputs, i, i+1)
		}
	}
	return nil
}

// madeAt returns the command that a value comes from. What is handed over of it is copied then, so
// that it need not be kept until the end.
func madeAt(v *fgraph.Variable) int32 {
	if root, _ := Resolve(v); root.Owner() != nil {
		return int32(root.Owner().Origin())
	}
	return 0
}

// runTerms returns a term for every run of consecutive rows. The function sets where a run begins
// in the whole matrix and in its part.
func runTerms(rows []int32, cols, at int32, place func(t *Term, whole, part int32)) []Term {
	var terms []Term
	for first := 0; first < len(rows); {
		end := first + 1
		for end < len(rows) && rows[end] == rows[end-1]+1 {
			end++
		}
		t := Term{Scale: 1, NumRows: int32(end - first), NumCols: cols, At: at}
		place(&t, rows[first], int32(first))
		terms = append(terms, t)
		first = end
	}
	return terms
}
