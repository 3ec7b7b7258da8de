package docs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// TestRules holds rules.md against the rules. With -update it writes the page.
func TestRules(t *testing.T) {
	want := rulesPage(t)
	got, err := os.ReadFile("rules.md")
	if err != nil && !*update {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	if !*update {
		t.Fatal("rules.md is not what the rules say; go test ./docs -run Rules -update writes it")
	}
	if err := os.WriteFile("rules.md", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

const rulesIntro = `# Rules

The local rules for tensors, %d as text and %d as Go functions. ` + "`nnopt passes --rules`" + ` prints them with their tags, ` + "`--json`" + ` for programs.
The text stands in files of ` + "`passes/tensorpass/rules`" + `, and [the tutorial](tutorial.md#rules-in-a-file) says how to write one; ` + "`go doc ./pattern`" + ` has
the whole language. A name in braces, ` + "`(sum{a} x)`" + `, stands for the parameters of an op.
` + "`<=>`" + ` stands in equations, which equality saturation uses in both directions and other passes from left to right. The rules of the group saturate
are for it; ` + "`+saturate`" + ` in a query selects it, after canonicalize and stabilize.

Behind the groups and tags of a rule stands what ` + "`nnopt rule check`" + ` found about it. It makes expressions that the rule matches, with every element
type, rank and size and with special values, and compares both sides:

| class | meaning |
| --- | --- |
| exact | both sides are equal to the bit |
| rounding | they differ in the last bits |
| overflow | they differ where an integer wraps around or a float becomes infinite; a rule needs the tag ` + "`overflow`" + ` |
| unsafe_nan | they differ where something is NaN, infinite or zero; a rule needs the tag ` + "`unsafe_nan`" + ` |

`

// rulesPage returns the page.
func rulesPage(t *testing.T) string {
	var text, code strings.Builder
	family, texts, functions := "", 0, 0
	for _, l := range tensorpass.Rules() {
		d := rewrite.Describe(l.Rule)
		class := tensorpass.Class(d.Name)
		if class == "" {
			class = "not checked"
		}
		s, ok := rewrite.Undescribed(l.Rule).(*pattern.Substitution)
		if !ok {
			if d.Reason == "" {
				t.Errorf("the rule %s is a Go function without a reason", d.Name)
			}
			functions++
			cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
			fmt.Fprintf(&code, "| `%s` | %s | %s | %s | %s |\n", d.Name, strings.Join(slices.Concat(l.Groups.Names(), l.Tags), " "), cell(d.Doc), cell(d.Reason), class)
			continue
		}
		texts++
		if l.Family != family {
			if family != "" {
				text.WriteString("```\n\n")
			}
			family = l.Family
			fmt.Fprintf(&text, "### %s\n\n```\n", family)
		} else {
			text.WriteString("\n")
		}
		r := s.Rule()
		head, cases, _ := strings.Cut(r.String(), r.Name+":")
		groups, cases, _ := strings.Cut(cases, "\n")
		fmt.Fprintf(&text, "%s%s:%s (%s)\n%s", head, r.Name, groups, class, cases)
	}
	text.WriteString("```\n\n")
	var guards strings.Builder
	for _, f := range tensorpass.Vocabulary().(pattern.Library).Functions() {
		kind := "guard"
		switch {
		case f.Param != nil:
			kind = "parameters"
		case f.Build != nil:
			kind = "value"
		}
		fmt.Fprintf(&guards, "| `%s` | %s | %s |\n", f.Usage, kind, f.Doc)
	}
	return fmt.Sprintf(rulesIntro, texts, functions) +
		"## Text\n\n" + text.String() +
		"## Go functions\n\nAlgorithms stay in Go. The last columns say why, and what the machine found on the expressions of the rule's tests.\n\n" +
		"| rule | groups and tags | what it does | why it is Go | class |\n| --- | --- | --- | --- | --- |\n" + code.String() +
		"\n## Functions\n\nRules call these functions: as guards, for parameters of ops, and for values in replacements.\n\n" +
		"| call | gives | what it says |\n| --- | --- | --- |\n" + guards.String()
}
