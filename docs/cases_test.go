package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// TestCases: each of the 55 behaviours of Theano's graphs and rewriters that are carried over, or
// deliberately not, has a test that has its number in its name: TestCase07CyclesAreRefused, or
// "case 27: arguments move" in a table.
func TestCases(t *testing.T) {
	const cases = 55
	number := regexp.MustCompile(`func TestCase(\d+)|"case (\d+): `)
	found := make(map[int]bool)
	for _, room := range []string{"fgraph", "rewrite", "pattern", "optdb"} {
		files, err := filepath.Glob(filepath.Join("..", room, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range number.FindAllStringSubmatch(string(text), -1) {
				n, _ := strconv.Atoi(m[1] + m[2])
				found[n] = true
			}
		}
	}
	for n := 1; n <= cases; n++ {
		if !found[n] {
			t.Errorf("no test has the number of case %d", n)
		}
	}
}
