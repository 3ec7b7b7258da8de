package tool_test

import (
	"context"
	"flag"
	"os"

	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/standard"
)

// A verb of one's own selects passes by the flags that all verbs have.
func ExampleDeclarePasses() {
	count := tool.Verb{
		Name:     "count",
		Synopsis: "count the passes of a query",
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			selected := tool.DeclarePasses(cfg, fs)
			return func(_ context.Context, c *tool.Console, _ []string) error {
				query, opt, err := selected()
				if err != nil {
					return err
				}
				c.Print("%s selects %d entries\n", query, len(opt.Entries()))
				return nil
			}
		},
	}
	cfg := standard.Program{Name: "other", Verbs: []tool.Verb{count}}.Config()
	cfg.Run(context.Background(), []string{"count", "--query", "+merge1"}, nil, os.Stdout, os.Stderr)
	cfg.Run(context.Background(), []string{"count", "--query", "+merge1", "--optimization.merge1=false"}, nil, os.Stdout, os.Stderr)
	// Output:
	// +merge1 selects 1 entries
	// +merge1 -merge1 selects 0 entries
}
