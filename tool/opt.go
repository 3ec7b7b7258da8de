package tool

import (
	"context"
	"flag"

	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool/repro"
)

// DeclareDraws declares --draws, for verbs that compare values in the mode for debugging.
func DeclareDraws(fs *flag.FlagSet) *repro.Draws {
	d := new(repro.Draws)
	fs.IntVar(&d.Most, "draws", 0, "With --query=debug, compare values for this many random inputs; 0 for what is usual for such graphs, within a second")
	return d
}

func optVerb() Verb {
	return Verb{
		Name:     "opt",
		Args:     "FILE",
		Synopsis: "optimize a graph file, print the result",
		Detail: `
FILE is a graph file, as "$0 graph" prints it, "-" standard input. The result is also a graph file. The passes are those of --query or,
without it, of the field "query". With --query=debug, the values of the graph and of the result are compared for random inputs, or for
all if there are few; a rewrite that changes them is an error.`,
		Examples: `
$0 opt --query=fast_compile my.graph
$0 opt --every my.graph`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			flags := DeclareSelection(cfg, fs)
			watch := DeclareWatch(fs)
			steps := declareSteps(fs)
			var seed uint64
			fs.Uint64Var(&seed, "srand", 0, "With --query=debug, the seed of the first random inputs, in place of the field \"seed\"")
			draws := DeclareDraws(fs)
			output := fs.String("output", "", "Write the result to this file, in the form that such graphs have outside, and print nothing")
			withProfile := fs.Bool("profile", false, "Print what the optimizer did and what it cost, to standard error")
			return Taking(1, 1, "FILE", func(ctx context.Context, c *Console, args []string) error {
				if err := steps.check(); err != nil {
					return err
				}
				s, err := readSubject(cfg, c, args[0], flags)
				if err != nil {
					return err
				}
				if *output != "" && s.Write == nil {
					return Usagef("--output: there is no form for these graphs but a graph file, which is printed")
				}
				if err := c.InVainIf(!s.Optimizer.Debugging(), "without --query=debug", "srand", "draws"); err != nil {
					return err
				}
				var own *uint64 // seed
				if c.InVain("", "srand") != nil {
					own = &seed
				}
				var rec *profile.Recorder
				if *withProfile {
					rec = profile.New(s.Optimizer.Name(), s.Optimizer.Class())
				}
				// In debug mode values decide as well as structure. They are compared first, since the
				// result of a wrong rewrite is not to be printed.
				for i := range s.File.Graphs() {
					if s.Optimizer.Debugging() {
						if err := s.compare(ctx, i, own, *draws); err != nil {
							return err
						}
					}
				}
				run := steps.run
				if *output != "" {
					run = steps.optimize
				}
				if err := run(ctx, c, s, watch, rec); err != nil {
					return err
				}
				if *output != "" {
					if err := s.Write(ctx, s.World, s.File.Graph, *output); err != nil {
						return err
					}
				}
				if rec == nil {
					return nil
				}
				rec.End()
				return rec.Record().WriteText(c.Stderr)
			})
		},
	}
}
