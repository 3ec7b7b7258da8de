package tool

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
)

// DefaultQuery is the default of --query.
const DefaultQuery = "+fast_run"

// optimizationPrefix begins the flags that switch off single passes.
const optimizationPrefix = "optimization."

// A Selection is what the flags that select passes say.
type Selection struct {
	db       *optdb.SequenceDB
	fault    error         // of making the database, for Build: flags are declared before anything can fail
	flags    *flag.FlagSet // nil if they are not declared
	query    string
	switches []Switches // of the dialects
	excluded []string
	complete func(optdb.Query) optdb.Query // see Completing
	added    AddedRules
	vocab    pattern.Vocabulary // of the rules
	built    struct {           // what Build returned
		query string
		opt   *optdb.Optimizer
	}
}

// Switches are flags of a dialect that select passes, besides --query.
type Switches interface {
	// Query returns a query with what the flags say.
	Query(q optdb.Query) optdb.Query
	// Check returns an error for flags that change nothing in the optimizer of the query.
	Check(q optdb.Query, opt *optdb.Optimizer) error
	// Off reports whether they switch off the optimizer as a whole.
	Off() bool
}

// newSelection returns the flags of a query, without declaring them.
func newSelection(cfg *Config, query string) *Selection {
	f := &Selection{query: query}
	if f.db, f.fault = cfg.Database(); f.fault != nil {
		f.db = optdb.NewSequenceDB("empty")
	}
	if len(cfg.Dialects) > 0 {
		f.vocab = cfg.Dialects[0].vocabulary()
	}
	return f
}

// DeclareSelection declares --query and --pipeline, the flags of dialects that select passes, those
// that add rules, and a flag for each pass: --optimization.merge1=false leaves out the entry merge1.
func DeclareSelection(cfg *Config, fs *flag.FlagSet) *Selection {
	f := declareSelection(cfg, fs)
	f.added.declare(cfg, fs)
	return f
}

// queryUsage says what --query takes.
const queryUsage = "Select passes by terms +tag, -tag, &tag, ~tag, or by a mode: fast_run, fast_compile, debug (fast_run with checks), none; \"$0 passes\" lists the tags"

// declareSelection is DeclareSelection without flags that add rules.
func declareSelection(cfg *Config, fs *flag.FlagSet) *Selection {
	f := newSelection(cfg, DefaultQuery)
	f.flags = fs
	declareQuery(fs, &f.query, &f.added)
	for _, d := range cfg.Dialects {
		if d.Switches != nil {
			f.switches = append(f.switches, d.Switches(fs, optimizationPrefix))
		}
	}
	for _, entry := range f.db.Names() {
		name := optimizationPrefix + strings.ReplaceAll(entry, "_", "-")
		if fs.Lookup(name) != nil {
			continue
		}
		fs.BoolFunc(name, "Run the pass "+entry, func(value string) error {
			on, err := strconv.ParseBool(value)
			if err == nil && !on {
				f.excluded = append(f.excluded, entry)
			}
			return err
		})
	}
	return f
}

// DeclarePasses declares the flags by which verbs select passes, and returns a function that reads
// them once they are parsed: the query that they amount to, and its optimizer. It leaves out flags
// that add rules, because a query can't name those.
func DeclarePasses(cfg *Config, fs *flag.FlagSet) func() (query string, opt *optdb.Optimizer, err error) {
	return declareSelection(cfg, fs).Build
}

// declareQuery declares --query and --pipeline, which lists passes in place of a query. Files of rules that the
// query names in settings are added to added.
func declareQuery(fs *flag.FlagSet, query *string, added *AddedRules) {
	by := ""
	claim := func(name string) error {
		if by != "" && by != name {
			return fmt.Errorf("--%s selects passes already", by)
		}
		by = name
		return nil
	}
	fs.Func("query", queryUsage, func(text string) (err error) {
		if *query, err = queryText(text); err == nil {
			*query, err = added.ofQuery(*query)
		}
		return cmp.Or(err, claim("query"))
	})
	fs.Lookup("query").DefValue = *query
	fs.Func("pipeline", "Run these passes in this order, in place of --query: names separated by commas, settings in braces, the entries of a database in parentheses; \"$0 passes --as-pipeline\" prints an example", func(text string) error {
		if err := claim("pipeline"); err != nil {
			return err
		}
		q, err := optdb.ParsePipeline(text)
		*query = q.String()
		return err
	})
}

// queryText returns the query that the value of a flag means: the text itself, or for @FILE what is
// written in that file, see [optdb.ParseQueryFile]. An error of a file names the line.
func queryText(text string) (string, error) {
	name, ok := strings.CutPrefix(text, "@")
	if !ok {
		return text, nil
	}
	data, err := fileio.ReadFile(name, fileio.MaxText)
	if err != nil {
		return "", err
	}
	q, err := optdb.ParseQueryFile(name, string(data))
	return q.String(), err
}

// queryFlag declares a flag for a query that has no default.
func queryFlag(fs *flag.FlagSet, query *string, usage string) {
	fs.Func("query", usage+"; @FILE reads them from a file", func(text string) (err error) {
		*query, err = queryText(text)
		return err
	})
}

// Build returns the optimizer, and the query as text, without the rules of --rule.
func (f *Selection) Build() (string, *optdb.Optimizer, error) {
	if f.built.opt != nil { // the rules of the flags are in the database
		return f.built.query, f.built.opt, nil
	}
	query, opt, err := f.buildAnew()
	if err == nil {
		f.built.query, f.built.opt = query, opt
	}
	return query, opt, err
}

// BuildFor is Build with rules in a vocabulary.
func (f *Selection) BuildFor(v pattern.Vocabulary) (string, *optdb.Optimizer, error) {
	f.vocab = v
	return f.Build()
}

func (f *Selection) buildAnew() (string, *optdb.Optimizer, error) {
	if f.fault != nil {
		return "", nil, f.fault
	}
	q, err := optdb.ParseQuery(f.query)
	if err != nil {
		return "", nil, Usagef("%w", err)
	}
	// The query is put together in the order of precedence: what the user typed, what the dialect
	// avoids, passes that flags leave out, the switches of dialects. Rules of flags join the database
	// last, because a query that is printed can't name them.
	typed := q
	if f.complete != nil {
		q = f.complete(q)
	}
	if q, err = f.leaveOut(q, f.excluded); err != nil {
		return "", nil, err
	}
	asked := q
	for _, s := range f.switches {
		asked = s.Query(asked)
	}
	full, err := f.added.Join(f.db, f.vocab, asked)
	if err != nil {
		return "", nil, err
	}
	opt, err := f.db.Build(full)
	if err != nil {
		return "", nil, Usagef("%w", err)
	}
	for _, s := range f.switches {
		if err := s.Check(q, opt); err != nil {
			return "", nil, err
		}
	}
	if err := f.checkOn(opt); err != nil {
		return "", nil, err
	}
	// The query as typed is what reports show, if nothing has changed it.
	if asked.Equal(typed) {
		return f.query, opt, nil
	}
	return asked.String(), opt, nil
}

// Optimizer returns the optimizer of a query, which may name the rules that the flags add.
func (f *Selection) Optimizer(q optdb.Query) (*optdb.Optimizer, error) { return f.db.Build(q) }

// Completing sets what a query that was typed stands for, see [Dialect.Query]. Reports show the query that
// this returns.
func (f *Selection) Completing(complete func(optdb.Query) optdb.Query) { f.complete = complete }

// Tell says what Build has made of a query that was typed, where no report shows it.
func (f *Selection) Tell(c *Console) {
	if c.InVain("", "query") != nil && f.built.query != f.query {
		c.Say("the query is %s", f.built.query)
	}
}

// leaveOut returns a query without entries of these names or tags.
func (f *Selection) leaveOut(q optdb.Query, names []string) (optdb.Query, error) {
	for _, name := range names {
		var err error
		if q, err = optdb.ParseQuery(q.String() + " -" + name); err != nil { // unlike Excluding, it keeps settings, which are a mistake
			return q, Usagef("%w", err)
		}
	}
	return q, nil
}

// checkOn returns an error for a flag that asks for a pass which is not selected.
func (f *Selection) checkOn(opt *optdb.Optimizer) (err error) {
	if f.flags == nil || slices.ContainsFunc(f.switches, Switches.Off) {
		return nil
	}
	f.flags.Visit(func(g *flag.Flag) {
		name, ok := strings.CutPrefix(g.Name, optimizationPrefix)
		entry := strings.ReplaceAll(name, "-", "_")
		if ok && opt.Has(entry) && !opt.Selected(entry) && !slices.Contains(f.excluded, entry) && g.Value.String() != "false" {
			err = Usagef("--%s: %s", g.Name, opt.Explain(entry))
		}
	})
	return err
}

// Added returns the rules that flags add to the database.
func (f *Selection) Added() *AddedRules { return &f.added }

// WriteJSON writes a value as one line.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
