package tool

import (
	"path"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/optdb"
)

// A listedRule is a rule of the database with everything that is known about it.
type listedRule struct {
	Name   string   `json:"name"`
	Doc    string   `json:"doc"`
	Groups []string `json:"groups"` // the databases that it is in, or its own name if it is a pass by itself
	Tags   []string `json:"tags"`
	Cases  []string `json:"cases,omitempty"`
	Reason string   `json:"reason,omitempty"` // why it is a Go function
	Class  string   `json:"class,omitempty"`  // what the machine found

	dialect string
}

// listRules returns the rules among the entries of a database. One that is in several groups is
// listed once.
func (cfg *Config) listRules(list []optdb.Listing) []*listedRule {
	var rules []*listedRule
	byName := make(map[string]*listedRule)
	for _, l := range list {
		if l.Class != "rule" && l.Cases == nil && l.Reason == "" {
			continue
		}
		r := byName[l.Name]
		if r == nil {
			r = &listedRule{Name: l.Name, Doc: l.Doc, Cases: l.Cases, Reason: l.Reason, Class: cfg.class(l.Name), dialect: l.Dialect}
			rules = append(rules, r)
			byName[l.Name] = r
		}
		// A rule that is in several groups has an entry in each. It is listed once, at the first.
		group := l.Name
		if l.Class == "rule" {
			group = path.Base(path.Dir(l.Path))
		}
		r.Groups = append(r.Groups, group)
		for _, tag := range l.Tags {
			if !slices.Contains(r.Tags, tag) {
				r.Tags = append(r.Tags, tag)
			}
		}
	}
	return rules
}

// class returns what the machine found about a rule.
func (cfg *Config) class(rule string) string {
	for _, d := range cfg.Dialects {
		if d.Class != nil {
			if class := d.Class(rule); class != "" {
				return class
			}
		}
	}
	return ""
}

// printRules prints the rules among the entries of a database.
func printRules(c *Console, cfg *Config, list []optdb.Listing, asJSON bool) error {
	rules := cfg.listRules(list)
	if asJSON {
		return WriteJSON(c.Stdout, rules)
	}
	for _, r := range rules {
		class := ""
		if r.Class != "" {
			class = " (" + r.Class + ")"
		}
		c.Print("# %s\n%s: %s; %s%s\n", r.Doc, r.Name, strings.Join(r.Groups, " "), strings.Join(r.Tags, " "), class)
		for _, text := range r.Cases {
			c.Print("    %s\n", text)
		}
		if r.Reason != "" {
			c.Print("    Go: %s\n", r.Reason)
		}
		c.Print("\n")
	}
	if len(rules) == 0 {
		c.Say("no rule is selected")
	}
	return nil
}
