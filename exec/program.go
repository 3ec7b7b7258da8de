package exec

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Errors that the errors of this package wrap.
var (
	// ErrProgram: the computation can't be run with the network.
	ErrProgram = errors.New("computation can't be run with this network")
	// ErrOptions: the options of a computer don't fit its program.
	ErrOptions = errors.New("computer options do not fit the program")
	// ErrIO: there is no input or output of that name at this point, or its size is wrong.
	ErrIO = errors.New("no such input or output")
	// ErrState: the computer has finished or failed, and was not Reset.
	ErrState = errors.New("computer is not in a state to go on")
	// ErrPanic: a command panicked.
	ErrPanic = errors.New("panic")
)

// Program is a computation bound to a network, with all operands resolved. It is immutable, and
// safe for concurrent use as long as the network is not changed.
type Program struct {
	computation *computation.Computation
	net         *nnet3.Nnet
	instrs      []instruction
	views       []view // by sub-matrix
	sizes       []int  // by matrix: elements
	ports       []port
	components  []component.Component // by number, the derived ones after the network's
	plan        plan
	memos       int  // number of memo slots, including the unused slot 0
	updates     bool // some command updates parameters
}

// view is a sub-matrix, as a place in its matrix. Matrices have no gaps between their rows.
type view struct {
	matrix             int32
	start, end         int // in the matrix's elements
	rows, cols, stride int
}

// of returns the view as part of the memory of its matrix.
func (v *view) of(buffer []float32) kernel.Matrix {
	return kernel.Matrix{Rows: v.rows, Cols: v.cols, Stride: v.stride, Data: buffer[v.start:v.end]}
}

// instruction is a command with resolved operands. Views are numbers of sub-matrices, 0 for none.
type instruction struct {
	typ        computation.CommandType
	stats      bool // of Propagate: store statistics
	alpha      float32
	dst, src   int32 // the destination and the source; of Backprop the derivatives of input and output
	x, y       int32 // of Backprop: values of input and output
	component  int32
	memo       int32 // slot, 0 for none
	port       int32 // of AcceptInput and ProvideOutput
	target     int32 // of GotoLabel
	offset     int   // of AllocMatrix and AcceptInput: place of the matrix in the planned memory
	propagator component.Component
	backprop   component.Backpropper
	pre        component.Precomputed
	rows       []int32            // Indexes
	ranges     []computation.Pair // IndexesRanges
	places     []rowPlace         // IndexesMulti
	rowSlot    rowSlot            // Propagate of a quantized product
	next       component.Factors  // of Propagate: those of the next one that has some
}

// rowPlace is a row of a matrix. Matrix -1 means none.
type rowPlace struct {
	matrix int32
	start  int // in the matrix's elements
}

// port is a node with inputs or outputs. A node may have both: a value and its derivative.
type port struct {
	node    int32
	name    string
	accepts []int32 // numbers of the AcceptInput commands
	provide bool    // there is a ProvideOutput command

	provided int32 // the view that its ProvideOutput command provides; 0 if there are several
	alone    int32 // the command that allocates memory for the output and nothing else, or -1
}

// NewProgram checks the computation and binds it to the network that it was compiled for.
// Components precompute missing indexes, as of a computation that was read from a file. The error
// lists everything that is wrong. It wraps ErrProgram, and the checker's kinds.
func NewProgram(c *computation.Computation, nn *nnet3.Nnet) (*Program, error) {
	info := computation.NewNetworkInfo(nn, c.Derived)
	if err := computation.Check(c, info, computation.CheckOptions{AllowUnused: true}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	pre, err := c.Precomputed(nn)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProgram, err)
	}
	p := &Program{
		computation: c,
		net:         nn,
		instrs:      make([]instruction, len(c.Commands)),
		views:       make([]view, len(c.Submatrices)),
		sizes:       make([]int, len(c.Matrices)),
		components:  append(append([]component.Component(nil), nn.Components...), c.Derived...),
		plan:        newPlan(c),
		memos:       1,
	}
	for m, info := range c.Matrices {
		p.sizes[m] = int(info.Rows) * int(info.Cols)
	}
	for s := 1; s < len(c.Submatrices); s++ {
		sub := c.Submatrices[s]
		stride := int(c.Matrices[sub.Matrix].Cols)
		start := int(sub.RowOffset)*stride + int(sub.ColOffset)
		p.views[s] = view{
			matrix: sub.Matrix,
			start:  start,
			end:    start + (int(sub.NumRows)-1)*stride + int(sub.NumCols),
			rows:   int(sub.NumRows), cols: int(sub.NumCols), stride: stride,
		}
	}
	b := binder{Program: p, multi: make([][]rowPlace, len(c.IndexesMulti)), pre: pre}
	var errs *multierror.Error
	for i, cmd := range c.Commands {
		if err := b.bind(i, cmd); err != nil {
			errs = multierror.Append(errs, fmt.Errorf("%w: %w", ErrProgram, p.commandError(i, err)))
		}
	}
	if errs != nil {
		return nil, errs
	}
	p.shareRows()
	p.findOutputs()
	p.linkFactors()
	return p, nil
}

// findOutputs finds the outputs that can be computed in memory of a caller: those whose matrix has
// the same memory, of its own, from the beginning to the end.
func (p *Program) findOutputs() {
	allocated := make([]int32, len(p.sizes)) // by matrix: the number of the command and 1, 0 for none, -1 if the memory has other uses
	for i := range p.instrs {
		in := &p.instrs[i]
		m := p.views[in.dst].matrix
		switch in.typ {
		case computation.AllocMatrix:
			if allocated[m] != 0 {
				allocated[m] = -1
			} else {
				allocated[m] = int32(i) + 1
			}
		case computation.AcceptInput:
			allocated[m] = -1
		case computation.SwapMatrix:
			allocated[m], allocated[p.views[in.src].matrix] = -1, -1
		}
	}
	for i := range p.ports {
		o := &p.ports[i]
		o.alone = -1
		if n := allocated[p.views[o.provided].matrix]; o.provided != 0 && n > 0 && p.plan.size > 0 {
			o.alone = n - 1
		}
	}
}

// linkFactors tells every instruction what the next product multiplies by, so that it can be
// fetched into the cache. The end of the program is followed by its beginning, as it usually runs
// again.
func (p *Program) linkFactors() {
	var next component.Factors
	// Only after the first round is it known what the beginning multiplies by, which follows the end.
	for range 2 {
		for i := len(p.instrs) - 1; i >= 0; i-- {
			in := &p.instrs[i]
			in.next = next
			if in.typ == computation.GotoLabel {
				next = p.instrs[in.target].next
			}
			if in.typ != computation.Propagate {
				continue
			}
			if f := component.FactorsOf(in.propagator); f != nil {
				next = f
			}
		}
	}
}

// info returns the facts about the network. Few need them, and a program is one of many, so it does
// not keep them.
func (p *Program) info() *computation.NetworkInfo {
	return computation.NewNetworkInfo(p.net, p.computation.Derived)
}

// Computation returns the computation that the program runs.
func (p *Program) Computation() *computation.Computation { return p.computation }

// Inputs returns the names of the nodes that accept matrices, for values or derivatives, in the
// order of the commands.
func (p *Program) Inputs() []string {
	return p.portNames(func(t *port) bool { return len(t.accepts) > 0 })
}

// Outputs returns the names of the nodes that provide matrices, in the same way.
func (p *Program) Outputs() []string { return p.portNames(func(t *port) bool { return t.provide }) }

func (p *Program) portNames(want func(*port) bool) []string {
	var names []string
	for i := range p.ports {
		if want(&p.ports[i]) {
			names = append(names, p.ports[i].name)
		}
	}
	return names
}

// portNumber returns the number of the port at a node, and adds the port if necessary.
func (p *Program) portNumber(node int32) int32 {
	if i := slices.IndexFunc(p.ports, func(t port) bool { return t.node == node }); i >= 0 {
		return int32(i)
	}
	p.ports = append(p.ports, port{node: node, name: p.net.Nodes[node].Name})
	return int32(len(p.ports) - 1)
}

// Port returns the number of the node of that name among those that have inputs or outputs, or -1.
func (p *Program) Port(name string) int {
	return slices.IndexFunc(p.ports, func(t port) bool { return t.name == name })
}

// CommandError is the failure of a command.
type CommandError struct {
	Command int    // its number
	Text    string // the command as computation.Printer prints it
	Err     error
	Stack   []byte // of a panic
}

// Error names the command.
func (e *CommandError) Error() string {
	return fmt.Sprintf("command c%d, %s: %v", e.Command, e.Text, e.Err)
}

// Unwrap returns the cause.
func (e *CommandError) Unwrap() error { return e.Err }

func (p *Program) commandError(i int, err error) *CommandError {
	return &CommandError{Command: i, Text: p.printer().Command(i), Err: err}
}

// printer returns the printer of commands in errors and timings.
func (p *Program) printer() *computation.Printer {
	printer := computation.NewPrinter(p.computation, p.info())
	printer.MaxRuns = 6
	return printer
}

// binder resolves the operands of commands.
type binder struct {
	*Program
	multi [][]rowPlace            // by vector of IndexesMulti, nil until it is resolved
	pre   []component.Precomputed // by slot
}

// baseOf returns the number of the component of the network that is component i, or its base. It
// returns -1 if there is none.
func (p *Program) baseOf(i int) int {
	inNetwork := len(p.components) - len(p.computation.Derived)
	if i < inNetwork {
		return i
	}
	if d, ok := p.components[i].(component.Derived); ok {
		return slices.Index(p.components[:inNetwork], d.Base())
	}
	return -1
}

// bind resolves command number i.
func (b *binder) bind(i int, cmd computation.Command) error {
	c := b.computation
	in := &b.instrs[i]
	*in = instruction{typ: cmd.Type, alpha: cmd.Alpha, dst: max(cmd.View(), 0)}
	if b.plan.size > 0 {
		in.offset = b.plan.offsets[i]
	}
	if cmd.Alpha == 0 {
		in.typ = scaledByZero(cmd.Type)
	}
	switch cmd.Type {
	case computation.SwapMatrix, computation.MatrixCopy, computation.MatrixAdd:
		in.src = cmd.Source()
	case computation.CopyRows, computation.AddRows:
		in.src, in.rows = cmd.Source(), c.Indexes[cmd.Vector()]
	case computation.AddRowRanges:
		in.src, in.ranges = cmd.Source(), c.IndexesRanges[cmd.Vector()]
	case computation.CopyRowsMulti, computation.AddRowsMulti, computation.CopyToRowsMulti, computation.AddToRowsMulti:
		in.places = b.resolve(cmd.Vector())
	case computation.Propagate:
		in.dst, in.src, in.memo, in.stats = cmd.Output(), cmd.Input(), cmd.Memo(), cmd.StoresStats()
		in.component, in.propagator, in.pre = cmd.Component(), b.components[cmd.Component()], b.pre[cmd.Precomputed()]
		b.memos = max(b.memos, int(in.memo)+1)
	case computation.Backprop, computation.BackpropNoModelUpdate:
		in.dst, in.src, in.x, in.y, in.memo = cmd.InputDeriv(), cmd.OutputDeriv(), cmd.Input(), cmd.Output(), cmd.Memo()
		in.component, in.pre = cmd.Component(), b.pre[cmd.Precomputed()]
		comp := b.components[cmd.Component()]
		back, ok := comp.(component.Backpropper)
		if !ok {
			return fmt.Errorf("%s can't compute derivatives", comp.Type())
		}
		in.backprop = back
		if cmd.Type == computation.Backprop && c.NeedModelDerivative && comp.Properties().Has(component.Updatable) {
			b.updates = true
			if b.baseOf(int(cmd.Component())) < 0 {
				return errors.New("a derived component without a base can't be trained")
			}
		}
	case computation.AcceptInput:
		in.port = b.portNumber(cmd.Node())
		b.ports[in.port].accepts = append(b.ports[in.port].accepts, int32(i))
	case computation.ProvideOutput:
		in.port = b.portNumber(cmd.Node())
		o := &b.ports[in.port]
		if o.provided = in.dst; o.provide {
			o.provided = 0
		}
		o.provide = true
	case computation.GotoLabel:
		in.dst, in.target = 0, cmd.Target()
	}
	return nil
}

// scaledByZero returns what a command with scale 0 does. It reads nothing, as in BLAS and in a
// graph, even if what it would read is infinite or NaN.
func scaledByZero(t computation.CommandType) computation.CommandType {
	switch t {
	case computation.MatrixAdd, computation.AddRows, computation.AddRowRanges, computation.AddRowsMulti, computation.AddToRowsMulti:
		return computation.NoOperation
	case computation.MatrixCopy, computation.CopyRows, computation.CopyRowsMulti:
		return computation.SetConst
	}
	return t
}

// resolve returns the places of a vector of pairs. All commands that use the vector share them.
func (b *binder) resolve(vector int32) []rowPlace {
	if b.multi[vector] != nil {
		return b.multi[vector]
	}
	places := make([]rowPlace, len(b.computation.IndexesMulti[vector]))
	for i, p := range b.computation.IndexesMulti[vector] {
		if p[0] < 0 {
			places[i].matrix = -1
			continue
		}
		v := &b.views[p[0]]
		places[i] = rowPlace{v.matrix, v.start + int(p[1])*v.stride}
	}
	b.multi[vector] = places
	return places
}
