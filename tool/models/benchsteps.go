package models

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
)

// stepFlags say how the sizes of inputs change from call to call.
type stepFlags struct {
	steps  int
	states []session.State
	grow   []string
	sizes  string
}

func declareSteps(fs *flag.FlagSet) *stepFlags {
	f := new(stepFlags)
	fs.IntVar(&f.steps, "steps", 0, "Run so many times, each with states of the run before, and report the time of each")
	fs.Func("state", "OUT=IN: with --steps, an output that is an input of the next run; may be given more than once", func(text string) error {
		out, in, ok := strings.Cut(text, "=")
		if !ok {
			return tool.Usagef("%s is not OUT=IN", fileio.Excerpt(text, 0))
		}
		f.states = append(f.states, session.State{Output: out, Input: in})
		return nil
	})
	fs.Func("grow", "NAME: with --steps, an input whose last axis gets one element more in each run, the last one again; may be given more than once", func(name string) error {
		f.grow = append(f.grow, name)
		return nil
	})
	fs.StringVar(&f.sizes, "sizes", "", "A file with the sizes of a call on each line, NAME=1x17 NAME=1x17; integers are 1 then, and floats 0.1")
	return f
}

// asked reports whether calls of changing sizes are to be measured.
func (f *stepFlags) asked() bool { return f.steps > 0 || f.sizes != "" }

// A stepsReport is the output of bench onnx --json with --steps or --sizes.
type stepsReport struct {
	StepSeconds []float64 `json:"step_seconds"`
	Functions   int       `json:"functions"` // how many were made
	// Sizes says why no function for any sizes could be made.
	Sizes string `json:"sizes,omitempty"`
}

// run measures the calls.
func (f *stepFlags) run(ctx context.Context, m *onnx.Model, options session.Options, inputs func() (map[string]*array.Array, error)) (*stepsReport, error) {
	options.AnySizes = true
	s := session.New(m, options)
	var err error
	r := &stepsReport{}
	if f.sizes != "" {
		err = f.eachSize(m, func(in map[string]*array.Array) error {
			return r.measure(func() error { _, _, err := s.Run(ctx, in); return err })
		})
	} else {
		err = f.eachStep(ctx, s, r, inputs)
	}
	made, why := s.Functions()
	if r.Functions = made; why != nil {
		r.Sizes = why.Error()
	}
	return r, err
}

func (r *stepsReport) measure(run func() error) error {
	start := time.Now()
	err := run()
	r.StepSeconds = append(r.StepSeconds, time.Since(start).Seconds())
	return err
}

// eachStep runs with the states of the run before.
func (f *stepFlags) eachStep(ctx context.Context, s *session.Session, r *stepsReport, inputs func() (map[string]*array.Array, error)) error {
	in, err := inputs()
	if err != nil {
		return err
	}
	for _, name := range f.grow {
		if in[name] == nil || in[name].NDim() == 0 || in[name].Len() == 0 {
			return tool.Usagef("--grow: there is no input %s with elements", fileio.Excerpt(name, 0))
		}
	}
	run := func(in map[string]*array.Array) error { _, _, err := s.Run(ctx, in); return err }
	if len(f.states) > 0 {
		stateful, err := s.NewStateful(f.states...)
		if err != nil {
			return err
		}
		run = func(in map[string]*array.Array) error { _, err := stateful.Run(ctx, in); return err }
	}
	in = maps.Clone(in)
	for range f.steps {
		if err := r.measure(func() error { return run(in) }); err != nil {
			return err
		}
		for _, s := range f.states {
			delete(in, s.Input)
		}
		for _, name := range f.grow {
			in[name] = grown(in[name])
		}
	}
	return nil
}

// grown returns an array with the last element of each row twice.
func grown(a *array.Array) *array.Array {
	shape := append([]int(nil), a.Shape()...)
	k := len(shape) - 1
	n := shape[k]
	shape[k]++
	b := array.New(a.DType(), shape...)
	for i := range b.Len() {
		row, column := i/(n+1), min(i%(n+1), n-1)
		if a.DType().IsFloat() {
			b.SetFloat(i, a.Float(row*n+column))
		} else {
			b.SetInt(i, a.Int(row*n+column))
		}
	}
	return b
}

// eachSize runs with inputs of the sizes that the lines of a file say.
func (f *stepFlags) eachSize(m *onnx.Model, run func(in map[string]*array.Array) error) error {
	file, err := os.Open(f.sizes)
	if err != nil {
		return err
	}
	defer file.Close()
	types := make(map[string]ir.Type)
	for _, in := range m.Graph.Inputs {
		types[in.Name] = ir.FromProto(in.Type)
	}
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		in := make(map[string]*array.Array)
		for _, part := range strings.Fields(lines.Text()) {
			name, text, _ := strings.Cut(part, "=")
			t, known := types[name]
			if !known || !t.IsTensor() {
				return fmt.Errorf("%s:%d: the model has no input %s; it has %s", f.sizes, n, fileio.Excerpt(name, 0), inputNames(m))
			}
			shape, err := parseShape(text)
			if err == nil {
				in[name], err = filled(t.Elem(), shape)
			}
			if err != nil {
				return fmt.Errorf("%s:%d: %s: %w", f.sizes, n, fileio.Excerpt(part, 0), err)
			}
		}
		if len(in) == 0 {
			continue
		}
		if err := run(in); err != nil {
			return fmt.Errorf("%s:%d: %w", f.sizes, n, err)
		}
	}
	return lines.Err()
}

// filled returns an array of ones, or of 0.1 if its elements are floats.
func filled(t onnx.DataType, shape []int) (*array.Array, error) {
	a, err := lower.NewArray(t)
	if err != nil {
		return nil, err
	}
	v := 1.0
	if a.DType().IsFloat() {
		v = 0.1
	}
	n := 1
	for _, k := range shape {
		if k > maxFilled || n*max(k, 1) > maxFilled {
			return nil, fmt.Errorf("%w: more than %d elements", tensor.ErrShape, maxFilled)
		}
		n *= max(k, 1)
	}
	return array.Full(a.DType(), v, shape...), nil
}

// maxFilled bounds the elements of an input that is made of sizes alone.
const maxFilled = 1 << 30

// print prints the report for people.
func (r *stepsReport) print(c *tool.Console) error {
	var sum float64
	for i, s := range r.StepSeconds {
		c.Print("%-16s %14s\n", fmt.Sprintf("call %d", i+1), duration(s))
		sum += s
	}
	c.Print("%d functions for %d calls, %s in all\n", r.Functions, len(r.StepSeconds), duration(sum))
	if r.Sizes != "" {
		c.Print("none is for any sizes: %s\n", r.Sizes)
	}
	return nil
}

// benchSteps measures calls of changing sizes and prints what they took.
func (o Options) benchSteps(ctx context.Context, c *tool.Console, steps *stepFlags, model string, m *onnx.Model, options session.Options, a *argumentFlags, asJSON bool) error {
	r, err := steps.run(ctx, m, options, func() (map[string]*array.Array, error) {
		inputs, _, err := o.arguments(a, m)
		return inputs, err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(model), err)
	}
	if asJSON {
		return tool.WriteJSON(c.Stdout, r)
	}
	return r.print(c)
}
