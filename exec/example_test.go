package exec_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// A network of one component is compiled, bound and run.
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

// A Timing counts the runs of every command, and sums up their time.
func ExampleTiming() {
	nn, err := nnet3.ParseConfig(strings.NewReader(`
		input-node name=input dim=2
		component name=relu type=RectifiedLinearComponent dim=2
		component-node name=relu component=relu input=input
		output-node name=output input=relu
	`), "example", 1)
	if err != nil {
		log.Fatal(err)
	}
	spec := func(name string) []computation.IoSpecification {
		return []computation.IoSpecification{{Name: name, Indexes: []index.Index{{T: 0}}}}
	}
	c, err := compile.Compile(nn, &computation.Request{Inputs: spec("input"), Outputs: spec("output")}, compile.Options{})
	if err != nil {
		log.Fatal(err)
	}
	p, err := exec.NewProgram(c, nn)
	if err != nil {
		log.Fatal(err)
	}
	timing := new(exec.Timing)
	computer, err := p.NewComputer(exec.ComputerOptions{Timing: timing})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if err := computer.AcceptInput("input", kernel.New(1, 2)); err != nil {
			log.Fatal(err)
		}
		if err := computer.Run(context.Background()); err != nil {
			log.Fatal(err)
		}
		computer.Reset()
	}
	for _, row := range timing.ByComponent() {
		if row.Name == "relu" {
			fmt.Println(row.Name, "ran", row.Runs, "times")
		}
	}
	// Output:
	// relu ran 3 times
}
