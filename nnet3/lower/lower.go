package lower

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// errUnsupported is the error of Lower for a computation of several segments, which LowerChain
// takes, and of both for one with a backward part among several segments.
var errUnsupported = errors.New("lower: the computation has no form as values")

// Program is a computation, or a segment of one, as values: a graph, and the meaning of its inputs
// and outputs to the caller of the computation. It is a feature of its graph (see ProgramOf).
type Program struct {
	Graph *fgraph.FunctionGraph
	// Inputs and Outputs describe the graph's inputs and outputs, in order.
	Inputs, Outputs []Port
	// Marker is the command that ends the forward part, or the number of commands without one.
	Marker int32
	// NeedModelDerivative is the computation's.
	NeedModelDerivative bool
	// Network has the components. It is nil if the program was read from a file without it.
	Network       Network
	emitted       func(command int, values []*fgraph.Variable)
	hasRows       bool
	rows          []commandRows // in the order of the commands
	numComponents int
	numCommands   int
	largestOp     int64
	// paused tells that a marker follows the program, and loops that the loop of its chain begins
	// with it.
	paused, loops bool
}

// OnEmit sets a function that Emit calls for every command, with its number and the values that it
// writes or, if it only takes or frees memory, that the memory is for.
func (p *Program) OnEmit(f func(command int, values []*fgraph.Variable)) { p.emitted = f }

// Lines returns the commands that an apply was made from, the main one first, or -1. An Assemble is
// made where its value is read: it was made from the commands of its terms.
func (p *Program) Lines(a *fgraph.Apply) []int {
	var list []int
	if op, ok := a.Op().(*Assemble); ok {
		for i := range op.Terms {
			list = append(list, int(op.Terms[i].At))
		}
	}
	return append(list, a.Origin())
}

// Ports returns the commands that accept the inputs and provide the outputs. It is -1 for one that
// the caller does not see: a state, or what one segment leaves to the next.
func (p *Program) Ports() (inputs, outputs []int) {
	at := func(ports []Port) []int {
		list := make([]int, len(ports))
		for i, port := range ports {
			if list[i] = -1; port.Carried == 0 && port.IsMatrix() {
				list[i] = int(port.At)
			}
		}
		return list
	}
	return at(p.Inputs), at(p.Outputs)
}

// LargestOp returns the largest number of elements that one component of the computation reads and
// writes. Only a rewrite of that component can lower the peak below it.
func (p *Program) LargestOp() int64 { return p.largestOp }

// End returns the number of the first command after those that the program was made from.
func (p *Program) End() int { return p.numCommands }

// Network gives the components of a network and their names by number. An *nnet3.Nnet is one.
type Network interface {
	NumComponents() int
	Component(number int) (c component.Component, name string)
}

// Lower turns commands into values. Allocation, order and updates disappear: a command that reads a
// view takes the value written there, or an Assemble if it was written in pieces. The computation
// must pass computation.Check. A view that was never written is zero. LowerChain takes computations
// of several segments.
func Lower(c *computation.Computation, net Network) (*Program, error) {
	return lowerSegment(c, net, segment{last: len(c.Commands)})
}

// lowerSegment is Lower for one segment.
func lowerSegment(c *computation.Computation, net Network, s segment) (*Program, error) {
	l := &lowering{c: c, net: net, pieces: newPieces(len(c.Matrices), writing(c.Commands[s.first:s.last])), instance: 1, at: int32(s.first),
		states: make([]*fgraph.Variable, net.NumComponents()+len(c.Derived))}
	l.prog = &Program{hasRows: len(c.MatrixDebugInfo) > 0, paused: s.marker, Marker: int32(s.last), NeedModelDerivative: c.NeedModelDerivative, Network: net,
		numComponents: net.NumComponents(), numCommands: s.last}
	for _, m := range s.carriedIn {
		l.accept(m, Port{Node: -1, Component: -1, Carried: m, At: l.at}, fmt.Sprintf("carried%d", m))
	}
	for i := s.first; i < s.last; i++ {
		l.at = int32(i)
		if err := l.command(&c.Commands[i]); err != nil {
			return nil, fmt.Errorf("command %d: %w", i, err)
		}
	}
	l.carryOut(&s)
	// The last state of each component leaves the program. Without that output nothing would use
	// the ops that train it.
	for comp, s := range l.states {
		if s != nil {
			l.outputs = append(l.outputs, s)
			l.prog.Outputs = append(l.prog.Outputs, Port{Node: -1, Component: int32(comp), At: l.at})
		}
	}
	g, err := fgraph.New(l.inputs, l.outputs)
	if err != nil {
		return nil, fmt.Errorf("lower: %w", err)
	}
	l.prog.Graph = g
	if err := g.Attach(l.prog); err != nil {
		return nil, fmt.Errorf("lower: %w", err)
	}
	return l.prog, nil
}

// writing returns the number of commands that may write to a matrix.
func writing(commands []computation.Command) int {
	n := 0
	for i := range commands {
		switch cmd := &commands[i]; {
		case cmd.Type == computation.AllocMatrix, cmd.Type == computation.DeallocMatrix, cmd.Type == computation.SetConst && cmd.Alpha == 0:
		default:
			n++
		}
	}
	return n
}

// OnAttach makes a Program a feature of its graph.
func (p *Program) OnAttach(*fgraph.FunctionGraph) error { return nil }

// Destroyable reports whether an in-place op may destroy input v of the graph. It may if v is a
// matrix, because the caller gives matrices away.
func (p *Program) Destroyable(v *fgraph.Variable) bool {
	_, ok := v.Type().(MatrixType)
	return ok
}

// ProgramOf returns the program that the graph belongs to, if any.
func ProgramOf(g *fgraph.FunctionGraph) (*Program, bool) { return fgraph.FeatureOf[*Program](g) }

type lowering struct {
	c        *computation.Computation
	net      Network
	prog     *Program
	pieces   pieces
	at       int32 // the number of the present command
	instance int32 // the next instance
	inputs   []*fgraph.Variable
	outputs  []*fgraph.Variable
	states   []*fgraph.Variable // by component, or nil
	memos    []*fgraph.Variable // by memo slot
	terms    []Term             // scratch
	groups   []rowGroup         // scratch
	pairs    []RowPair          // see room
	roots    []*fgraph.Variable // scratch
}

func (l *lowering) command(cmd *computation.Command) error {
	switch cmd.Type {
	case computation.AllocMatrix, computation.DeallocMatrix:
		l.pieces.clear(l.c.Submatrices[cmd.View()].Matrix)
	case computation.SwapMatrix:
		l.pieces.swap(l.c.Submatrices[cmd.View()].Matrix, l.c.Submatrices[cmd.Source()].Matrix)
	case computation.SetConst:
		m, r := l.view(cmd.View())
		// Zeros are what is there without a piece, so to set them is just to forget. That removes
		// the zeroing of new matrices, which every compiled computation is full of.
		l.pieces.cut(m, r)
		if cmd.Alpha != 0 {
			l.put(m, r, l.fill(r, cmd.Alpha))
		}
	case computation.Propagate:
		l.noteRows(rowsOfPropagate, cmd.Component(), cmd.Output())
		l.propagate(cmd)
		l.weigh(cmd, component.PropagateInPlace, cmd.Input(), cmd.Output())
	case computation.Backprop, computation.BackpropNoModelUpdate:
		l.noteRows(rowsOfBackprop, cmd.Component(), cmd.OutputDeriv(), cmd.InputDeriv())
		l.backprop(cmd)
		l.weigh(cmd, component.BackpropInPlace, cmd.Input(), cmd.Output(), cmd.OutputDeriv(), cmd.InputDeriv())
	case computation.AcceptInput:
		l.noteRows(rowsOfPort, 0, cmd.View())
		l.accept(l.c.Submatrices[cmd.View()].Matrix, Port{Node: cmd.Node(), Component: -1, At: l.at}, fmt.Sprintf("in%d", cmd.Node()))
	case computation.ProvideOutput:
		l.noteRows(rowsOfPort, 0, cmd.View())
		l.outputs = append(l.outputs, l.read(cmd.View()))
		l.prog.Outputs = append(l.prog.Outputs, Port{Node: cmd.Node(), Component: -1, At: l.at})
	case computation.NoOperationMarker:
		if int(l.prog.Marker) != l.prog.numCommands {
			return fmt.Errorf("%w: a second %v", errUnsupported, cmd.Type)
		}
		l.prog.Marker = l.at
	case computation.NoOperationLabel, computation.GotoLabel:
		return fmt.Errorf("%w: a loop", errUnsupported)
	case computation.NoOperation, computation.NoOperationPermanent, computation.CompressMatrix, computation.DecompressMatrix:
	default:
		return l.move(cmd)
	}
	return nil
}

// weigh records how many elements a component needs at once. A view counts once. The result, the
// last operand, does not count if the component can overwrite another operand with it.
func (l *lowering) weigh(cmd *computation.Command, inPlace component.Properties, subs ...int32) {
	if c, _ := l.net.Component(int(cmd.Component())); c.Properties().Has(inPlace) {
		subs = subs[:len(subs)-1]
	}
	var sum int64
	for i, sub := range subs {
		if sub != 0 && slices.Index(subs, sub) == i {
			_, r := l.view(sub)
			sum += r.area()
		}
	}
	l.prog.largestOp = max(l.prog.largestOp, sum)
}

// move lowers the commands that copy and add.
func (l *lowering) move(cmd *computation.Command) error {
	if cmd.Type < computation.MatrixCopy || cmd.Type > computation.AddRowRanges {
		return fmt.Errorf("%w: command type %d", errUnsupported, cmd.Type)
	}
	c := l.c
	m, r := l.view(cmd.View())
	switch cmd.Type {
	case computation.MatrixCopy, computation.MatrixAdd, computation.CopyRows, computation.AddRows:
		v := l.read(cmd.Source())
		if cmd.Type == computation.MatrixCopy || cmd.Type == computation.CopyRows {
			l.pieces.cut(m, r)
		}
		if cmd.Type == computation.MatrixCopy || cmd.Type == computation.MatrixAdd {
			l.add(m, r, v, Term{NumRows: r.Rows()}, cmd.Alpha)
			break
		}
		rows := l.room(len(c.Indexes[cmd.Vector()]))
		for i, src := range c.Indexes[cmd.Vector()] {
			if src >= 0 {
				rows = append(rows, RowPair{int32(i), src})
			}
		}
		l.addRows(m, r, v, rows, cmd.Alpha)
	case computation.CopyRowsMulti, computation.AddRowsMulti:
		groups := l.groupPairs(c.IndexesMulti[cmd.Vector()])
		// Read everything before anything is cut: the sources may be rows of the matrix that is
		// written.
		values := lists.Map(groups, func(g rowGroup) *fgraph.Variable { return l.read(g.sub) })
		if cmd.Type == computation.CopyRowsMulti {
			l.pieces.cut(m, r)
		}
		for i, g := range groups {
			l.addRows(m, r, values[i], g.rows, cmd.Alpha)
		}
	case computation.CopyToRowsMulti, computation.AddToRowsMulti:
		v := l.read(cmd.View())
		for _, g := range l.groupPairs(c.IndexesMulti[cmd.Vector()]) {
			m, r := l.view(g.sub)
			for i, p := range g.rows {
				g.rows[i] = RowPair{p.Src, p.Dst}
			}
			// Terms list rows in the order of the result. The command lists them in that of its
			// source.
			slices.SortFunc(g.rows, func(a, b RowPair) int { return int(a.Dst - b.Dst) })
			if cmd.Type == computation.CopyToRowsMulti {
				for _, p := range g.rows {
					l.pieces.cut(m, Rect{r.R0 + p.Dst, r.R0 + p.Dst + 1, r.C0, r.C1})
				}
			}
			l.addRows(m, r, v, g.rows, cmd.Alpha)
		}
	case computation.AddRowRanges:
		v := l.read(cmd.Source())
		op := &RowRanges{Cols: r.Cols(), Ranges: c.IndexesRanges[cmd.Vector()]}
		sums := l.apply(op, []*fgraph.Variable{v}, sizeOf(r)).Out()
		l.add(m, r, sums, Term{NumRows: r.Rows()}, cmd.Alpha)
	}
	return nil
}

// view returns the matrix of a sub-matrix, and its rectangle there.
func (l *lowering) view(sub int32) (int32, Rect) {
	s := l.c.Submatrices[sub]
	return s.Matrix, Rect{s.RowOffset, s.RowOffset + s.NumRows, s.ColOffset, s.ColOffset + s.NumCols}
}

// accept replaces the contents of matrix m with a new input of the graph.
func (l *lowering) accept(m int32, port Port, name string) {
	l.pieces.clear(m)
	r := l.whole(m)
	l.put(m, r, l.input(port, sizeOf(r), name))
}

// input adds an input to the graph.
func (l *lowering) input(port Port, t fgraph.Type, name string) *fgraph.Variable {
	v := fgraph.NewInput(t, name)
	l.inputs = append(l.inputs, v)
	l.prog.Inputs = append(l.prog.Inputs, port)
	return v
}

// whole returns the rectangle that is all of matrix m.
func (l *lowering) whole(m int32) Rect {
	info := l.c.Matrices[m]
	return Rect{0, info.Rows, 0, info.Cols}
}

// apply applies an op that the present command becomes.
func (l *lowering) apply(op fgraph.Op, inputs []*fgraph.Variable, outs ...fgraph.Type) *fgraph.Apply {
	a := fgraph.NewApply(op, inputs, outs...)
	a.SetOrigin(int(l.at))
	return a
}

// fill returns a constant of the size of r.
func (l *lowering) fill(r Rect, x float32) *fgraph.Variable {
	op := Fill{r.Rows(), r.Cols(), x}
	return l.apply(op, nil, sizeOf(r)).Out()
}

// own marks the apply that makes v, if new, as made from the present command.
func (l *lowering) own(v *fgraph.Variable) *fgraph.Variable {
	if a := v.Owner(); a != nil && a.Origin() < 0 {
		a.SetOrigin(int(l.at))
	}
	return v
}

// put adds value v, of the size of r, at r.
func (l *lowering) put(m int32, r Rect, v *fgraph.Variable) {
	l.add(m, r, v, Term{NumRows: r.Rows()}, 1)
}

// add adds scale·v at r; t holds the rows, relative to r and to v.
func (l *lowering) add(m int32, r Rect, v *fgraph.Variable, t Term, scale float32) {
	if t.NumRows == 0 || r.C0 >= r.C1 || scale == 0 {
		return
	}
	// Terms read whole values and never views of them, so that equal data has one form however it
	// was cut on the way here.
	root, src := Resolve(v)
	t.Scale, t.At = scale, l.at
	t.DstCol, t.NumCols = 0, r.Cols()
	t.shift(r.R0, r.C0)
	t.ShiftSrc(src.R0, src.C0)
	l.pieces.add(m, root, t)
}

func (l *lowering) addRows(m int32, r Rect, v *fgraph.Variable, rows []RowPair, scale float32) {
	if len(rows) == 0 {
		return
	}
	var t Term
	t.setRows(rows)
	l.add(m, r, v, t, scale)
}

// read returns the value of a view. It assembles a view that was written in pieces, and replaces
// the pieces with the result, so that later reads of the same cells take the same value.
func (l *lowering) read(sub int32) *fgraph.Variable { return l.readRect(l.view(sub)) }

// readRect returns the value of rectangle r of matrix m.
func (l *lowering) readRect(m int32, r Rect) *fgraph.Variable {
	terms := l.terms[:0]
	inputs := inputList{list: l.roots[:0]}
	for _, node := range l.pieces.search(m, r) {
		p := l.pieces.at(node)
		t, ok := p.t.clip(r)
		if !ok {
			continue
		}
		t.shift(-r.R0, -r.C0)
		t.Input = inputs.number(p.v)
		terms = append(terms, t)
	}
	l.terms, l.roots = terms, inputs.list
	if len(terms) == 0 {
		v := l.fill(r, 0)
		l.put(m, r, v)
		return v
	}
	// The usual case, where a command reads what one command wrote: the value itself or a block of
	// it, and no op at all. This is how copies vanish.
	if t := &terms[0]; len(terms) == 1 && t.Contiguous() && t.Scale == 1 && t.Dst() == whole(sizeOf(r)) {
		return l.own(NewBlock(inputs.list[0], t.Src()))
	}
	v := l.own(NewAssemble(r.Rows(), r.Cols(), slices.Clone(terms), inputs.list))
	// Later readers take the assembled value. If they assembled the pieces again, a matrix that a
	// recurrence reads at every step would cost quadratic time, and merging would have to find out
	// that the results are equal.
	l.pieces.cut(m, r)
	l.put(m, r, v)
	return v
}
