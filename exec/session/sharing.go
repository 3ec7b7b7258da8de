package session

import (
	"context"

	"github.com/nnopt/nnopt/exec/session/internal/constants"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
)

// sharing is an optimizer after which constants are shared.
type sharing struct {
	*optdb.Optimizer
	constants *constants.Table
}

// Rewrite implements exec.Optimizer.
func (s sharing) Rewrite(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	if err := s.Optimizer.Rewrite(ctx, g, rec); err != nil {
		return err
	}
	// Functions come and go. Without this the lists would keep an entry for every constant there ever was.
	s.constants.Prune()
	var pairs []fgraph.Replacement
	for v := range g.Variables() {
		if a := tensor.ConstantOf(v); a != nil && !a.IsCSR() {
			if b := s.constants.Shared(a); b != a {
				pairs = append(pairs, fgraph.Replacement{Old: v, New: tensor.Constant(b)})
			}
		}
	}
	return g.ReplaceAll(pairs, fgraph.Reason{Pass: "shared_constants"})
}
