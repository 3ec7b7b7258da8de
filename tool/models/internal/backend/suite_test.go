package backend_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tool/models/internal/backend"
)

// least is how many tests of each kind have to pass.
var least = map[string]int{"node": 910, "simple": 21, "pytorch-converted": 82, "pytorch-operator": 35}

var cases = flag.String("cases", "", "a folder of further cases, all of which have to agree")

// TestCases runs the cases of a folder.
func TestCases(t *testing.T) {
	if *cases == "" {
		t.Skip("without -cases")
	}
	folders, err := filepath.Glob(*cases + "/*/model.onnx")
	if err != nil || len(folders) == 0 {
		t.Fatal(err)
	}
	for _, query := range []string{"none", "fast_run", "debug"} {
		opt := passtest.ForModels(t, query)
		for _, f := range folders {
			if err := runFolder(t.Context(), filepath.Dir(f), opt, false); err != nil {
				t.Errorf("%s under %s: %.500v", filepath.Base(filepath.Dir(f)), query, err)
			}
		}
	}
}

// TestSuite runs ONNX's own tests, as they are and optimized.
func TestSuite(t *testing.T) {
	if _, err := os.Stat(suite); err != nil {
		t.Skip("there are no tests of ONNX")
	}
	for _, kind := range slices.Sorted(maps.Keys(least)) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			folders, err := filepath.Glob(suite + kind + "/*")
			if err != nil || len(folders) == 0 {
				t.Fatal(err)
			}
			if !longtest.Enabled() { // all at once
				runFolders(t, kind, folders, "fast_run", true)
				return
			}
			for _, query := range []string{"none", "fast_run"} {
				runFolders(t, kind, folders, query, false)
			}
			runFolders(t, kind, folders, "none", true)
		})
	}
}

// runFolders runs tests of a kind with the passes of a query.
func runFolders(t *testing.T, kind string, folders []string, query string, again bool) {
	opt := passtest.ForModels(t, query)
	passed, reasons := 0, make(map[string][]string)
	for i := 0; i < len(folders); i++ {
		if err := runFolder(t.Context(), folders[i], opt, again); err != nil {
			text, _, _ := strings.Cut(err.Error(), "\n")
			reasons[text] = append(reasons[text], filepath.Base(folders[i]))
		} else {
			passed++
		}
	}
	t.Logf("%s: %d of %d", query, passed, len(folders))
	for _, text := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("%s: %v", text, reasons[text])
	}
	if passed < least[kind] {
		t.Errorf("%s: %d pass, and %d did", query, passed, least[kind])
	}
}

// rewritten returns the model that is written of the graph of nodes of a model.
func rewritten(m *onnx.Model, dir string) (*onnx.Model, error) {
	g, err := ir.Import(m, ir.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	// A change that changes nothing, since without any the model itself would be written.
	n := len(g.Outputs())
	if err := errors.Join(g.AddOutput(g.Outputs()[0], fgraph.Reason{}), g.RemoveOutput(n, fgraph.Reason{})); err != nil {
		return nil, err
	}
	return ir.Export(g)
}

// runFolder runs a test of ONNX. If again is set, the model is first written again.
func runFolder(ctx context.Context, folder string, opt *optdb.Optimizer, again bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("PANIC: %v", p)
		}
	}()
	c, err := backend.Load(folder)
	if err != nil {
		return err
	}
	if again {
		if c.Model, err = rewritten(c.Model, folder); err != nil {
			return fmt.Errorf("written again: %w", err)
		}
	}
	return c.Run(ctx, "", session.Options{Optimizer: opt}).Err
}
