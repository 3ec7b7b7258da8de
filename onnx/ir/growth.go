package ir

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
)

// maxGrowth is by how many bytes passes may make the constants of a graph larger, in all. A constant that
// something else still reads stays in the file beside what is computed from it, and one that is doubled
// sixteen times is a file of gigabytes. With names and types, a file grows by less than 64 kB.
const maxGrowth = 60_000

// small is how many bytes of a constant are not counted: the node that it takes the place of has as many.
const small = 16

// A growth counts by how many bytes the constants of a graph have become larger. Equal constants count once,
// because they are merged in the end.
type growth struct {
	bytes int64
	more  int64                     // that are allowed besides maxGrowth
	made  map[uint64][]madeConstant // by hash
}

// A madeConstant are equal constants that were not there in the beginning, and how many there are.
type madeConstant struct {
	t    Type
	x    *Value
	live int
}

// count counts a constant that has got its first reader, or takes away one that has lost its last.
func (r *growth) count(v *fgraph.Variable, born bool) {
	n := storedBytes(v)
	if n == 0 {
		return
	}
	t, x := TypeOf(v), ValueOf(v)
	h := t.HashData(x)
	list := r.made[h]
	i := slices.IndexFunc(list, func(m madeConstant) bool { return m.t == t && t.EqualData(m.x, x) })
	switch {
	case born && i >= 0:
		list[i].live++
	case born:
		if r.made == nil { // as in most of very many bodies
			r.made = make(map[uint64][]madeConstant)
		}
		r.made[h] = append(list, madeConstant{t, x, 1})
		r.bytes += n
	case i < 0: // one of the beginning
		r.bytes -= n
	case list[i].live > 1:
		list[i].live--
	default:
		r.made[h] = slices.Delete(list, i, i+1)
		r.bytes -= n
	}
}

// countOwn counts the constants that only an apply reads.
func (r *growth) countOwn(a *fgraph.Apply, born bool) {
	for v := range own(a) {
		r.count(v, born)
	}
}

// Room returns by how many bytes the constants of the graph may still grow. It follows every change: what is
// undone is not counted, and what nothing reads any more makes room.
func (s *Source) Room() int64 { return maxGrowth + s.grown.more - s.grown.bytes }

// AllowGrowth allows more bytes of constants, for a graph that is run and not written: what is not computed at
// once is computed in each run.
func (s *Source) AllowGrowth(bytes int64) { s.grown.more = bytes }

// GrowsWith has the constants of the graph count as those of another one, which it is a body in: the room is that of
// the whole model.
func (s *Source) GrowsWith(outer *Source) { s.grown = outer.grown }

// Validate objects to constants that have become too large.
func (s *Source) Validate(*fgraph.FunctionGraph) error {
	if s.Room() < 0 {
		return fmt.Errorf("%w: constants would take %d bytes more than in the model, and %d are allowed", fgraph.ErrInconsistent, s.grown.bytes, maxGrowth+s.grown.more)
	}
	return nil
}

// OnImport counts the constants that only a reads.
func (s *Source) OnImport(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	s.grown.countOwn(a, true)
}

// OnPrune takes away the constants that only a reads.
func (s *Source) OnPrune(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	s.grown.countOwn(a, false)
}

// OnChangeInput counts a constant that gets its first reader, and takes away one that has lost its last.
func (s *Source) OnChangeInput(_ *fgraph.FunctionGraph, _ *fgraph.Apply, _ int, old, new *fgraph.Variable, _ fgraph.Reason) {
	// The edge has moved already: who lost its last reader has none now, and a first reader is the only one.
	if old != nil && len(old.Clients()) == 0 {
		s.grown.count(old, false)
	}
	if new != nil && len(new.Clients()) == 1 {
		s.grown.count(new, true)
	}
}

// OwnBytes returns the bytes of the constants that only an apply of a graph reads, each once: those that go
// when it does.
func OwnBytes(a *fgraph.Apply) (n int64) {
	for v := range own(a) {
		n += storedBytes(v)
	}
	return n
}

// own yields the constants that only an apply of a graph reads, each once.
func own(a *fgraph.Apply) iter.Seq[*fgraph.Variable] {
	return func(yield func(*fgraph.Variable) bool) {
		for i, v := range a.Inputs() {
			list := v.Clients()
			if !v.IsConstant() || len(list) == 0 || list[0] != (fgraph.Client{Apply: a, Index: i}) {
				continue // found at another position, or read by others
			}
			if !slices.ContainsFunc(list, func(c fgraph.Client) bool { return c.Apply != a }) && !yield(v) {
				return
			}
		}
	}
}

// storedBytes returns about how many bytes a constant adds to a file, 0 for what is no constant.
func storedBytes(v *fgraph.Variable) int64 {
	x := ValueOf(v)
	switch {
	case x == nil:
		return 0
	case x.sparse != nil:
		return max(0, tensorBytes(x.sparse.Values)+tensorBytes(x.sparse.Indices)-small)
	}
	return max(0, tensorBytes(x.Tensor)-small)
}

// tensorBytes returns the bytes of the elements of a tensor as it is written: integers may be encoded in fewer
// bytes than they have in memory.
func tensorBytes(t *onnx.Tensor) (n int64) {
	if t == nil {
		return 0
	}
	for _, b := range t.Strings {
		n += int64(len(b)) + 2
	}
	// protobuf extends the sign of an int32 to 64 bits, so a negative one takes ten bytes.
	for _, k := range t.Int32s {
		n += int64(varintBytes(uint64(k)))
	}
	for _, k := range t.Int64s {
		n += int64(varintBytes(uint64(k)))
	}
	for _, k := range t.Uint64s {
		n += int64(varintBytes(k))
	}
	if n > 0 {
		return n
	}
	_, n, _ = t.Size() // one whose size is not known has a fault that whoever reads it finds
	return n
}

// varintBytes returns in how many bytes an integer is encoded, seven bits in each.
func varintBytes(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }
