package standard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes"
)

// TestAblation: the tables have a line for every pass for nnet3, and leaving out the plan of the
// storage costs commands.
func TestAblation(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	out := nnopt(t, "passes", "--ablation", recipes+"/xvector_infer").ok(t).stdout
	entries, without, _ := strings.Cut(out, "| without |")
	for _, l := range passes.Default().Entries() {
		if !slices.Contains(l.Tags, "nnet3") {
			continue
		}
		contains(t, entries, "| `"+l.Name+"` | ")
		contains(t, without, "| `"+l.Name+"` | ")
	}
	contains(t, entries, "| `extend_matrices` | 61 | fast_run storage | ", " | `extend-matrices` |")
	for _, line := range strings.Split(without, "\n") {
		if strings.HasPrefix(line, "| `plan_storage` | ") && !strings.HasPrefix(line, "| `plan_storage` | +") {
			t.Errorf("no more commands without a plan: %s", line)
		}
	}
	nnopt(t, "passes", "--ablation").fails(t, statusUsage, "no reference case", "DIR... expected")
	nnopt(t, "passes", "--ablation", t.TempDir()).fails(t, statusFault, "not a reference case")
}
