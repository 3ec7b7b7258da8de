package docs

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/proctest"
)

// TestCoreStandsAlone: whoever uses the core links the standard library and go-multierror, and of
// this module only the core itself and what is internal.
func TestCoreStandsAlone(t *testing.T) {
	proctest.NeedsPrograms(t)
	core := []string{"fgraph", "rewrite", "pattern", "optdb", "profile", "internal"}
	args := []string{"list", "-deps"}
	for _, name := range core[:5] {
		args = append(args, module+name)
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		own, isOwn := strings.CutPrefix(path, module)
		top, _, _ := strings.Cut(own, "/")
		domain, _, _ := strings.Cut(path, "/")
		allowed := !strings.Contains(domain, ".") || strings.HasPrefix(path, "github.com/hashicorp/")
		if isOwn {
			allowed = false
			for _, name := range core {
				allowed = allowed || top == name
			}
		}
		if !allowed {
			t.Errorf("the core depends on %s", path)
		}
	}
}
