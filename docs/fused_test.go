package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// TestNothingIsFused: the compiler for arm64 finds no product that it may fuse with a sum, so that
// the bits are those of amd64. A product that is rounded explicitly, float64(x*y) + z, is not
// fused; what shall be is written as math.FMA.
func TestNothingIsFused(t *testing.T) {
	longtest.Only(t)
	for _, place := range fused(t, "..") {
		t.Errorf("%s: a product is fused with a sum on some processors; round it explicitly", place)
	}
	// The compiler still reports what it fuses.
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"m.go":   "package m\n\nfunc F(x, y, z float64) float64 { return x*y + z }\n\nfunc G(x, y, z float64) float64 { return float64(x*y) - z }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found := fused(t, dir); len(found) != 1 {
		t.Errorf("of a product that is fused and one that is not, the compiler reports %q", found)
	}
}

// TestElementaryFunctions: whose bits package math has otherwise on other processors, is computed
// by package elementary.
func TestElementaryFunctions(t *testing.T) {
	differs := regexp.MustCompile(`\bmath\.(Log(2|10|1p|b)?|(Exp|Pow|A?[sS]in|A?[cC]os|A?[tT]an|Erf|L?[gG]amma|Cbrt|Hypot|J|Y)\w*)\b`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.ToSlash(path), "/kernel/elementary/") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, call := range differs.FindAll(text, -1) {
			t.Errorf("%s: %s has other bits on other processors, package elementary has not", path, call)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fused returns where the compiler for arm64 fuses products and sums in the packages of a module.
func fused(t *testing.T, dir string) (places []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-gcflags=-d=fmahash=vy", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range regexp.MustCompile(`(?m)^fmahash triggered (.*) [01]+$`).FindAllSubmatch(out, -1) {
		places = append(places, string(m[1]))
	}
	return places
}
