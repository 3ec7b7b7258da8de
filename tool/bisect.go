package tool

import (
	"cmp"
	"context"
	"flag"

	"github.com/nnopt/nnopt/fgraph"

	"github.com/nnopt/nnopt/tool/repro"
)

func bisectVerb() Verb {
	return Verb{
		Name:     "bisect",
		Args:     "FILE",
		Synopsis: "find the rewrite that makes a reproducer fail",
		Detail: `
FILE is a reproducer, see "$0 help reproduce". Bisect finds a rewrite at one place, or else a pass, without which the case does not
fail like that. It prints the rule, what it replaces and the replacement, and writes the reproducer right before that rewrite: the
graph at that point, with no more of the query than the failure needs. If there is none, it writes the reproducer with a budget of
rewrites that ends with the culprit.`,
		Examples: `
$0 bisect $0-failure-1.graph`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			output := outputFlag(fs, "before")
			return onCase(func(ctx context.Context, c *Console, cas *repro.Case, file string) error {
				found, err := repro.Bisect(ctx, cas)
				if err != nil {
					return err
				}
				tellFinding(c, found)
				name, err := output.write(ctx, c.cfg, found.Before, file)
				if err != nil {
					return err
				}
				c.Print("the reproducer before it has %d applies and the query %v, in %s\n", found.Before.Graph.NumApplies(), found.Before.Query, name)
				return nil
			})
		},
	}
}

// tellFinding prints what a bisection has found.
func tellFinding(c *Console, found *repro.Finding) {
	c.Print("%v: %v\n", found.Failure, found.Failure.Err)
	culprit := found.Culprit
	switch {
	case culprit.Number > 0:
		c.Print("to blame: rewrite %d: %v\n", culprit.Number, culprit)
	case found.Found && found.Failure.Rule == "":
		c.Print("to blame: %v\n", culprit)
	default:
		c.Print("to blame: %v, without any rewrite before\n", fgraph.Reason{Pass: found.Failure.Pass, Rule: found.Failure.Rule})
	}
	if node := cmp.Or(culprit.Node, found.Failure.Node); node != "" {
		c.Print("at: %s\n", node)
	}
}
