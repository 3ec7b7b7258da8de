package passes

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
)

// Optimize optimizes a computation: commands become values, the optimizer rewrites them, and values
// become commands again. It optimizes the segments of a computation, such as a looped one, one by one.
// Optimize does not change c; an optimizer that selects nothing returns c itself. rec may be nil.
func Optimize(ctx context.Context, c *computation.Computation, net lower.Network, opt *optdb.Optimizer, rec *profile.Recorder) (*computation.Computation, error) {
	if opt.Empty() {
		return c, nil
	}
	chain, err := lower.LowerChain(c, net)
	if err != nil {
		return nil, err
	}
	for i, p := range chain.Programs {
		part := rec
		if len(chain.Programs) > 1 {
			part = rec.Begin(fmt.Sprintf("segment %d", i+1), opt.Class())
		}
		err := opt.Rewrite(ctx, p.Graph, part)
		if part != rec {
			part.End()
		}
		if err != nil {
			return nil, fmt.Errorf("optimizing: %w", err)
		}
	}
	return chain.Emit()
}
