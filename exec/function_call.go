package exec

import (
	"context"

	"github.com/nnopt/nnopt/tensor/array"
)

// Call calls the function. It only reads the arguments, unless they are Mutable. The results belong
// to the caller. The error wraps ErrArgument, or is an *ApplyError or the context's. A Runner is quicker for
// small functions.
func (f *Function) Call(ctx context.Context, args ...*array.Array) ([]*array.Array, error) {
	// All but the results is memory that the next call can use. It goes when garbage is collected, if
	// there is no call for a while. Memory that has grown with the sizes of calls costs more to get again
	// than many calls take, and collections come as often as arguments are large: it stays.
	r := f.kept.Swap(nil)
	if r == nil {
		r, _ = f.idle.Get().(*Runner)
	}
	if r == nil {
		r = f.NewRunner()
	}
	results, err := r.Run(ctx, args...)
	if err == nil {
		results = r.yield(results)
	}
	if f.open == nil || !f.kept.CompareAndSwap(nil, r) {
		f.idle.Put(r)
	}
	return results, err
}

// yield makes the results of a call those of a caller: the runner forgets their memory, and that of arguments.
func (r *Runner) yield(results []*array.Array) []*array.Array {
	f := r.f
	owned := make([]array.Array, len(results))
	list := make([]*array.Array, len(results))
	for i, a := range results {
		// The header is copied, because the next call writes to that of the runner.
		owned[i] = *a
		list[i] = &owned[i]
		results[i] = nil
	}
	for _, o := range f.outputs[:len(results)] {
		switch root := f.roots[o.slot]; {
		case f.settled(root):
			r.own[root], r.headers[root] = array.Memory{}, array.Array{}
		case f.kinds[root] == displayed:
			r.ws.Yield(&r.headers[root]) // nothing, the second time
		}
	}
	for _, slot := range f.inputs {
		r.headers[slot] = array.Array{}
	}
	r.yielded = true
	return list
}
