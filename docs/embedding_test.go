package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/proctest"
)

// TestEmbedding: the program on the page is the one that is built, it links the core and nothing else,
// prints what the page says, and has the size that the page says.
func TestEmbedding(t *testing.T) {
	proctest.NeedsPrograms(t)
	page, err := os.ReadFile("embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("examples/embedding/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(source)+"```\n") {
		t.Error("the program on the page is not examples/embedding/main.go")
	}
	deps, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./examples/embedding").Output()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for path := range strings.Lines(string(deps)) {
		switch p, ours := strings.CutPrefix(strings.TrimSpace(path), module); {
		case ours && !strings.HasPrefix(p, "internal/") && p != "docs/examples/embedding":
			own = append(own, p)
		case !ours && strings.Contains(p, ".") && p != "github.com/hashicorp/go-multierror" && p != "github.com/hashicorp/errwrap" && !strings.HasPrefix(p, "vendor/"):
			t.Errorf("it links %s", p)
		}
	}
	if got := strings.Join(own, " "); got != "fgraph profile rewrite pattern optdb" {
		t.Errorf("it links %s", got)
	}

	longtest.Only(t)
	program := filepath.Join(t.TempDir(), "embedding")
	for size, flags := range map[string]string{"4.3": "", "2.9": "-s -w"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-ldflags="+flags, "-o", program, "./examples/embedding")
		build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		info, err := os.Stat(program)
		if err != nil {
			t.Fatal(err)
		}
		// The compiler decides about the last digit.
		if mb := float64(info.Size()) / 1e6; mb > 1.05*map[string]float64{"4.3": 4.3, "2.9": 2.9}[size] {
			t.Errorf("with -ldflags=%q it has %.1f MB, not %s", flags, mb, size)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", "./examples/embedding").CombinedOutput()
	if err != nil || !strings.Contains(string(page), "```text\n"+string(out)+"```\n") {
		t.Errorf("it prints\n%s%v", out, err)
	}
}
