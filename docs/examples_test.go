package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/proctest"
)

// TestNewPass runs the example of a new pass in a module of its own, where it sees what is exported
// and nothing else. Adding the pass must be a matter of a few lines.
func TestNewPass(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	proctest.NeedsPrograms(t)
	source, err := os.ReadFile("examples/newpass/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "// begin\n")
	lines, _, ok := strings.Cut(rest, "// end\n")
	if n := strings.Count(lines, "\n"); !ok || n >= 40 {
		t.Errorf("the pass takes %d lines between begin and end, want less than 40", n)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	ours := strings.TrimSuffix(module, "/")
	text := strings.Replace(string(mod), "module "+ours, "module example.com/newpass", 1) +
		"\nrequire " + ours + " v0.0.0\n\nreplace " + ours + " => " + root + "\n"
	dir := t.TempDir()
	for name, data := range map[string][]byte{"main.go": source, "go.mod": []byte(text), "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"+fast_run -fusion: 6 commands", "relu_of_relu made 1 of 3 nodes unnecessary", "nb_node (start, end, changed) (3, 2, 1)", "+fast_run -fusion -idempotent: 7 commands"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}
