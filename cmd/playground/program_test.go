package main

import (
	"bytes"
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tool/standard"
)

// TestProgramHasNothingOfIt: the program nnopt and its pages are without what only this page has.
func TestProgramHasNothingOfIt(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", module+"cmd/nnopt").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < 50 {
		t.Fatalf("nnopt has %d packages", len(packages))
	}
	for _, p := range packages {
		if strings.HasPrefix(p, module+"cmd/playground") || p == "syscall/js" {
			t.Errorf("nnopt has the package %s", p)
		}
	}
	var page, faults bytes.Buffer
	cfg := standard.Program{}.Config()
	if code := cfg.Run(t.Context(), []string{"view", first, "--vars=" + variables}, nil, &page, &faults); code != 0 {
		t.Fatal(faults.String())
	}
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if bytes.Contains(page.Bytes(), text) {
			t.Errorf("a page of nnopt has %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
