package tool

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tool/repro"
)

// AddedRules are rules that flags add to the database.
type AddedRules struct {
	sources []ruleSource
	names   []string // of the rules of --rule
	files   []string // of --rules
}

// A ruleSource is a text with rules.
type ruleSource struct{ file, text string } // file is "" for --rule

// declare declares --rule and --rules.
func (r *AddedRules) declare(cfg *Config, fs *flag.FlagSet) {
	fs.Func("rule", "Add a rewrite PATTERN => PATTERN to "+cfg.Group+"; may be repeated", func(text string) error {
		if _, err := pattern.ParseRewrite(text); err != nil {
			return err
		}
		name := fmt.Sprintf("rule%d", len(r.names)+1)
		r.names = append(r.names, name)
		rule := fmt.Sprintf("# A rule of the command line.\n%s: %s; fast_run fast_compile\n    %s\n\n", name, cfg.Group, strings.ReplaceAll(text, "\n", "\n    "))
		r.sources = append(r.sources, ruleSource{text: rule})
		return nil
	})
	fs.Func("rules", "Add the rules of FILE to the groups that it names; may be repeated", func(file string) error {
		r.files = append(r.files, file)
		return nil
	})
}

// Text returns the rules as a file of rules.
func (r *AddedRules) Text() string {
	var b strings.Builder
	for _, s := range r.sources {
		b.WriteString(s.text)
	}
	return b.String()
}

// read reads the files of --rules.
func (r *AddedRules) read() error {
	files := r.files
	r.files = nil
	for _, file := range files {
		text, err := fileio.ReadFile(file, fileio.MaxText)
		if err != nil {
			return fmt.Errorf("--rules: %w", err)
		}
		r.sources = append(r.sources, ruleSource{file, string(text) + "\n\n"})
	}
	return nil
}

// ruleSetting is a setting rules=@FILE of a group of rules, with the settings before and after it.
var ruleSetting = regexp.MustCompile(`(\+?)(\w+)\{(?:([^{}]*),)?\s*rules=@([^,{}]+)(?:,([^{}]*))?\}`)

// ofQuery adds the rules of files that a query names in settings, as in +saturate{rules=@FILE}, to the groups
// that have the settings, and returns the query without those.
func (r *AddedRules) ofQuery(query string) (string, error) {
	for m := ruleSetting.FindStringSubmatch(query); m != nil; m = ruleSetting.FindStringSubmatch(query) {
		text, err := fileio.ReadFile(m[4], fileio.MaxText)
		if err != nil {
			return "", err
		}
		rules, err := pattern.ParseRules(m[4], string(text))
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, rule := range rules {
			rule.Groups = []string{m[2]}
			b.WriteString(rule.String() + "\n")
		}
		r.sources = append(r.sources, ruleSource{m[4], b.String()})
		term := ""
		if m[1] != "" {
			term = "+" + m[2]
		}
		if others := strings.Trim(m[3]+","+m[5], ", "); others != "" {
			term += " " + m[2] + "{" + others + "}"
		}
		query = strings.Replace(query, m[0], term, 1)
	}
	return query, nil
}

// Join adds the rules to the database, and returns the query that also selects those of --rule.
func (r *AddedRules) Join(db *optdb.SequenceDB, v pattern.Vocabulary, q optdb.Query) (optdb.Query, error) {
	if err := r.read(); err != nil {
		return q, err
	}
	if len(r.sources) == 0 {
		return q, nil
	}
	if err := addRules(db, v, r.sources...); err != nil {
		flag := "--rules"
		switch {
		case len(r.names) == len(r.sources):
			flag = "--rule"
		case len(r.names) > 0:
			flag = "--rule, --rules"
		}
		return q, Usagef("%s: %w", flag, err)
	}
	return q.Including(r.names...), nil
}

// Note stores the rules with a reproducer.
func (r *AddedRules) Note(cas *repro.Case) {
	if len(r.sources) > 0 {
		SetNote(cas, fieldRules, "\n"+strings.TrimRight(r.Text(), "\n"))
	}
}

// addRules adds rules that are text to the groups that they name. Their errors name the file of each.
func addRules(db *optdb.SequenceDB, v pattern.Vocabulary, sources ...ruleSource) error {
	var rules []pattern.Rule
	for _, s := range sources {
		list, err := pattern.ParseRules(s.file, s.text)
		if err != nil {
			return err
		}
		rules = append(rules, list...)
	}
	if v == nil {
		return errors.New("the dialect has no vocabulary")
	}
	return optdb.AddRules(db, v, rules)
}
