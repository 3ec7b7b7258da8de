package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/internal/rulefind"
	"github.com/nnopt/nnopt/tool/internal/service"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// A viewEngine does what the page of view asks for.
type viewEngine struct {
	cfg *Config

	mu sync.Mutex
	db *optdb.SequenceDB // without rules that were typed; made when it is first needed
}

// newViewEngine returns what does the work for the page of view.
func newViewEngine(cfg Config) service.Engine {
	cfg = cfg.complete()
	return &viewEngine{cfg: &cfg}
}

// NewViewService returns a function that answers the questions of a page without a server. The page begins with nothing; files
// that it names are those in dir. A question has a name and a body, which is JSON; pieces of an answer may come before it. An
// answer that is not ok is the JSON of what is wrong.
func NewViewService(cfg Config, dir string) func(ctx context.Context, question string, body []byte, piece func([]byte)) (answer []byte, ok bool) {
	begin := &view.Subject{Recording: &view.Recording{}}
	s := service.NewService(newViewEngine(cfg), begin, view.Input{Query: DefaultQuery}, dir)
	return func(ctx context.Context, question string, body []byte, piece func([]byte)) (answer []byte, ok bool) {
		// What panics is no reason to end.
		defer func() {
			if p := recover(); p != nil {
				answer, ok = service.FaultText(fmt.Errorf("internal error: %v", p)), false
			}
		}()
		answer, err := s.Answer(ctx, question, body, piece)
		if err != nil {
			return service.FaultText(err), false
		}
		return answer, true
	}
}

// WriteLivePage writes a page of view that has its engine inside, WebAssembly. It begins with an expression of some variables.
// files are scripts and style sheets that follow those of view, in a folder page; data are texts that scripts find by the ids of
// their elements, pairs of id and text.
func WriteLivePage(ctx context.Context, w io.Writer, cfg Config, expr, variables string, files fs.FS, data [][2]string) error {
	in := view.Input{Expr: expr, Variables: variables, Query: DefaultQuery}
	s, err := newViewEngine(cfg).Optimize(ctx, in)
	if err != nil {
		return err
	}
	if err := s.AddMisses(ctx); err != nil {
		return err
	}
	s.Recording.Live = &in
	return (&view.Page{Recording: s.Recording, Files: files, Data: data, WebAssembly: true}).Write(w)
}

// Optimize records the optimization of what was typed, or of a file.
func (e *viewEngine) Optimize(ctx context.Context, in view.Input) (*view.Subject, error) {
	g, err := e.given(ctx, in)
	if err != nil {
		return nil, located(ctx, err)
	}
	s, _, err := g.subject(ctx, g.console, g.arg)
	return s, located(ctx, err)
}

// database returns the database for an input, which holds no rules that were typed.
func (e *viewEngine) database() (db *optdb.SequenceDB, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.db == nil {
		e.db, err = e.cfg.Database()
	}
	return e.db, err
}

// A placed error is about a place in what was typed.
type placed interface {
	error
	// At returns the column, from 1, in bytes.
	At() int
}

// located is fault for an error, unless the context has ended.
func located(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fault(err)
}

// fault returns an error about what was typed, with its place.
func fault(err error) error {
	f := &service.Fault{Text: shortLines(err.Error())}
	if at := placed(nil); errors.As(err, &at) {
		f.Text, f.Column = shortLines(at.Error()), at.At()
	}
	return f
}

// Check has the machine check rules.
func (e *viewEngine) Check(ctx context.Context, rules, variables string) ([]service.Checked, error) {
	f := &ruleFlags{cfg: e.cfg, vars: variables}
	found, err := f.check(ctx, []string{rules})
	if err != nil {
		return nil, fault(err)
	}
	list := make([]service.Checked, len(found.reports))
	for i, r := range found.reports {
		list[i] = service.Checked{Name: r.Name, Rule: r.Rule, Class: string(r.Class), Tags: found.entries[i].Tags, Kept: r.Kept, Counterexample: r.Counterexample}
	}
	return list, nil
}

// Limits of a search for rules that a page asks for. It waits a little longer for an answer.
const (
	searchTime = 15 * time.Second
	searchSize = 3
)

// Find searches for rules.
func (e *viewEngine) Find(ctx context.Context, in service.Search, found func(service.Discovery)) (*service.SearchEnd, error) {
	if in.Size > searchSize {
		return nil, &service.Fault{Text: fmt.Sprintf("terms of at most %d ops are searched here", searchSize)}
	}
	f := &ruleFlags{cfg: e.cfg}
	f.search = findFlags{ops: in.Ops, constants: in.Constants, query: cmp.Or(in.Query, DefaultQuery)}
	o := &f.search.options
	o.Types, o.Size, o.Time = in.Types, in.Size, searchTime
	d, explorer, err := f.explorable()
	if err != nil {
		return nil, fault(err)
	}
	if _, err := f.knowledge(d, o); err != nil {
		return nil, fault(err)
	}
	if err := f.terms(ctx, &Console{cfg: e.cfg}, d, o); err != nil {
		return nil, fault(err)
	}
	equal := f.equalities()
	o.Found = func(r *rulefind.Found) {
		found(service.Discovery{Name: r.Rule.Name, Rule: r.Rule.Cases[0].String(), File: r.Text(e.cfg.Group, equal), Class: string(r.Report.Class), Before: r.Before, After: r.After})
	}
	r, err := rulefind.Search(ctx, explorer, *o)
	if err != nil {
		return nil, fault(err)
	}
	end := &service.SearchEnd{Names: make([]string, len(r.Found)), Summary: r.Summary()}
	for i, x := range r.Found {
		end.Names[i] = x.Rule.Name
	}
	return end, nil
}

// Choices lists the passes and rules.
func (e *viewEngine) Choices(query string) ([]service.Choice, error) {
	q, err := optdb.ParseQuery(query)
	if err != nil {
		return nil, fault(err)
	}
	db, err := e.database()
	if err != nil {
		return nil, fault(err)
	}
	opt, err := db.Build(q)
	if err != nil {
		return nil, fault(err)
	}
	var list []service.Choice
	for _, l := range db.Outline() {
		c := service.Choice{Name: l.Name, Path: l.Path, Doc: l.Doc, Tags: l.Tags, Dialect: l.Dialect, Position: l.Position, Rule: l.Class == "rule", On: opt.Selected(l.Path)}
		for _, set := range l.Settings {
			c.Settings = append(c.Settings, [2]string{set.Name, set.Value})
		}
		list = append(list, c)
	}
	return list, nil
}

// addLooseRules adds rules, those in no group to one, and returns the terms of a query that
// select them all.
func addLooseRules(db *optdb.SequenceDB, d *Dialect, group, text string) (terms string, err error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	rules, err := rulecheck.ParseFile("rules", text)
	if err != nil {
		return "", Usagef("%v", err)
	}
	var names []string
	// A rule that is typed on the page need not say where it belongs. It joins group, and is
	// selected by its name under any query: it was typed to be seen at work.
	for i := range rules {
		if len(rules[i].Groups) == 0 {
			rules[i].Groups = []string{group}
		}
		names = append(names, rules[i].Name)
	}
	if d.Vocabulary == nil {
		return "", Usagef("%s has no vocabulary, so there are no rules", d.Name)
	}
	if err := optdb.AddRules(db, d.Vocabulary(), rules); err != nil {
		return "", Usagef("%v", err)
	}
	for _, name := range slices.Compact(names) {
		terms += " +" + name
	}
	return terms, nil
}
