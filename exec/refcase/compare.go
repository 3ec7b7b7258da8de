package refcase

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
)

// A matrix agrees with Kaldi's within a tolerance ([pipeline.Difference.Agrees]) that allows for sums
// in another order in single precision. Kaldi randomizes the backward pass of gated recurrent
// units (self-repair), and two of its runs differ by up to 9e-4. A larger spread of the case
// replaces a tolerance.
const (
	outputTolerance     = 1e-4
	derivativeTolerance = 1e-3
	gruTolerance        = 5e-3
)

// compareParameters calls yield with the difference of the parameters of each updatable component
// of two networks.
func compareParameters(ours, kaldi *nnet3.Nnet, yield func(name string, d pipeline.Difference)) error {
	for i, k := range kaldi.Components {
		want, ok := k.(component.UpdatableComponent)
		if !ok {
			continue
		}
		name := kaldi.ComponentNames[i]
		j := ours.ComponentIndex(name)
		if j < 0 {
			return fmt.Errorf("%w: gradient.raw has a component %s, which the model does not have", errCase, name)
		}
		have, ok := ours.Components[j].(component.UpdatableComponent)
		if !ok {
			return fmt.Errorf("%w: component %s is updatable in gradient.raw only", errCase, name)
		}
		d, err := pipeline.CompareParameters(have, want)
		if err != nil {
			return fmt.Errorf("%w: component %s has other parameters in gradient.raw: %w", errCase, name, err)
		}
		yield(name, d)
	}
	return nil
}

// spreadFile is the name of a file with the spreads of cases, by name.
const spreadFile = "kaldi_spread.json"

// A spread is how far Kaldi's answers to a case are from each other if OpenBLAS uses the kernels of
// different processors: the largest Difference.Relative of outputs, and of derivatives of inputs
// and gradients of components. No engine can be expected to be closer to Kaldi than that. Zero
// means unknown.
type spread struct {
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
	if strings.Contains(c.family, "gru") {
		gradient = gruTolerance
	}
	forward, backward := spreads*c.spread.Forward, spreads*c.spread.Backward
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
		c.spread, err = readSpread(text, c.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		break
	}
	return c, nil
}

// readSpread returns the spread of a case from the text of a spreadFile.
func readSpread(text []byte, name string) (spread, error) {
	var all map[string]spread
	if err := json.Unmarshal(text, &all); err != nil {
		return spread{}, err
	}
	s := all[name]
	if s.Forward < 0 || s.Backward < 0 {
		return spread{}, fmt.Errorf("the spread of %s is negative", name)
	}
	return s, nil
}
