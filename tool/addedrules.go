package tool

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/repro"
)

// AddedRules are rules that flags add to the database.
type AddedRules struct {
	text  string   // of a file of rules
	names []string // of the rules of --rule
	files []string // of --rules
}

// Declare declares --rule and --rules.
func (r *AddedRules) Declare(cfg *Config, fs *flag.FlagSet) {
	fs.Func("rule", "Add a rewrite PATTERN => PATTERN to "+cfg.Group+"; may be repeated", func(text string) error {
		if _, err := pattern.ParseRewrite(text); err != nil {
			return err
		}
		name := fmt.Sprintf("rule%d", len(r.names)+1)
		r.names = append(r.names, name)
		r.text += fmt.Sprintf("# A rule of the command line.\n%s: %s; fast_run fast_compile\n    %s\n\n", name, cfg.Group, strings.ReplaceAll(text, "\n", "\n    "))
		return nil
	})
	fs.Func("rules", "Add the rules of FILE to the groups that it names; may be repeated", func(file string) error {
		r.files = append(r.files, file)
		return nil
	})
}

// Text returns the rules as a file of rules.
func (r *AddedRules) Text() string { return r.text }

// read reads the files of --rules.
func (r *AddedRules) read() error {
	files := r.files
	r.files = nil
	for _, file := range files {
		text, err := fileio.ReadFile(file, fileio.MaxText)
		if err != nil {
			return fmt.Errorf("--rules: %w", err)
		}
		// The files become one text, which is also what a reproducer holds. So each is parsed here
		// once, for an error with its own name and line.
		if _, err := pattern.ParseRules(file, string(text)); err != nil { // join does not know the file
			return Usagef("--rules: %w", err)
		}
		r.text += string(text) + "\n\n"
	}
	return nil
}

// Join adds the rules to the database, and returns the query that also selects those of --rule.
func (r *AddedRules) Join(db *optdb.SequenceDB, v pattern.Vocabulary, q optdb.Query) (optdb.Query, error) {
	if err := r.read(); err != nil {
		return q, err
	}
	if r.text == "" {
		return q, nil
	}
	if err := addRules(db, v, "rules", r.text); err != nil {
		return q, Usagef("--rule, --rules: %w", err)
	}
	return q.Including(r.names...), nil
}

// Note stores the rules with a reproducer.
func (r *AddedRules) Note(cas *repro.Case) {
	if r.text != "" {
		SetNote(cas, fieldRules, "\n"+strings.TrimRight(r.text, "\n"))
	}
}

// addRules adds rules that are text to the groups that they name.
func addRules(db *optdb.SequenceDB, v pattern.Vocabulary, name, text string) error {
	rules, err := pattern.ParseRules(name, text)
	if err == nil && v == nil {
		err = errors.New("the dialect has no vocabulary")
	}
	if err == nil {
		err = optdb.AddRules(db, v, rules)
	}
	return err
}
