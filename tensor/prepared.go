package tensor

import (
	"runtime"
	"sync"
	"weak"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/tensor/array"
)

// Products prepare constant factors for their kernels. That takes longer than a small product, and as much
// memory again. Graphs of one model for several shapes have their constants in common, so what is prepared is
// of a constant and not of a graph: it is made once, as long as one of them is in use.

// A preparation is a constant and a form that it is prepared in, which is comparable and of a type that has no
// other use.
type preparation struct {
	constant weak.Pointer[array.Array]
	form     any
}

// made holds a weak.Pointer to what was prepared, or nil. Who prepares it has the lock.
type made struct {
	sync.Mutex
	value any
}

var preparations = struct {
	sync.Mutex
	made map[preparation]*made
}{made: make(map[preparation]*made)}

// prepare returns a function that prepares a constant at its first call, unless that has been done. It returns
// nil if do does. The threads of that call, which may be nil, share the work.
func prepare[T any](constant *array.Array, form any, do func(t *kernel.Threads) *T) func(ws *array.Workspace) *T {
	var once sync.Once
	var v *T
	return func(ws *array.Workspace) *T {
		once.Do(func() { v = prepared(keyOf(constant, form), func() *T { return do(ws.Threads) }) })
		return v
	}
}

// prepared returns what is prepared, or is prepared by do now.
func prepared[T any](key preparation, do func() *T) *T {
	for {
		m := preparationOf(key)
		m.Lock()
		v, gone := fill(m, key, do)
		m.Unlock()
		if v == nil {
			forget(key, m)
		}
		if !gone {
			return v
		}
	}
}

// nothing is what a variable that is no constant is prepared to.
func nothing[T any](*array.Workspace) *T { return nil }

func keyOf(constant *array.Array, form any) preparation {
	return preparation{weak.Make(constant), form}
}

// fill returns what m holds, and makes it if there is nothing yet. It reports whether there was something that
// is gone.
func fill[T any](m *made, key preparation, do func() *T) (v *T, gone bool) {
	if m.value != nil {
		v = m.value.(weak.Pointer[T]).Value()
		return v, v == nil
	}
	if v = do(); v != nil {
		m.value = weak.Make(v)
		runtime.AddCleanup(v, func(m *made) { forget(key, m) }, m)
	}
	return v, false
}

func preparationOf(key preparation) *made {
	preparations.Lock()
	defer preparations.Unlock()
	m := preparations.made[key]
	if m == nil {
		m = new(made)
		preparations.made[key] = m
	}
	return m
}

// forget drops m, which holds nothing or what is gone.
func forget(key preparation, m *made) {
	preparations.Lock()
	defer preparations.Unlock()
	if preparations.made[key] == m {
		delete(preparations.made, key)
	}
}
