package tool

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tool/rulecheck"
)

func ruleVerb() Verb {
	return Verb{
		Name:     "rule",
		Args:     "check 'PATTERN => PATTERN'...",
		Synopsis: "check rewrite rules: fire them and compare what they replace",
		Detail: `
Makes expressions that a rule matches, with every element type, ranks from 0 to 3 and sizes from 0 on, lets the rule fire, and computes
both sides, also of NaN, infinities, zeros of both signs and the limits of each type. A line a rule says what it found:

  exact, rounding   both sides are equal, to the bit or up to rounding
  overflow          they differ where an integer wraps around or a float becomes infinite
  unsafe_nan        they differ where something is NaN, infinite or zero
  type              the replacement computes in a less exact type, or can't be given the type of what it replaces
  wrong             they differ elsewhere
  never_fires       a rewrite of the rule never fired

A rule promises exact or rounding; the tags unsafe_nan and overflow permit those. The exit status is 0 if every rule is what its tags
promise, 1 if not, and 2 if a rule does not parse. A counterexample has variables with types and values, as expr takes them in --vars
and --eval, and both sides.

--file reads a file of rules, or of lines PATTERN => PATTERN. --all checks the rules for tensors of the database, those that are Go
functions on the expressions of their tests, and finds rules of one group that undo each other. --vars gives types to the names of
patterns, such as "x: float32 matrix; n: int64 scalar"; "$0 help expr" explains them.`,
		Examples: `
$0 rule check '(neg (neg x)) => x'
$0 rule check --file=my.rules`,
		Setup: func(cfg *Config, fs *flag.FlagSet) Action {
			f := &ruleFlags{cfg: cfg}
			fs.StringVar(&f.vars, "vars", "", "Types of the names of patterns, such as \"x: float32 matrix; n: int64 scalar\"")
			fs.StringVar(&f.file, "file", "", "Check the rules of this file")
			fs.BoolVar(&f.all, "all", false, "Check the rules of the database")
			fs.BoolVar(&f.asJSON, "json", false, "Print a JSON object a line, for each rule")
			fs.Uint64Var(&f.options.Seed, "srand", 0, "Seed of the choice of expressions and values")
			return f.run
		},
	}
}

// ruleFlags are the flags of rule.
type ruleFlags struct {
	cfg         *Config
	vars, file  string
	all, asJSON bool
	options     rulecheck.Options
}

// errRules says that a rule is not what it promises.
var errRules = errors.New("not every rule is what its tags promise")

// run runs the verb.
func (f *ruleFlags) run(ctx context.Context, c *Console, args []string) error {
	if len(args) == 0 || args[0] != "check" {
		return Usagef("\"rule check\" expected")
	}
	_, reports, undone, err := f.check(ctx, args[1:])
	if err != nil {
		return err
	}
	return f.print(c, reports, undone)
}

// check checks rules, and those that the flags name.
func (f *ruleFlags) check(ctx context.Context, texts []string) ([]rulecheck.Entry, []rulecheck.Report, []rulecheck.Undone, error) {
	scope := f.cfg.Language.NewScope()
	if err := scope.Declare(f.vars); err != nil {
		return nil, nil, nil, Usagef("--vars: %v", err)
	}
	f.options.Language = f.cfg.Language
	f.options.Types = make(map[string]tensor.Type)
	for _, v := range scope.Inputs() {
		f.options.Types[v.Name()] = tensor.TypeOf(v)
	}
	entries, err := f.entries(texts)
	if err != nil {
		return nil, nil, nil, err
	}
	reports, undone, err := rulecheck.CheckDatabase(ctx, f.cfg.vocabulary(), entries, f.options)
	if ctx.Err() != nil {
		return nil, nil, nil, context.Cause(ctx)
	}
	if err != nil {
		err = &usageError{err: err}
	}
	return entries, reports, undone, err
}

// entries returns the rules to check.
func (f *ruleFlags) entries(texts []string) ([]rulecheck.Entry, error) {
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
		return nil, &usageError{err: err}
	}
	var entries []rulecheck.Entry
	for _, r := range rules {
		s, err := pattern.New(f.cfg.vocabulary(), r, pattern.Shared())
		if err != nil {
			return nil, &usageError{err: err}
		}
		entries = append(entries, rulecheck.Entry{Rule: s, Groups: replacing(r.Groups), Tags: r.Tags})
	}
	if f.all {
		entries = append(entries, f.databaseEntries()...)
	}
	if len(entries) == 0 {
		return nil, Usagef("a rule, --file or --all expected")
	}
	return entries, nil
}

// databaseEntries returns the rules for tensors of the database. One that is a Go function can be
// checked only where its tests have expressions on which it fires.
func (f *ruleFlags) databaseEntries() []rulecheck.Entry {
	// Rules come from two places: the families of this module, which have cases for Go functions,
	// and entries that the configuration adds, which are checked if they are text. A family may be
	// missing from the database of a configuration.
	cases := make(map[string][]rulecheck.Case)
	for _, k := range tensorpass.Cases() {
		cases[k.Rule] = append(cases[k.Rule], rulecheck.Case{Vars: k.Vars, Expr: k.Expr})
	}
	list := f.cfg.Database().Entries()
	inDatabase, ours := make(map[string]bool), make(map[string]bool)
	for i := range list {
		inDatabase[strings.TrimPrefix(list[i].Name, "pre_")] = true
	}
	var entries []rulecheck.Entry
	for _, l := range tensorpass.Rules() {
		name := rewrite.Describe(l.Rule).Name
		ours[name] = true
		if inDatabase[name] {
			entries = append(entries, rulecheck.Entry{Rule: l.Rule, Groups: replacing(l.Groups.Names()), Tags: l.Tags, Cases: cases[name]})
		}
	}
	for _, l := range listRules(list) {
		if ours[l.Name] || tensorpass.Pass(l.Name) != nil || l.dialect != "" && l.dialect != tensorDialect {
			continue
		}
		if s := f.compiled(l); s != nil {
			entries = append(entries, rulecheck.Entry{Rule: s, Groups: replacing(l.Groups), Tags: l.Tags})
		}
	}
	return entries
}

// replacing returns the groups whose rules replace, and may undo each other for ever: all but that
// of saturation.
func replacing(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(name string) bool { return name == tensorpass.Saturate.Names()[0] })
}

// tensorDialect is the dialect of rules for tensors.
const tensorDialect = "tensor"

// compiled returns a rule that is text, or nil if it is a Go function or not for tensors.
func (f *ruleFlags) compiled(l *listedRule) *pattern.Substitution {
	r := pattern.Rule{Name: l.Name, Doc: l.Doc, Groups: l.Groups, Tags: l.Tags}
	for _, text := range l.Cases {
		w, err := pattern.ParseRewrite(text)
		if err != nil {
			return nil
		}
		r.Cases = append(r.Cases, w)
	}
	s, err := pattern.New(f.cfg.vocabulary(), r, pattern.Shared())
	if err != nil || len(l.Cases) == 0 {
		return nil
	}
	return s
}

// print prints the reports.
func (f *ruleFlags) print(c *Console, reports []rulecheck.Report, undone []rulecheck.Undone) error {
	kept := 0
	for _, r := range reports {
		if r.Kept {
			kept++
		}
		if f.asJSON {
			if err := writeJSON(c.Stdout, r); err != nil {
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
	for _, u := range undone {
		c.Say("%s: %s and %s undo each other: %s, %s", u.Group, u.First, u.Second, u.Before, u.After)
	}
	c.Say("%d of %d rules are what their tags promise", kept, len(reports))
	if kept < len(reports) {
		return errRules
	}
	return nil
}
