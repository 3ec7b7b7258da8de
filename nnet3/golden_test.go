package nnet3

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// modelFiles returns the models in testdata and in the folder of reference cases that NNOPT_GOLDEN
// names.
func modelFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"testdata/*/*.raw", "testdata/*/*.mdl"} {
		f, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f...)
	}
	if len(files) == 0 {
		t.Fatal("no models in testdata")
	}
	return append(files, referenceFiles(t, "recipes/*/*.raw", "random/*/*.raw", "compute/*.raw", "compute/*.mdl")...)
}

// referenceFiles returns the matching files in the folder of reference cases that NNOPT_GOLDEN
// names.
func referenceFiles(t *testing.T, patterns ...string) []string {
	t.Helper()
	dir := os.Getenv("NNOPT_GOLDEN")
	if dir == "" {
		return nil
	}
	var files []string
	for _, p := range patterns {
		f, err := filepath.Glob(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f...)
	}
	return files
}

func readModelBytes(name string, data []byte) (*AmNnetSimple, *kaldiio.Reader, error) {
	r, err := kaldiio.NewReader(bytes.NewReader(data), name)
	if err != nil {
		return nil, nil, err
	}
	am, err := ReadModel(r)
	return am, r, err
}

func modelBytes(t *testing.T, am *AmNnetSimple, binary bool) []byte {
	t.Helper()
	var out bytes.Buffer
	w := kaldiio.NewWriter(&out, binary)
	w.Header()
	if err := am.Write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestModelRoundTrip reads Kaldi's models and writes them again. Every byte must be the same.
func TestModelRoundTrip(t *testing.T) {
	for _, file := range modelFiles(t) {
		t.Run(strings.TrimPrefix(filepath.ToSlash(file), "../"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			am, r, err := readModelBytes(file, data)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.PeekByte(); !errors.Is(err, kaldiio.ErrTruncated) {
				t.Errorf("reading stopped at byte %d of %d", r.Offset(), len(data))
			}
			got := modelBytes(t, am, r.Binary())
			if !bytes.Equal(got, data) {
				t.Fatal(firstDifference(data, got))
			}
			// The other form holds the same, up to the digits of text.
			other, r2, err := readModelBytes(file, modelBytes(t, am, !r.Binary()))
			if err != nil {
				t.Fatalf("reading back what was written: %v", err)
			}
			if a, b := modelBytes(t, am, false), modelBytes(t, other, false); !bytes.Equal(a, b) {
				t.Errorf("binary %v to binary %v and back: %s", r.Binary(), r2.Binary(), firstDifference(a, b))
			}
		})
	}
}

// firstDifference shows where two texts begin to differ.
func firstDifference(want, got []byte) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	around := func(b []byte) []byte { return b[max(0, min(i, len(b))-60):min(len(b), i+40)] }
	var b strings.Builder
	b.WriteString("differ at byte ")
	b.WriteString(strings.TrimSpace(strings.Join([]string{itoa(i), "of", itoa(len(want)), "and", itoa(len(got))}, " ")))
	b.WriteString("\nwant …" + quoteBytes(around(want)) + "\ngot  …" + quoteBytes(around(got)))
	return b.String()
}

// compareText compares texts word by word. Numbers may differ in their seventh digit: Kaldi keeps
// statistics as sums, so it multiplies them when reading and divides them when writing.
func compareText(t *testing.T, want, got []byte) {
	t.Helper()
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	if len(wantLines) != len(gotLines) {
		t.Fatalf("%d lines, want %d", len(gotLines), len(wantLines))
	}
	for i := range wantLines {
		w, g := strings.Split(wantLines[i], " "), strings.Split(gotLines[i], " ")
		if len(w) != len(g) {
			t.Fatalf("line %d: %.200q, want %.200q", i+1, gotLines[i], wantLines[i])
		}
		for j := range w {
			x, err1 := strconv.ParseFloat(w[j], 64)
			y, err2 := strconv.ParseFloat(g[j], 64)
			if w[j] != g[j] && (err1 != nil || err2 != nil || math.Abs(x-y) > 1e-6*math.Abs(x)) {
				t.Fatalf("line %d, word %d: %q, want %q", i+1, j+1, g[j], w[j])
			}
		}
	}
}

// TestTextOfModel compares our text of a binary model with Kaldi's.
func TestTextOfModel(t *testing.T) {
	files := []string{"testdata/compute/tdnnf.mdl", "testdata/compute/tdnnf_text.mdl"}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	am, _, err := readModelBytes(files[0], data)
	if err != nil {
		t.Fatal(err)
	}
	compareText(t, want, modelBytes(t, am, false))
	if am.LeftContext != 7 || am.RightContext != 7 {
		t.Errorf("contexts are %d and %d, want 7 and 7", am.LeftContext, am.RightContext)
	}
}

// configsIn returns the configs that a file is a sequence of: one begins where something is defined again.
func configsIn(text string) (configs []string) {
	seen := make(map[string]bool)
	start, next := 0, 0
	for line := range strings.Lines(text) {
		at := next
		next += len(line)
		words := strings.Fields(line)
		i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "name=") })
		if i < 0 {
			continue
		}
		item := fmt.Sprint(words[0] == "component", words[i])
		if seen[item] {
			configs = append(configs, text[start:at])
			start = at
			clear(seen)
		}
		seen[item] = true
	}
	return append(configs, text[start:])
}

// TestConfigGivesTheModel makes networks from the config lines of reference cases: nodes, their
// order and dimensions must be those of the model that Kaldi made from the same lines.
func TestConfigGivesTheModel(t *testing.T) {
	configs, err := filepath.Glob("testdata/*/*/model.config")
	if err != nil {
		t.Fatal(err)
	}
	configs = append(configs, referenceFiles(t, "recipes/*/model.config", "random/*/model.config")...)
	for _, file := range configs {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			config, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			nn := new(Nnet)
			for _, part := range configsIn(string(config)) {
				if err := nn.ReadConfig(strings.NewReader(part), file, 1); err != nil {
					t.Fatal(err)
				}
			}
			modelFile := filepath.Join(filepath.Dir(file), "model.raw")
			data, err := os.ReadFile(modelFile)
			if err != nil {
				t.Fatal(err)
			}
			am, _, err := readModelBytes(modelFile, data)
			if err != nil {
				t.Fatal(err)
			}
			lines := func(nn *Nnet) string {
				var all []string
				for i := range nn.Nodes {
					all = append(all, nn.ConfigLine(i))
				}
				first := len(all)
				for i, c := range nn.Components { // a line that replaces another changes their order
					all = append(all, nn.ComponentNames[i]+" "+c.Type()+" "+itoa(c.InputDim())+" "+itoa(c.OutputDim())+" "+c.Properties().String())
				}
				slices.Sort(all[first:])
				return strings.Join(all, "\n")
			}
			if got, want := lines(nn), lines(am.Nnet); normalized(got) != normalized(want) {
				t.Error(firstDifference([]byte(normalized(want)), []byte(normalized(got))))
			}
		})
	}
}
