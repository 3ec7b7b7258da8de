package backend

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrCase means that a folder is no case.
var ErrCase = errors.New("not a case of ONNX")

// A Case is a model with data sets.
type Case struct {
	Name  string // of the folder
	Dir   string
	Model *onnx.Model
	Sets  []Set
}

// A Set has values of the inputs, and what the outputs should be.
type Set struct {
	Name    string // of the folder
	Inputs  map[string]*array.Array
	Outputs []Output
}

// An Output is what an output should be.
type Output struct {
	Name  string
	Elem  onnx.DataType // of the elements, which Value may hold in a larger type
	Value *array.Array
}

const (
	modelFile = "model.onnx"
	setPrefix = "test_data_set_"
)

// Find lists the case in a folder, or the cases in its folders. There may be none.
func Find(dir string) ([]string, error) {
	if isCase(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if sub := filepath.Join(dir, e.Name()); !strings.HasPrefix(e.Name(), ".") && isCase(sub) {
			found = append(found, sub)
		}
	}
	return found, nil
}

func isCase(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, modelFile))
	return err == nil && info.Mode().IsRegular()
}

// Load reads a case.
func Load(dir string) (*Case, error) {
	c := &Case{Name: nameOf(dir), Dir: dir}
	var err error
	if c.Model, err = onnx.ReadFile(filepath.Join(dir, modelFile)); err != nil {
		return nil, err
	}
	sets, err := numbered(dir, setPrefix, "")
	if err != nil {
		return nil, err
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("%w: %s has no folder %s0", ErrCase, dir, setPrefix)
	}
	for _, s := range sets {
		set, err := c.set(s.name)
		if err != nil {
			return nil, err
		}
		c.Sets = append(c.Sets, *set)
	}
	return c, nil
}

func nameOf(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}

// A numberedFile is a file with a number in its name.
type numberedFile struct {
	name   string
	number int
}

// numbered lists the files in a folder whose names have a number between prefix and suffix, in the
// order of the numbers.
func numbered(dir, prefix, suffix string) ([]numberedFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []numberedFile
	for _, e := range entries {
		text, has := strings.CutPrefix(e.Name(), prefix)
		text, ends := strings.CutSuffix(text, suffix)
		if n, err := strconv.Atoi(text); has && ends && err == nil && n >= 0 {
			files = append(files, numberedFile{e.Name(), n})
		}
	}
	slices.SortFunc(files, func(a, b numberedFile) int { return cmp.Or(a.number-b.number, strings.Compare(a.name, b.name)) })
	return files, nil
}

// set reads a data set.
func (c *Case) set(name string) (*Set, error) {
	dir := filepath.Join(c.Dir, name)
	s := &Set{Name: name, Inputs: make(map[string]*array.Array)}
	inputs, err := readValues(dir, "input_", inputsOf(c.Model.Graph))
	if err != nil {
		return nil, err
	}
	for _, v := range inputs {
		s.Inputs[v.Name] = v.Value
	}
	if s.Outputs, err = readValues(dir, "output_", c.Model.Graph.Outputs); err != nil {
		return nil, err
	}
	if len(s.Outputs) == 0 && !slices.ContainsFunc(c.Model.Graph.Outputs, func(v *onnx.ValueInfo) bool { return !isTensor(v) }) {
		return nil, fmt.Errorf("%w: %s has no output_0.pb", ErrCase, dir)
	}
	return s, nil
}

// inputsOf returns the inputs that have values in a data set: first those without an initializer.
// Values of the others take the place of the initializers.
func inputsOf(g *onnx.Graph) []*onnx.ValueInfo {
	initial := g.Initial()
	var needed, optional []*onnx.ValueInfo
	for _, in := range g.Inputs {
		if initial[in.Name] {
			optional = append(optional, in)
		} else {
			needed = append(needed, in)
		}
	}
	return append(needed, optional...)
}

// readValues reads the values of inputs or outputs, those of the numbers that have a file. A tensor
// that names another one of them is the value of that.
func readValues(dir, prefix string, of []*onnx.ValueInfo) ([]Output, error) {
	files, err := numbered(dir, prefix, ".pb")
	if err != nil {
		return nil, err
	}
	values := make([]Output, 0, len(files))
	tensors := make([]*onnx.Tensor, len(files))
	byName := make(map[string]int)
	for i, f := range files {
		file := filepath.Join(dir, f.name)
		if f.number < len(of) && !isTensor(of[f.number]) {
			if t := of[f.number].Type; !isList(t) && t.Optional == nil {
				return nil, fmt.Errorf("%s: %w: %s is of type %v", file, lower.ErrUnsupported, fileio.Excerpt(of[f.number].Name, 0), t)
			}
			list, err := ReadItems(file, dir, of[f.number])
			if err != nil {
				return nil, err
			}
			values = append(values, list...)
			continue
		}
		if tensors[i], err = lower.ReadTensor(file); err != nil {
			return nil, err
		}
		byName[tensors[i].Name]++
	}
	for i, f := range files {
		t, k := tensors[i], f.number
		if t == nil { // read above
			continue
		}
		// Files are numbered by inputs, but some writers leave numbers out, so a name says more, if only one
		// tensor has it.
		named := slices.IndexFunc(of, func(v *onnx.ValueInfo) bool { return v.Name == t.Name })
		if named >= 0 && byName[t.Name] == 1 {
			k = named
		}
		if k >= len(of) {
			return nil, fmt.Errorf("%w: %s has %s, and the model has %d of them", ErrCase, dir, f.name, len(of))
		}
		// NumPy has no bfloat16, so ONNX before 1.13 wrote the bits as integers.
		if v := of[k].Type; v != nil && v.Tensor != nil && v.Tensor.Elem == onnx.BFloat16 && t.DataType == onnx.Uint16 {
			t.DataType = onnx.BFloat16
		}
		a, err := lower.ArrayOf(t, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, f.name), err)
		}
		values = append(values, Output{of[k].Name, t.DataType, a})
	}
	return values, nil
}

// isTensor reports whether a type is that of tensors, or unknown.
func isTensor(v *onnx.ValueInfo) bool { return v.Type == nil || v.Type.Tensor != nil }
