package tensor

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/fgraph"
)

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
