package networks

import (
	"testing"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// TestAlignCommands: what is elsewhere on the other side has moved, and both sides say where.
func TestAlignCommands(t *testing.T) {
	x, y, z := diffCommand{typ: computation.Propagate, what: 1}, diffCommand{typ: computation.Propagate, what: 2}, diffCommand{typ: computation.Propagate, what: 3}
	rows := alignCommands([]diffCommand{x, y, z}, []diffCommand{y, z, x})
	if len(rows) != 4 {
		t.Fatalf("%d rows, want 4", len(rows))
	}
	if r := rows[0]; r.mark != markMoved || r.left != 0 || r.other != 2 {
		t.Errorf("the first one: %c, to %d", r.mark, r.other)
	}
	if r := rows[3]; r.mark != markMoved || r.right != 2 || r.other != 0 {
		t.Errorf("the last one: %c, from %d", r.mark, r.other)
	}
}
