package repro

import (
	"context"
	"fmt"
)

// A Comparison is what a graph computes, as it is and optimized.
type Comparison struct {
	Inputs  []any
	Outputs []any  // of the graph as it is
	Differ  string // how those of the optimized graph differ, or ""
	// Accepted says why outputs that differ are accepted, see [Judge].
	Accepted string
}

// Compare runs the graph of a case and the optimized one on the values of its inputs. An error of
// the optimizer, or of running what it made, is returned as it is.
func Compare(ctx context.Context, c *Case) (*Comparison, error) {
	r, err := c.prepare()
	if err != nil {
		return nil, err
	}
	if _, ok := find[Evaluator](c.World); !ok {
		return nil, fmt.Errorf("%w: no evaluator: the graph can't be run", ErrCase)
	}
	g, err := r.copied()
	if err != nil {
		return nil, err
	}
	if err := r.rewrite(ctx, g); err != nil {
		return nil, err
	}
	if err := r.compute(ctx); err != nil {
		return nil, err
	}
	got, err := r.evaluate(ctx, g)
	if err != nil {
		return nil, err
	}
	found := &Comparison{Inputs: r.values, Outputs: r.right}
	found.Differ, found.Accepted, err = r.judge(ctx, got)
	return found, err
}
