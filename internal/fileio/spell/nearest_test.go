package spell_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/fileio/spell"
)

func TestNearest(t *testing.T) {
	names := []string{"tdnn1.affine", "tdnn1.relu", "tdnn2.affine", "input", "swish", "Swish"}
	for _, c := range []struct{ name, want string }{
		{"tdnn1.afine", "tdnn1.affine"}, {"tdnn1.rleu", "tdnn1.relu"}, {"Swihs", "Swish"}, {"swihs", "swish"}, {"inptu", "input"}, {"Input", "input"}, {"output", ""}, {"x", ""}, {"", ""},
	} {
		if got := spell.Nearest(c.name, names); got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
	long := strings.Repeat("a", 1<<20) // would take hours
	if got := spell.Nearest(long, []string{long + "b", long}); got != "" {
		t.Errorf("a name of %d letters is taken for one of %d", len(long), len(got))
	}
}

func ExampleNearest() {
	fmt.Println(spell.Nearest("sofmtax", []string{"sigmoid", "softmax", "softplus"}))
	// Output: softmax
}
