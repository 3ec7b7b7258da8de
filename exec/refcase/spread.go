package refcase

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// spreadFile is the name of a file with the spreads of cases, by name.
const spreadFile = "kaldi_spread.json"

// A Spread is how far Kaldi's answers to a case are from each other if OpenBLAS uses the kernels of
// different processors: the largest Difference.Relative of outputs, and of derivatives of inputs
// and gradients of components. No engine can be expected to be closer to Kaldi than that. Zero
// means unknown.
type Spread struct {
	Forward  float64 `json:"forward"`
	Backward float64 `json:"backward"`
}

// spreads is how many spreads an answer may differ by: Kaldi's, and ours, because our sums have
// another order.
const spreads = 2

// Bounds returns the tolerances for outputs, for derivatives of inputs and for the gradient of a
// component: those of single precision, or larger ones that the spread allows.
func (c *Case) Bounds() (output, derivative, gradient float64) {
	gradient = derivativeTolerance
	if strings.Contains(c.Family, "gru") {
		gradient = gruTolerance
	}
	forward, backward := spreads*c.Spread.Forward, spreads*c.Spread.Backward
	return max(outputTolerance, forward), max(derivativeTolerance, backward), max(gradient, backward)
}

// LoadDir reads the case in a folder with the name of the case, and its spread from
// kaldi_spread.json in the parent folder, or in its parent.
func LoadDir(dir string) (*Case, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c, err := Load(os.DirFS(abs), filepath.Base(abs))
	if err != nil {
		return nil, err
	}
	parent := filepath.Dir(abs)
	for _, folder := range []string{parent, filepath.Dir(parent)} {
		file := filepath.Join(folder, spreadFile)
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.Spread, err = readSpread(text, c.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		break
	}
	return c, nil
}

// readSpread returns the spread of a case from the text of a spreadFile.
func readSpread(text []byte, name string) (Spread, error) {
	var all map[string]Spread
	if err := json.Unmarshal(text, &all); err != nil {
		return Spread{}, err
	}
	s := all[name]
	if s.Forward < 0 || s.Backward < 0 {
		return Spread{}, fmt.Errorf("the spread of %s is negative", name)
	}
	return s, nil
}
