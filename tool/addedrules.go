package tool

import (
	"flag"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/repro"
)

// addedRules are rules that flags add to the database.
type addedRules struct {
	text  string   // of a file of rules
	names []string // of the rules of --rule
	files []string // of --rules
}

// declare declares --rule and --rules.
func (r *addedRules) declare(fs *flag.FlagSet) {
	fs.Func("rule", "Add a rewrite PATTERN => PATTERN to canonicalize; may be repeated", func(text string) error {
		if _, err := pattern.ParseRewrite(text); err != nil {
			return err
		}
		name := fmt.Sprintf("rule%d", len(r.names)+1)
		r.names = append(r.names, name)
		r.text += fmt.Sprintf("# A rule of the command line.\n%s: canonicalize; fast_run fast_compile\n    %s\n\n", name, strings.ReplaceAll(text, "\n", "\n    "))
		return nil
	})
	fs.Func("rules", "Add the rules of FILE to the groups that it names; may be repeated", func(file string) error {
		r.files = append(r.files, file)
		return nil
	})
}

// read reads the files of --rules.
func (r *addedRules) read() error {
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

// join adds the rules to the database, and returns the query that also selects those of --rule.
func (r *addedRules) join(db *optdb.SequenceDB, v pattern.Vocabulary, q optdb.Query) (optdb.Query, error) {
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

// note stores the rules with a reproducer.
func (r *addedRules) note(cas *repro.Case) {
	if r.text != "" {
		setNote(cas, fieldRules, "\n"+strings.TrimRight(r.text, "\n"))
	}
}

// addRules adds rules that are text to the groups that they name.
func addRules(db *optdb.SequenceDB, v pattern.Vocabulary, name, text string) error {
	rules, err := pattern.ParseRules(name, text)
	if err == nil {
		err = passes.AddRules(db, v, rules)
	}
	return err
}
