package main

import (
	"bytes"
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/tool/view"
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
	var page bytes.Buffer
	if err := view.WritePage(&page, &view.Recording{Format: view.Format, Version: view.Version}); err != nil {
		t.Fatal(err)
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
