package repro

import (
	"context"
	"errors"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// The bounds of a debug run that says none: so many random inputs, unless a [Sampler] knows better, and after so long
// no more of them.
const (
	DefaultDraws = 32
	defaultTime  = time.Second
)

// A Sampler knows how many random inputs are worth comparing. By default, they are DefaultDraws.
type Sampler interface {
	// Draws returns for how many seeds in a row Random should draw inputs of a graph. If there are few
	// inputs in all, that is their number, and such seeds draw each of them.
	Draws(g *fgraph.FunctionGraph) int
}

// Draws says which random inputs [Debug] compares values for. The zero value is what a dialect says, within
// DefaultTime.
type Draws struct {
	// Most is the number of draws; 0 is what the dialect says.
	Most int
	// Time is how long draws go on; the first is always made. 0 is DefaultTime, or no limit if Most is given, and a
	// negative one is no limit.
	Time time.Duration
}

// Debug runs a case as [Check] does, and compares values for one draw of inputs after another, of the seeds from
// c.Seed on, until one fails. It leaves in c.Seed the seed of the draw that fails, so that c is a case for Check,
// Bisect and Reduce. What can't be computed without optimization is compared for other draws; if none can be, the
// error wraps ErrCase. If c has values, or its world no Evaluator, there is one draw.
//
// In a program, this is what the mode for debugging leaves out, which optimizers run without inputs:
//
//	q, _ := optdb.Mode(optdb.ModeDebug)
//	f, err := repro.Debug(ctx, &repro.Case{World: world, Build: db.Build, Graph: g, Query: q}, repro.Draws{})
func Debug(ctx context.Context, c *Case, d Draws) (Failure, error) {
	first, start := c.Seed, time.Now()
	most, limit := d.limits(c)
	compared := false
	var fault error
	for k := range most {
		if ctx.Err() != nil {
			return Failure{}, context.Cause(ctx)
		}
		if k > 0 && limit > 0 && time.Since(start) >= limit {
			break
		}
		// A seed is a whole case: the optimizer runs again, since to evaluate a graph may change it.
		c.Seed = first + uint64(k)
		f, err := Check(ctx, c)
		switch {
		case err == nil && f.Kind != None:
			return f, nil
		case err == nil:
			compared = true
		case !errors.Is(err, ErrCase):
			return Failure{}, err
		case fault == nil:
			fault = err
		}
		if k == 0 {
			ctx = quietly(ctx)
		}
	}
	c.Seed = first
	if compared {
		fault = nil
	}
	return Failure{}, fault
}

// limits returns the bounds for a case; a time of 0 is none.
func (d Draws) limits(c *Case) (most int, limit time.Duration) {
	if _, ok := find[Evaluator](c.World); !ok || c.Values != nil {
		return 1, 0
	}
	most, limit = d.Most, d.Time
	if most == 0 {
		most = DefaultDraws
		if s, ok := find[Sampler](c.World); ok {
			most = s.Draws(c.Graph)
		}
		if limit == 0 {
			limit = defaultTime
		}
	}
	return max(most, 1), limit
}

// quietly leaves out what the options of ctx print, after the first of several runs.
func quietly(ctx context.Context) context.Context {
	opts := rewrite.OptionsFrom(ctx)
	opts.Trace, opts.WhyNot = nil, nil
	return rewrite.WithOptions(ctx, opts)
}
