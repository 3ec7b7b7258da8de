package tool

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/rulecheck"
	"github.com/nnopt/nnopt/tool/view"
)

// A viewEngine does what the page of view asks for.
type viewEngine struct{ cfg *Config }

// Optimize records the optimization of an expression.
func (e *viewEngine) Optimize(ctx context.Context, in view.Input) (*view.Subject, error) {
	x, err := newViewExpr(e.cfg, in)
	if err != nil {
		return nil, fault(err)
	}
	s, err := x.record(ctx)
	if err != nil && ctx.Err() == nil {
		err = fault(err)
	}
	return s, err
}

// fault returns an error about what was typed, with its place.
func fault(err error) error {
	f := &view.Fault{Text: shortLines(err.Error())}
	if at := (*expr.SyntaxError)(nil); errors.As(err, &at) {
		f.Text, f.Column = shortLines(at.Error()), at.Column
	}
	return f
}

// Check has the machine check rules.
func (e *viewEngine) Check(ctx context.Context, rules, variables string) ([]view.Checked, error) {
	f := &ruleFlags{cfg: e.cfg, vars: variables}
	entries, reports, _, err := f.check(ctx, []string{rules})
	if err != nil {
		return nil, fault(err)
	}
	list := make([]view.Checked, len(reports))
	for i, r := range reports {
		list[i] = view.Checked{Name: r.Name, Rule: r.Rule, Class: string(r.Class), Tags: entries[i].Tags, Kept: r.Kept, Counterexample: r.Counterexample}
	}
	return list, nil
}

// Choices lists the passes and rules.
func (e *viewEngine) Choices(query string) ([]view.Choice, error) {
	db := e.cfg.Database()
	q, err := optdb.ParseQuery(query)
	if err != nil {
		return nil, fault(err)
	}
	opt, err := db.Build(q)
	if err != nil {
		return nil, fault(err)
	}
	var list []view.Choice
	for _, l := range db.Entries() {
		list = append(list, view.Choice{Name: l.Name, Path: l.Path, Doc: l.Doc, Tags: l.Tags, Position: l.Position, Rule: l.Class == "rule", On: opt.Selected(l.Path)})
	}
	return list, nil
}

// addLooseRules adds rules, those in no group to canonicalize, and selects them all.
func addLooseRules(f *exprFlags, text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	rules, err := rulecheck.ParseFile("rules", text)
	if err != nil {
		return Usagef("%v", err)
	}
	var names []string
	// A rule that is typed on the page need not say where it belongs. It joins canonicalize, and is
	// selected by its name under any query: it was typed to be seen at work.
	for i := range rules {
		if len(rules[i].Groups) == 0 {
			rules[i].Groups = []string{"canonicalize"}
		}
		names = append(names, rules[i].Name)
	}
	if err := passes.AddRules(f.db, f.cfg.vocabulary(), rules); err != nil {
		return Usagef("%v", err)
	}
	for _, name := range slices.Compact(names) {
		f.query += " +" + name
	}
	return nil
}
