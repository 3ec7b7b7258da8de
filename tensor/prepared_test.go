package tensor

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor/array"
)

// form is what tests prepare a constant in.
type form int

// TestPrepare: what is prepared of a constant is there once as long as somebody has it, and is made again then.
func TestPrepare(t *testing.T) {
	a, b := array.New(array.Float32, 4, 4), array.New(array.Float32, 4, 4)
	ws, made := new(array.Workspace), 0
	sixteen := func(*kernel.Threads) *[16]float32 {
		made++
		return new([16]float32)
	}
	first := prepare(a, form(1), sixteen)(ws)
	for range 3 {
		if prepare(a, form(1), sixteen)(ws) != first {
			t.Error("prepared again")
		}
	}
	if prepare(a, form(2), sixteen)(ws) == first || prepare(b, form(1), sixteen)(ws) == first {
		t.Error("the same for another form or another constant")
	}
	if made != 3 {
		t.Errorf("prepared %d times", made)
	}
	runtime.KeepAlive(first)
	first = nil
	waitFor(t, func() bool { return !isPrepared(a) && !isPrepared(b) })
	if prepare(a, form(1), sixteen)(ws) == nil || made != 4 {
		t.Errorf("prepared %d times", made)
	}
	if prepare(a, form(3), func(*kernel.Threads) *int { return nil })(ws) != nil || isPreparedIn(a, form(3)) {
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
			list[i] = prepare(a, form(1), func(*kernel.Threads) *[16]float32 {
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

// TestPreparedFactors: functions of one graph have their weights prepared once, also where they are transposed.
func TestPreparedFactors(t *testing.T) {
	ws, w := new(array.Workspace), Constant(array.Full(array.Float32, 0.5, 64, 32))
	f, g := preparedFactor(w, array.Float32)(ws), preparedFactor(Transpose(w), array.Float32)(ws)
	if f == nil || g == nil || f == g {
		t.Fatalf("%p, %p", f, g)
	}
	if preparedFactor(w, array.Float32)(ws) != f || preparedFactor(Transpose(w), array.Float32)(ws) != g {
		t.Error("prepared again")
	}
}

func isPrepared(a *array.Array) bool { return isPreparedIn(a, form(1)) || isPreparedIn(a, form(2)) }

func isPreparedIn(a *array.Array, in form) bool {
	preparations.Lock()
	defer preparations.Unlock()
	return preparations.made[keyOf(a, in)] != nil
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
