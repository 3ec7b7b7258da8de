package tool

import (
	"cmp"
	"context"
	"flag"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/optdb"
)

// PassesVerb is the verb passes. A dialect may bring one with more flags in its place.
func PassesVerb() Verb {
	return Verb{
		Name:     "passes",
		Synopsis: "list the database of passes, or the passes that a query selects",
		Detail: `
Lists all entries of the database in the order in which they run, with positions and tags; with --query, those that the query selects.
Graphs of some dialects avoid tags unless the query names them or the pass; --dialect takes the query as verbs do for such graphs.
--explain says why a pass is selected or not. --rules lists the local rules alone: name, groups and tags, what the machine of "$0 rule
check" found about it, a sentence, and the rule itself if it is text, or else why it is a Go function.

A query is a list of terms separated by spaces: +tag includes, -tag excludes, &tag requires, ~tag excludes what the query does not name:
neither the pass nor, by + or &, the tag; db(...) is a subquery for a nested database, <49 keeps entries before a position. The name of a pass is one of its tags, and also opens the databases around the pass;
other tags do not reach into a database that lacks them. A query may begin with a mode: fast_run, fast_compile, debug or none. Terms such
as canonicalize{max-use=8} change settings, and a list in brackets, [useless, canonicalize], is a pipeline: what it lists runs in that
order, regardless of tags. @FILE in place of a query reads it from a file: terms on any number of lines, and comments from # to the end
of a line; "$0 tune" writes such files.`,
		Examples: `
$0 passes --query='+fast_run -inplace'
$0 passes --explain=merge3
$0 passes --rules`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			f := &passesFlags{cfg: cfg}
			queryFlag(fs, &f.query, "List the passes that this query selects by its terms")
			fs.StringVar(&f.dialect, "dialect", "", "Take the query as verbs do for graphs of this dialect")
			explain := fs.String("explain", "", "Say why this pass is selected or not, by --query or else by "+DefaultQuery)
			asPipeline := fs.Bool("as-pipeline", false, "Print what --query, or else "+DefaultQuery+", selects in the form that --pipeline takes")
			asJSON := fs.Bool("json", false, "Print a JSON array")
			rules := fs.Bool("rules", false, "List rules, as text where they are text")
			return func(_ context.Context, c *Console, args []string) error {
				if err := c.Apart("as-pipeline", "explain", "rules"); err != nil {
					return err
				}
				if err := WantArgs(args, 0, 0, "the flags"); err != nil {
					return err
				}
				if err := c.InVainIf(*asPipeline || *explain != "", "beside --as-pipeline and --explain", "json"); err != nil {
					return err
				}
				if *asPipeline {
					_, opt, err := f.build()
					if err != nil {
						return err
					}
					c.Print("%s\n", opt.Pipeline())
					f.tell(c, opt, (*optdb.Optimizer).Pipeline)
					return nil
				}
				if *explain != "" {
					return f.explain(c, *explain)
				}
				list, err := f.list(c, *rules || *asJSON)
				switch {
				case err != nil:
					return err
				case *rules:
					return printRules(c, cfg, list, *asJSON)
				case *asJSON:
					return WriteJSON(c.Stdout, list)
				}
				printPasses(c, list)
				return nil
			}
		},
	}
}

// passesFlags are the flags that say which passes are listed.
type passesFlags struct {
	cfg            *Config
	query, dialect string
}

// build returns the selection of the flags and its optimizer.
func (f *passesFlags) build() (*Selection, *optdb.Optimizer, error) {
	s := newSelection(f.cfg, cmp.Or(f.query, DefaultQuery))
	if f.dialect != "" {
		i := slices.IndexFunc(f.cfg.Dialects, func(d *Dialect) bool { return d.Name == f.dialect })
		if i < 0 {
			names := lists.Map(f.cfg.Dialects, func(d *Dialect) string { return d.Name })
			return nil, nil, Usagef("--dialect: there is no dialect %s, only %s", fileio.Excerpt(f.dialect, 0), strings.Join(names, ", "))
		}
		s.Completing(f.cfg.Dialects[i].Query)
	}
	_, opt, err := s.Build()
	return s, opt, err
}

// list lists the entries that a query selects, or all. Only a full list has the cases of rules.
func (f *passesFlags) list(c *Console, full bool) ([]optdb.Listing, error) {
	var from lister
	if f.query == "" && f.dialect == "" {
		db, err := f.cfg.Database()
		if err == nil {
			err = db.Check()
		}
		if err != nil {
			return nil, err
		}
		from = db
	} else {
		_, opt, err := f.build()
		if err != nil {
			return nil, err
		}
		f.tell(c, opt, (*optdb.Optimizer).Pipeline)
		from = opt
	}
	if full {
		return append([]optdb.Listing{}, from.Entries()...), nil
	}
	return from.Outline(), nil
}

// tell says for which dialects the query is another one, if that changes what is shown.
func (f *passesFlags) tell(c *Console, opt *optdb.Optimizer, shown func(*optdb.Optimizer) string) {
	if f.dialect != "" {
		return
	}
	db, err := f.cfg.Database()
	if err != nil {
		return // which whoever builds the optimizer says
	}
	for _, d := range f.cfg.Dialects {
		if d.Query == nil {
			continue
		}
		other, err := db.Build(d.Query(opt.Query()))
		if err != nil { // the database has no such tags
			continue
		}
		if shown(opt) != shown(other) {
			c.Say("for graphs of %s the query is %v, see --dialect=%s", d.Name, other.Query(), d.Name)
		}
	}
}

// A lister is a database or an optimizer.
type lister interface {
	Entries() []optdb.Listing
	Outline() []optdb.Listing
}

// explain says why a pass is selected or not.
func (f *passesFlags) explain(c *Console, name string) error {
	s, opt, err := f.build()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(s.db.Outline(), func(l optdb.Listing) bool { return l.Name == name || l.Path == name }) {
		return Usagef("%s", opt.Explain(name))
	}
	c.Print("%s\n", opt.Explain(name))
	f.tell(c, opt, func(o *optdb.Optimizer) string { return o.Explain(name) })
	return nil
}

// printPasses prints entries as an indented table.
func printPasses(c *Console, list []optdb.Listing) {
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
		c.Print("%6s  %-*s  %s", position, width, name(l), l.Doc)
		if len(l.Tags) > 0 {
			c.Print("  [%s]", strings.Join(l.Tags, " "))
		}
		c.Print("\n")
	}
	if len(list) == 0 {
		c.Say("nothing is selected")
	}
}
