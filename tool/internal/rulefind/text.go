package rulefind

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// Text returns a file of rules, with what they save as comments. Rules that save join the group
// saving, those that only say that two forms are equal the group equal.
func (r *Result) Text(saving, equal string) string {
	var b strings.Builder
	for line := range strings.Lines(r.Summary()) {
		b.WriteString("# " + line)
	}
	for _, f := range r.Found {
		b.WriteString("\n" + f.Text(saving, equal))
	}
	return b.String()
}

// Summary counts what was found and looked at, a line or two.
func (r *Result) Summary() string {
	follow := fmt.Sprintf("%s%d of %d candidates follow", map[bool]string{true: "about "}[r.Drawn], r.Derived, r.Candidates)
	if r.Stopped && r.Derived == 0 {
		follow = fmt.Sprintf("%d candidates", r.Candidates) // there was no time to ask
	}
	if r.ByCases > 0 {
		follow += fmt.Sprintf(", %d of them by cases", r.ByCases)
	}
	text := fmt.Sprintf("%d rules, found among %d terms in %d classes; %s. %d rules checked, %d refuted, in %d rounds.\n",
		len(r.Found), r.Terms, r.Classes, follow, r.Checked, r.Refuted, r.Rounds)
	if r.Stopped {
		text += "The search was stopped: there may be more, and some may follow from others.\n"
	}
	return text
}

// Text returns a rule as a file of rules has it.
func (f *Found) Text(saving, equal string) string {
	rule := f.Rule
	rule.Groups = []string{saving}
	if rule.Cases[0].Equation {
		rule.Groups[0] = equal
	}
	lines := strings.Split(strings.TrimSuffix(rule.String(), "\n"), "\n")
	last := len(lines) - 1
	text := strings.Join(lines[:last], "\n") + "\n"
	say := func(format string, args ...any) { text += "    # " + fmt.Sprintf(format, args...) + "\n" }
	how := fmt.Sprintf("compared %d times", f.Report.Tried)
	if f.Proved {
		how = "proved: compared for all values of " + f.Types
	}
	if f.Report.Chance > 0 {
		how += fmt.Sprintf(", in exact arithmetic, too, by chance with a probability of at most %.1g", f.Report.Chance)
	}
	say("%s, %s; cost %.6g, was %.6g", f.Report.Class, how, f.After, f.Before)
	if f.Occurs > 0 {
		say("replaces something at %d places", f.Occurs)
	}
	if f.Report.Counterexample != "" && f.Report.Class != rulecheck.Exact {
		say("differs: %s", f.Report.Counterexample)
	}
	if f.Fires != "" {
		say("fires: %s", f.Fires)
	}
	if f.Not != "" {
		say("does not: %s", f.Not)
	}
	return text + lines[last] + "\n"
}
