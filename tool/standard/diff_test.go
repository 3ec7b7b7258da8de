package standard_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
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
