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

// TestTableInOrder: the table of a dialect reads in the order in which it runs, with the entries of a database behind it.
func TestTableInOrder(t *testing.T) {
	position := make(map[string]float64)
	for _, r := range table() {
		if r.in == "" {
			position[r.name] = r.position
		}
	}
	for _, rows := range [][]row{sharedRows(), modelRows(), networkRows(), tensorRows()} {
		var last []float64
		for _, r := range rows {
			at := []float64{r.position, 0}
			if r.in != "" {
				at = []float64{position[r.in], 1, r.position}
			}
			if slices.Compare(at, last) < 0 {
				t.Errorf("%s is too far down: it runs at %v, after %v", r.name, at, last)
			}
			last = at
		}
	}
}
