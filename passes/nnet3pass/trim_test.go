package nnet3pass_test

import (
	"testing"

	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
	"github.com/nnopt/nnopt/optdb"
)

// TestTrimInputs: a copy of a part of an input stays only where it lowers the peak.
func TestTrimInputs(t *testing.T) {
	const rows = `
component f 3x12 simple
component g 12x40 simple
m1 6x3
m2 2x3
m3 2x12
m4 2x40
accept m1 for a
m2 = undefined(2, 3)
m2 = m1(2:3, :)
m3 = undefined(2, 12)
m3 = f.Propagate(m2)
m1 = []
m2 = []
`
	fast := optdb.Include("fast_run").Lenient()
	for _, c := range []struct {
		name, code              string
		moreCommands, lessBytes int64
	}{
		{"the peak is where the input is read", rows + "provide m3 for b", 3, 4 * (6*3 + 2*12 - 2*3 - 2*12)},
		{"the peak is elsewhere", rows + "m4 = undefined(2, 40)\nm4 = g.Propagate(m3)\nm3 = []\nprovide m4 for b", 0, 0},
	} {
		compiled, net := computationtest.MustParse(t, c.code)
		with, without := runEntry(t, compiled, net, fast).c.Counts(), runEntry(t, compiled, net, fast.Excluding("trim_inputs")).c.Counts()
		if got := int64(with.Commands - without.Commands); got != c.moreCommands {
			t.Errorf("%s: %d more commands, want %d", c.name, got, c.moreCommands)
		}
		if got := without.MaxMemoryBytes - with.MaxMemoryBytes; got != c.lessBytes {
			t.Errorf("%s: %d fewer bytes, want %d", c.name, got, c.lessBytes)
		}
	}
}
