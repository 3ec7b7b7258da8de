package exec_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// TestDerivatives compares derivatives with differences, and checks the destinations of gradients
// and statistics.
func TestDerivatives(t *testing.T) {
	nn := parseNet(t, smallNet)
	c := compileSmall(t, nn, true)
	p, err := exec.NewProgram(c, nn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.NewComputer(exec.ComputerOptions{}); !errors.Is(err, exec.ErrOptions) {
		t.Errorf("nothing to update: got %v", err)
	}
	if _, err := p.NewComputer(exec.ComputerOptions{ToUpdate: parseNet(t, threeInputs)}); !errors.Is(err, exec.ErrOptions) {
		t.Errorf("another network to update: got %v", err)
	}
	g := gradientOf(nn)
	stats := gradientOf(nn)
	comp := newComputer(t, c, nn, exec.ComputerOptions{ToUpdate: g, Stats: stats, Poison: true})
	r := rand.New(rand.NewPCG(3, 3))
	x, dy := random(r, 20, 5), random(r, 10, 3)
	// The derivative is that of the sum of y∘dy.
	value := func() float64 {
		comp.Reset()
		accept(t, comp, "input", x)
		run(t, comp)
		return kernel.MatrixDot(output(t, comp, "output"), dy)
	}
	value()
	accept(t, comp, "output", dy)
	run(t, comp)
	dx := kernel.Clone(output(t, comp, "input"))
	if !comp.Done() {
		t.Error("not done after the backward pass")
	}
	const step = 1e-2
	difference := func(p *float32) float64 {
		old := *p
		*p = old + step
		up := value()
		*p = old - step
		down := value()
		*p = old
		return (up - down) / (2 * step)
	}
	for i := 0; i < len(x.Data); i += 7 {
		if want, got := difference(&x.Data[i]), float64(dx.Data[i]); math.Abs(want-got) > 1e-2*(1+math.Abs(want)) {
			t.Errorf("derivative of input %d is %g, the difference %g", i, got, want)
		}
	}
	for k := range nn.Components {
		u, ok := nn.Components[k].(component.UpdatableComponent)
		if !ok {
			continue
		}
		got := g.Components[k].(component.UpdatableComponent).Params()
		for p, param := range u.Params() {
			for i := 0; i < len(param.Values.Data); i += 5 {
				if want, got := difference(&param.Values.Data[i]), float64(got[p].Values.Data[i]); math.Abs(want-got) > 1e-2*(1+math.Abs(want)) {
					t.Errorf("%s: derivative of %s %d is %g, the difference %g", nn.ComponentNames[k], param.Name, i, got, want)
				}
			}
		}
	}
	relu := nn.ComponentIndex("relu")
	if info := component.Info(stats.Components[relu]); info == component.Info(gradientOf(nn).Components[relu]) {
		t.Errorf("no statistics were stored: %s", info)
	}
	if a, b := component.Info(nn.Components[relu]), component.Info(g.Components[relu]); a != component.Info(parseNet(t, smallNet).Components[relu]) || a != b {
		t.Errorf("statistics were stored in the wrong place: %s, %s", a, b)
	}
}

// TestFromFile: a computation from a file computes the same, with indexes that are precomputed
// again.
func TestFromFile(t *testing.T) {
	nn := parseNet(t, smallNet)
	c := compileSmall(t, nn, false)
	var buf bytes.Buffer
	w := kaldiio.NewWriter(&buf, true)
	w.Header()
	c.Write(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	rd, err := kaldiio.NewReader(&buf, "test")
	if err != nil {
		t.Fatal(err)
	}
	again, err := computation.Read(rd)
	if err != nil {
		t.Fatal(err)
	}
	x := random(rand.New(rand.NewPCG(3, 3)), 20, 5)
	var outs [2][]float32
	for i, c := range []*computation.Computation{c, again} {
		comp := newComputer(t, c, nn, exec.ComputerOptions{})
		accept(t, comp, "input", x)
		run(t, comp)
		outs[i] = slices.Clone(output(t, comp, "output").Data)
	}
	if !slices.Equal(outs[0], outs[1]) {
		t.Errorf("got %v, want %v", outs[1], outs[0])
	}
}

// TestStride: an input may have any stride, and is copied while it is accepted.
func TestStride(t *testing.T) {
	nn := parseNet(t, smallNet)
	p, err := exec.NewProgram(compileSmall(t, nn, false), nn)
	if err != nil {
		t.Fatal(err)
	}
	x := random(rand.New(rand.NewPCG(3, 3)), 20, 5)
	wide := random(rand.New(rand.NewPCG(4, 4)), 20, 9)
	kernel.Copy(kernel.Cols(wide, 2, 5), x)
	var outs [2][]float32
	for i, in := range []kernel.Matrix{x, kernel.Cols(wide, 2, 5)} {
		comp, err := p.NewComputer(exec.ComputerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		accept(t, comp, "input", in)
		run(t, comp)
		kernel.Fill(in, float32(math.NaN()))
		outs[i] = slices.Clone(output(t, comp, "output").Data)
	}
	if !slices.Equal(outs[0], outs[1]) {
		t.Errorf("got %v, want %v", outs[1], outs[0])
	}
}

// TestNoAllocation: a computer that is used again allocates nothing. In training components may
// allocate, but no matrices.
func TestNoAllocation(t *testing.T) {
	nn := parseNet(t, smallNet)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, train := range []bool{false, true} {
		opts := exec.ComputerOptions{Workspace: new(exec.Workspace)}
		if train {
			opts.ToUpdate = gradientOf(nn)
		}
		comp := newComputer(t, compileSmall(t, nn, train), nn, opts)
		x, dy := kernel.New(20, 5), kernel.New(10, 3)
		once := func() {
			comp.Reset()
			err := comp.AcceptInput("input", x)
			if err == nil {
				err = comp.Run(ctx)
			}
			if err == nil && train {
				if err = comp.AcceptInput("output", dy); err == nil {
					err = comp.Run(ctx)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		once()
		bytes := opts.Workspace.Bytes()
		if n := testing.AllocsPerRun(20, once); n != 0 && !train && !raceDetector {
			t.Errorf("%g allocations a run", n)
		}
		if now := opts.Workspace.Bytes(); now != bytes {
			t.Errorf("train %v: memory grew from %d to %d bytes", train, bytes, now)
		}
	}
}

// TestConcurrent: one program, many computers at once, equal bits.
func TestConcurrent(t *testing.T) {
	nn := parseNet(t, smallNet)
	p, err := exec.NewProgram(compileSmall(t, nn, false), nn)
	if err != nil {
		t.Fatal(err)
	}
	x := random(rand.New(rand.NewPCG(3, 3)), 20, 5)
	outs := make([][]float32, 8)
	var wg sync.WaitGroup
	for i := range outs {
		wg.Go(func() {
			comp, err := p.NewComputer(exec.ComputerOptions{})
			for range 10 {
				if err == nil {
					comp.Reset()
					err = comp.AcceptInput("input", x)
				}
				if err == nil {
					err = comp.Run(context.Background())
				}
			}
			var y kernel.Matrix
			if err == nil {
				y, err = comp.Output("output")
			}
			if err != nil {
				t.Error(err)
				return
			}
			outs[i] = slices.Clone(y.Data)
		})
	}
	wg.Wait()
	for i := range outs {
		if !slices.Equal(outs[i], outs[0]) {
			t.Errorf("computer %d differs", i)
		}
	}
}

// TestFaults: mistakes of callers are errors, and leave the computer usable.
func TestFaults(t *testing.T) {
	nn := parseNet(t, smallNet)
	comp := newComputer(t, compileSmall(t, nn, false), nn, exec.ComputerOptions{})
	x := kernel.New(20, 5)
	for name, m := range map[string]kernel.Matrix{
		"inptu": x, "output": x, "input": kernel.New(19, 5),
	} {
		if err := comp.AcceptInput(name, m); !errors.Is(err, exec.ErrIO) {
			t.Errorf("input %s of %dx%d: got %v", name, m.Rows, m.Cols, err)
		}
	}
	for _, m := range []kernel.Matrix{
		{Rows: 20, Cols: 5, Stride: 5, Data: make([]float32, 99)},
		{Rows: 20, Cols: 5, Stride: 4, Data: make([]float32, 100)},
		{Rows: 20, Cols: 5, Stride: -5, Data: make([]float32, 100)},
		{Rows: 20, Cols: 4, Stride: 5, Data: make([]float32, 100)},
	} {
		if err := comp.AcceptInput("input", m); !errors.Is(err, exec.ErrIO) {
			t.Errorf("a matrix %dx%d with stride %d: got %v", m.Rows, m.Cols, m.Stride, err)
		}
	}
	if _, err := comp.Output("output"); !errors.Is(err, exec.ErrIO) {
		t.Errorf("an output before its time: got %v", err)
	}
	if _, err := comp.Output("input"); !errors.Is(err, exec.ErrIO) {
		t.Errorf("an output that is none: got %v", err)
	}
	err := comp.Run(context.Background())
	var failed *exec.CommandError
	if !errors.Is(err, exec.ErrIO) || !errors.As(err, &failed) || !strings.Contains(failed.Text, "for input") {
		t.Errorf("no input: got %v", err)
	}
	if err := comp.Run(context.Background()); !errors.Is(err, exec.ErrState) {
		t.Errorf("after a failure: got %v", err)
	}
	comp.Reset()
	accept(t, comp, "input", x)
	if err := comp.AcceptInput("input", x); !errors.Is(err, exec.ErrIO) {
		t.Errorf("an input twice: got %v", err)
	}
	run(t, comp)
	output(t, comp, "output")
	for !comp.Done() {
		run(t, comp)
	}
	if err := comp.Run(context.Background()); !errors.Is(err, exec.ErrState) {
		t.Errorf("after the end: got %v", err)
	}
	if err := comp.AcceptInput("input", x); !errors.Is(err, exec.ErrState) {
		t.Errorf("an input after the end: got %v", err)
	}
}

// TestProgramFaults: NewProgram rejects unsound computations.
func TestProgramFaults(t *testing.T) {
	nn := parseNet(t, smallNet)
	c := compileSmall(t, nn, false)
	broken := *c
	broken.Commands = slices.Clone(c.Commands)
	for i, cmd := range broken.Commands {
		if cmd.Type == computation.AllocMatrix {
			broken.Commands[i] = computation.NewCommand(computation.NoOperation)
			break
		}
	}
	if _, err := exec.NewProgram(&broken, nn); !errors.Is(err, exec.ErrProgram) {
		t.Errorf("got %v", err)
	}
	if _, err := exec.NewProgram(c, parseNet(t, threeInputs)); !errors.Is(err, exec.ErrProgram) {
		t.Errorf("another network: got %v", err)
	}
}

// odd is a derived component whose behavior is configurable.
type odd struct {
	component.Component
	do func() error
}

func (o odd) String() string { return "odd" }
func (o odd) Propagate(*component.Workspace, component.ForwardPass, kernel.Matrix, kernel.Matrix) (component.Memo, error) {
	return nil, o.do()
}

// withOdd replaces the ReLU of a small computation by a derived component.
func withOdd(t *testing.T, nn *nnet3.Nnet, do func() error) *computation.Computation {
	t.Helper()
	c := compileSmall(t, nn, false)
	relu := nn.ComponentIndex("relu")
	c.Derived = []component.Component{odd{nn.Components[relu], do}}
	for i, cmd := range c.Commands {
		if cmd.Type == computation.Propagate && int(cmd.Args[0]) == relu {
			c.Commands[i].Args[0] = int32(len(nn.Components))
		}
	}
	return c
}

// TestPanic: a panic, or an error, in a component becomes an error that names the command.
func TestPanic(t *testing.T) {
	nn := parseNet(t, smallNet)
	ours := errors.New("ours")
	for _, x := range []struct {
		do   func() error
		want error
	}{
		{func() error { panic("odd") }, exec.ErrPanic},
		{func() error { return ours }, ours},
	} {
		comp := newComputer(t, withOdd(t, nn, x.do), nn, exec.ComputerOptions{})
		for range 2 {
			comp.Reset()
			accept(t, comp, "input", kernel.New(20, 5))
			err := comp.Run(context.Background())
			var failed *exec.CommandError
			if !errors.Is(err, x.want) || !errors.As(err, &failed) || !strings.Contains(failed.Text, "odd.Propagate") {
				t.Errorf("got %v", err)
			}
			if (x.want == exec.ErrPanic) != (len(failed.Stack) > 0) {
				t.Errorf("stack: %s", failed.Stack)
			}
		}
	}
}

// TestContext: a run stops between commands, and can continue.
func TestContext(t *testing.T) {
	nn := parseNet(t, smallNet)
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	runs := 0
	comp := newComputer(t, withOdd(t, nn, func() error { runs++; cancel(enough); return nil }), nn, exec.ComputerOptions{})
	accept(t, comp, "input", kernel.New(20, 5))
	if err := comp.Run(ctx); !errors.Is(err, enough) {
		t.Fatalf("got %v", err)
	}
	if _, err := comp.Output("output"); !errors.Is(err, exec.ErrIO) {
		t.Errorf("the output is there: %v", err)
	}
	run(t, comp)
	output(t, comp, "output")
	if runs != 1 {
		t.Errorf("the command ran %d times", runs)
	}
}
