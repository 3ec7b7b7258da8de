package rulefind

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// Sides returns both sides of an instance of the rule, over inputs.
func (f *Found) Sides() [2]*fgraph.Variable { return f.sides }

// Follow reports which pairs of variables are equal by rules, read in both directions.
func Follow(ctx context.Context, d rulecheck.Domain, rules []pattern.Rule, pairs [][2]*fgraph.Variable) ([]bool, error) {
	list := make([]rewrite.NodeRewriter, len(rules))
	for i, r := range rules {
		var err error
		if list[i], err = compiled(d, r); err != nil {
			return nil, err
		}
	}
	t, err := newTheory(d, onePair, compatible(list))
	if err != nil {
		return nil, err
	}
	return t.alone(ctx, pairs)
}
