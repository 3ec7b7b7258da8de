package networks

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/tool/repro"
)

// tolerance bounds the norm of a difference, relative to that of the values.
const tolerance = 1e-3

// World returns the world of graphs of a network, see package lower. They are run by an
// exec.Computer that checks what components declare. Values are matrices; the outputs of a run
// include gradients.
func World(nn *nnet3.Nnet, d graphfile.Dialect) repro.World { return world{nn, d} }

type world struct {
	nn      *nnet3.Nnet
	dialect graphfile.Dialect
}

func (w world) Dialect() graphfile.Dialect { return w.dialect }

// Attach attaches a program. New inputs and outputs belong to nodes that the network does not have:
// each to one of its own.
func (w world) Attach(g, like *fgraph.FunctionGraph, inputs, outputs []int) error {
	old, ok := lower.ProgramOf(like)
	if !ok {
		return fmt.Errorf("%w: the graph belongs to no program", repro.ErrCase)
	}
	p := *old
	p.Graph, p.Inputs, p.Outputs = g, nil, nil
	free := int32(len(w.nn.Nodes))
	for _, port := range slices.Concat(old.Inputs, old.Outputs) {
		free = max(free, port.Node+1)
	}
	ports := func(list *[]lower.Port, vars []*fgraph.Variable, sources []int, from []lower.Port, at int32) {
		for i, v := range vars {
			port := lower.Port{Node: -1, Component: -1, At: at}
			if state, ok := v.Type().(lower.StateType); sources[i] >= 0 {
				port = from[sources[i]]
			} else if ok {
				port.Component = state.Component
			} else {
				port.Node = free
				free++
			}
			*list = append(*list, port)
		}
	}
	ports(&p.Inputs, g.Inputs(), inputs, old.Inputs, 0)
	ports(&p.Outputs, g.Outputs(), outputs, old.Outputs, int32(p.End()))
	return g.Attach(&p)
}

// Random draws the elements of each matrix from the normal distribution. They depend on the seed
// and the name of the input. States have no value.
func (w world) Random(_ context.Context, g *fgraph.FunctionGraph, seed uint64) ([]any, error) {
	values := make([]any, len(g.Inputs()))
	for i, v := range g.Inputs() {
		t, ok := v.Type().(lower.MatrixType)
		if !ok {
			values[i] = kernel.Matrix{}
			continue
		}
		h := fnv.New64a()
		io.WriteString(h, v.Name())
		r := rand.New(rand.NewPCG(seed, h.Sum64()))
		m := kernel.New(int(t.Rows), int(t.Cols))
		for k := range m.Data {
			m.Data[k] = float32(r.NormFloat64())
		}
		values[i] = m
	}
	return values, nil
}

// Evaluate emits the commands of the program and runs them. If no pass has planned the storage,
// each value has a matrix of its own.
func (w world) Evaluate(ctx context.Context, g *fgraph.FunctionGraph, inputs []any) ([]any, error) {
	p, ok := lower.ProgramOf(g)
	if !ok {
		return nil, fmt.Errorf("%w: the graph belongs to no program", repro.ErrCase)
	}
	if draws(g) {
		return nil, fmt.Errorf("%w: the graph draws random numbers", repro.ErrCase)
	}
	if _, ok := lower.StorageOf(g); !ok {
		s, err := lower.PlanStorage(p)
		if err != nil {
			return nil, err
		}
		s.MoveSizing = true
	}
	run := newRunner(w.nn, p)
	c, err := lower.Emit(p)
	if err != nil {
		return nil, err
	}
	return run.compute(ctx, c, inputs)
}

// draws reports whether a graph draws random numbers.
func draws(g *fgraph.FunctionGraph) bool {
	for a := range g.Applies() {
		if op, ok := a.Op().(lower.Propagate); ok && op.C.Properties().Has(component.Random) {
			if id, ok := op.C.(component.Identity); !ok || !id.IsIdentity() {
				return true
			}
		}
	}
	return false
}

// A runner runs a program on a network whose nodes are the inputs and outputs of the program.
type runner struct {
	p     *lower.Program
	nn    nnet3.Nnet
	order []int // of the outputs: as before optimization
}

// newRunner makes nodes of the ports of a program.
func newRunner(nn *nnet3.Nnet, p *lower.Program) *runner {
	r := &runner{p: p, nn: nnet3.Nnet{Components: nn.Components, ComponentNames: nn.ComponentNames}}
	for i := range p.Outputs {
		r.order = append(r.order, i)
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return comparePorts(p.Outputs[a], p.Outputs[b]) })
	node := func(port *lower.Port, v *fgraph.Variable) {
		if port.IsMatrix() {
			t := lower.TypeOf(v)
			*port = lower.Port{Node: int32(len(r.nn.Nodes)), Component: -1, At: port.At}
			r.nn.Nodes = append(r.nn.Nodes, nnet3.Node{Kind: nnet3.InputNode, Name: "p" + strconv.Itoa(len(r.nn.Nodes)), Dim: int(t.Cols)})
		}
	}
	p.Inputs, p.Outputs = slices.Clone(p.Inputs), slices.Clone(p.Outputs)
	for i, v := range p.Graph.Inputs() {
		node(&p.Inputs[i], v)
	}
	for i, v := range p.Graph.Outputs() {
		node(&p.Outputs[i], v)
	}
	return r
}

// comparePorts orders ports. Passes may change the order of outputs.
func comparePorts(a, b lower.Port) int {
	return slices.Compare([]int32{a.Node, a.Component, a.Carried, a.At}, []int32{b.Node, b.Component, b.Carried, b.At})
}

// compute runs the commands on the values of the inputs.
func (r *runner) compute(ctx context.Context, c *computation.Computation, inputs []any) ([]any, error) {
	opts := exec.ComputerOptions{Check: true, Poison: true}
	if r.p.NeedModelDerivative {
		opts.ToUpdate = pipeline.NewGradient(&r.nn)
	}
	program, err := exec.NewProgram(c, &r.nn)
	if err != nil {
		return nil, err
	}
	computer, err := program.NewComputer(opts)
	if err != nil {
		return nil, err
	}
	later := false // whether inputs are accepted after the marker
	accept := func(backward bool) error {
		for i, port := range r.p.Inputs {
			if after := port.At > r.p.Marker; !port.IsMatrix() || after != backward {
				later = later || after
				continue
			}
			m, ok := inputs[i].(kernel.Matrix)
			if !ok {
				return fmt.Errorf("%w: a %T for input %d", repro.ErrCase, inputs[i], i)
			}
			if err := computer.AcceptInput(r.nn.Nodes[port.Node].Name, m); err != nil {
				return err
			}
		}
		return computer.Run(ctx)
	}
	if err := accept(false); err != nil {
		return nil, err
	}
	values := make([]any, len(r.p.Outputs))
	take := func(forward bool) error {
		for i, port := range r.p.Outputs {
			if port.IsMatrix() && (later && port.At < r.p.Marker) == forward {
				m, err := computer.Output(r.nn.Nodes[port.Node].Name)
				if err != nil {
					return err
				}
				values[i] = kernel.Clone(m)
			}
		}
		return nil
	}
	if err := take(true); err != nil {
		return nil, err
	}
	if later {
		if err := accept(true); err != nil {
			return nil, err
		}
	}
	if err := take(false); err != nil {
		return nil, err
	}
	return r.results(values, opts.ToUpdate), nil
}

// results returns the outputs in their original order, and what the components have learned.
func (r *runner) results(values []any, learned *nnet3.Nnet) (list []any) {
	for _, i := range r.order {
		if r.p.Outputs[i].IsMatrix() {
			list = append(list, values[i])
		}
	}
	if !r.p.NeedModelDerivative {
		return list
	}
	for _, c := range learned.Components {
		if u, ok := c.(component.UpdatableComponent); ok {
			v := component.Vectorize(u, nil)
			list = append(list, kernel.Matrix{Rows: 1, Cols: len(v), Stride: len(v), Data: v})
		}
	}
	return list
}

// Record returns nil: new inputs have random values.
func (world) Record(context.Context, *fgraph.FunctionGraph, []any, []*fgraph.Variable) ([]any, error) {
	return nil, nil
}

func (world) Differ(outputs, right []any) string {
	if len(outputs) != len(right) {
		return fmt.Sprintf("there are %d outputs and gradients, not %d", len(outputs), len(right))
	}
	for i, v := range right {
		d, err := pipeline.Compare(outputs[i].(kernel.Matrix), v.(kernel.Matrix))
		switch {
		case err != nil:
			return fmt.Sprintf("output %d is %v", i, err)
		case !(d.Norm <= tolerance*d.Wanted):
			return fmt.Sprintf("output %d, the last ones being gradients, differs by %.1e of its norm", i, d.Relative())
		}
	}
	return ""
}

// FormatValue returns a matrix as numbers, row by row.
func (world) FormatValue(_ fgraph.Type, value any) (string, error) {
	m, ok := value.(kernel.Matrix)
	if !ok {
		return "", fmt.Errorf("%w: a %T, not a matrix", repro.ErrCase, value)
	}
	words := make([]string, 0, m.Rows*m.Cols)
	for i := range m.Rows {
		for _, x := range kernel.Row(m, i) {
			words = append(words, strconv.FormatFloat(float64(x), 'g', -1, 32))
		}
	}
	return strings.Join(words, " "), nil
}

// ParseValue reads a matrix of a type.
func (world) ParseValue(t fgraph.Type, text string) (any, error) {
	words := strings.Fields(text)
	size, ok := t.(lower.MatrixType)
	if !ok {
		return kernel.Matrix{}, nil
	}
	if int64(len(words)) != int64(size.Rows)*int64(size.Cols) {
		return nil, fmt.Errorf("%w: %d numbers for a matrix of %v", repro.ErrCase, len(words), t)
	}
	m := kernel.New(int(size.Rows), int(size.Cols))
	for i, word := range words {
		x, err := strconv.ParseFloat(word, 32)
		if err != nil {
			return nil, fmt.Errorf("%w: number %d: %w", repro.ErrCase, i, err)
		}
		kernel.Row(m, i/int(size.Cols))[i%int(size.Cols)] = float32(x)
	}
	return m, nil
}

func (world) Inputs(t fgraph.Type) repro.Multiplicity {
	switch t.(type) {
	case lower.MatrixType:
		return repro.Many
	case lower.StateType:
		return repro.One
	}
	return repro.Never
}

func (world) Outputs(t fgraph.Type) bool {
	_, memo := t.(lower.MemoType)
	return !memo
}

// Simpler leaves out terms of what is assembled, halves first, and their rows.
func (world) Simpler(a *fgraph.Apply) iter.Seq[*fgraph.Apply] {
	return func(yield func(*fgraph.Apply) bool) {
		op, ok := a.Op().(*lower.Assemble)
		if !ok {
			return
		}
		with := func(terms []lower.Term) bool {
			return yield(lower.NewAssemble(op.Rows, op.Cols, terms, a.Inputs()).Owner())
		}
		n := len(op.Terms)
		for size := (n + 1) / 2; size > 0 && n > 1; size /= 2 {
			for first := 0; first < n; first += size {
				terms := slices.Delete(slices.Clone(op.Terms), first, min(first+size, n))
				if len(terms) > 0 && !with(terms) {
					return
				}
			}
		}
		for i := range op.Terms {
			if t := op.Terms[i]; t.Scale != 1 {
				terms := slices.Clone(op.Terms)
				terms[i].Scale = 1
				if !with(terms) {
					return
				}
			}
		}
	}
}
