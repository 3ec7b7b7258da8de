package refcase

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// errCase means that a folder is not a reference case, or that its files don't fit together.
var errCase = errors.New("not a reference case")

// A Case is a problem with Kaldi's answer.
type Case struct {
	Name    string
	family  string // the kind of network, such as "tdnnf"
	Net     *nnet3.Nnet
	Request *computation.Request
	// Backward asks for derivatives.
	Backward bool
	// Inputs, in the order of the request, and OutputDerivs are the inputs of the forward and of
	// the backward pass.
	Inputs, OutputDerivs []pipeline.Named
	// Outputs, InputDerivs and Gradient (nil if it is not requested) are Kaldi's answers.
	Outputs, InputDerivs []pipeline.Named
	Gradient             *nnet3.Nnet
	// unoptimized and optimized are the sizes of Kaldi's computation.
	unoptimized, optimized computation.Counts
	// spread is how far Kaldi's answers are from each other. Load leaves it zero.
	spread spread
	// Threads is the number of threads of a run; 0 means 1.
	Threads int
}

// header is the part of case.json beside the request.
type header struct {
	Family   string `json:"family"`
	Backward bool   `json:"backward"`
	Kaldi    struct {
		Unoptimized computation.Counts `json:"unoptimized"`
		Optimized   computation.Counts `json:"optimized"`
	} `json:"kaldi"`
}

// Load reads the case in a folder. name is the name of the case, which precedes names of files in
// errors.
func Load(folder fs.FS, name string) (*Case, error) {
	c := &Case{Name: name}
	f, err := open(folder, name, "case.json")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := fileio.ReadAll(f, "case.json", fileio.MaxText)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errCase, name, err)
	}
	var h header
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errCase, path.Join(name, "case.json"), err)
	}
	c.family, c.Backward = h.Family, h.Backward
	c.unoptimized, c.optimized = h.Kaldi.Unoptimized, h.Kaldi.Optimized
	if c.Net, err = readNet(folder, name, "model.raw"); err != nil {
		return nil, err
	}
	if c.Request, err = computation.ReadRequestJSON(bytes.NewReader(text), computation.NewNetworkInfo(c.Net, nil)); err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(name, "case.json"), err)
	}
	if err := c.readMatrices(folder); err != nil {
		return nil, err
	}
	if c.Backward && c.Request.NeedModelDerivative {
		c.Gradient, err = readNet(folder, name, "gradient.raw")
	}
	return c, err
}

// readMatrices reads the matrices of the request. The error lists all that are missing or wrong.
func (c *Case) readMatrices(folder fs.FS) error {
	var errs *multierror.Error
	read := func(list *[]pipeline.Named, kind string, spec *computation.IoSpecification) {
		m, err := readMatrix(folder, c.Name, kind+"_"+spec.Name+".mat")
		cols := c.Net.OutputDim(c.Net.NodeIndex(spec.Name))
		if err == nil && (m.Rows != len(spec.Indexes) || m.Cols != cols) {
			err = fmt.Errorf("%w: %s/%s_%s.mat is %d×%d, the request says %d×%d",
				errCase, c.Name, kind, spec.Name, m.Rows, m.Cols, len(spec.Indexes), cols)
		}
		if err != nil {
			errs = multierror.Append(errs, err)
			return
		}
		*list = append(*list, pipeline.Named{Name: spec.Name, Matrix: m})
	}
	for i := range c.Request.Inputs {
		spec := &c.Request.Inputs[i]
		read(&c.Inputs, "input", spec)
		if c.Backward && spec.HasDeriv {
			read(&c.InputDerivs, "input_deriv", spec)
		}
	}
	for i := range c.Request.Outputs {
		spec := &c.Request.Outputs[i]
		read(&c.Outputs, "output", spec)
		if c.Backward && spec.HasDeriv {
			read(&c.OutputDerivs, "output_deriv", spec)
		}
	}
	return errs.ErrorOrNil()
}

// open opens a file of the named case.
func open(folder fs.FS, name, file string) (fs.File, error) {
	f, err := folder.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errCase, name, err)
	}
	return f, nil
}

func readNet(folder fs.FS, name, file string) (*nnet3.Nnet, error) {
	f, err := open(folder, name, file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	nn, _, err := pipeline.LoadFrom(f, path.Join(name, file), 0)
	return nn, err
}

func readMatrix(folder fs.FS, name, file string) (kernel.Matrix, error) {
	f, err := open(folder, name, file)
	if err != nil {
		return kernel.Matrix{}, err
	}
	defer f.Close()
	r, err := kaldiio.NewReader(f, path.Join(name, file))
	if err != nil {
		return kernel.Matrix{}, err
	}
	m, err := r.Matrix()
	return kernel.Matrix(m), err
}

// Find returns the folders of cases, relative to root and in alphabetical order: dir itself if it
// holds a case.json, or else each folder in dir that does.
func Find(root fs.FS, dir string) ([]string, error) {
	if isCase(root, dir) {
		return []string{dir}, nil
	}
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if sub := path.Join(dir, e.Name()); !strings.HasPrefix(e.Name(), ".") && isCase(root, sub) {
			found = append(found, sub)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: there is no case.json", errCase)
	}
	return found, nil
}

func isCase(root fs.FS, dir string) bool {
	info, err := fs.Stat(root, path.Join(dir, "case.json"))
	return err == nil && info.Mode().IsRegular()
}
