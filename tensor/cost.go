package tensor

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Coster is an op that knows what it costs.
type Coster interface {
	// Cost returns about how long it takes to compute an apply of the op, in picoseconds.
	Cost(a *fgraph.Apply) float64
}

// AssumedSize is the size that Cost assumes of a dimension whose size no type tells.
const AssumedSize = 256

// The parts of a cost, in picoseconds. They were measured with package exec on one core of an AMD
// EPYC (Zen 5) on 2026-11-22: a call takes 0.2 to 0.5 µs, a view 0.06; a product of matrices 21
// (float64), 9 (float32) or 526 (int64) for each multiplication, and 23 a byte to read a matrix
// once; a sum takes 120 for each element along the first dimension, and 400 along the last one,
// which is a chain of additions; x + y on 100,000 elements takes 384, which moves 24 bytes.
const (
	callCost     = 200e3
	elemwiseCost = 50e3 // the share of an element-wise op in the call of the op that fusion makes of several
	viewCost     = 50e3
	readCost     = 20.0 // a byte
	writeCost    = 16.0
	reduceCost   = 4000.0 // an element of a maximum and the like
	sortCost     = 1000.0 // also of any other op, for each element that it reads or writes
	factorCost   = 500.0  // a step of the elimination of a matrix
	double       = 21.0   // a multiplication of a product of matrices
	single       = 9.0
	wholeNumbers = 526.0
)

// Cost returns about how long it takes to compute an apply when its inputs are there, in
// picoseconds. It is a whole number, so that sums of costs do not depend on their order as long as
// they are below 2⁵³, two and a half hours. It consists of a constant for the call, the operations,
// and the bytes; the sizes are those that types tell, and otherwise [AssumedSize].
//
// An element-wise op pays for writing its result, not for reading, and for a part of a call: fusion
// makes one op of several, which reads and writes once. A sum pays for reading, in any dimension.
// Views cost next to nothing. An op that is a [Coster] decides itself.
func Cost(a *fgraph.Apply) float64 {
	if c, ok := a.Op().(Coster); ok {
		return max(math.Round(c.Cost(a)), 0)
	}
	return math.Round(cost(a))
}

// FusedCost returns what an element-wise op costs that becomes part of another one: its operations
// alone. It is Cost for other ops.
func FusedCost(a *fgraph.Apply) float64 {
	if op, ok := a.Op().(Elemwise); ok {
		return math.Round(float64(elements(a.Out()) * float64(elemwiseWork(op.Op, a.Inputs()))))
	}
	return Cost(a)
}

func cost(a *fgraph.Apply) float64 {
	in, out := a.Inputs(), a.Outputs()
	if v, ok := a.Op().(fgraph.Viewer); ok && len(v.ViewMap()) > 0 {
		return viewCost
	}
	written := callCost + float64(writeCost*bytes(out))
	switch op := a.Op().(type) {
	case ShapeIOp, ShapeOp:
		return viewCost
	case Elemwise:
		return elemwiseCost + float64(writeCost*bytes(out)) + float64(elements(out[0])*float64(elemwiseWork(op.Op, in)))
	case *CompositeOp:
		return written + float64(elements(out[0])*float64(op.prog.Work()))
	case DotOp, MatmulOp, Dot22Op, Dot22ScalarOp:
		return written + multiplying(in[0], in[1], out[0])
	case GemmOp, GemvOp:
		return written + multiplying(in[2], in[3], out[0]) + float64(readCost*bytes(in[:1]))
	case GerOp:
		return written + float64(elements(out[0])*double) + float64(readCost*bytes(in[:1]))
	case Reduce:
		if op.Op == array.Sum || op.Op == array.Prod {
			return written + float64(readCost*bytes(in))
		}
		return written + float64(reduceCost*elements(in[0]))
	case AllocOp, AllocEmptyOp:
		return written
	case DetOp, SLogDetOp, MatrixInverseOp:
		n := size(in[0], 0)
		return written + float64(factorCost*float64(n*float64(n*n)))
	}
	all := 0.0
	for _, v := range in {
		all += elements(v)
	}
	for _, v := range out {
		all += elements(v)
	}
	return written + float64(sortCost*all)
}

// elemwiseWork returns what an element of an element-wise op takes. A power with a known exponent
// becomes multiplications, roots and inverses.
func elemwiseWork(op array.Opcode, in []*fgraph.Variable) int {
	types := lists.Map(in, func(v *fgraph.Variable) array.DType { return TypeOf(v).DType() })
	compute, _, ok := op.Types(types...)
	if !ok {
		compute = types[0]
	}
	if op == array.Pow {
		if k, known := UniformOf(in[1]); known && math.Abs(k) <= 64 && (k == math.Trunc(k) || math.Abs(k) == 0.5) {
			steps := 1
			// Each squaring halves the exponent.
			for n := math.Abs(k); n > 2; n /= 2 {
				steps++
			}
			if k < -1 || k == -0.5 {
				steps++
			}
			return steps * array.Sqr.Work(compute, 1)
		}
	}
	return op.Work(compute, len(in))
}

// multiplying returns the cost of a product of matrices or vectors besides the call and writing.
func multiplying(x, y, out *fgraph.Variable) float64 {
	t := TypeOf(x)
	inner := size(x, t.NDim()-1)
	// Either factor may know the size that is summed over.
	if u := TypeOf(y); t.Dim(t.NDim()-1) == Unknown {
		inner = size(y, max(u.NDim()-2, 0))
	}
	each := wholeNumbers
	switch TypeOf(out).DType() {
	case array.Float64:
		each = double
	case array.Float32:
		each = single
	}
	return float64(float64(elements(out)*inner)*each) + float64(readCost*(bytes([]*fgraph.Variable{x})+bytes([]*fgraph.Variable{y})))
}

// size returns the size of a dimension of a tensor, or what is assumed of it.
func size(v *fgraph.Variable, d int) float64 {
	if n := TypeOf(v).Dim(d); n != Unknown {
		return float64(n)
	}
	return AssumedSize
}

// elements returns the number of elements of a tensor, 1 for anything else.
func elements(v *fgraph.Variable) float64 {
	n := 1.0
	if t, ok := v.Type().(Type); ok {
		for d := range t.NDim() {
			n *= size(v, d)
		}
	}
	return n
}

// bytes returns what the elements of tensors take.
func bytes(list []*fgraph.Variable) float64 {
	sum := 0.0
	for _, v := range list {
		if t, ok := v.Type().(Type); ok {
			sum += float64(elements(v) * float64(t.DType().Size()))
		}
	}
	return sum
}

// ErrWork means that what is computed takes more work than the context allows.
var ErrWork = errors.New("too much work")

// Work is how long may still be computed, by Cost, by all who have it together.
type Work struct{ left atomic.Int64 } // picoseconds

type workKey struct{}

// WithWork returns a context for those who compute untrusted graphs for somebody who did not ask for it: to fold
// them or to check them. Loops spend of it, of which only a run tells how many rounds they have, and so does who
// knows the cost of a graph before running it.
func WithWork(ctx context.Context, most time.Duration) context.Context {
	w := new(Work)
	w.left.Store(most.Nanoseconds() * 1000)
	return context.WithValue(ctx, workKey{}, w)
}

// WorkOf returns the work that a context allows, nil for any.
func WorkOf(ctx context.Context) *Work {
	w, _ := ctx.Value(workKey{}).(*Work)
	return w
}

// Spend takes picoseconds, see Cost. It returns ErrWork if no more are left. A nil Work has any number of them.
func (w *Work) Spend(cost float64) error {
	// Costs may be infinite or larger than any int64, and then the conversion would give anything. The bound is
	// far above what is allowed.
	if w != nil && w.left.Add(-int64(min(math.Round(cost), 1<<50))) < 0 {
		return ErrWork
	}
	return nil
}

// GraphCost returns the sum of the costs of the applies of a graph. The rounds of loops are not known.
func GraphCost(g *fgraph.FunctionGraph) (sum float64) {
	for a := range g.Applies() {
		sum += Cost(a)
	}
	return sum
}
