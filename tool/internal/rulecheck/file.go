package rulecheck

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/pattern"
)

// ParseFile reads a file of rules. Besides the rules of [pattern.ParseRules], which have names, a
// line may be a rule without one: a rewrite that is not indented. It is called rule1, rule2 and so
// on. Rules that the file says to be Go functions are left out.
func ParseFile(name, text string) ([]pattern.Rule, error) {
	var plain []pattern.Rule
	var faults []error
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		// It may begin with a name for all of it, as in q@(int_div _ 0). The name of a rule has a colon behind it.
		if at := strings.IndexAny(line, "(:# \t"); at < 0 || line[at] != '(' {
			continue
		}
		lines[i] = ""
		w, err := pattern.ParseRewrite(strings.TrimSpace(line))
		if err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %w", name, i+1, err))
		}
		w.Line = i + 1
		plain = append(plain, pattern.Rule{Name: fmt.Sprintf("rule%d", len(plain)+1), Cases: []pattern.Rewrite{w}, File: name, Line: i + 1})
	}
	rules, err := pattern.ParseRules(name, strings.Join(lines, "\n"))
	if err != nil || len(faults) > 0 {
		return nil, errors.Join(append(faults, err)...)
	}
	rules = slices.DeleteFunc(append(rules, plain...), func(r pattern.Rule) bool { return r.Go != "" })
	slices.SortStableFunc(rules, func(a, b pattern.Rule) int { return cmp.Compare(a.Line, b.Line) })
	return rules, nil
}
