package tensor_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/internal/preparation"
)

// TestPreparedFactors: functions of one graph have their weights prepared once, also where they are transposed.
func TestPreparedFactors(t *testing.T) {
	weights := array.Full(array.Float32, 0.5, 1, 64, 32)
	typ := tensor.NewType(array.Float32, tensor.Unknown, tensor.Unknown, tensor.Unknown)
	x, y := fgraph.NewInput(typ, "x"), fgraph.NewInput(typ, "y")
	w := tensor.Constant(weights)
	var functions []*exec.Function // what they prepare is there as long as they are
	for range 2 {
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x, y}, []*fgraph.Variable{tensor.Matmul(x, w), tensor.Matmul(y, tensor.DimShuffle(w, 0, 2, 1))}, exec.FunctionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Call(t.Context(), array.Full(array.Float32, 1, 2, 50, 64), array.Full(array.Float32, 1, 2, 50, 32)); err != nil {
			t.Fatal(err)
		}
		functions = append(functions, f)
		if n := preparation.Forms(weights); n != 2 {
			t.Errorf("prepared in %d forms after %d functions", n, len(functions))
		}
	}
	runtime.KeepAlive(functions)
}

// form is what tests prepare a constant in.
type form int

// TestPrepare: what is prepared of a constant is there once as long as somebody has it, and is made again then.
func TestPrepare(t *testing.T) {
	a, b := array.New(array.Float32, 4, 4), array.New(array.Float32, 4, 4)
	ws, made := new(array.Workspace), 0
	sixteen := func(*array.Workspace) *[16]float32 {
		made++
		return new([16]float32)
	}
	first := preparation.Once(a, form(1), sixteen)(ws)
	for range 3 {
		if preparation.Once(a, form(1), sixteen)(ws) != first {
			t.Error("prepared again")
		}
	}
	if preparation.Once(a, form(2), sixteen)(ws) == first || preparation.Once(b, form(1), sixteen)(ws) == first {
		t.Error("the same for another form or another constant")
	}
	if made != 3 {
		t.Errorf("prepared %d times", made)
	}
	runtime.KeepAlive(first)
	first = nil
	waitFor(t, func() bool { return preparation.Forms(a)+preparation.Forms(b) == 0 })
	if preparation.Once(a, form(1), sixteen)(ws) == nil || made != 4 {
		t.Errorf("prepared %d times", made)
	}
	if preparation.Once(a, form(3), func(*array.Workspace) *int { return nil })(ws) != nil || preparation.Forms(a) != 1 {
		t.Error("what can't be prepared is kept")
	}
}

// TestPrepareTogether: goroutines that prepare a constant at a time get the same.
func TestPrepareTogether(t *testing.T) {
	a := array.New(array.Float32, 4, 4)
	var wg sync.WaitGroup
	list, made := make([]*[16]float32, 8), make(chan bool, 8)
	for i := range list {
		wg.Go(func() {
			list[i] = preparation.Once(a, form(1), func(*array.Workspace) *[16]float32 {
				made <- true
				time.Sleep(time.Millisecond)
				return new([16]float32)
			})(new(array.Workspace))
		})
	}
	wg.Wait()
	for _, x := range list {
		if x == nil || x != list[0] {
			t.Errorf("%p, not %p", x, list[0])
		}
	}
	if len(made) != 1 {
		t.Errorf("prepared %d times", len(made))
	}
}

// waitFor collects garbage until something has happened.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for range 1000 {
		if runtime.GC(); done() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("what nobody uses is kept")
}
