package nnet3_test

import (
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

func ExampleParseConfig() {
	nn, err := nnet3.ParseConfig(strings.NewReader(`
input-node name=input dim=40
component name=affine type=AffineComponent input-dim=120 output-dim=20
component-node name=affine component=affine input=Append(Offset(input, -1), input, Offset(input, 1))
output-node name=output input=affine
`), "tiny.config", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range nn.Nodes {
		fmt.Println(nn.NodeName(i), nn.OutputDim(i))
	}
	fmt.Println(nn.NumParameters(), "parameters")

	_, err = nnet3.ParseConfig(strings.NewReader("input-node name=input dim=40\noutput-node name=output input=inptu"), "wrong.config", 1)
	fmt.Println(err)
	// Output:
	// input 40
	// affine_input 120
	// affine 20
	// output 20
	// 2420 parameters
	// wrong.config:2: output-node output: descriptor, column 1: no input node, component node or dim-range node is called "inptu"; did you mean input?: -> inptu
}

// ReadModel reads a model of any form.
func ExampleReadModel() {
	r, err := kaldiio.NewReader(strings.NewReader("<Nnet3> \n"+`input-node name=input dim=2
component-node name=relu component=relu input=input
output-node name=output input=relu objective=linear

<NumComponents> 1 <ComponentName> relu <NoOpComponent> <Dim> 2 <BackpropScale> 1 </NoOpComponent> </Nnet3> `), "tiny.raw")
	if err != nil {
		fmt.Println(err)
		return
	}
	am, err := nnet3.ReadModel(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(am.Raw, am.Nnet.ConfigLine(am.Nnet.NodeIndex("output")))
	// Output: true output-node name=output input=relu objective=linear
}
