package models

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/models/internal/backend"
)

// argumentFlags say which values the inputs of a model have.
type argumentFlags struct {
	files  map[string]string
	shapes map[string][]int
	values map[string]setting
	seed   uint64
	// fixDefaults makes constants of inputs that are initializers.
	fixDefaults bool
}

// A setting is the value that a flag gives an input: the numbers of a tensor or, for a sequence, of each of its
// tensors; or that there is none.
type setting struct {
	none    bool
	tensors [][]float64
}

// String returns the text that parseSetting reads.
func (s setting) String() string {
	if s.none {
		return none
	}
	text := func(list []float64) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]") }
	return strings.Join(lists.Map(s.tensors, text), ";")
}

func declareArguments(fs *flag.FlagSet) *argumentFlags {
	a := &argumentFlags{shapes: make(map[string][]int), values: make(map[string]setting)}
	a.declareFiles(fs)
	a.declareGiven(fs, "the shape of an input whose value is random", "the value of an input")
	fs.Uint64Var(&a.seed, "srand", 0, "Seed of random inputs")
	return a
}

// declareFiles declares the flag for values in files.
func (a *argumentFlags) declareFiles(fs *flag.FlagSet) {
	a.files = make(map[string]string)
	fs.Func("input", "NAME=FILE: the value of an input, from a tensor of ONNX (.pb), a sequence of them or an array of NumPy (.npy); may be given more than once", func(text string) error {
		return entry(a.files, text, "FILE", func(file string) (string, error) { return file, nil })
	})
}

// declareGiven declares the flags that fix sizes and values of inputs.
func declareGiven(fs *flag.FlagSet) *argumentFlags {
	a := &argumentFlags{shapes: make(map[string][]int), values: make(map[string]setting)}
	a.declareGiven(fs, "the sizes of an input of a model, for all runs", "the value of an input of a model, for all runs")
	return a
}

func (a *argumentFlags) declareGiven(fs *flag.FlagSet, shape, value string) {
	fs.BoolVar(&a.fixDefaults, "fix-defaults", false, "Make constants of inputs that are also initializers, such as the weights of old files: nobody can give them other values then")
	fs.Func("shape", "NAME=1x3x8: "+shape+"; may be given more than once", func(text string) error {
		return entry(a.shapes, text, "1x3x8", parseShape)
	})
	fs.Func("set", "NAME=VALUE: "+value+", a number or several with commas between them; of a sequence, tensors with semicolons between them; of an optional input also none; may be given more than once", func(text string) error {
		return entry(a.values, text, "VALUE", parseSetting)
	})
}

// entry adds NAME=… to a map.
func entry[T any](m map[string]T, text, what string, parse func(string) (T, error)) error {
	// A name may have a "=" in it, and no value has one, but for a file.
	i := strings.LastIndex(text, "=")
	if what == "FILE" {
		i = strings.Index(text, "=")
	}
	if i <= 0 {
		return fmt.Errorf("want NAME=%s", what)
	}
	name := text[:i]
	if _, twice := m[name]; twice {
		return fmt.Errorf("%s is given twice", fileio.Excerpt(name, 0))
	}
	v, err := parse(text[i+1:])
	m[name] = v
	return err
}

func parseShape(text string) ([]int, error) {
	shape := []int{}
	if text == "" { // of a scalar
		return shape, nil
	}
	for part := range strings.SplitSeq(text, "x") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, errors.New("a shape is sizes with an x between them, such as 1x3x8")
		}
		shape = append(shape, n)
	}
	return shape, nil
}

// parseSetting reads a setting. An empty text is an empty sequence.
func parseSetting(text string) (setting, error) {
	s := setting{none: text == none}
	if s.none || text == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(text, ";") {
		list, err := parseNumbers(part)
		if err != nil {
			return s, err
		}
		s.tensors = append(s.tensors, list)
	}
	return s, nil
}

func parseNumbers(text string) ([]float64, error) {
	var list []float64
	for part := range strings.SplitSeq(text, ",") {
		switch part {
		case "true":
			part = "1"
		case "false":
			part = "0"
		}
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", fileio.Excerpt(part, 0))
		}
		list = append(list, v)
	}
	return list, nil
}

// given reports whether a flag says something about an input.
func (a *argumentFlags) given(name string) bool {
	return slices.Contains(a.names(), name)
}

// sets reports whether a flag gives the value of an input.
func (a *argumentFlags) sets(name string) bool {
	_, ok := a.values[name]
	return ok
}

// names lists the inputs that the flags name.
func (a *argumentFlags) names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a.files)), maps.Keys(a.shapes))
	names = slices.AppendSeq(names, maps.Keys(a.values))
	slices.Sort(names)
	return slices.Compact(names)
}

// arguments returns the values of the inputs of a model: what the flags say, and random ones for
// inputs that have neither a flag nor an initializer. drawn lists those.
func (a *argumentFlags) arguments(m *onnx.Model) (args map[string]*array.Array, drawn []string, err error) {
	args = make(map[string]*array.Array)
	initial := m.Graph.Initial()
	var faults []error
	for _, name := range a.names() {
		if !slices.ContainsFunc(m.Graph.Inputs, func(in *onnx.ValueInfo) bool { return in.Name == name }) {
			faults = append(faults, tool.Usagef("the model has no input %s; it has %s", fileio.Excerpt(name, 0), inputNames(m)))
		}
	}
	// Sizes that the model gives a name are the same in all inputs.
	sizes := make(map[string]int64)
	for _, in := range m.Graph.Inputs {
		t, _ := present(ir.FromProto(in.Type))
		_, sequence, _ := t.ElementOf()
		if file := a.files[in.Name]; file != "" && sequence {
			items, err := backend.ReadItems(file, filepath.Dir(file), in)
			if err != nil {
				faults = append(faults, err)
			}
			for _, item := range items {
				args[item.Name] = item.Value
			}
		} else if file != "" {
			v, err := readArray(file)
			if err != nil {
				faults = append(faults, err)
				continue
			}
			args[in.Name] = v
			note(sizes, t, v.Shape())
		} else if shape := a.shapes[in.Name]; shape != nil {
			note(sizes, t, shape)
		}
	}
	if faults != nil { // a file that can't be read says nothing about sizes
		return nil, nil, errors.Join(faults...)
	}
	rng := rand.New(rand.NewPCG(a.seed, 0x0991))
	for _, in := range m.Graph.Inputs {
		switch {
		case args[in.Name] != nil || initial[in.Name] && !a.given(in.Name) || a.files[in.Name] != "":
			continue
		case !a.sets(in.Name):
			drawn = append(drawn, in.Name)
		}
		v, err := a.make(in, sizes, rng)
		if err == nil {
			err = give(args, in.Name, ir.FromProto(in.Type), v)
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	return args, drawn, errors.Join(faults...)
}

// arguments returns the values of the inputs of a model that is to be run, see argumentFlags.arguments. Before it
// asks for sizes, it names the operators that can't be computed.
func (o Options) arguments(a *argumentFlags, m *onnx.Model) (args map[string]*array.Array, drawn []string, err error) {
	if args, drawn, err = a.arguments(m); err == nil {
		return args, drawn, nil
	}
	var faults []error
	gaps, _ := session.Unsupported(m, o.lowering("", nil)) // what is wrong with nodes, running says
	for _, g := range gaps {
		if g.Op != "" {
			faults = append(faults, errors.New(g.String()))
		}
	}
	return nil, nil, errors.Join(append(faults, err)...)
}

// present returns the type of a value that is there, of a type that may be optional.
func present(t ir.Type) (of ir.Type, optional bool) {
	if elem, _, optional := t.ElementOf(); optional {
		return elem, true
	}
	return t, false
}

// inputNames lists the inputs of a model.
func inputNames(m *onnx.Model) string {
	names := lists.Map(m.Graph.Inputs, func(in *onnx.ValueInfo) string { return fileio.Excerpt(in.Name, 0) })
	if len(names) > 20 {
		names = append(names[:20], "…")
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// note keeps the sizes that an input gives names.
func note(sizes map[string]int64, t ir.Type, shape []int) {
	dims, _ := t.Shape()
	if len(dims) != len(shape) {
		return
	}
	for i, d := range dims {
		if name, ok := d.Symbolic(); ok {
			sizes[name] = int64(shape[i])
		}
	}
}

// make makes the value of an input that has no file. An optional one has a value unless that is said to be none.
func (a *argumentFlags) make(in *onnx.ValueInfo, sizes map[string]int64, rng *rand.Rand) (any, error) {
	name, given := fileio.Excerpt(in.Name, 0), a.values[in.Name]
	t, optional := present(ir.FromProto(in.Type))
	elem, sequence, _ := t.ElementOf()
	switch {
	case given.none && optional:
		return nothing{}, nil
	case given.none:
		return nil, tool.Usagef("--set %s: it is %v, which has to have a value", name, in.Type)
	case t.IsTensor():
		var numbers []float64
		if a.sets(in.Name) {
			if len(given.tensors) != 1 {
				return nil, tool.Usagef("--set %s: %d tensors, and it is %v", name, len(given.tensors), in.Type)
			}
			numbers = given.tensors[0]
		}
		return a.tensor(in, t, numbers, sizes, rng)
	case !sequence || !elem.IsTensor():
		return nil, fmt.Errorf("input %s is of type %v, which can't be made; give its value: --input %s=FILE", name, in.Type, name)
	}
	if !a.sets(in.Name) {
		given.tensors = make([][]float64, drawnItems)
	}
	l := list{}
	for _, numbers := range given.tensors {
		v, err := a.tensor(in, elem, numbers, sizes, rng)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	return l, nil
}

// tensor makes a tensor of the value of an input: of numbers, one for all elements or one for each, or else random.
func (a *argumentFlags) tensor(in *onnx.ValueInfo, t ir.Type, numbers []float64, sizes map[string]int64, rng *rand.Rand) (*array.Array, error) {
	name := fileio.Excerpt(in.Name, 0)
	shape, ok := a.shapes[in.Name], true
	if shape == nil {
		if shape, ok = shapeOf(t, sizes); !ok && len(numbers) > 0 {
			shape, ok = []int{len(numbers)}, true
			if len(numbers) == 1 && t.Rank() <= 0 {
				shape = nil
			}
		}
	}
	if !ok {
		return nil, tool.Usagef("input %s is %v, which has no sizes; give its shape: --shape %s=%s, or its value: --input %s=FILE", name, in.Type, name, exampleShape(t), name)
	}
	v, err := lower.NewArray(t.Elem(), shape...)
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", name, err)
	}
	if n := len(numbers); n > 1 && n != v.Len() {
		return nil, tool.Usagef("--set %s: %d numbers for shape %v", name, n, shape)
	}
	if numbers == nil {
		fill(v, rng)
		return v, nil
	}
	for i := range v.Len() {
		v.SetFloat(i, numbers[i%len(numbers)])
	}
	return v, nil
}

// shapeOf returns the shape of a type. ok is false if it has unknown sizes.
func shapeOf(t ir.Type, sizes map[string]int64) (shape []int, ok bool) {
	dims, ranked := t.Shape()
	shape = make([]int, len(dims))
	for i, d := range dims {
		n, known := d.Eval(sizes)
		shape[i], ranked = int(n), ranked && known
	}
	return shape, ranked
}

// exampleShape returns a shape with 1 for unknown sizes.
func exampleShape(t ir.Type) string {
	dims, ranked := t.Shape()
	if !ranked {
		return "1x3x8"
	}
	var parts []string
	for _, d := range dims {
		n, known := d.Number()
		if !known {
			n = 1
		}
		parts = append(parts, strconv.FormatInt(n, 10))
	}
	return strings.Join(parts, "x")
}

// readArray reads a tensor of ONNX or an array of NumPy.
func readArray(file string) (*array.Array, error) {
	if strings.EqualFold(filepath.Ext(file), ".npy") {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		a, err := parseNumPy(data)
		if err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
		return a, err
	}
	t, err := lower.ReadTensor(file)
	if err != nil {
		return nil, err
	}
	a, err := lower.ArrayOf(t, filepath.Dir(file))
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return a, err
}

// defaultsOf counts the inputs of a model that are initializers, too. These are defaults, which whoever runs the
// model may replace. Files of before version 4 of the format have all weights among the inputs.
func defaultsOf(m *onnx.Model) int {
	return len(m.Graph.Inputs) - len(m.FixDefaults().Graph.Inputs)
}

// tellDoubts says what the file of a model does not tell though results depend on it.
func tellDoubts(c *tool.Console, m *onnx.Model, name string) {
	for _, d := range ir.Doubts(m, filepath.Dir(name)) {
		c.Say("%s: warning: %s", name, d)
	}
}

// read reads a model, and makes its defaults constants if the flag says so. defaults counts them.
func (a *argumentFlags) read(name string) (m *onnx.Model, defaults int, err error) {
	if m, err = onnx.ReadFile(name); err != nil || m.Graph == nil {
		return m, 0, err
	}
	if defaults = defaultsOf(m); defaults > 0 && a.fixDefaults {
		m = m.FixDefaults()
	}
	return m, defaults, nil
}
