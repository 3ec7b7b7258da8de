package tensorpass

import (
	_ "embed"
	"strings"
)

//go:embed testdata/rules.txt
var caseFile string

// A Case is an expression on which a rule fires, as the tests of the rules hold. Programs hold them
// as well: rules that are Go functions have no pattern, so the machine that checks rules can fire
// them on these expressions only.
type Case struct {
	Rule string
	Vars string // declares the inputs, see [expr.Scope.Declare]
	Expr string
}

// Cases returns the cases of all rules.
func Cases() []Case {
	var cases []Case
	vars := ""
	for line := range strings.Lines(caseFile) {
		line = strings.TrimSpace(line)
		if v, ok := strings.CutPrefix(line, "# vars:"); ok {
			vars += v + ";"
		}
		// "|" is an operator as well, without a space on both sides of it or not followed by a graph.
		name, rest, ok := strings.Cut(line, " | ")
		k := strings.LastIndex(rest, " | ")
		if ok && k >= 0 && strings.HasPrefix(rest[k+3:], "[") && !strings.HasPrefix(line, "#") {
			cases = append(cases, Case{name, "", rest[:k]})
		}
	}
	for i := range cases {
		cases[i].Vars = vars
	}
	return cases
}
