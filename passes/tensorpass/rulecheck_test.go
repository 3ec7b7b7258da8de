package tensorpass_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rulecheck"
)

// TestRulesKeepPromises: the machine finds of no rule more than its tags say, and no rules of a group
// that undo each other. In short mode it checks every third rule.
func TestRulesKeepPromises(t *testing.T) {
	cases := make(map[string][]rulecheck.Case)
	for _, k := range tensorpass.Cases() {
		cases[k.Rule] = append(cases[k.Rule], rulecheck.Case{Vars: k.Vars, Expr: k.Expr})
	}
	var entries []rulecheck.Entry
	for i, l := range tensorpass.Rules() {
		if !testing.Short() || i%3 == 0 {
			entries = append(entries, rulecheck.Entry{Rule: l.Rule, Groups: (l.Groups &^ tensorpass.Saturate).Names(), Tags: l.Tags, Cases: cases[rewrite.Describe(l.Rule).Name]})
		}
	}
	reports, undone, err := rulecheck.CheckDatabase(t.Context(), tensorpass.Vocabulary(), entries, rulecheck.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var classes strings.Builder
	for i, r := range reports {
		fmt.Fprintln(&classes, r.Name, r.Class)
		if class := tensorpass.Class(r.Name); class != string(r.Class) && !*update {
			t.Errorf("%s is %s, and in rules/classes.txt %q; -update rewrites the file", r.Name, r.Class, class)
		}
		if !r.Kept || r.Tried == 0 {
			t.Errorf("%s, with the tags %v, is %s, tried %d times: %s", r.Name, entries[i].Tags, r.Class, r.Tried, r.Counterexample)
		}
	}
	if *update && !testing.Short() {
		if err := os.WriteFile("rules/classes.txt", []byte(classes.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range undone {
		t.Errorf("%s: %s and %s undo each other: %s and %s", u.Group, u.First, u.Second, u.Before, u.After)
	}
}
