package compile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/nnet3/index"
)

// TestLargeRequestFailsEarly asks deep networks for many rows that can't be computed. That must
// become clear before there is a row of every node for every output.
func TestLargeRequestFailsEarly(t *testing.T) {
	lines := []string{"input-node name=input dim=2"}
	last := "input"
	for i := range 60 {
		name := fmt.Sprintf("a%d", i)
		lines = append(lines, fmt.Sprintf("component name=%s type=TdnnComponent input-dim=2 output-dim=2 time-offsets=-1,1", name),
			fmt.Sprintf("component-node name=%s component=%s input=%s", name, name, last))
		last = name
	}
	nn := parse(t, append(lines, "output-node name=output input="+last)...)
	const rows = 80000
	gaps := func(n int32) (list []index.Index) {
		for n := range n {
			for t := int32(-60); t < rows+60; t += 7 {
				list = append(list, index.Index{N: n, T: t})
			}
		}
		return list
	}
	for _, c := range []struct {
		name  string
		given []index.Index
		text  string
	}{
		{"short", at(1, -60, 100), "for at least 8 of 80000 indexes, [(0,9999)"},
		{"gaps", gaps(1), "for at least 9 of 80000 indexes, [(0,0)"},
		{"almost all", at(1, -60, rows), "for at least 1 of 80000 indexes, [(0,79999)]; input \"input\" lacks at least 30 indexes"},
		{"another sequence", gaps(2), "for at least 9 of 80000 indexes"},
	} {
		req := ask(rowsOf{"input": c.given}, rowsOf{"output": at(1, 0, rows)})
		var err error
		used := alloctest.Bytes(func() { _, err = Compile(nn, req, Options{}) })
		if !errors.Is(err, ErrNotComputable) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", c.name, err, c.text)
		}
		if used > 100<<20 {
			t.Errorf("%s: %d bytes allocated", c.name, used)
		}
	}
}
