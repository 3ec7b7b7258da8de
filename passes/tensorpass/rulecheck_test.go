package tensorpass_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/rulecheck"
)

// TestRulesKeepPromises: the machine finds of no rule more than its tags say, and no rules of a group
// that undo each other. In short mode it checks every third rule.
func TestRulesKeepPromises(t *testing.T) {
	entries := checkable(func(i int, _ string) bool { return longtest.Enabled() || i%3 == 0 })
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
	if *update && longtest.Enabled() {
		if err := os.WriteFile("rules/classes.txt", []byte(classes.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range undone {
		t.Errorf("%s: %s and %s undo each other: %s and %s", u.Group, u.First, u.Second, u.Before, u.After)
	}
}

// TestRulesUnderSeeds holds rules to their promises under seeds whose values were hard to judge.
func TestRulesUnderSeeds(t *testing.T) {
	for seed, names := range map[uint64][]string{
		72: {"local_crossentropy_of_part_of_softmax", "crossentropy_to_crossentropy_with_softmax_with_bias", "opposite_angle"},
	} {
		entries := checkable(func(_ int, name string) bool { return slices.Contains(names, name) })
		reports, _, err := rulecheck.CheckDatabase(t.Context(), tensorpass.Vocabulary(), entries, rulecheck.Options{Seed: seed})
		if err != nil || len(reports) < len(names) {
			t.Fatal(len(reports), err)
		}
		for _, r := range reports {
			if !r.Kept {
				t.Errorf("with seed %d %s is %s: %s", seed, r.Name, r.Class, r.Counterexample)
			}
		}
	}
}

// checkable returns the rules to check, given their index in the list and their names.
func checkable(wanted func(i int, name string) bool) []rulecheck.Entry {
	cases := make(map[string][]rulecheck.Case)
	for _, k := range tensorpass.Cases() {
		cases[k.Rule] = append(cases[k.Rule], rulecheck.Case{Vars: k.Vars, Expr: k.Expr})
	}
	var entries []rulecheck.Entry
	for i, l := range tensorpass.Rules() {
		if name := rewrite.Describe(l.Rule).Name; wanted(i, name) {
			entries = append(entries, rulecheck.Entry{Rule: l.Rule, Groups: (l.Groups &^ tensorpass.Saturate).Names(), Tags: l.Tags, Cases: cases[name]})
		}
	}
	return entries
}
