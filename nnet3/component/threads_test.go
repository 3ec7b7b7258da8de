package component

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/internal/divide"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/index"
)

// wideCase is a component with many rows.
type wideCase struct {
	typ, config string
	frames      int32
}

// build returns the component, with rows in any order, and more input than it sees.
func (k *wideCase) build(t *testing.T) (c Component, pre func(out []index.Index) Precomputed, in kernel.Matrix, out []index.Index) {
	rnd := rand.New(rand.NewPCG(5, 6))
	c = newComponent(t, k.typ, k.config, rnd)
	var from []index.Index
	for n := range int32(3) {
		for x := range k.frames {
			out = append(out, index.Index{N: n, T: x})
		}
		for x := range k.frames + 3 {
			from = append(from, index.Index{N: n, T: x - 1})
		}
	}
	rnd.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	pre = func(out []index.Index) Precomputed {
		n, ok := c.(NonSimple)
		if !ok {
			return nil
		}
		p, err := n.PrecomputeIndexes(from, out, true)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if _, ok := c.(NonSimple); !ok {
		from = out
	}
	return c, pre, randomMatrix(rnd, len(from), c.InputDim()), out
}

var wideCases = []wideCase{
	{"TimeHeightConvolutionComponent", "num-filters-in=8 num-filters-out=3 height-in=40 height-out=40 time-offsets=-1,0,1 height-offsets=-1,0,1 required-time-offsets=0 bias-stddev=1", 90},
	{"TimeHeightConvolutionComponent", "num-filters-in=300 num-filters-out=900 height-in=4 height-out=2 height-subsample-out=2 time-offsets=-1,0 height-offsets=0,1 required-time-offsets=0", 3},
	{"LstmNonlinearityComponent", "cell-dim=37 self-repair-scale=1", 90},
	{"LstmNonlinearityComponent", "cell-dim=20 use-dropout=true", 90},
}

// backward runs a component backward with some threads, and returns the derivative of the input, and
// the component with the gradient, as files have it. The second time, memory is not zero.
func backward(t *testing.T, threads *kernel.Threads, c Component, pre Precomputed, in, dy kernel.Matrix) (dx kernel.Matrix, gradient Component, file []byte) {
	t.Helper()
	w := &Workspace{Threads: threads}
	for k := range 2 {
		first := file
		gradient, dx = NewGradient(c), kernel.New(in.Rows, in.Cols)
		if err := Backprop(c.(Backpropper), w, BackwardPass{Pre: pre, InValue: in, OutDeriv: dy, ToUpdate: gradient, InDeriv: dx}); err != nil {
			t.Fatal(err)
		}
		if file = written(t, gradient, true); k > 0 && !bytes.Equal(file, first) {
			t.Errorf("%s: the second gradient differs from the first one", c.Type())
		}
	}
	return dx, gradient, file
}

// TestThreadsBackward: gradients and statistics have the same bits for any number of threads.
func TestThreadsBackward(t *testing.T) {
	divide.Always.Store(true)
	defer divide.Always.Store(false)
	for _, k := range wideCases {
		c, pre, in, out := k.build(t)
		dy := randomMatrix(rand.New(rand.NewPCG(7, 8)), len(out), c.OutputDim())
		dx, _, file := backward(t, nil, c, pre(out), in, dy)
		for _, size := range []int{3, 2, 7}[:longtest.Of(1, 3)] {
			got, _, gotFile := backward(t, kernel.NewThreads(size), c, pre(out), in, dy)
			if !equalBits(got, dx) {
				t.Errorf("%s %s: %d threads compute another derivative of the input", k.typ, k.config, size)
			}
			if !bytes.Equal(gotFile, file) {
				t.Errorf("%s %s: %d threads compute another gradient", k.typ, k.config, size)
			}
		}
	}
}

// TestBlocksOfRows: derivatives for all rows are the sums of those for each row.
func TestBlocksOfRows(t *testing.T) {
	for _, k := range wideCases {
		c, pre, in, out := k.build(t)
		dy := randomMatrix(rand.New(rand.NewPCG(7, 8)), len(out), c.OutputDim())
		dx, all, _ := backward(t, nil, c, pre(out), in, dy)
		sumX, sum := kernel.New(in.Rows, in.Cols), params(all)
		for i := range sum {
			kernel.Fill(sum[i], 0)
		}
		for i := range out {
			x, into := in, sumX
			if _, ok := c.(NonSimple); !ok {
				x, into = kernel.Rows(in, i, 1), kernel.Rows(sumX, i, 1)
			}
			oneX, one, _ := backward(t, nil, c, pre(out[i:i+1]), x, kernel.Rows(dy, i, 1))
			kernel.Add(into, 1, oneX)
			for j, m := range params(one) {
				kernel.Add(sum[j], 1, m)
			}
		}
		if !near(sumX, dx, 1e-4) {
			t.Errorf("%s %s: the derivative of the input is not that of its rows", k.typ, k.config)
		}
		for j, m := range params(all) {
			if !near(sum[j], m, 1e-4) {
				t.Errorf("%s %s: gradient %d is not the sum of those of rows", k.typ, k.config, j)
			}
		}
	}
}

// params returns copies of the parameters.
func params(c Component) []kernel.Matrix {
	var list []kernel.Matrix
	for _, p := range c.(UpdatableComponent).Params() {
		list = append(list, kernel.Clone(p.Values))
	}
	return list
}
