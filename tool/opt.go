package tool

import (
	"context"
	"flag"
	"fmt"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool/repro"
)

func optVerb() Verb {
	return Verb{
		Name:     "opt",
		Args:     "FILE",
		Synopsis: "optimize a graph file, print the result",
		Detail: `
FILE is a graph file, as "$0 graph" prints it, "-" standard input. The result is also a graph file. A file with a field "network" is a
graph of that network, a file beside it; any other is a graph of tensors. The passes are those of --query or, without it, of the
field "query".`,
		Examples: `
$0 opt --query=+canonicalize my.graph
$0 opt --every my.graph`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			flags := declarePasses(cfg, fs)
			watch := declareWatch(fs)
			steps := declareSteps(fs)
			withProfile := fs.Bool("profile", false, "Print what the optimizer did and what it cost, to standard error")
			return taking(1, 1, "FILE", func(ctx context.Context, c *Console, args []string) error {
				if err := steps.check(); err != nil {
					return err
				}
				s, err := readSubject(cfg, c, args[0], flags)
				if err != nil {
					return err
				}
				var rec *profile.Recorder
				if *withProfile {
					rec = profile.New(s.opt.Name(), s.opt.Class())
				}
				if err := steps.run(ctx, c, s, watch, rec); err != nil {
					return err
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

// readSubject reads a file of graphs, and the network that it names. The query of the file counts
// unless a flag selects passes.
func readSubject(cfg *Config, c *Console, name string, flags *passFlags) (*subject, error) {
	text, head, err := readText(c, name)
	if err != nil {
		return nil, err
	}
	d := cfg.dialectOf(head)
	world, err := d.open(c, name, head)
	if err != nil {
		return nil, err
	}
	f, err := graphfile.Parse(name, text, world.Dialect())
	if err != nil {
		return nil, err
	}
	if query := f.Field(fieldQuery); query != "" && c.inVain("", "query", "pipeline") == nil {
		flags.query = query
	}
	flags.vocab = d.vocabulary()
	_, opt, err := flags.build()
	if err != nil {
		return nil, err
	}
	s := &subject{file: *f, dialect: world.Dialect(), opt: opt}
	s.file.Remove(fieldQuery) // it will be done
	s.failed = func(ctx context.Context, err error, segment int) error {
		// The optimizer has changed the graph by now, so the text is parsed once more.
		again, fault := graphfile.Parse(name, text, world.Dialect())
		if fault != nil {
			return fmt.Errorf("%w\n(there is no reproducer: %v)", err, fault)
		}
		cas := &repro.Case{World: world, Build: flags.db.Build, Query: opt.Query(), Graph: again.Graphs()[segment]}
		for _, field := range d.fields {
			setNote(cas, field, head.Field(field))
		}
		flags.added.note(cas)
		return reproducing(ctx, c, err, cas)
	}
	return s, nil
}

// fieldQuery has the passes that opt runs without --query.
const fieldQuery = "query"
