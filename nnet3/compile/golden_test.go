package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// goldenCase is a reference case: a network, a request, and what Kaldi compiles from them.
type goldenCase struct {
	name string
	nn   *nnet3.Nnet
	info *computation.NetworkInfo
	req  *computation.Request
	want computation.Counts
}

// goldenDirs returns the folders of the reference cases of the project and of those in the folder
// that the environment variable NNOPT_GOLDEN names, if it is set.
func goldenDirs(t testing.TB) []string {
	t.Helper()
	var dirs []string
	seen := map[string]bool{}
	roots := []string{"../testdata/*", "../testdata/*/*"}
	if env := os.Getenv("NNOPT_GOLDEN"); env != "" {
		roots = append(roots, filepath.Join(env, "recipes/*"), filepath.Join(env, "random/*"))
	}
	for _, root := range roots {
		found, err := filepath.Glob(filepath.Join(root, "case.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			if dir := filepath.Dir(file); !seen[filepath.Base(dir)] {
				seen[filepath.Base(dir)] = true
				dirs = append(dirs, dir)
			}
		}
	}
	if len(dirs) == 0 {
		t.Skip("no reference cases")
	}
	return dirs
}

// readGolden reads a reference case. It skips the test if the network has unknown components.
func readGolden(t testing.TB, dir string) *goldenCase {
	t.Helper()
	c := &goldenCase{name: filepath.Base(dir)}
	model, err := os.ReadFile(filepath.Join(dir, "model.raw"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := kaldiio.NewReader(bytes.NewReader(model), dir)
	if err != nil {
		t.Fatal(err)
	}
	if c.nn, err = nnet3.ReadNnet(r); errors.Is(err, nnet3.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	c.info = computation.NewNetworkInfo(c.nn, nil)
	text, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	if c.req, err = computation.ReadRequestJSON(bytes.NewReader(text), c.info); err != nil {
		t.Fatal(err)
	}
	var figures struct {
		Kaldi struct {
			Unoptimized computation.Counts `json:"unoptimized"`
		} `json:"kaldi"`
	}
	if err := json.Unmarshal(text, &figures); err != nil {
		t.Fatal(err)
	}
	c.want = figures.Kaldi.Unoptimized
	return c
}

// TestGolden compiles the reference cases. The computations pass the checker and are as large as
// Kaldi's.
func TestGolden(t *testing.T) {
	for _, dir := range goldenDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			c := readGolden(t, dir)
			got, err := Compile(c.nn, c.req, Options{DebugInfo: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := computation.Check(got, c.info, computation.CheckOptions{Rewrite: true}); err != nil {
				t.Error(err)
			}
			compareCounts(t, got.Counts(), c.want)
		})
	}
}
