package tool

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nnopt/nnopt/nnet3/computation"
)

var updateDiff = flag.Bool("update", false, "rewrite what is expected in testdata")

// TestCompileDiff compares what compile --diff prints with testdata/diff_*.txt, which -update
// rewrites.
func TestCompileDiff(t *testing.T) {
	config := file(t, "net.config", smallConfig)
	for _, test := range []struct {
		name  string
		args  []string
		marks string // that must occur
	}{
		{"forward", nil, "=-+*>"},
		{"backward", []string{"--need-model-derivative"}, "=-+*"},
		{"moved", []string{"--need-model-derivative", "--query=+storage +consolidate_model_update"}, "=-+"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"compile", "--diff", "--width=120", "--frames-per-chunk=6"}, test.args...)
			got := nnopt(t, append(args, config)...).ok(t).stdout
			seen := map[string]bool{}
			for i, line := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
				if i == 0 {
					continue
				}
				if utf8.RuneCountInString(line) > 120 {
					t.Errorf("line %d is too long: %s", i+1, line)
				}
				if runes := []rune(line); len(runes) > 59 {
					seen[string(runes[59])] = true
				}
			}
			for _, mark := range test.marks {
				if !seen[string(mark)] {
					t.Errorf("no line has the mark %c", mark)
				}
			}
			golden := filepath.Join("testdata", "diff_"+test.name+".txt")
			if *updateDiff {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := readFile(t, golden); got != want {
				t.Errorf("%s is different:\n%s", golden, got)
			}
		})
	}
	nnopt(t, "compile", "--diff", "--width=1", config).ok(t)
}

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
