package exec_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/compile"
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
