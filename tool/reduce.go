package tool

import (
	"context"
	"flag"
	"path/filepath"
	"strings"
	"time"

	"github.com/nnopt/nnopt/tool/repro"
)

func reduceVerb() Verb {
	return Verb{
		Name:     "reduce",
		Args:     "FILE",
		Synopsis: "make a reproducer as small as possible",
		Detail: `
FILE is a reproducer, see "$0 help reproduce". Reduce leaves out outputs and applies, makes inputs of what is computed, makes values
smaller and shortens the query, as long as the case fails in the same way: the same kind of failure in the same pass and rule.`,
		Examples: `
$0 reduce --output=small.graph $0-failure-1.graph`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			output := outputFlag(fs, "reduced")
			var opts repro.ReduceOptions
			fs.IntVar(&opts.Runs, "runs", 5000, "Run the optimizer at most this many times")
			fs.DurationVar(&opts.Time, "time", 10*time.Minute, "Stop looking for smaller cases after this time")
			return onCase(func(ctx context.Context, c *Console, cas *repro.Case, file string) error {
				last := 0
				opts.Progress = func(p repro.Progress) {
					if p.Applies != last {
						c.Say("%d runs: %d applies, %d inputs, %d outputs", p.Runs, p.Applies, p.Inputs, p.Outputs)
					}
					last = p.Applies
				}
				small, err := repro.Reduce(ctx, cas, opts)
				if err != nil {
					return err
				}
				name, err := output.write(ctx, c.cfg, small, file)
				if err != nil {
					return err
				}
				c.Say("%v", small.Failure)
				c.Say("%d applies instead of %d, query %v, in %s", small.Graph.NumApplies(), cas.Graph.NumApplies(), small.Query, name)
				return nil
			})
		},
	}
}

// caseOutput is the flag for the file that a case is written to.
type caseOutput struct{ name, part string }

// outputFlag declares --output and -o. The default is the name of the input with a part inserted.
func outputFlag(fs *flag.FlagSet, part string) *caseOutput {
	o := &caseOutput{part: part}
	fs.StringVar(&o.name, "output", "", "Output file; the default is FILE with ."+part+" before its extension")
	fs.StringVar(&o.name, "o", "", "Short for --output")
	return o
}

// write writes a case that was made of a file.
func (o *caseOutput) write(ctx context.Context, cfg *Config, cas *repro.Case, from string) (name string, err error) {
	if name = o.name; name == "" {
		ext := filepath.Ext(from)
		name = strings.TrimSuffix(from, ext) + "." + o.part + ext
	}
	if filepath.Dir(name) != filepath.Dir(from) {
		if err := cfg.relocate(cas, from); err != nil {
			return "", err
		}
	}
	return name, writeCase(ctx, cas, name)
}
