package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/proctest"
)

// TestNewPass runs the example of a new pass in a module of its own, where it sees what is exported
// and nothing else. Adding the pass must be a matter of a few lines.
func TestNewPass(t *testing.T) {
	longtest.Only(t)
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
	mod := "module example.com/newpass\n\nrequire " + strings.TrimSuffix(module, "/") + " v0.0.0\n"
	out := goCommand(t, map[string][]byte{"main.go": source, "go.mod": []byte(mod)}, "run", ".")
	for _, want := range []string{"+fast_run -fusion: 6 commands", "relu_of_relu made 1 of 3 nodes unnecessary", "nb_node (start, end, changed) (3, 2, 1)", "+fast_run -fusion -idempotent: 7 commands"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// TestModules runs the tests of examples that are modules of their own outside of this one.
func TestModules(t *testing.T) {
	longtest.Only(t)
	proctest.NeedsPrograms(t)
	for _, name := range []string{"owntool", "relalg"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testModule(t, "examples/"+name)
		})
	}
}

// TestRelalgLength: a dialect with all that the tools can use is short.
func TestRelalgLength(t *testing.T) {
	lines := 0
	files, err := filepath.Glob("examples/relalg/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			lines += bytes.Count(text, []byte("\n"))
		}
	}
	if lines == 0 || lines > 600 {
		t.Errorf("examples/relalg has %d lines", lines)
	}
}

func testModule(t *testing.T, dir string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte)
	for _, f := range list {
		if files[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if out := goCommand(t, files, "test", "-count=1", "."); !strings.HasPrefix(out, "ok") {
		t.Error(out)
	}
}

// goCommand runs the go command in a new folder with the files of a module that uses this one.
func goCommand(t *testing.T, files map[string][]byte, args ...string) (output string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	var mod []byte
	for line := range bytes.Lines(files["go.mod"]) {
		if !bytes.HasPrefix(line, []byte("replace ")) {
			mod = append(mod, line...)
		}
	}
	files["go.mod"] = fmt.Appendf(mod, "\nreplace %s => %s\n", strings.TrimSuffix(module, "/"), root)
	files["go.sum"] = append(files["go.sum"], sum...)
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{args[0], "-mod=mod"}, args[1:]...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
