package passes_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
)

func TestAddRulesIsAllOrNothing(t *testing.T) {
	rules, err := pattern.ParseRules("test.rules", `
good: canonicalize
    (tanh (neg x)) => (neg (tanh x))
homeless:
    (tanh x) => x
lost: canonicalise
    (tanh x) => x
local_neg_neg: specialize
    (tanh x) => x
misspelt: canonicalize
    (tanhh x) => x
tagged: specialize; +bad
    (tanh x) => x
`)
	if err != nil {
		t.Fatal(err)
	}
	db := passes.Default()
	before := len(db.Entries())
	err = optdb.AddRules(db, tensorpass.Vocabulary(), rules)
	for _, want := range []string{
		"rule homeless: it is in no group", "did you mean canonicalize", "rule local_neg_neg: specialize has a rule of that name", "unknown op: tanhh", "+bad",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	if after := len(db.Entries()); after != before {
		t.Errorf("%d entries, %d before", after, before)
	}
	if err := optdb.AddRules(db, tensorpass.Vocabulary(), rules[:1]); err != nil || len(db.Entries()) != before+1 {
		t.Error(err, len(db.Entries()))
	}
}
