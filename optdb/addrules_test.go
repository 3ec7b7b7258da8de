package optdb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
)

// gates is a vocabulary of three ops.
type gates struct{ words }

func (g gates) Operator(name string) (pattern.Operator, bool) {
	op, _ := g.words.Operator(name)
	op.MinInputs, op.MaxInputs = 2, 2
	return op, name == "and" || name == "or" || name == "xor"
}

// The errors of rules have file and line: of the rule, or of the rewrite that is at fault. Nothing is
// added then, in no group.
func TestAddRulesFaults(t *testing.T) {
	for _, c := range []struct{ name, rules, want string }{
		{"unknown op", "# A.\na: one\n    (and x x) => x\n    (and x\n        y) => (nand x y)\n",
			`f.rules:4: rule a: pattern "(and x y) => (nand x y)": column 14: unknown op: nand`},
		{"no group", "# A.\na:\n    (and x x) => x\n", "f.rules:2: rule a: it is in no group"},
		{"unknown group", "# A.\na: ones\n    (and x x) => x\n", "f.rules:2: rule a: optdb: db/ones: unknown entry: no database has that name, did you mean one?"},
		{"bad tag", "# A.\na: one; b,c\n    (and x x) => x\n", "f.rules:2: rule a: optdb: one/a: bad name: \"b,c\" is not a tag"},
		{"taken", "# B.\nb: two one\n    (and x x) => x\n\n# Taken.\ntaken: two one\n    (and x x) => x\n", "f.rules:6: rule taken: one has a rule of that name: name is taken"},
		{"tag of another", "# A.\na: one; t\n    (and x x) => x\n\n# T.\nt: one\n    (xor x x) => x\n", "f.rules:6: rule t: optdb: one/a: tag is the name of another entry: t"},
		{"a Go function", "# A.\na: one\n    Go: it counts\n", "f.rules:2: rule a: pattern: misplaced expression: it is a Go function"},
		// One message, and not one for each rule and each of its names.
		{"an op with a reserved name", "# A.\na: one\n    (and x (or x y)) => x\n\n# B.\nb: two\n    (or x x) => x\n    (or (and x y) x) => x\n",
			`f.rules:3: rule a: pattern "(and x (or x y)) => x": reserved name: "(or x y)" are alternatives, "what x matches, or else what y does", and never an op. ` +
				`The vocabulary has an op with the name "or"; give it another one in rules, such as "or_"`},
	} {
		db := optdb.NewSequenceDB("db")
		for _, name := range []string{"one", "two"} {
			must(t, db.Register(name, optdb.NewEquilibriumDB(name), 1))
		}
		one, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "one")
		must(t, err, one.Register("taken", node()))
		rules, err := pattern.ParseRules("f.rules", c.rules)
		must(t, err)
		before := strings.Join(db.Names(), " ")
		if err := optdb.AddRules(db, gates{}, rules); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nnot %s", c.name, err, c.want)
		}
		if after := strings.Join(db.Names(), " "); after != before {
			t.Errorf("%s: %s, not %s", c.name, after, before)
		}
	}
	// Where every name is an op, alternatives are alternatives.
	if _, err := pattern.Compile(words{}, "(and x (or (xor x y) (not x y))) => x"); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"(and x (or x x)) => x", "(and x y) <=> (or x y)"} {
		if _, err := pattern.Compile(gates{}, text); !errors.Is(err, pattern.ErrReserved) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := pattern.NewMatcher(gates{}, "(or x x)"); !errors.Is(err, pattern.ErrReserved) {
		t.Error(err)
	}
}
