package exec_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/computation"
)

const threeInputs = "input-node name=a dim=7\ninput-node name=b dim=7\ninput-node name=c dim=7\noutput-node name=out input=a\n"

// mover is a computation that accepts matrices a, b, c of 9x7, executes one command on views of
// them, and provides a, b, c.
type mover struct {
	*computation.Computation
	whole [3]int32
}

func newMover() *mover {
	c := &mover{Computation: computation.New()}
	for i := range c.whole {
		c.whole[i] = c.NewMatrix(9, 7, false)
		c.Commands = append(c.Commands, computation.NewCommand(computation.AcceptInput, c.whole[i], int32(i)))
	}
	return c
}

func (c *mover) provide() {
	for i, w := range c.whole {
		c.Commands = append(c.Commands, computation.NewCommand(computation.ProvideOutput, w, int32(i)))
	}
}

// TestMoves runs each command that moves data, on random views, and compares with arithmetic
// element by element.
func TestMoves(t *testing.T) {
	nn := parseNet(t, threeInputs)
	r := rand.New(rand.NewPCG(1, 2))
	for typ, expect := range moves {
		for trial := range 20 {
			c := newMover()
			rows, cols := 1+r.IntN(6), 1+r.IntN(5)
			dst := c.NewSubMatrix(c.whole[0], r.IntN(9-rows), rows, r.IntN(7-cols), cols)
			src := c.NewSubMatrix(c.whole[1], r.IntN(3), 6, r.IntN(7-cols), cols)
			src2 := c.NewSubMatrix(c.whole[2], r.IntN(3), 6, r.IntN(7-cols), cols)
			far := src
			if rows < 6 && (typ == computation.MatrixCopy || typ == computation.MatrixAdd) {
				src = c.NewSubMatrix(src, r.IntN(6-rows), rows, 0, -1)
			}
			alpha := []float32{1, 0.5, -2}[trial%3]
			if typ == computation.CopyToRowsMulti {
				alpha = 1
			}
			order := r.Perm(6)
			from := make([]int32, rows)
			ranges, pairs := make([]computation.Pair, rows), make([]computation.Pair, rows)
			for i := range from {
				from[i] = int32(r.IntN(7) - 1)
				first := r.IntN(7)
				ranges[i] = computation.Pair{int32(first), int32(first + r.IntN(7-first))}
				pairs[i] = computation.Pair{[]int32{far, src2}[r.IntN(2)], int32(order[i])}
				if r.IntN(5) == 0 {
					ranges[i], pairs[i] = computation.Pair{-1, -1}, computation.Pair{-1, -1}
				}
			}
			c.Indexes, c.IndexesRanges, c.IndexesMulti = [][]int32{from}, [][]computation.Pair{ranges}, [][]computation.Pair{pairs}
			arg2 := src
			if strings.Contains(typ.String(), "Multi") {
				arg2 = 0
			}
			c.Commands = append(c.Commands, computation.NewScaledCommand(typ, alpha, dst, arg2, 0))
			c.provide()
			comp := newComputer(t, c.Computation, nn, exec.ComputerOptions{})
			var want [3]kernel.Matrix
			for i, name := range []string{"a", "b", "c"} {
				want[i] = random(r, 9, 7)
				accept(t, comp, name, kernel.Clone(want[i]))
			}
			// at returns element (i, j) of a view of the wanted matrices.
			at := func(view int32, i, j int) *float32 {
				s := c.Submatrices[view]
				m := want[s.Matrix-1]
				return &m.Data[(int(s.RowOffset)+i)*m.Stride+int(s.ColOffset)+j]
			}
			for i := range rows {
				for j := range cols {
					expect(move{alpha: alpha, i: i, from: from[i], span: ranges[i], far: pairs[i],
						dst: at(dst, i, j), src: func(view int32, k int) *float32 { return at(view, k, j) }, view: src})
				}
			}
			run(t, comp)
			for i, name := range []string{"a", "b", "c"} {
				got := output(t, comp, name)
				for k := range want[i].Data {
					if math.Abs(float64(got.Data[k]-want[i].Data[k])) > 1e-5 {
						t.Fatalf("%v, trial %d: element %d of %s is %g, want %g", typ, trial, k, name, got.Data[k], want[i].Data[k])
					}
				}
			}
		}
	}
}

// move is the effect of a command on one element.
type move struct {
	alpha float32
	i     int   // row of the command's own view
	from  int32 // Indexes[i]
	span  computation.Pair
	far   computation.Pair
	dst   *float32
	view  int32 // the source view
	src   func(view int32, row int) *float32
}

// moves are the effects of commands on one element.
var moves = map[computation.CommandType]func(m move){
	computation.SetConst:   func(m move) { *m.dst = m.alpha },
	computation.MatrixCopy: func(m move) { *m.dst = m.alpha * *m.src(m.view, m.i) },
	computation.MatrixAdd:  func(m move) { *m.dst += m.alpha * *m.src(m.view, m.i) },
	computation.CopyRows: func(m move) {
		if *m.dst = 0; m.from >= 0 {
			*m.dst = m.alpha * *m.src(m.view, int(m.from))
		}
	},
	computation.AddRows: func(m move) {
		if m.from >= 0 {
			*m.dst += m.alpha * *m.src(m.view, int(m.from))
		}
	},
	computation.AddRowRanges: func(m move) {
		for k := m.span[0]; k < m.span[1]; k++ {
			*m.dst += m.alpha * *m.src(m.view, int(k))
		}
	},
	computation.CopyRowsMulti: func(m move) {
		if *m.dst = 0; m.far[0] >= 0 {
			*m.dst = m.alpha * *m.src(m.far[0], int(m.far[1]))
		}
	},
	computation.AddRowsMulti: func(m move) {
		if m.far[0] >= 0 {
			*m.dst += m.alpha * *m.src(m.far[0], int(m.far[1]))
		}
	},
	computation.CopyToRowsMulti: func(m move) {
		if m.far[0] >= 0 {
			*m.src(m.far[0], int(m.far[1])) = *m.dst
		}
	},
	computation.AddToRowsMulti: func(m move) {
		if m.far[0] >= 0 {
			*m.src(m.far[0], int(m.far[1])) += m.alpha * *m.dst
		}
	},
}

// TestScaleSwapCompress: a copy to itself scales; a swap moves contents; compression leaves them
// alone.
func TestScaleSwapCompress(t *testing.T) {
	nn := parseNet(t, threeInputs)
	c := newMover()
	x := c.NewMatrix(9, 7, false)
	part := c.NewSubMatrix(c.whole[0], 2, 3, 1, 4)
	c.Commands = append(c.Commands,
		computation.NewScaledCommand(computation.MatrixCopy, -3, part, part),
		computation.NewScaledCommand(computation.CompressMatrix, 10, c.whole[2], computation.CompressInt16, 1),
		computation.NewCommand(computation.NoOperationMarker),
		computation.NewCommand(computation.DecompressMatrix, c.whole[2]),
		computation.NewCommand(computation.NoOperation),
		computation.NewCommand(computation.SwapMatrix, x, c.whole[1]),
		computation.NewScaledCommand(computation.SetConst, 5, x),
		computation.NewCommand(computation.ProvideOutput, c.whole[0], 0),
		computation.NewCommand(computation.ProvideOutput, x, 1),
		computation.NewCommand(computation.ProvideOutput, c.whole[2], 2),
	)
	comp := newComputer(t, c.Computation, nn, exec.ComputerOptions{})
	in := random(rand.New(rand.NewPCG(1, 1)), 9, 7)
	for _, name := range []string{"a", "b", "c"} {
		accept(t, comp, name, in)
	}
	run(t, comp)
	run(t, comp)
	a, b, third := output(t, comp, "a"), output(t, comp, "b"), output(t, comp, "c")
	for i := range 9 {
		for j := range 7 {
			want := in.Data[i*7+j]
			if third.Data[i*7+j] != want {
				t.Fatalf("compression changed (%d, %d)", i, j)
			}
			if i >= 2 && i < 5 && j >= 1 && j < 5 {
				want *= -3
			}
			if a.Data[i*7+j] != want || b.Data[i*7+j] != 5 {
				t.Fatalf("(%d, %d): %g and %g, want %g and 5", i, j, a.Data[i*7+j], b.Data[i*7+j], want)
			}
		}
	}
}
