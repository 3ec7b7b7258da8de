package compile

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// reporter is the common part of testing.TB and rapid.T.
type reporter interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// compareShortcut checks that the computation is the same with and without the shortcut.
func compareShortcut(t reporter, nn *nnet3.Nnet, req *computation.Request) {
	t.Helper()
	short, err := Compile(nn, req, Options{DebugInfo: true})
	if err != nil {
		t.Fatal(err)
	}
	long, err := Compile(nn, req, Options{DebugInfo: true, NoShortcut: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(long, short, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("with the shortcut (+) and without (-):\n%s", diff)
	}
}

// TestShortcutGolden compiles the reference cases with and without the shortcut.
func TestShortcutGolden(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c := readGolden(t, dir)
			compareShortcut(t, c.nn, c.req)
		})
	}
}
