package exec_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// TestLend: a lent matrix gives the outputs of one that is copied, in its own memory.
func TestLend(t *testing.T) {
	nn := parseNet(t, "input-node name=input dim=5\noutput-node name=output input=input\n"+
		"component name=tanh type=TanhComponent dim=5\ncomponent-node name=tanh component=tanh input=input\noutput-node name=y input=tanh\n")
	req := smallRequest(false)
	req.Outputs[0].Indexes = req.Inputs[0].Indexes
	req.Outputs = append(req.Outputs, req.Outputs[0])
	req.Outputs[1].Name = "y"
	c, err := compile.Compile(nn, req, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := exec.NewProgram(c, nn)
	if err != nil {
		t.Fatal(err)
	}
	comp, err := p.NewComputer(exec.ComputerOptions{Poison: true})
	if err != nil {
		t.Fatal(err)
	}
	x := random(rand.New(rand.NewPCG(5, 5)), 20, 5)
	accept(t, comp, "input", x)
	run(t, comp)
	want := slices.Clone(output(t, comp, "y").Data)
	comp.Reset()

	input := p.Port("input")
	lent := kernel.Clone(x)
	if err := comp.Lend(input, lent); err != nil {
		t.Fatal(err)
	}
	run(t, comp)
	y, err := comp.OutputAt(p.Port("y"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(y.Data, want) {
		t.Errorf("a lent input gives %v, a copied one %v", y.Data, want)
	}
	comp.Reset()
	accept(t, comp, "input", x)
	run(t, comp)
	if same := output(t, comp, "output"); &same.Data[0] == &lent.Data[0] {
		t.Error("the computer uses lent memory after Reset")
	}
}

// TestLendMisuse: what can't be lent or read is an error.
func TestLendMisuse(t *testing.T) {
	nn := parseNet(t, smallNet)
	p, err := exec.NewProgram(compileSmall(t, nn, false), nn)
	if err != nil {
		t.Fatal(err)
	}
	comp, err := p.NewComputer(exec.ComputerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	input, output := p.Port("input"), p.Port("output")
	if p.Port("nobody") != -1 {
		t.Errorf("port %d for no node", p.Port("nobody"))
	}
	x := kernel.New(20, 6)
	for name, err := range map[string]error{
		"no port":         comp.Lend(-1, kernel.New(20, 5)),
		"beyond":          comp.Lend(99, kernel.New(20, 5)),
		"an output":       comp.Lend(output, kernel.New(20, 5)),
		"too small":       comp.Lend(input, kernel.New(19, 5)),
		"gaps":            comp.Lend(input, kernel.Matrix{Rows: 20, Cols: 5, Stride: 6, Data: x.Data}),
		"too little data": comp.Lend(input, kernel.Matrix{Rows: 20, Cols: 5, Stride: 5, Data: x.Data[:99]}),
		"read no port":    outputError(comp, 99),
		"read an input":   outputError(comp, input),
		"read too early":  outputError(comp, output),
	} {
		if !errors.Is(err, exec.ErrIO) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := comp.Lend(input, kernel.New(20, 5)); err != nil {
		t.Fatal(err)
	}
	if err := comp.Lend(input, kernel.New(20, 5)); !errors.Is(err, exec.ErrIO) {
		t.Errorf("twice: %v", err)
	}
}

func outputError(comp *exec.Computer, port int) error {
	_, err := comp.OutputAt(port)
	return err
}

// TestLendOutput: an output has the same bits in memory that is lent for it, unless it is no matrix of
// its own, and nothing is written there after Reset.
func TestLendOutput(t *testing.T) {
	nn := parseNet(t, "input-node name=input dim=5\noutput-node name=output input=input\n"+
		"component name=tanh type=TanhComponent dim=5\ncomponent-node name=tanh component=tanh input=input\noutput-node name=y input=tanh\n")
	req := smallRequest(false)
	req.Outputs[0].Indexes = req.Inputs[0].Indexes
	req.Outputs = append(req.Outputs, req.Outputs[0])
	req.Outputs[1].Name = "y"
	c, err := compile.Compile(nn, req, compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	toOutput, toY := int32(nn.NodeIndex("output")), int32(nn.NodeIndex("y"))
	input := computation.New() // y is the input
	in, copied := input.NewMatrix(20, 5, false), input.NewMatrix(20, 5, false)
	input.Commands = append(input.Commands,
		computation.NewCommand(computation.AcceptInput, in, 0), computation.NewCommand(computation.AllocMatrix, copied),
		computation.NewCommand(computation.MatrixCopy, copied, in),
		computation.NewCommand(computation.ProvideOutput, copied, toOutput), computation.NewCommand(computation.ProvideOutput, in, toY))
	for _, test := range []struct {
		name string
		c    *computation.Computation
		lent bool
	}{{"compiled", c, true}, {"input", input, false}} {
		t.Run(test.name, func(t *testing.T) {
			p, err := exec.NewProgram(test.c, nn)
			if err != nil {
				t.Fatal(err)
			}
			comp, err := p.NewComputer(exec.ComputerOptions{Poison: true})
			if err != nil {
				t.Fatal(err)
			}
			x := random(rand.New(rand.NewPCG(5, 5)), 20, 5)
			accept(t, comp, "input", x)
			run(t, comp)
			want := slices.Clone(output(t, comp, "y").Data)
			comp.Reset()
			mine := kernel.New(20, 5)
			if lent, err := comp.LendOutput(p.Port("y"), mine); err != nil || lent != test.lent {
				t.Fatalf("lent %t, %v", lent, err)
			}
			accept(t, comp, "input", x)
			run(t, comp)
			y := output(t, comp, "y")
			if (&y.Data[0] == &mine.Data[0]) != test.lent || !slices.Equal(y.Data, want) {
				t.Errorf("the output is %v, want %v; it is where it was lent: %t", y.Data, want, &y.Data[0] == &mine.Data[0])
			}
			comp.Reset()
			kernel.Fill(mine, 7)
			accept(t, comp, "input", x)
			run(t, comp)
			if y := output(t, comp, "y"); mine.Data[3] != 7 || !slices.Equal(y.Data, want) {
				t.Error("the computer uses lent memory after Reset")
			}
		})
	}
}

// TestLendOutputMisuse: memory that doesn't fit is an error, and memory that comes too late is not
// used.
func TestLendOutputMisuse(t *testing.T) {
	nn := parseNet(t, smallNet)
	p, err := exec.NewProgram(compileSmall(t, nn, false), nn)
	if err != nil {
		t.Fatal(err)
	}
	comp, err := p.NewComputer(exec.ComputerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	accept(t, comp, "input", kernel.New(20, 5))
	run(t, comp)
	y := output(t, comp, "output")
	comp.Reset()
	port := p.Port("output")
	fits := kernel.New(y.Rows, y.Cols)
	for name, bad := range map[string]struct {
		port int
		m    kernel.Matrix
	}{
		"no port":         {-1, fits},
		"beyond":          {99, fits},
		"an input":        {p.Port("input"), fits},
		"too small":       {port, kernel.New(y.Rows-1, y.Cols)},
		"too large":       {port, kernel.New(y.Rows, y.Cols+1)},
		"gaps":            {port, kernel.Matrix{Rows: y.Rows, Cols: y.Cols, Stride: y.Cols + 1, Data: make([]float32, y.Rows*(y.Cols+1))}},
		"too little data": {port, kernel.Matrix{Rows: y.Rows, Cols: y.Cols, Stride: y.Cols, Data: fits.Data[1:]}},
	} {
		if lent, err := comp.LendOutput(bad.port, bad.m); lent || !errors.Is(err, exec.ErrIO) {
			t.Errorf("%s: %t, %v", name, lent, err)
		}
	}
	accept(t, comp, "input", kernel.New(20, 5))
	run(t, comp)
	if lent, err := comp.LendOutput(port, fits); lent || err != nil {
		t.Errorf("too late: %t, %v", lent, err)
	}
}
