package exec

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// ComputerOptions are options of Program.NewComputer. The zero value is for inference.
type ComputerOptions struct {
	// ToUpdate receives the changes of parameters. It has the same components as the program's
	// network, and often holds gradients (component.NewGradient). It may not be used otherwise
	// meanwhile. A program that updates parameters needs it.
	ToUpdate *nnet3.Nnet
	// Stats receives the statistics of components; nil means ToUpdate. Without either they are not
	// stored.
	Stats *nnet3.Nnet
	// Threads is the number of threads that compute a command together where that pays; 0 means 1.
	// It changes no bit of any result. Beyond the goroutine of Run they exist only during Run and
	// some microseconds after it.
	Threads int
	// Workspace is the memory to use; nil means a new one.
	Workspace *Workspace
	// Rand serves components that draw random numbers; nil means a source with a fixed seed.
	Rand *rand.Rand
	// Trace, if not nil, gets a line for each command: the command, the root mean square of its
	// output before and after, and the time it took.
	Trace io.Writer
	// Timing, if not nil, sums up the time of each command.
	Timing *Timing
	// Poison fills memory with NaN when it is allocated, to expose values that are used before they
	// are written.
	Poison bool
	// Check verifies, at every command that runs a component, that the component does what it
	// declares. Run fails with an error that wraps fgraph.ErrDeclaration if a component writes outside of
	// its output, leaves part of its output unwritten, or reads an output that it declares to
	// overwrite. Products don't share the rows of their inputs as integers.
	Check bool
}

// Computer runs a Program. Only one goroutine may use it at a time, but any number of computers may
// run a program at once.
type Computer struct {
	p       *Program
	opts    ComputerOptions
	ws      *Workspace
	threads *kernel.Threads
	moves   rowMoves
	scratch component.Workspace
	// quantized are rows as integers, by the slot that Program.placeRows chose.
	quantized []*kernel.QuantizedRows
	update    []component.Component   // by component: the destination of its changes, or nil
	stats     []component.StatsStorer // by component: the destination of its statistics, or nil

	pc       int
	err      error       // a failure; only Reset clears it
	memory   []float32   // of planned matrices, nil until the first is allocated
	buffers  [][]float32 // by matrix, nil if it is not allocated
	memos    []component.Memo
	pending  []kernel.Matrix // by port: an input that has not been accepted yet
	lent     []bool          // by port: the pending input may be used in place
	outputs  [][]float32     // by matrix: memory that is lent for an output, or nil
	provided []int32         // by port: the sub-matrix of the output, 0 for none
	was      []float32       // with checks: the operands of a command before it ran
}

// NewComputer returns a computer that is ready for input. The error wraps ErrOptions.
func (p *Program) NewComputer(opts ComputerOptions) (*Computer, error) {
	c := &Computer{
		p:        p,
		opts:     opts,
		ws:       opts.Workspace,
		buffers:  make([][]float32, len(p.sizes)),
		memos:    make([]component.Memo, p.memos),
		pending:  make([]kernel.Matrix, len(p.ports)),
		lent:     make([]bool, len(p.ports)),
		outputs:  make([][]float32, len(p.sizes)),
		provided: make([]int32, len(p.ports)),
		update:   make([]component.Component, len(p.components)),
		stats:    make([]component.StatsStorer, len(p.components)),
	}
	if c.ws == nil {
		c.ws = new(Workspace)
	}
	c.threads = c.ws.threadsOf(opts.Threads)
	c.scratch.Rand, c.scratch.Threads = opts.Rand, c.threads
	c.scratch.Begin()
	if opts.Timing != nil && !opts.Timing.bind(p) {
		return nil, fmt.Errorf("%w: the timing is another program's", ErrOptions)
	}
	if p.updates && opts.ToUpdate == nil {
		return nil, fmt.Errorf("%w: the program updates parameters, but there is no network to update", ErrOptions)
	}
	if err := c.targets(); err != nil {
		return nil, err
	}
	return c, nil
}

// targets finds the destinations of changed parameters and of statistics. Components that are not
// updatable may count things in their backward pass, which belong to the statistics.
func (c *Computer) targets() error {
	update, stats := c.opts.ToUpdate, c.opts.Stats
	if stats == nil {
		stats = update
	}
	for i, comp := range c.p.components {
		target := stats
		if comp.Properties().Has(component.Updatable) {
			target = nil
			if c.p.computation.NeedModelDerivative {
				target = update
			}
		}
		var err error
		if c.update[i], err = c.counterpart(target, i); err != nil {
			return err
		}
		if comp.Properties().Has(component.StoresStats) {
			t, err := c.counterpart(stats, i)
			if err != nil {
				return err
			}
			c.stats[i], _ = t.(component.StatsStorer)
		}
	}
	return nil
}

// counterpart returns component i of another network, or for a derived component that of its base.
// It returns nil if there is no such network, or if i is derived from several components.
func (c *Computer) counterpart(nn *nnet3.Nnet, i int) (component.Component, error) {
	if i = c.p.baseOf(i); nn == nil || i < 0 {
		return nil, nil
	}
	if i >= len(nn.Components) || nn.Components[i].Type() != c.p.components[i].Type() {
		return nil, fmt.Errorf("%w: component %d, %s, has no counterpart of its type in the network to update", ErrOptions, i, c.p.info().Components[i].Name)
	}
	return nn.Components[i], nil
}

// Reset prepares the computer for a new run from the beginning. It drops all outputs; memory goes
// back to the workspace.
func (c *Computer) Reset() {
	for m := range c.buffers {
		c.release(int32(m))
	}
	if c.memory != nil {
		c.ws.putPlan(c.memory)
		c.memory = nil
	}
	clear(c.pending)
	clear(c.outputs)
	clear(c.memos)
	clear(c.provided)
	c.pc, c.err = 0, nil
	c.scratch.Begin()
}

// Threads returns the threads that compute together, for other work between runs. It is nil for one.
func (c *Computer) Threads() *kernel.Threads { return c.threads }

// Done reports whether the computation has finished. A looped computation never finishes.
func (c *Computer) Done() bool { return c.pc >= len(c.p.instrs) }

// AcceptInput hands in the matrix for the next command that accepts one for the node: an input, or
// the derivative of an output. It must have the size of the request, with any stride. Run copies
// the matrix when it reaches the command; don't change it before that Run has returned. The error
// wraps ErrIO or ErrState.
func (c *Computer) AcceptInput(name string, m kernel.Matrix) error {
	n := c.p.Port(name)
	if n < 0 {
		if err := c.usable(); err != nil {
			return err
		}
		return fmt.Errorf("%w: nothing is accepted for %q, only for %q", ErrIO, name, c.p.Inputs())
	}
	return c.hand(n, m, false)
}

// Lend is AcceptInput for the port of a node (Program.Port), and lets the computation use the
// memory of the matrix, whose rows must follow each other without gaps. The computation may
// overwrite it, and copies it only if it is a looped one. The memory is the caller's again after
// Reset, or when the computation has finished and its outputs have been read.
func (c *Computer) Lend(port int, m kernel.Matrix) error {
	if port < 0 || port >= len(c.p.ports) {
		return fmt.Errorf("%w: there is no port %d", ErrIO, port)
	}
	if m.Stride != m.Cols {
		return fmt.Errorf("%w: input %q is lent with gaps between its rows", ErrIO, c.p.ports[port].name)
	}
	return c.hand(port, m, true)
}

// LendOutput lets the computation compute an output in the memory of a matrix, which then is what
// OutputAt returns. The matrix must have the size of the output, and no gaps between its rows. It
// is lent until Reset. LendOutput reports whether the output will be there. It will not if the
// output is an input, if its memory is allocated already, or if the computation swaps or loops;
// then OutputAt returns other memory. The error wraps ErrIO or ErrState.
func (c *Computer) LendOutput(port int, m kernel.Matrix) (bool, error) {
	if err := c.usable(); err != nil {
		return false, err
	}
	if port < 0 || port >= len(c.p.ports) || !c.p.ports[port].provide {
		return false, fmt.Errorf("%w: there is no output port %d", ErrIO, port)
	}
	o := &c.p.ports[port]
	v := &c.p.views[o.provided]
	if o.provided == 0 {
		return false, nil
	}
	if m.Rows != v.rows || m.Cols != v.cols || m.Stride != m.Cols || !kernel.Valid(m) {
		return false, fmt.Errorf("%w: output %q is %dx%d; the matrix that is lent is %dx%d (stride %d, %d elements)", ErrIO, o.name, v.rows, v.cols, m.Rows, m.Cols, m.Stride, len(m.Data))
	}
	if o.alone < 0 || c.pc > int(o.alone) {
		return false, nil
	}
	n := c.p.sizes[v.matrix]
	// The capacity ends with the matrix: a view beyond it then panics, and does not write what the caller has
	// there.
	c.outputs[v.matrix] = m.Data[:n:n]
	return true, nil
}

// hand hands in a matrix at a port.
func (c *Computer) hand(port int, m kernel.Matrix, lent bool) error {
	if err := c.usable(); err != nil {
		return err
	}
	name := c.p.ports[port].name
	if len(c.p.ports[port].accepts) == 0 {
		return fmt.Errorf("%w: nothing is accepted for %q, only for %q", ErrIO, name, c.p.Inputs())
	}
	v := c.nextAccept(port)
	if v == nil {
		return fmt.Errorf("%w: nothing more is accepted for %q (Reset starts again)", ErrIO, name)
	}
	if m.Rows != v.rows || m.Cols != v.cols || m.Stride < m.Cols && m.Rows > 1 || !kernel.Valid(m) {
		return fmt.Errorf("%w: input %q is %dx%d (stride %d, %d elements), not %dx%d", ErrIO, name, m.Rows, m.Cols, m.Stride, len(m.Data), v.rows, v.cols)
	}
	if c.pending[port].Data != nil {
		return fmt.Errorf("%w: input %q has already been passed", ErrIO, name)
	}
	// A looped computation swaps buffers and gives them back to the workspace, so that the memory of a caller
	// would end up there.
	c.pending[port], c.lent[port] = m, lent && c.p.plan.size > 0
	return nil
}

// nextAccept returns the view of the next command that accepts input at a port, or nil.
func (c *Computer) nextAccept(port int) *view {
	accepts := c.p.ports[port].accepts
	for _, i := range accepts {
		if int(i) >= c.pc {
			return &c.p.views[c.p.instrs[i].dst]
		}
	}
	// At the end a looped computation jumps back, so the next command that accepts may be one that has run
	// already.
	last := &c.p.instrs[len(c.p.instrs)-1]
	if last.typ != computation.GotoLabel {
		return nil
	}
	for _, i := range accepts {
		if i >= last.target {
			return &c.p.views[c.p.instrs[i].dst]
		}
	}
	return nil
}

// Output returns the last matrix that was provided for the node: an output, or the derivative of an
// input. It is a view of the computer's memory, read-only, and valid until the next Run or Reset.
// The error wraps ErrIO.
func (c *Computer) Output(name string) (kernel.Matrix, error) {
	n := c.p.Port(name)
	if n < 0 {
		return kernel.Matrix{}, fmt.Errorf("%w: nothing is provided for %q, only for %q", ErrIO, name, c.p.Outputs())
	}
	return c.OutputAt(n)
}

// OutputAt is Output for the port of a node (Program.Port).
func (c *Computer) OutputAt(port int) (kernel.Matrix, error) {
	switch {
	case port < 0 || port >= len(c.p.ports):
		return kernel.Matrix{}, fmt.Errorf("%w: there is no port %d", ErrIO, port)
	case !c.p.ports[port].provide:
		return kernel.Matrix{}, fmt.Errorf("%w: nothing is provided for %q, only for %q", ErrIO, c.p.ports[port].name, c.p.Outputs())
	case c.provided[port] == 0:
		return kernel.Matrix{}, fmt.Errorf("%w: nothing has been provided for %q yet", ErrIO, c.p.ports[port].name)
	}
	return c.view(c.provided[port]), nil
}

// Run executes commands up to and including the next marker, or to the end. Markers separate the
// forward from the backward part, and the segments of a looped computation. When ctx is done, Run
// stops between two commands and returns the context's cause; another Run continues there. Any
// other error is a *CommandError, and requires a Reset.
func (c *Computer) Run(ctx context.Context) error {
	if err := c.usable(); err != nil {
		return err
	}
	return c.run(ctx)
}

// usable returns an error if the computer can't continue.
func (c *Computer) usable() error {
	switch {
	case c.err != nil:
		return fmt.Errorf("%w: an earlier run failed: %w", ErrState, c.err)
	case c.Done():
		return fmt.Errorf("%w: the computation has finished; Reset starts again", ErrState)
	}
	return nil
}

// view returns sub-matrix s. Number 0 is an empty matrix.
func (c *Computer) view(s int32) kernel.Matrix {
	v := &c.p.views[s]
	return v.of(c.buffers[v.matrix])
}

// reserve gives a matrix memory with undefined contents: what is lent, its planned place, or a
// separate buffer.
func (c *Computer) reserve(matrix int32, in *instruction) {
	n := c.p.sizes[matrix]
	if b := c.outputs[matrix]; b != nil {
		c.buffers[matrix] = b
		return
	}
	if c.p.plan.size == 0 {
		c.buffers[matrix] = c.ws.get(n)
		return
	}
	if c.memory == nil {
		c.memory = c.ws.getPlan(c.p.plan.size)
	}
	c.buffers[matrix] = c.memory[in.offset : in.offset+n : in.offset+n]
}

// release takes away the memory of a matrix, if any.
func (c *Computer) release(matrix int32) {
	if b := c.buffers[matrix]; b != nil && c.p.plan.size == 0 {
		c.ws.put(b)
	}
	c.buffers[matrix] = nil
}
