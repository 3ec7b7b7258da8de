package exec_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

func ExampleComputer() {
	nn, err := nnet3.ParseConfig(strings.NewReader(`
		input-node name=input dim=2
		component name=relu type=RectifiedLinearComponent dim=2
		component-node name=relu component=relu input=input
		output-node name=output input=Sum(input, relu)
	`), "example", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	rows := []index.Index{{T: 0}, {T: 1}}
	c, err := compile.Compile(nn, &computation.Request{
		Inputs:  []computation.IoSpecification{{Name: "input", Indexes: rows}},
		Outputs: []computation.IoSpecification{{Name: "output", Indexes: rows}},
	}, compile.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := exec.NewProgram(c, nn)
	if err != nil {
		fmt.Println(err)
		return
	}
	comp, err := p.NewComputer(exec.ComputerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = comp.AcceptInput("input", kernel.Matrix{Rows: 2, Cols: 2, Stride: 2, Data: []float32{1, -2, 3, 4}})
	if err == nil {
		err = comp.Run(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	y, _ := comp.Output("output")
	fmt.Println(y.Data)
	// Output: [2 -2 6 8]
}
