package pipeline

import (
	"context"
	"slices"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// An effect is the size of a computation: its commands, the peak memory of matrices in bytes, and
// the floating-point operations of matrix products.
type effect struct{ commands, peakBytes, operations int64 }

// MeasureEffects adds the effect of every pass to the plan's profile: counters of commands, peak
// bytes and operations after the pass, if they changed. The root record gets their values without
// any pass. For that, the optimizer runs again once for every pass that changed something, up to
// that pass. opt is the optimizer of the plan. MeasureEffects does nothing if the plan has no
// profile, or was optimized segment by segment.
func (p *Plan) MeasureEffects(ctx context.Context, opt *optdb.Optimizer) error {
	// The k-th record is taken for the k-th pass below, so the records must be those of one run over all
	// passes.
	if p.Profile == nil || !slices.EqualFunc(p.Profile.Children, opt.Passes(lower.MatrixType{}.Dialect()), func(r *profile.Record, name string) bool { return r.Name == name }) {
		return nil
	}
	after := func(passCount int) (effect, error) {
		c, err := passes.Optimize(upTo(ctx, passCount), p.Compiled, p.Net, opt, nil)
		if err != nil {
			return effect{}, err
		}
		return p.effectOf(c)
	}
	before, err := after(0)
	if err != nil {
		return err
	}
	before.count(p.Profile, effect{})
	for k, pass := range p.Profile.Children {
		// The effect is that of the pass before, and finding it again would take a whole run of the optimizer.
		if pass.Changed == 0 && pass.NodesBefore == pass.NodesAfter {
			continue
		}
		now, err := after(k + 1)
		if err != nil {
			return err
		}
		now.count(pass, before)
		before = now
	}
	return nil
}

// count adds counters to the record for differences from the effect before.
func (e effect) count(r *profile.Record, before effect) {
	add := func(name, unit string, was, is int64) {
		if was != is {
			r.Counters = append(r.Counters, profile.Counter{Name: name, Value: float64(is), Unit: unit})
		}
	}
	add("commands", "", before.commands, e.commands)
	add("peak_bytes", "bytes", before.peakBytes, e.peakBytes)
	add("operations", "", before.operations, e.operations)
}

// upTo returns a context in which an optimizer runs only its first n passes.
func upTo(ctx context.Context, n int) context.Context {
	opts := rewrite.OptionsFrom(ctx)
	opts.BeforePass = func(string) bool {
		n--
		return n >= 0
	}
	return rewrite.WithOptions(ctx, opts)
}

// effectOf measures a computation.
func (p *Plan) effectOf(c *computation.Computation) (effect, error) {
	program, err := exec.NewProgram(c, p.Net)
	if err != nil {
		return effect{}, err
	}
	return effect{int64(len(c.Commands)), c.MaxMemory(), program.Operations()}, nil
}
