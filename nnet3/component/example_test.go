package component_test

import (
	"fmt"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/component"
)

func Example() {
	line, err := component.ParseConfigLine("component name=relu1 type=RectifiedLinearComponent dim=3")
	if err != nil {
		fmt.Println(err)
		return
	}
	name, _ := line.Value("name")
	typ, _ := line.Value("type")
	c, ok := component.New(typ)
	if !ok {
		fmt.Println("unknown type", typ)
		return
	}
	if err := component.Init(c, line); err != nil {
		fmt.Println(err)
		return
	}
	in := kernel.Matrix{Rows: 1, Cols: 3, Stride: 3, Data: []float32{-1, 0, 2}}
	out := kernel.New(1, 3)
	if _, err := component.Propagate(c, &component.Workspace{}, nil, in, out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(name, c.Properties(), out.Data)
	// Output: relu1 simple|propagate-in-place|backprop-needs-output|stores-stats [0 0 2]
}
