package passes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/optdb"
)

// TestTableIsChecked: positions that contradict a declared order, and databases that do not exist, are errors.
func TestTableIsChecked(t *testing.T) {
	rows := table()
	for i := range rows {
		if rows[i].name == "pack_matrices" {
			rows[i].position = 64.5
		}
	}
	if _, err := assemble(rows); !errors.Is(err, optdb.ErrOrder) || !strings.Contains(err.Error(), "pack_matrices") {
		t.Errorf("pack_matrices before allocate_from_other: %v", err)
	}
	if _, err := assemble(append(table(), row{in: "nowhere", name: "lost"})); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("an entry of no database: %v", err)
	}
}

// TestTableHasAll: every rule and pass of package nnet3pass is in the table.
func TestTableHasAll(t *testing.T) {
	rows := table()
	for name := range rewriters() {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.name == name && r.rewriter == nil }) {
			t.Errorf("%s is not in the table", name)
		}
	}
}
