package tensors_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/tensors"
)

var update = flag.Bool("update", false, "write the classes and digests of the rules that are checked")

// rules is where the rules are that are checked. checkedFile has a line for each that was: its name, and the digest
// of what was checked. The first line is the digest of what checks, under the name "machine".
const (
	rules       = "../../passes/tensorpass/"
	checkedFile = rules + "testdata/checked.txt"
)

// TestRulesKeepPromises: the machine finds of no rule more than its tags say, and no rules of a group
// that undo each other. It checks the rules that have changed since their digests were written, and, if the
// machine has changed, every ninth of the others, with -long all of them: what is drawn depends on
// nothing else. -update writes the digests of the rules that were checked, with -long those of all and
// of the machine.
func TestRulesKeepPromises(t *testing.T) {
	text, _ := os.ReadFile(checkedFile) // without it, every rule has changed
	lines := strings.Split(string(text), "\n")
	own := sourceDigest(t, rules)
	machine := own + sourceDigest(t, "../internal/rulecheck", ".", "../../pattern", "../../tensor", "../../tensor/array", "../../internal/kernel/elementary")
	machine = "machine " + digest(machine)
	all := checkable(func(int, string) bool { return true })
	entries := checkable(func(i int, name string) bool {
		if longtest.Enabled() && (*update || lines[0] != machine) {
			return true
		}
		return !slices.Contains(lines, ruleLine(all[i], own, tensorpass.Class(name))) || i%9 == 0 && (longtest.Enabled() || lines[0] != machine)
	})
	if few := 12; !longtest.Enabled() && !*update && len(entries) > few {
		step := (len(entries) + few - 1) / few
		some := entries[:0]
		for i := 0; i < len(entries); i += step {
			some = append(some, entries[i])
		}
		entries = some
	}
	reports, undone, err := rulecheck.CheckDatabase(t.Context(), tensors.Domain(nil, nil, nil), entries, rulecheck.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for i, r := range reports {
		found[r.Name] = string(r.Class)
		if class := tensorpass.Class(r.Name); class != string(r.Class) && !*update {
			t.Errorf("%s is %s, and in rules/classes.txt %q; -update rewrites the file", r.Name, r.Class, class)
		}
		if !r.Kept || r.Tried == 0 {
			t.Errorf("%s, with the tags %v, is %s, tried %d times: %s", r.Name, entries[i].Tags, r.Class, r.Tried, r.Counterexample)
		}
	}
	for _, u := range undone {
		t.Errorf("%s: %s and %s undo each other: %s and %s", u.Group, u.First, u.Second, u.Before, u.After)
	}
	t.Logf("%d of %d rules checked", len(entries), len(all))
	if !*update || t.Failed() {
		return
	}
	if !longtest.Enabled() {
		machine = lines[0]
	}
	classes, digests := new(strings.Builder), new(strings.Builder)
	fmt.Fprintln(digests, machine)
	for _, e := range all { // those that were not checked have not changed
		name := rewrite.Describe(e.Rule).Name
		class := cmp.Or(found[name], tensorpass.Class(name))
		fmt.Fprintln(classes, name, class)
		fmt.Fprintln(digests, ruleLine(e, own, class))
	}
	for file, text := range map[string]string{rules + "rules/classes.txt": classes.String(), checkedFile: digests.String()} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ruleLine returns the line of a rule in checkedFile. The digest is of its text or, if it is a Go
// function, of the Go files of package tensorpass; and of its cases, tags, groups and class.
func ruleLine(e rulecheck.Entry, own, class string) string {
	name := rewrite.Describe(e.Rule).Name
	text := fmt.Sprint(e.Cases, own)
	if s, ok := rewrite.Undescribed(e.Rule).(*pattern.Substitution); ok {
		text = fmt.Sprint(s, e.Cases)
	}
	return name + " " + digest(fmt.Sprintln(name, text, e.Tags, e.Groups, class))
}

// sourceDigest returns the digest of the Go files in some folders, without tests.
func sourceDigest(t *testing.T, folders ...string) string {
	t.Helper()
	h := sha256.New()
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(folder, err)
		}
		for _, file := range files { // in alphabetical order
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(h, filepath.Base(file), len(text))
			h.Write(text)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// TestRulesUnderSeeds holds rules to their promises under seeds whose values were hard to judge.
func TestRulesUnderSeeds(t *testing.T) {
	for seed, names := range map[uint64][]string{
		72: {"local_crossentropy_of_part_of_softmax", "crossentropy_to_crossentropy_with_softmax_with_bias", "opposite_angle"},
	} {
		names = names[:longtest.Of(1, len(names))]
		entries := checkable(func(_ int, name string) bool { return slices.Contains(names, name) })
		reports, _, err := rulecheck.CheckDatabase(t.Context(), tensors.Domain(nil, nil, nil), entries, rulecheck.Options{Seed: seed})
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
