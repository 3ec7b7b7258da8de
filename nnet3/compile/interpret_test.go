package compile

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// interpreter runs a computation with NoOpComponents only, in the simplest way. It fails on
// commands that the compiler doesn't make.
type interpreter struct {
	c        *computation.Computation
	nn       *nnet3.Nnet
	matrices [][]float64
	// accept supplies matrices and provide takes them, row after row.
	accept  func(node int32) []float64
	provide func(node int32, values []float64)
}

func newInterpreter(c *computation.Computation, nn *nnet3.Nnet) *interpreter {
	return &interpreter{c: c, nn: nn, matrices: make([][]float64, len(c.Matrices))}
}

// row returns a row of a view.
func (p *interpreter) row(view, row int32) []float64 {
	s := p.c.Submatrices[view]
	cols := int(p.c.Matrices[s.Matrix].Cols)
	first := int(s.RowOffset+row)*cols + int(s.ColOffset)
	return p.matrices[s.Matrix][first : first+int(s.NumCols)]
}

// each calls f for every row of a view.
func (p *interpreter) each(view int32, f func(i int32, row []float64)) {
	for i := range p.c.Submatrices[view].NumRows {
		f(i, p.row(view, i))
	}
}

func addTo(dst []float64, alpha float32, src []float64) {
	for i := range dst {
		dst[i] += float64(alpha) * src[i]
	}
}

// run executes the commands from one on up to the next marker or the end, and returns where it
// stopped.
func (p *interpreter) run(from int) (int, error) {
	for i := from; i < len(p.c.Commands); i++ {
		if p.c.Commands[i].Type == computation.NoOperationMarker {
			return i + 1, nil
		}
		if err := p.execute(p.c.Commands[i]); err != nil {
			return i, fmt.Errorf("command %d: %w", i, err)
		}
	}
	return len(p.c.Commands), nil
}

func (p *interpreter) execute(cmd computation.Command) error {
	c := p.c
	matrix := func() *[]float64 { return &p.matrices[c.Submatrices[cmd.Args[0]].Matrix] }
	switch cmd.Type {
	case computation.AllocMatrix:
		m := c.Matrices[c.Submatrices[cmd.Args[0]].Matrix]
		*matrix() = make([]float64, m.Rows*m.Cols)
	case computation.DeallocMatrix:
		*matrix() = nil
	case computation.SwapMatrix:
		other := &p.matrices[c.Submatrices[cmd.Args[1]].Matrix]
		*matrix(), *other = *other, *matrix()
	case computation.SetConst:
		p.each(cmd.Args[0], func(_ int32, row []float64) {
			for k := range row {
				row[k] = float64(cmd.Alpha)
			}
		})
	case computation.AcceptInput:
		*matrix() = p.accept(cmd.Args[1])
	case computation.ProvideOutput:
		p.provide(cmd.Args[1], *matrix())
	case computation.Propagate:
		if p.nn.Components[cmd.Args[0]].Type() != "NoOpComponent" {
			return fmt.Errorf("component %d is no NoOpComponent", cmd.Args[0])
		}
		p.each(cmd.Args[3], func(i int32, row []float64) { copy(row, p.row(cmd.Args[2], i)) })
	case computation.Backprop:
		if cmd.Args[5] > 0 {
			p.each(cmd.Args[5], func(i int32, row []float64) { copy(row, p.row(cmd.Args[4], i)) })
		}
	case computation.NoOperationPermanent, computation.NoOperationLabel:
	default:
		return p.executeRows(cmd)
	}
	return nil
}

// executeRows executes the commands that move rows.
func (p *interpreter) executeRows(cmd computation.Command) error {
	c := p.c
	switch cmd.Type {
	case computation.MatrixAdd:
		p.each(cmd.Args[0], func(i int32, row []float64) { addTo(row, cmd.Alpha, p.row(cmd.Args[1], i)) })
	case computation.AddRows:
		p.each(cmd.Args[0], func(i int32, row []float64) {
			if from := c.Indexes[cmd.Args[2]][i]; from >= 0 {
				addTo(row, cmd.Alpha, p.row(cmd.Args[1], from))
			}
		})
	case computation.AddRowRanges:
		p.each(cmd.Args[0], func(i int32, row []float64) {
			for from := c.IndexesRanges[cmd.Args[2]][i][0]; from < c.IndexesRanges[cmd.Args[2]][i][1]; from++ {
				addTo(row, cmd.Alpha, p.row(cmd.Args[1], from))
			}
		})
	case computation.AddRowsMulti:
		p.each(cmd.Args[0], func(i int32, row []float64) {
			if at := c.IndexesMulti[cmd.Args[1]][i]; at[0] >= 0 {
				addTo(row, cmd.Alpha, p.row(at[0], at[1]))
			}
		})
	case computation.AddToRowsMulti:
		p.each(cmd.Args[0], func(i int32, row []float64) {
			if at := c.IndexesMulti[cmd.Args[1]][i]; at[0] >= 0 {
				addTo(p.row(at[0], at[1]), cmd.Alpha, row)
			}
		})
	default:
		return fmt.Errorf("unexpected %v", cmd.Type)
	}
	return nil
}
