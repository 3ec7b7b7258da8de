package computation_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// A computation that applies a component to its input, checked and printed.
func Example() {
	c := computation.New()
	x := c.NewMatrix(10, 4, false)
	y := c.NewMatrix(10, 4, false)
	c.Commands = []computation.Command{
		computation.NewCommand(computation.AcceptInput, x, 0),
		computation.NewCommand(computation.AllocMatrix, y),
		computation.NewCommand(computation.Propagate, 0, 0, x, y, 0, 0),
		computation.NewCommand(computation.ProvideOutput, y, 1),
		computation.NewCommand(computation.DeallocMatrix, x),
	}
	net := &computation.NetworkInfo{
		Components: []computation.ComponentInfo{{Name: "relu", Properties: component.Simple, InputDim: 4, OutputDim: 4}},
		Nodes:      []computation.NodeInfo{{Name: "input", Dim: 4, IsInput: true}, {Name: "output", Dim: 4, IsOutput: true}},
	}
	if err := computation.Check(c, net, computation.CheckOptions{Rewrite: true}); err != nil {
		fmt.Println(err)
	}
	computation.Print(os.Stdout, c, net)
	// Output:
	// # 5 commands, 2 matrices, 2 sub-matrices, at most 320 bytes
	// m1  10x4
	// m2  10x4
	// c0  accept m1 for input
	// c1  m2 = undefined(10, 4)
	// c2  m2 = relu.Propagate(m1)
	// c3  provide m2 for output
	// c4  m1 = []
}

// A request by ranges: every input-node is given, every output-node is wanted.
func ExampleReadRequestJSON() {
	net := &computation.NetworkInfo{Nodes: []computation.NodeInfo{{Name: "input", IsInput: true}, {Name: "output", IsOutput: true}}}
	text := `{"n": 1, "input_t": [-1, 4], "output_t": [0, 4, 3], "outputs": "all"}`
	req, err := computation.ReadRequestJSON(strings.NewReader(text), net)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(req.Input("input").Indexes), "rows in")
	fmt.Println("out:", req.Output("output").Indexes)
	// Output:
	// 5 rows in
	// out: [(0,0) (0,3)]
}
