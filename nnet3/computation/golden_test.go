package computation_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

func readGolden(t testing.TB, file string) (*computation.Computation, []computation.ComponentInfo) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, infos, err := computationtest.ReadJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c, infos
}

// kaldiCounts are Kaldi's figures before and after its own optimizer.
type kaldiCounts struct{ Unoptimized, Optimized computation.Counts }

// goldenRoots are the folders of reference cases: those that come with the project, and those in
// the folder that the environment variable NNOPT_GOLDEN names, if it is set.
func goldenRoots() []string {
	roots := []string{"../testdata"}
	if all := os.Getenv("NNOPT_GOLDEN"); all != "" {
		roots = append(roots, all)
	}
	return roots
}

// TestGolden reads Kaldi's computations of the reference cases: what it compiled passes the checker
// with the rewrite check, what it optimized without it; our figures are those that Kaldi gives;
// what is written in Kaldi's format is read back.
func TestGolden(t *testing.T) {
	for _, root := range goldenRoots() {
		// Some of the cases that come with the project leave the computations out.
		files, err := filepath.Glob(filepath.Join(root, "*/*/computation.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Errorf("no computations in %s", root)
		}
		for _, file := range files {
			dir := filepath.Dir(file)
			data, err := os.ReadFile(filepath.Join(dir, "case.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want struct{ Kaldi kaldiCounts }
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			checkGolden(t, filepath.Join(dir, "computation.json"), want.Kaldi.Unoptimized, true)
			checkGolden(t, filepath.Join(dir, "computation_optimized.json"), want.Kaldi.Optimized, false)
		}
	}
}

// TestGoldenFullSize is TestGolden for full-size networks, in the folder models beside the
// reference cases.
func TestGoldenFullSize(t *testing.T) {
	models := filepath.Join(os.Getenv("NNOPT_GOLDEN"), "../models")
	data, err := os.ReadFile(filepath.Join(models, "kaldi-fullsize.json"))
	if err != nil {
		t.Skip("the full-size computations are not here")
	}
	var want map[string]struct{ Kaldi kaldiCounts }
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(models, "computations/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		network, stage, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), ".")
		counts := want[network].Kaldi.Optimized
		if stage == "compiled" {
			counts = want[network].Kaldi.Unoptimized
		}
		checkGolden(t, file, counts, stage == "compiled")
	}
}

func checkGolden(t *testing.T, file string, want computation.Counts, rewrite bool) {
	t.Helper()
	c, infos := readGolden(t, file)
	if err := computation.Check(c, &computation.NetworkInfo{Components: infos}, computation.CheckOptions{Rewrite: rewrite}); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	if diff := cmp.Diff(want, c.Counts()); diff != "" {
		t.Errorf("%s: counts differ (-want +got):\n%s", file, diff)
	}
	var buf bytes.Buffer
	w := kaldiio.NewWriter(&buf, true)
	w.Header()
	if err := errors.Join(c.Write(w), w.Flush()); err != nil {
		t.Fatal(err)
	}
	r, err := kaldiio.NewReader(&buf, file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := computation.Read(r)
	if err != nil {
		t.Fatalf("%s, written again: %v", file, err)
	}
	// The comparison of all of a computation takes long; print it only where something differs.
	if !cmp.Equal(c.Commands, again.Commands) || !cmp.Equal(c.Submatrices, again.Submatrices) || !cmp.Equal(c.IndexesMulti, again.IndexesMulti, cmpopts.EquateEmpty()) {
		t.Errorf("%s, written again: %s", file, cmp.Diff(c, again))
	}
}

// TestPrintGolden compares a printed computation of a reference case with a text to be reviewed.
func TestPrintGolden(t *testing.T) {
	c, infos := readGolden(t, "../testdata/recipes/attention_infer/computation_optimized.json")
	var buf bytes.Buffer
	if err := computation.Print(&buf, c, &computation.NetworkInfo{Components: infos}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/attention_infer.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), buf.String()); diff != "" {
		t.Errorf("attention_infer (-want +got):\n%s", diff)
	}
}
