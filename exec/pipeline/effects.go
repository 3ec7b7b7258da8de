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

// An effect is the size of a computation.
type effect struct {
	commands int
	// peakBytes is the most memory of matrices in use at a time.
	peakBytes int64
	// operations are the floating-point operations of products of matrices; a multiply-add counts two.
	operations int64
}

// MeasureEffects adds to the plan's profile what every pass did to the computation: counters of the commands, peak bytes and operations
// after it, where they are others than before, and in the record of the whole what they are without any pass. For that the
// optimizer runs again, once for every pass that has changed something, up to that pass. opt must be what the plan was optimized
// with. It does nothing where the plan has no profile, or was optimized segment by segment.
func (p *Plan) MeasureEffects(ctx context.Context, opt *optdb.Optimizer) error {
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

// count adds counters to the record, where an effect differs from the one before.
func (e effect) count(r *profile.Record, before effect) {
	for _, c := range []struct {
		name string
		was  int64
		is   int64
		unit string
	}{
		{"commands", int64(before.commands), int64(e.commands), ""},
		{"peak_bytes", before.peakBytes, e.peakBytes, "bytes"},
		{"operations", before.operations, e.operations, ""},
	} {
		if c.was != c.is {
			r.Counters = append(r.Counters, profile.Counter{Name: c.name, Value: float64(c.is), Unit: c.unit})
		}
	}
}

// upTo returns a context in which an optimizer runs its first n passes only.
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
	return effect{len(c.Commands), c.MaxMemory(), program.Operations()}, nil
}
