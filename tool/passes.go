package tool

import (
	"context"
	"flag"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

func passesVerb() verb {
	return verb{
		name:     "passes",
		args:     "[DIR...]",
		synopsis: "list the database of passes, or the passes that a query selects",
		detail: `
Lists all entries of the database in the order in which they run, with positions and tags; with --query, those that the query selects.
--explain says why a pass is selected or not. --rules lists the local rules alone: name, groups and tags, what the machine of "nnopt rule
check" found about it, a sentence, and the rule itself if it is text, or else why it is a Go function.

A query is a list of terms separated by spaces: +tag includes, -tag excludes, &tag requires, db(...) is a subquery for a nested
database, <49 keeps entries before a position. The name of a pass is one of its tags, and also opens the databases around the pass;
other tags do not reach into a database that lacks them. A query may begin with a mode: fast_run, fast_compile, debug or none.

With --ablation the arguments are folders of reference cases. They run without each of the passes for networks in turn; the result is
the tables of docs/nnet3-passes.md.`,
		setup: func(fs *flag.FlagSet) action {
			query := fs.String("query", "", "List the passes that this query selects")
			explain := fs.String("explain", "", "Say why this pass is selected or not, by --query or else by "+defaultQuery)
			asJSON := fs.Bool("json", false, "Print a JSON array")
			rules := fs.Bool("rules", false, "List rules, as text where they are text")
			ablation := fs.Bool("ablation", false, "Print in Markdown the passes for networks, and the effect of leaving out each one on the reference cases in DIR...")
			return func(ctx context.Context, c *console, args []string) error {
				if *ablation {
					return printAblation(ctx, c, args)
				}
				if err := wantArgs(args, 0, 0, "the flags"); err != nil {
					return err
				}
				if *explain != "" {
					return explainPass(c, *query, *explain)
				}
				list, err := listPasses(*query)
				if err != nil {
					return err
				}
				if *rules {
					return printRules(c, list, *asJSON)
				}
				if *asJSON {
					return writeJSON(c.stdout, list)
				}
				printPasses(c, list)
				return nil
			}
		},
	}
}

// listPasses lists the entries that a query selects, or all.
func listPasses(query string) ([]optdb.Listing, error) {
	db := passes.Default()
	if query == "" {
		return db.Entries(), db.Check()
	}
	_, opt, err := (&passFlags{query: query, kaldi: passes.DefaultOptimizeOptions()}).build()
	if err != nil {
		return nil, err
	}
	return append([]optdb.Listing{}, opt.Entries()...), nil
}

// explainPass says why a pass is selected or not.
func explainPass(c *console, query, name string) error {
	if query == "" {
		query = defaultQuery
	}
	_, opt, err := (&passFlags{query: query, kaldi: passes.DefaultOptimizeOptions()}).build()
	if err != nil {
		return err
	}
	known := false
	for _, l := range passes.Default().Entries() {
		known = known || l.Name == name || l.Path == name
	}
	if !known {
		return usagef("%s", opt.Explain(name))
	}
	c.print("%s\n", opt.Explain(name))
	return nil
}

// printPasses prints entries as an indented table.
func printPasses(c *console, list []optdb.Listing) {
	width := 0
	name := func(l *optdb.Listing) string { return strings.Repeat("  ", l.Depth) + l.Name }
	for i := range list {
		width = max(width, len(name(&list[i])))
	}
	for i := range list {
		l := &list[i]
		position := ""
		if l.Placed {
			position = strconv.FormatFloat(l.Position, 'g', -1, 64)
		}
		c.print("%6s  %-*s  %s", position, width, name(l), l.Doc)
		if len(l.Tags) > 0 {
			c.print("  [%s]", strings.Join(l.Tags, " "))
		}
		c.print("\n")
	}
	if len(list) == 0 {
		c.say("nothing is selected")
	}
}
