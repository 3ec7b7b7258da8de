// Package preparation keeps what products make of their constant factors for the kernels. Preparing takes longer
// than a small product, and as much memory again. Graphs of one model for several shapes have their constants in
// common, so what is prepared is of a constant and not of a graph: it is made once, as long as one of them is in use.
//
//	weights := preparation.Once(constant, form{}, func(ws *array.Workspace) *array.Factor { return array.NewFactor(constant, ws.Threads, ws.Read) })
//	factor := weights(ws) // prepared here, or by another graph before
//
// All functions may be called by several goroutines.
package preparation

import (
	"runtime"
	"sync"
	"weak"

	"github.com/nnopt/nnopt/tensor/array"
)

// A key is a constant and a form that it is prepared in, which is comparable and of a type that has no
// other use.
type key struct {
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
	made map[key]*made
}{made: make(map[key]*made)}

// Once returns a function that prepares a constant at its first call, unless that has been done. It returns
// nil if do does, which gets the workspace of that call.
func Once[T any](constant *array.Array, form any, do func(ws *array.Workspace) *T) func(ws *array.Workspace) *T {
	var once sync.Once
	var v *T
	return func(ws *array.Workspace) *T {
		once.Do(func() { v = prepared(keyOf(constant, form), func() *T { return do(ws) }) })
		return v
	}
}

// Forms returns in how many forms a constant is prepared.
func Forms(constant *array.Array) int {
	preparations.Lock()
	defer preparations.Unlock()
	n, w := 0, weak.Make(constant)
	for k := range preparations.made {
		if k.constant == w {
			n++
		}
	}
	return n
}

// prepared returns what is prepared, or is prepared by do now.
func prepared[T any](k key, do func() *T) *T {
	for {
		m := preparationOf(k)
		// Who wants the same waits here for the first one, and finds what that made. Others go on.
		m.Lock()
		v, gone := fill(m, k, do)
		m.Unlock()
		// Nothing was made, or it is gone and its cleanup comes later. In either case the entry has no use any
		// more, and the next round would find it again.
		if v == nil {
			forget(k, m)
		}
		if !gone {
			return v
		}
	}
}

func keyOf(constant *array.Array, form any) key { return key{weak.Make(constant), form} }

// fill returns what m holds, and makes it if there is nothing yet. It reports whether there was something that
// is gone.
func fill[T any](m *made, k key, do func() *T) (v *T, gone bool) {
	if m.value != nil {
		v = m.value.(weak.Pointer[T]).Value()
		return v, v == nil
	}
	if v = do(); v != nil {
		// Only the functions that Once returned hold it. With the last of them it goes, and so does its entry.
		m.value = weak.Make(v)
		runtime.AddCleanup(v, func(m *made) { forget(k, m) }, m)
	}
	return v, false
}

func preparationOf(k key) *made {
	preparations.Lock()
	defer preparations.Unlock()
	m := preparations.made[k]
	if m == nil {
		m = new(made)
		preparations.made[k] = m
	}
	return m
}

// forget drops m, which holds nothing or what is gone.
func forget(k key, m *made) {
	preparations.Lock()
	defer preparations.Unlock()
	// There may be a new entry by now: the cleanup of what is gone must leave it alone.
	if preparations.made[k] == m {
		delete(preparations.made, k)
	}
}
