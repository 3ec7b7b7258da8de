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

// SpreadFile is the name of a file that says, by the names of cases, how far Kaldi is from itself.
const SpreadFile = "kaldi_spread.json"

// A Spread is how far Kaldi's answers to a case are from each other where OpenBLAS computes with the kernels of one processor or of
// another: the largest Difference.Relative of outputs, and of derivatives of inputs and gradients of components. Nobody can be asked to
// be nearer to Kaldi than that. Zero stands for a spread that is not known.
type Spread struct {
	Forward  float64 `json:"forward"`
	Backward float64 `json:"backward"`
}

// spreads is how many spreads an answer may differ by: Kaldi's, and ours, whose sums are in an order of their own.
const spreads = 2

// Bounds are the tolerances that outputs, derivatives of inputs and the gradient of a component agree within: what single precision
// leaves, or what the spread allows where that is more.
func (c *Case) Bounds() (output, derivative, gradient float64) {
	gradient = derivativeTolerance
	if strings.Contains(c.Family, "gru") {
		gradient = gruTolerance
	}
	forward, backward := spreads*c.Spread.Forward, spreads*c.Spread.Backward
	return max(outputTolerance, forward), max(derivativeTolerance, backward), max(gradient, backward)
}

// LoadDir reads the case in a folder, whose name is the case's, and its spread from the SpreadFile in the folder above, or in the one
// above that.
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
		file := filepath.Join(folder, SpreadFile)
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

// readSpread finds the spread of a case in the text of a SpreadFile.
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
