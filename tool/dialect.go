package tool

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/internal/tune"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/repro"
)

// A Dialect is a world of graphs, such as those of tensors: what the verbs need to know of it. Only
// Name and Open are needed. What else is missing, the verbs that need it say.
type Dialect struct {
	// Name is the Dialect of those entries of a database that are for its graphs alone. Errors
	// call the dialect by it.
	Name string
	// Open returns the world of the graphs in a file with that head: how they are written, and what
	// else package repro can use.
	Open func(c *Console, name string, head *graphfile.File) (repro.World, error)
	// Write writes a graph to a file, in the form that programs have for such graphs.
	Write func(ctx context.Context, w repro.World, g *fgraph.FunctionGraph, name string) error
	// Fields at the head of a file say what its graphs need from outside. The first one tells the
	// dialect; a file that has none is of the first dialect without fields.
	Fields []string
	// Files are those of the fields that name a file, relative to the one that they are in.
	Files []string
	// Query completes a query that was typed for graphs of the dialect: with tags that it avoids, see
	// [optdb.Query.Avoiding], so that it changes no choice that the query names. Queries in files are complete.
	// It may be nil.
	Query func(q optdb.Query) optdb.Query
	// Vocabulary returns the meaning of the names in rules.
	Vocabulary func() pattern.Vocabulary
	// Subjects declares the flags of what verbs take besides files of graphs. A dialect that comes
	// later is asked for what those before it do not claim. Without it, the subjects are files of
	// graphs.
	Subjects func(flags *SubjectFlags, fs *flag.FlagSet) *Source
	// Domain returns what the machine that checks rules needs to know. types says what types the
	// names of patterns have.
	Domain func(types string) (rulecheck.Domain, error)
	// Element returns the type of the elements of a type, as Domain takes it. Without it, the search for rules in graphs
	// takes the default of the domain, and variables of any type.
	Element func(fgraph.Type) string
	// Rules lists the rules among the entries of a database that the machine can check. Without it,
	// they are those of [Config.TextRules].
	Rules func(cfg *Config, entries []optdb.Listing) []rulecheck.Entry
	// Class returns what the machine found about a rule, or "".
	Class func(rule string) string
	// Switches declares flags that select passes. Their names begin with prefix, except for those
	// that have a dot of their own.
	Switches func(fs *flag.FlagSet, prefix string) Switches
	// SwitchesDoc says what they are, in help.
	SwitchesDoc string
	// Ranges are the least and the greatest value of integer flags.
	Ranges map[string][2]int
	// Verbs are those that only this dialect has.
	Verbs []Verb
	// Failed adds a reproducer to the error of a pass that a verb has returned without one.
	Failed func(ctx context.Context, c *Console, err error) error
}

// A Source makes the subjects of a dialect.
type Source struct {
	What  string   // a subject: "a network"
	Flags []string // those that have a meaning for its subjects alone
	// Typed says that subjects are what is typed on the page of view. If those of no dialect are, that is the inside of a
	// file of graphs, with semicolons in place of the ends of lines.
	Typed bool
	// Claims reports whether an argument looks like a subject.
	Claims func(arg string) bool
	// Named reports whether an argument has a name that only subjects of this dialect have. Then no
	// other is asked.
	Named func(arg string) bool
	Open  func(ctx context.Context, c *Console, arg string) (*Subject, error)
	// Record optimizes a subject for a page, and says in what the page may ask for again. Without
	// it, what Open returns is recorded, as for all dialects of other modules.
	Record func(ctx context.Context, c *Console, arg string, in *view.Input) (*view.Subject, error)
	// Profile optimizes a subject, and runs it on random inputs, each time with some threads. Without
	// it, what Open returns is optimized.
	Profile func(ctx context.Context, c *Console, arg string, runs, threads int) (*profile.Function, error)
	// Tune reads a subject and draws its inputs, and returns how it is run under any query. Without
	// it, subjects can't be tuned.
	Tune func(ctx context.Context, c *Console, arg string) (*tune.Subject, error)
}

// A Keeper is a world with something that a case needs and no file has.
type Keeper interface {
	// Keep writes it to a file beside that of the case, and names it in the case.
	Keep(ctx context.Context, cas *repro.Case, name string) error
}

// vocabulary returns the vocabulary, or nil.
func (d *Dialect) vocabulary() pattern.Vocabulary {
	if d.Vocabulary == nil {
		return nil
	}
	return d.Vocabulary()
}

// dialectOf returns the dialect of a file.
func (cfg *Config) dialectOf(name string, head *graphfile.File) (*Dialect, error) {
	var other *Dialect
	for _, d := range cfg.Dialects {
		switch {
		case len(d.Fields) > 0 && head.Field(d.Fields[0]) != "":
			return d, nil
		case len(d.Fields) == 0 && other == nil:
			other = d
		}
	}
	if other == nil {
		return nil, fmt.Errorf("%s: no dialect has graphs without a field at the head of their file", name)
	}
	return other, nil
}

// relocate makes the names of files in a case absolute, if the case moves to another folder. from is
// the file that it was read from.
func (cfg *Config) relocate(cas *repro.Case, from string) error {
	for _, d := range cfg.Dialects {
		for _, field := range d.Files {
			file := Note(cas, field)
			if file == "" || filepath.IsAbs(file) {
				continue
			}
			file, err := filepath.Abs(filepath.Join(filepath.Dir(from), file))
			if err != nil {
				return err
			}
			SetNote(cas, field, file)
		}
	}
	return nil
}
