package tensorpass

import (
	"embed"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// Every rule is in the file of its family, with its rewrites if it is an equation.
//
//go:embed rules/*
var ruleFiles embed.FS

// Class returns what the machine of package rulecheck found about a rule, such as "rounding", or ""
// for a rule that is not in the database.
func Class(rule string) string { return classes()[rule] }

// classes reads the list that a test of the rules writes: a line a rule, its name and its class.
var classes = sync.OnceValue(func() map[string]string {
	list := make(map[string]string)
	text, _ := ruleFiles.ReadFile("rules/classes.txt")
	for line := range strings.Lines(string(text)) {
		name, class, _ := strings.Cut(strings.TrimSpace(line), " ")
		list[name] = class
	}
	return list
})

// textRules returns the rules of a file in rules, which is part of the program: faults panic. The
// rules that are text are parsed when the first of the file is needed, and each is compiled when it
// is needed itself.
func textRules(family string, code goRules) []Local {
	name := "rules/" + family + ".rules"
	bytes, err := ruleFiles.ReadFile(name)
	if err != nil {
		panic(err)
	}
	text := string(bytes)
	heads, err := pattern.ParseHeads(rulesFolder+name, text)
	if err != nil {
		panic(err)
	}
	parse := sync.OnceValue(func() []pattern.Rule {
		rules, err := pattern.ParseRules(rulesFolder+name, text)
		if err != nil {
			panic(err)
		}
		return rules
	})
	locals, used := make([]Local, len(heads)), 0
	for i, r := range heads {
		groups, err := parseGroups(r.Groups)
		if err != nil {
			panic(fmt.Errorf("%s:%d: %w", name, r.Line, err))
		}
		locals[i] = Local{Groups: groups, Tags: r.Tags, family: family}
		if f, ok := code[r.Name]; ok && r.Go != "" {
			locals[i].Rule = rewrite.Rule{Name: r.Name, Doc: r.Doc, Reason: r.Go, On: f.on, Inputs: f.of, Depth: f.depth, Fn: f.fn}
			used++
			continue
		}
		locals[i].Rule = rewrite.Later(rewrite.Description{Name: r.Name, Doc: r.Doc, Reason: r.Go}, func() rewrite.NodeRewriter {
			s, err := pattern.New(Vocabulary(), parse()[i], pattern.Shared())
			if err != nil {
				panic(fmt.Errorf("%s:%d: %w", name, r.Line, err))
			}
			return s
		})
	}
	if used != len(code) {
		panic(fmt.Errorf("%s: %d of %d Go functions are not in the file", name, len(code)-used, len(code)))
	}
	return locals
}

// rulesFolder is where the folder of rules is, for errors.
const rulesFolder = "passes/tensorpass/"

// groupNames are the names of the groups, by bit.
var groupNames = []string{"canonicalize", "stabilize", "specialize", "uncanonicalize", "useless", "saturate"}

// parseGroups returns the set of groups.
func parseGroups(names []string) (Group, error) {
	var set Group
	for _, name := range names {
		i := slices.Index(groupNames, name)
		if i < 0 {
			return 0, fmt.Errorf("there is no group %s; there are %v", name, groupNames)
		}
		set |= 1 << i
	}
	return set, nil
}

// Names returns the names of the groups in the set.
func (g Group) Names() []string {
	var names []string
	for i, name := range groupNames {
		if g&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

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
