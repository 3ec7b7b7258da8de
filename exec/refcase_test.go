package exec_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/nnopt/nnopt/exec/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// refCase is a reference case: a problem with Kaldi's answer.
type refCase struct {
	Name, Family                               string
	Backward                                   bool
	Net, Gradient                              *nnet3.Nnet
	Request                                    *computation.Request
	Inputs, Outputs, OutputDerivs, InputDerivs []namedMatrix
}

type namedMatrix struct {
	Name   string
	Matrix kernel.Matrix
}

// readCase reads the case in a folder.
func readCase(dir string) (*refCase, error) {
	text, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		return nil, err
	}
	c := &refCase{Name: filepath.Base(dir)}
	if err := json.Unmarshal(text, &struct {
		Family   *string `json:"family"`
		Backward *bool   `json:"backward"`
	}{&c.Family, &c.Backward}); err != nil {
		return nil, err
	}
	if c.Net, err = readFile(dir, "model.raw", nnet3.ReadNnet); err != nil {
		return nil, err
	}
	if c.Request, err = computation.ReadRequestJSON(bytes.NewReader(text), computation.NewNetworkInfo(c.Net, nil)); err != nil {
		return nil, err
	}
	if c.Backward && c.Request.NeedModelDerivative {
		if c.Gradient, err = readFile(dir, "gradient.raw", nnet3.ReadNnet); err != nil {
			return nil, err
		}
	}
	for _, list := range []struct {
		to       *[]namedMatrix
		specs    []computation.IoSpecification
		kind     string
		backward bool
	}{
		{&c.Inputs, c.Request.Inputs, "input_", false},
		{&c.Outputs, c.Request.Outputs, "output_", false},
		{&c.InputDerivs, c.Request.Inputs, "input_deriv_", true},
		{&c.OutputDerivs, c.Request.Outputs, "output_deriv_", true},
	} {
		for _, s := range list.specs {
			if list.backward && !(c.Backward && s.HasDeriv) {
				continue
			}
			m, err := readFile(dir, list.kind+s.Name+".mat", (*kaldiio.Reader).Matrix)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, namedMatrix{s.Name, kernel.Matrix{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}})
		}
	}
	return c, nil
}

// readFile reads what is in a file of the folder.
func readFile[T any](dir, name string, read func(*kaldiio.Reader) (T, error)) (x T, err error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return x, err
	}
	defer f.Close()
	r, err := kaldiio.NewReader(f, name)
	if err != nil {
		return x, err
	}
	return read(r)
}
