package networks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
)

// sampleSizes are the sizes of the matrices in rules, the simplest first. Components read 3 or 6
// columns; two matrices of 3 columns make one of 6, and one of 4 rows is two of 2.
var sampleSizes = []lower.MatrixType{{Rows: 2, Cols: 3}, {Rows: 4, Cols: 3}, {Rows: 2, Cols: 6}, {Rows: 4, Cols: 6}, {Rows: 6, Cols: 3}, {Rows: 4, Cols: 2}}

// sampleConfigs are the lines of which components are made. Each component type is tried with each
// of them. Where two lines are equal, components differ in their parameters only.
var sampleConfigs = []string{
	"dim=3", "dim=3", "dim=6",
	"input-dim=3 output-dim=3", "input-dim=3 output-dim=3", "input-dim=6 output-dim=3", "input-dim=3 output-dim=6",
	"input-dim=6 output-dim=3 scale=0.5", // SumBlockComponent
	"input-dim=3 output-dim=3 num-blocks=3", "input-dim=6 output-dim=6 num-blocks=2",
	"input-dim=3 output-dim=3 num-repeats=3", "input-dim=6 output-dim=6 num-repeats=2",
	"column-map=1,2,0", "column-map=3,5,4,0,2,1",
	"cell-dim=1", "cell-dim=2", "cell-dim=2 recurrent-dim=1",
	"input-x-dim=3 input-y-dim=2 input-z-dim=1 filt-x-dim=2 filt-y-dim=2 filt-x-step=1 filt-y-step=1 num-filters=2",
	"input-x-dim=3 input-y-dim=2 input-z-dim=1 pool-x-size=2 pool-y-size=2 pool-z-size=1 pool-x-step=1 pool-y-step=1 pool-z-step=1",
	"num-components=1 component1='type=TanhComponent dim=3'",
}

// sampleNetwork returns a network without nodes in test mode, and the runs of its components, which
// are simple: they map rows one by one.
func sampleNetwork(types *component.Registry) (*nnet3.Nnet, []lower.Propagate) {
	nn := new(nnet3.Nnet)
	var ops []lower.Propagate
	rng := rand.New(rand.NewPCG(1, 2))
	for _, typ := range types.Types() {
		for _, config := range sampleConfigs {
			c := sampleComponent(types, typ, config, rng)
			if c == nil {
				continue
			}
			op := lower.Propagate{Component: lower.Component{C: c, Number: int32(len(nn.Components)), Name: sampleName(c, nn.ComponentNames)}}
			nn.Components, nn.ComponentNames, ops = append(nn.Components, c), append(nn.ComponentNames, op.Name), append(ops, op)
		}
	}
	nn.SetTestMode(true)
	return nn, ops
}

// sampleComponent makes a component of a type. It returns nil if the line is not one of that type.
func sampleComponent(types *component.Registry, typ, config string, rng *rand.Rand) component.Component {
	line, err := component.ParseConfigLine(config)
	if err != nil {
		return nil
	}
	line.Rand, line.Types = rng, types
	c, ok := types.New(typ)
	if !ok || component.Init(c, line) != nil || line.Unused() != "" || !c.Properties().Has(component.Simple) || c.InputDim() <= 0 {
		return nil
	}
	// Many parameters begin as 0 or 1, which would make the component an identity.
	if u, ok := c.(component.UpdatableComponent); ok {
		params := component.Vectorize(u, nil)
		for i := range params {
			params[i] = float32(rng.NormFloat64())
		}
		if _, err := component.UnVectorize(u, params); err != nil {
			return nil
		}
	}
	// In test mode, batch normalization needs the statistics of some rows.
	if s, ok := c.(component.StatsStorer); ok {
		in, out := kernel.New(8, c.InputDim()), kernel.New(8, c.OutputDim())
		for i := range in.Rows {
			for j := range in.Cols {
				kernel.Row(in, i)[j] = float32(1 + 2*rng.NormFloat64())
			}
		}
		memo, err := component.Propagate(c, new(component.Workspace), component.ForwardPass{}, in, out)
		if err != nil {
			return nil
		}
		s.StoreStats(in, out, memo)
	}
	return c
}

// sampleName returns a name for a component that says its size: Tanh3, Affine6to3, Affine3b.
func sampleName(c component.Component, taken []string) string {
	name := fmt.Sprintf("%s%d", strings.TrimSuffix(c.Type(), "Component"), c.InputDim())
	if out := c.OutputDim(); out != c.InputDim() {
		name = fmt.Sprintf("%sto%d", name, out)
	}
	unique := name
	for letter := 'b'; slices.Contains(taken, unique); letter++ {
		unique = name + string(letter)
	}
	return unique
}

// sampleMoves returns ops that move rows and columns of matrices of the sample sizes: Block, and
// every kind of Assemble.
func sampleMoves() []any {
	var m moves
	m.blocks()
	for _, t := range sampleSizes {
		m.sums(t)
		m.rows(t)
		m.others(t)
		for _, u := range sampleSizes {
			m.appended(t, u)
		}
	}
	return m.ops
}

// moves is a list of ops that move rows and columns.
type moves struct{ ops []any }

// blocks adds rectangles.
func (m *moves) blocks() {
	for _, r := range [][2]int32{{0, 2}, {2, 4}, {0, 1}, {1, 2}, {1, 3}, {0, 4}} {
		for _, c := range [][2]int32{{0, 3}, {3, 6}, {0, 6}, {0, 2}, {1, 3}} {
			m.ops = append(m.ops, lower.Block{Rect: lower.Rect{R0: r[0], R1: r[1], C0: c[0], C1: c[1]}})
		}
	}
}

// assemble adds an Assemble.
func (m *moves) assemble(rows, cols int32, terms ...lower.Term) {
	var inputs []*fgraph.Variable
	for _, t := range terms {
		for int(t.Input) >= len(inputs) {
			// The op does not depend on the types of inputs.
			inputs = append(inputs, fgraph.NewInput(lower.MatrixType{Rows: rows, Cols: cols}, ""))
		}
	}
	m.ops = append(m.ops, lower.NewAssemble(rows, cols, terms, inputs).Owner().Op())
}

// put returns the term that puts a matrix of a size at a place.
func put(input int32, t lower.MatrixType, row, col int32, scale float32) lower.Term {
	return lower.Term{Input: input, Scale: scale, DstRow: row, DstCol: col, NumRows: t.Rows, NumCols: t.Cols}
}

// sums adds sums and multiples of matrices of a size.
func (m *moves) sums(t lower.MatrixType) {
	for _, scale := range []float32{2, -1, 0.5} {
		m.assemble(t.Rows, t.Cols, put(0, t, 0, 0, scale))
	}
	for _, scales := range [][]float32{{1, 1}, {1, -1}, {2, 0.5}, {1, 1, 1}, {1, 2, 3}} {
		var terms []lower.Term
		for i, scale := range scales {
			terms = append(terms, put(int32(i), t, 0, 0, scale))
		}
		m.assemble(t.Rows, t.Cols, terms...)
	}
	m.assemble(t.Rows, t.Cols, put(0, t, 0, 0, 1), put(0, t, 0, 0, 2))
}

// rows adds selections and scatterings of rows: reversed, repeated, apart, and moved down.
func (m *moves) rows(t lower.MatrixType) {
	listed := func(rows int32, scale float32, dst, src func(i int32) int32) {
		term := put(0, t, 0, 0, scale)
		for i := range t.Rows {
			term.Rows = append(term.Rows, lower.RowPair{Dst: dst(i), Src: src(i)})
		}
		term.DstRow, term.SrcRow = term.Rows[0].Dst, term.Rows[0].Src
		m.assemble(rows, t.Cols, term)
	}
	same := func(i int32) int32 { return i }
	back := func(i int32) int32 { return t.Rows - 1 - i }
	listed(t.Rows, 1, same, back)
	listed(t.Rows, 2, same, back)
	listed(t.Rows, 1, same, func(i int32) int32 { return i / 2 })
	listed(2*t.Rows, 1, func(i int32) int32 { return 2*i + 1 }, same)
	m.assemble(t.Rows+2, t.Cols, put(0, t, 1, 0, 1))
	m.assemble(t.Rows, t.Cols, put(0, t, 0, 0, 1))
}

// appended adds what two matrices make beside and below each other, if they fit.
func (m *moves) appended(t, u lower.MatrixType) {
	for _, scale := range []float32{1, 2} {
		if t.Rows == u.Rows {
			m.assemble(t.Rows, t.Cols+u.Cols, put(0, t, 0, 0, 1), put(1, u, 0, t.Cols, scale))
		}
		if t.Cols == u.Cols {
			m.assemble(t.Rows+u.Rows, t.Cols, put(0, t, 0, 0, 1), put(1, u, t.Rows, 0, scale))
		}
	}
}

// others adds three matrices beside and below each other, the columns of a matrix in another order,
// and terms that overlap and leave elements out.
func (m *moves) others(t lower.MatrixType) {
	m.assemble(t.Rows, 3*t.Cols, put(0, t, 0, 0, 1), put(1, t, 0, t.Cols, 1), put(2, t, 0, 2*t.Cols, 1))
	m.assemble(3*t.Rows, t.Cols, put(0, t, 0, 0, 1), put(1, t, t.Rows, 0, 1), put(2, t, 2*t.Rows, 0, 1))
	first, last := put(0, t, 0, t.Cols-1, 1), put(0, t, 0, 0, 1)
	first.NumCols, last.NumCols, last.SrcCol = 1, t.Cols-1, 1
	m.assemble(t.Rows, t.Cols, first, last)
	inner := put(1, lower.MatrixType{Rows: t.Rows - 1, Cols: t.Cols - 1}, 1, 1, 2)
	m.assemble(t.Rows, t.Cols, put(0, t, 0, 0, 1), inner)
	m.assemble(t.Rows, t.Cols+1, put(0, t, 0, 1, 1))
}
