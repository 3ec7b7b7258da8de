package tool

import (
	"cmp"
	"context"
	"flag"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/internal/rulefind"
)

// FindDetail is what the help of the verb rule says of "rule find".
const FindDetail = `
"rule find" searches for rules: it enumerates terms over --ops, --vars variables of each type and --constants, tells them apart by
values, leaves out what the database derives, and checks the rest. It prints a file of rules, those that save most first, each with
what it saves, where it fires and where not; and progress to standard error. --from finds what a file of graphs misses: rules that
replace something in it. --complete says which of the identities the database knows, --redundant which of its rules others make superfluous.
`

// findFlags are the flags of rule find.
type findFlags struct {
	ops, constants, query string
	from                  string
	options               rulefind.Options
	complete, redundant   bool
}

func (f *findFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&f.ops, "ops", "", "find: the ops of terms, such as add,mul,sum{axis=0}; of --from the default")
	fs.StringVar(&f.options.Types, "types", "", "find: the types of variables, separated by semicolons, such as \"float64; bool\"")
	fs.StringVar(&f.constants, "constants", "", "find: the numbers in terms, such as 0,1")
	fs.IntVar(&f.options.Size, "size", 2, "find: how many ops a term has at most")
	fs.IntVar(&f.options.Rules, "most", 0, "find: how many rules to look for, those first from which most follow; 0 is without a limit")
	fs.DurationVar(&f.options.Time, "time", time.Minute, "find: how long to search; 0 is without a limit. A search that is not ended by it depends on its flags only")
	fs.StringVar(&f.from, "from", "", "find: only rules that replace something in this file of graphs or model, behind which its flags may follow: \"model.onnx --shape x=1x16\"")
	fs.StringVar(&f.query, "known", DefaultQuery, "find: leave out what this query of the database finds, and what its rules derive; none for nothing")
	fs.BoolVar(&f.complete, "complete", false, "find: print which of the identities are known, and the cheapest that are not, in place of rules")
	fs.BoolVar(&f.redundant, "redundant", false, "find: print the rules of the database that others make superfluous")
}

// findNames are those flags, which are in vain for rule check.
var findNames = []string{"ops", "types", "constants", "size", "most", "time", "from", "known", "complete", "redundant"}

// explorable returns the dialect to search for rules in.
func (f *ruleFlags) explorable() (*Dialect, rulecheck.Domain, error) {
	dialects := f.cfg.checkable()
	if len(dialects) == 0 {
		return nil, nil, Usagef("no dialect says how its values are drawn and compared")
	}
	d := dialects[0]
	for _, x := range dialects {
		if f.dialect == "" && x.Name == "tensor" {
			d = x
		}
	}
	domain, err := d.Domain("")
	return d, domain, err
}

// find runs rule find.
func (f *ruleFlags) find(ctx context.Context, c *Console) error {
	d, explorer, err := f.explorable()
	if err != nil {
		return err
	}
	o := &f.search.options
	o.Seed = f.options.Seed
	if f.vars != "" {
		if o.Vars, err = strconv.Atoi(f.vars); err != nil || o.Vars < 1 || o.Vars > 20 {
			return Usagef("--vars=%s: the number of variables of a type expected, from 1 to 20", fileio.Excerpt(f.vars, 0))
		}
	}
	o.Progress = func(text string) { c.Say("%s", text) }
	entries, err := f.knowledge(d, o)
	if err != nil {
		return err
	}
	if f.search.redundant {
		return f.printRedundant(ctx, c, explorer, entries)
	}
	if err := f.terms(ctx, c, d, o); err != nil {
		return err
	}
	if f.search.complete {
		m, err := rulefind.Measure(ctx, explorer, *o)
		if err != nil {
			return err
		}
		c.Print("%s", m.Text())
		return nil
	}
	r, err := rulefind.Search(ctx, explorer, *o)
	if err != nil {
		return Usagef("%w", err)
	}
	c.Print("%s", r.Text(f.cfg.Group, f.equalities()))
	c.Say("%d rules", len(r.Found))
	return nil
}

// knowledge sets what is known: the rules of the database, and what a query of it makes equal.
func (f *ruleFlags) knowledge(d *Dialect, o *rulefind.Options) ([]rulecheck.Entry, error) {
	q, err := optdb.ParseQuery(f.search.query)
	if err != nil {
		return nil, Usagef("--known: %w", err)
	}
	if q.Empty() {
		return nil, nil
	}
	db, err := f.cfg.Database()
	if err != nil {
		return nil, err
	}
	list := db.Entries()
	entries := f.cfg.TextRules(d, list, nil)
	if d.Rules != nil {
		entries = d.Rules(f.cfg, list)
	}
	if d.Query != nil {
		q = d.Query(q)
	}
	opt, err := db.Build(q)
	if err != nil {
		return nil, Usagef("--known: %w", err)
	}
	for _, e := range entries {
		if opt.Selected(rewrite.Describe(e.Rule).Name) {
			o.Known = append(o.Known, e.Rule)
		}
	}
	domain, err := d.Domain("")
	o.Same = func(ctx context.Context, l, r *fgraph.Variable) bool {
		g, err := domain.Graph([]*fgraph.Variable{l, r})
		if err != nil || opt.Rewrite(ctx, g, nil) != nil {
			return false
		}
		outs := g.Outputs()
		return outs[0] == outs[1] || sameConstant(outs[0], outs[1])
	}
	return entries, err
}

func sameConstant(v, w *fgraph.Variable) bool {
	return v.IsConstant() && w.IsConstant() && v.Type() == w.Type() && fgraph.EqualData(v.Type(), v.Data(), w.Data())
}

// equalities returns the group for rules that only say that two forms are equal: that of saturation.
func (f *ruleFlags) equalities() string {
	db, err := f.cfg.Database()
	if err != nil {
		return f.cfg.Group
	}
	for _, l := range db.Outline() {
		if l.Database && l.Class == profile.ClassSaturation {
			return l.Name
		}
	}
	return f.cfg.Group
}

// terms sets the ops, numbers and the limits of terms.
func (f *ruleFlags) terms(ctx context.Context, c *Console, d *Dialect, o *rulefind.Options) error {
	for number := range strings.SplitSeq(f.search.constants, ",") {
		if number = strings.TrimSpace(number); number != "" {
			if _, err := strconv.ParseFloat(number, 64); err != nil {
				return Usagef("--constants: %s is no number", fileio.Excerpt(number, 0))
			}
			o.Constants = append(o.Constants, pattern.Literal(number))
		}
	}
	o.Ops = splitOps(f.search.ops)
	if f.search.from != "" {
		from := &SubjectFlags{Passes: newSelection(f.cfg, "none"), Watch: new(Watch)}
		file, flags, _ := strings.Cut(f.search.from, " --")
		file = strings.TrimSpace(file)
		fs := flag.NewFlagSet("--from", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		from.declare(f.cfg, fs)
		if err := fs.Parse(strings.Fields("--" + flags)); err != nil {
			return Usagef("--from: %w", err)
		}
		source := from.graphs
		if i := slices.IndexFunc(from.sources, func(s *Source) bool { return s.Named != nil && s.Named(file) }); i >= 0 {
			source = from.sources[i]
		}
		s, err := source.Open(ctx, c, file)
		if err != nil {
			return err
		}
		graphs := s.File.Graphs()
		if s.Lowered != nil {
			if graphs, err = s.Lowered(ctx); err != nil {
				return err
			}
		}
		within(ctx, graphs, d, o)
		if o.Types != "" {
			c.Say("variables: %s", o.Types)
		}
		c.Say("ops: %s", strings.Join(o.Ops, ", "))
	}
	if len(o.Ops) == 0 {
		return Usagef("--ops=OP,OP or --from=FILE expected")
	}
	return nil
}

// splitOps splits a list at its commas, except for those within braces.
func splitOps(text string) (ops []string) {
	depth := 0
	for op := range strings.FieldsFuncSeq(text, func(r rune) bool {
		depth += strings.Count("{", string(r)) - strings.Count("}", string(r))
		return depth == 0 && (r == ',' || r == ' ')
	}) {
		ops = append(ops, op)
	}
	return ops
}

// A namer is a vocabulary of ops of which one is called otherwise in rules than it prints.
type namer interface {
	RuleName(op fgraph.Op) string
}

// A read is an input of an op, and the type of the elements that it reads there.
type read struct {
	op    string
	input int
	typ   string
}

// reads returns what an apply reads. Inputs of an op that commutes are alike.
func (d *Dialect) reads(a *fgraph.Apply, op pattern.Operator) (list []read) {
	for i, in := range a.Inputs() {
		if op.Commutes {
			i = 0
		}
		list = append(list, read{a.Op().String(), i, d.element(in)})
	}
	return list
}

// element returns the type of the elements of a variable, or "" if the dialect has none.
func (d *Dialect) element(v *fgraph.Variable) string {
	if d.Element == nil {
		return ""
	}
	return d.Element(v.Type())
}

// A site is an apply in a graph.
type site struct {
	ctx   *rewrite.Context
	apply *fgraph.Apply
}

// within restricts a search to what graphs miss: terms of their ops that read the types that they read there, and rules
// that replace something in them. It sets the ops and the type of variables unless there are some.
func within(ctx context.Context, graphs []*fgraph.FunctionGraph, d *Dialect, o *rulefind.Options) {
	v, given := d.vocabulary(), len(o.Ops) > 0
	ruleName := func(op fgraph.Op) string {
		if n, ok := v.(namer); ok {
			return n.RuleName(op)
		}
		return op.String()
	}
	seen, sites := make(map[read]bool), make(map[string][]site)
	count, most := make(map[string]int), ""
	for _, g := range graphs {
		ctx := rewrite.NewContext(ctx, g)
		for a := range g.Ordered() {
			name := ruleName(a.Op())
			op, ok := v.Operator(name)
			if ok && !given && op.Make != nil && !slices.Contains(o.Ops, name) {
				o.Ops = append(o.Ops, name)
			}
			family, _, _ := strings.Cut(name, "{")
			sites[family] = append(sites[family], site{ctx, a})
			// Sizes and conditions are read by ops that compute something else.
			t := d.element(a.Outputs()[0])
			for _, r := range d.reads(a, op) {
				seen[r] = true
				if r.typ == t {
					count[t]++
				}
			}
			if count[t] > count[most] {
				most = t
			}
		}
	}
	o.Types = cmp.Or(o.Types, most)
	o.Allowed = func(a *fgraph.Apply) bool {
		op, _ := v.Operator(ruleName(a.Op()))
		return !slices.ContainsFunc(d.reads(a, op), func(r read) bool { return !seen[r] })
	}
	o.Occurs = func(w pattern.Rewrite) (n int) {
		r, err := pattern.New(v, pattern.Rule{Name: "candidate", Cases: []pattern.Rewrite{w}}, pattern.Shared())
		if err != nil {
			return 0
		}
		family, _, _ := strings.Cut(w.In.Expr.(*pattern.Call).Op, "{")
		for _, s := range sites[family] {
			if result, err := r.Transform(s.ctx, s.apply); err == nil && !result.Empty() {
				n++
			}
		}
		return n
	}
}

// printRedundant prints the rules of the database that follow from others.
func (f *ruleFlags) printRedundant(ctx context.Context, c *Console, d rulecheck.Domain, entries []rulecheck.Entry) error {
	list, err := rulefind.Redundant(ctx, d, entries, func(text string) { c.Say("%s", text) })
	if err != nil {
		return err
	}
	for _, r := range list {
		c.Print("%s %-40s %d instances follow from other rules\n", map[bool]string{true: "+", false: " "}[r.Together], r.Name, r.Instances)
	}
	c.Say("%d of %d rules are superfluous; those with + can go together", len(list), len(entries))
	return nil
}
