package tool

import (
	"context"
	"flag"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool/repro"
)

func reproduceVerb() Verb {
	return Verb{
		Name:     "reproduce",
		Args:     "FILE",
		Synopsis: "run a reproducer, and say whether it still fails",
		Detail: `
FILE is a reproducer: a graph with the query and the failure in its head, as other verbs write it when a pass fails or the values of
an optimized graph are wrong. It says how it fails: "error", "panic", "proposal" (of what can't be), "no-end", "damage" (to the
graph), "overwrite" (of what is read later), "declaration" (which an op does not keep), "run" (which the optimized graph does not),
or "values" (which differ); and in which pass and rule.

The exit status is 0 if it does not fail, 1 if it fails as FILE says, and 3 if it fails in another way.`,
		Examples: `
$0 reproduce --trace=all $0-failure-1.graph`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			watch := DeclareWatch(fs)
			var query string
			queryFlag(fs, &query, "Select passes by these terms in place of those in FILE")
			return onCase(func(ctx context.Context, c *Console, cas *repro.Case, _ string) (err error) {
				if query != "" {
					if cas.Query, err = c.cfg.typedFor(cas, query); err != nil {
						return err
					}
				}
				return reproduce(ctx, c, watch, cas)
			})
		},
	}
}

// typedFor returns the query that one that was typed for a case stands for.
func (cfg *Config) typedFor(cas *repro.Case, text string) (optdb.Query, error) {
	q, err := optdb.ParseQuery(text)
	if err != nil {
		return q, Usagef("%w", err)
	}
	d, err := cfg.dialectOf("the reproducer", &graphfile.File{Head: cas.Notes})
	if err == nil && d.Query != nil {
		q = d.Query(q)
	}
	return q, err
}

// reproduce runs a case.
func reproduce(ctx context.Context, c *Console, watch *Watch, cas *repro.Case) error {
	opt, err := cas.Build(cas.Query)
	if err != nil {
		return Usagef("%w", err)
	}
	flags := *watch
	if flags.Most >= 0 {
		cas.Budget, flags.Most = &watch.Most, -1
	}
	watched, done := flags.Start(ctx, c, opt)
	f, err := repro.Check(watched, cas)
	if told := done(); err == nil && told != nil {
		return told
	}
	switch want := cas.Failure; {
	case err != nil:
		return err
	case f.Kind == repro.None:
		c.Say("it does not fail")
		if f.Accepted != "" {
			c.Say("%s", f.Accepted)
		}
		return nil
	case want.Kind == repro.None:
		c.Say("it fails: %v: %v", f, f.Err)
		return ErrSilent
	case f.Same(want):
		c.Say("it still fails: %v: %v", f, f.Err)
		return ErrSilent
	default:
		c.Say("it fails in another way: %v instead of %v: %v", f, want, f.Err)
		return errOther
	}
}
