package tool

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

func ruleVerb() Verb {
	return Verb{
		Name:     "rule",
		Args:     "check 'PATTERN => PATTERN'... | find",
		Synopsis: "check rewrite rules, or find them: fire them and compare what they replace",
		Detail: `
Makes graphs that a rule matches, with inputs of several types, lets the rule fire, and computes both sides of many values. A line a rule
says what it found:

  exact, rounding   both sides are equal, to the bit or up to rounding
  overflow          they differ where an integer wraps around or a float becomes infinite
  unsafe_nan        they differ where something is NaN or infinite, perhaps because something is zero
  type              the replacement computes in a less exact type, or can't be given the type of what it replaces
  wrong             they differ elsewhere
  never_fires       a rewrite of the rule never fired, or nothing that it replaces can be computed

A rule promises exact or rounding; the tags unsafe_nan and overflow permit those. The exit status is 0 if every rule is what its tags
promise, 1 if not, and 2 if a rule does not parse. A counterexample has the types and the values of
inputs, and both sides.

--file reads a file of rules, or of lines PATTERN => PATTERN. --all checks the rules of the database, and finds rules of one
group that undo each other.
` + FindDetail,
		Examples: `
$0 rule check --all
$0 rule check --file=my.rules`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			f := &ruleFlags{cfg: cfg}
			fs.StringVar(&f.vars, "vars", "", "Types of the names of patterns, such as \"x: float32 matrix; n: int64 scalar\"")
			fs.StringVar(&f.file, "file", "", "Check the rules of this file")
			fs.BoolVar(&f.all, "all", false, "Check the rules of the database")
			fs.StringVar(&f.dialect, "dialect", "", "The dialect of the rules, where several have ops of the same names: "+strings.Join(cfg.checkableNames(), ", "))
			fs.BoolVar(&f.asJSON, "json", false, "Print a JSON object a line, for each rule")
			fs.Uint64Var(&f.options.Seed, "srand", 0, "Seed of the choice of expressions and values")
			f.search.declare(fs)
			return f.run
		},
	}
}

// ruleFlags are the flags of rule.
type ruleFlags struct {
	cfg         *Config
	vars, file  string
	dialect     string
	all, asJSON bool
	options     rulecheck.Options
	search      findFlags
}

// errRules says that a rule is not what it promises.
var errRules = errors.New("not every rule is what its tags promise")

// run runs the verb.
func (f *ruleFlags) run(ctx context.Context, c *Console, args []string) error {
	if len(args) == 0 || args[0] != "check" && args[0] != "find" {
		return Usagef("\"rule check\" or \"rule find\" expected")
	}
	if err := f.restrict(); err != nil {
		return err
	}
	if args[0] == "find" {
		if err := WantArgs(args, 1, 1, ""); err != nil {
			return err
		}
		if err := c.InVainIf(true, "for rule find", "file", "all", "json"); err != nil {
			return err
		}
		return f.find(ctx, c)
	}
	if err := c.InVainIf(true, "for rule check", findNames...); err != nil {
		return err
	}
	found, err := f.check(ctx, args[1:])
	if err != nil {
		return err
	}
	return f.print(c, found)
}

// checkedRules are rules and what the machine found about them.
type checkedRules struct {
	entries []rulecheck.Entry
	reports []rulecheck.Report
	undone  []rulecheck.Undone
}

// check checks rules, and those that the flags name. Those of one dialect are checked together.
func (f *ruleFlags) check(ctx context.Context, texts []string) (*checkedRules, error) {
	parts, err := f.entries(texts)
	if err != nil {
		return nil, err
	}
	found := new(checkedRules)
	for _, p := range parts {
		// Types are those of names in rules that are given, which come first.
		types := f.vars
		if f.all && p != parts[0] {
			types = ""
		}
		domain, err := p.dialect.Domain(types)
		if err != nil {
			return nil, err
		}
		reports, undone, err := rulecheck.CheckDatabase(ctx, domain, p.entries, f.options)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, Usagef("%w", err)
		}
		found.entries, found.reports, found.undone = append(found.entries, p.entries...), append(found.reports, reports...), append(found.undone, undone...)
	}
	return found, nil
}

// A dialectRules are rules for graphs of one dialect.
type dialectRules struct {
	dialect *Dialect
	entries []rulecheck.Entry
}

// entries returns the rules to check.
func (f *ruleFlags) entries(texts []string) ([]*dialectRules, error) {
	file := strings.Join(texts, "\n")
	if f.file != "" {
		text, err := fileio.ReadFile(f.file, fileio.MaxText)
		if err != nil {
			return nil, err
		}
		file = string(text) + "\n" + file
	}
	rules, err := rulecheck.ParseFile(cmp.Or(f.file, "argument"), file)
	if err != nil {
		return nil, Usagef("%w", err)
	}
	db, err := f.cfg.Database()
	if err != nil {
		return nil, err
	}
	list := db.Outline()
	var parts []*dialectRules
	of := func(d *Dialect) *dialectRules {
		for _, p := range parts {
			if p.dialect == d {
				return p
			}
		}
		parts = append(parts, &dialectRules{dialect: d})
		return parts[len(parts)-1]
	}
	for _, r := range rules {
		d, s, err := f.cfg.compile(r)
		if err != nil {
			return nil, Usagef("%w", err)
		}
		p := of(d)
		p.entries = append(p.entries, rulecheck.Entry{Rule: s, Groups: replacing(list, r.Groups), Tags: r.Tags})
	}
	if f.all {
		list = db.Entries()
		for _, d := range f.cfg.checkable() {
			if d.Rules != nil {
				p := of(d)
				p.entries = append(p.entries, d.Rules(f.cfg, list)...)
			} else if rules := f.cfg.TextRules(d, list, nil); len(rules) > 0 {
				p := of(d)
				p.entries = append(p.entries, rules...)
			}
		}
	}
	if len(parts) == 0 {
		return nil, Usagef("a rule, --file or --all expected")
	}
	return parts, nil
}

// checkable returns the dialects whose rules can be checked, the last one first: as with files, a
// dialect that comes later takes what has no mark of another.
func (cfg *Config) checkable() []*Dialect {
	var list []*Dialect
	for _, d := range slices.Backward(cfg.Dialects) {
		if d.Domain != nil && d.Vocabulary != nil {
			list = append(list, d)
		}
	}
	return list
}

func (cfg *Config) checkableNames() []string {
	return lists.Map(cfg.checkable(), func(d *Dialect) string { return d.Name })
}

// restrict leaves the dialect that a flag names.
func (f *ruleFlags) restrict() error {
	if f.dialect == "" {
		return nil
	}
	names := f.cfg.checkableNames()
	if !slices.Contains(names, f.dialect) {
		return Usagef("--dialect=%s: the rules that can be checked are of %s", fileio.Excerpt(f.dialect, 0), strings.Join(names, ", "))
	}
	cfg := *f.cfg
	cfg.Dialects = slices.DeleteFunc(slices.Clone(cfg.Dialects), func(d *Dialect) bool { return d.Name != f.dialect })
	f.cfg = &cfg
	return nil
}

// compile compiles a rule in the vocabulary of the first dialect that knows its names. The error is
// that of the first one.
func (cfg *Config) compile(r pattern.Rule) (*Dialect, *pattern.Substitution, error) {
	first := errors.New("no dialect says how its values are drawn and compared, so rules can be fired, not checked")
	for i, d := range cfg.checkable() {
		s, err := pattern.New(d.Vocabulary(), r, pattern.Shared())
		if err == nil {
			return d, s, nil
		}
		if i == 0 {
			first = err
		}
	}
	return nil, nil, first
}

// TextRules returns the rules among the entries of a database that are text for graphs of a dialect,
// except for those to skip; skip may be nil.
func (cfg *Config) TextRules(d *Dialect, list []optdb.Listing, skip func(name string) bool) []rulecheck.Entry {
	var entries []rulecheck.Entry
	for _, l := range cfg.listRules(list) {
		if skip != nil && skip(l.Name) || l.dialect != "" && l.dialect != d.Name || len(l.Cases) == 0 {
			continue
		}
		if s := l.compiled(d); s != nil {
			entries = append(entries, rulecheck.Entry{Rule: s, Groups: replacing(list, l.Groups), Tags: l.Tags})
		}
	}
	return entries
}

// replacing returns the groups whose rules replace, and may undo each other for ever: all but those
// of saturation. list has the entries of the database.
func replacing(list []optdb.Listing, groups []string) []string {
	if len(groups) == 0 {
		return nil
	}
	var keeping []string
	for _, l := range list {
		if l.Database && l.Class == profile.ClassSaturation {
			keeping = append(keeping, l.Name)
		}
	}
	return slices.DeleteFunc(slices.Clone(groups), func(name string) bool { return slices.Contains(keeping, name) })
}

// compiled returns a rule in the vocabulary of a dialect, or nil if it is none.
func (l *listedRule) compiled(d *Dialect) *pattern.Substitution {
	r := pattern.Rule{Name: l.Name, Doc: l.Doc, Groups: l.Groups, Tags: l.Tags}
	for _, text := range l.Cases {
		w, err := pattern.ParseRewrite(text)
		if err != nil {
			return nil
		}
		r.Cases = append(r.Cases, w)
	}
	s, err := pattern.New(d.Vocabulary(), r, pattern.Shared())
	if err != nil {
		return nil
	}
	return s
}

// print prints the reports.
func (f *ruleFlags) print(c *Console, found *checkedRules) error {
	kept := 0
	for _, r := range found.reports {
		if r.Kept {
			kept++
		}
		if f.asJSON {
			if err := WriteJSON(c.Stdout, r); err != nil {
				return err
			}
			continue
		}
		mark := "  "
		if !r.Kept {
			mark = "! "
		}
		c.Print("%s%-11s %s\n", mark, r.Class, r.Name)
		if r.Counterexample != "" {
			c.Print("    %s\n", r.Counterexample)
		}
	}
	for _, u := range found.undone {
		c.Say("%s: %s and %s undo each other: %s, %s", u.Group, u.First, u.Second, u.Before, u.After)
	}
	c.Say("%d of %d rules are what their tags promise", kept, len(found.reports))
	if kept < len(found.reports) {
		return errRules
	}
	return nil
}
