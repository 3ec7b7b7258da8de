package compile_test

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

const config = `
input-node name=input dim=2
component name=affine type=AffineComponent input-dim=4 output-dim=3
component-node name=affine component=affine input=Append(Offset(input, -1), input)
output-node name=output input=affine
`

// times returns the indexes of sequence 0 at the times [first, end).
func times(first, end int32) (list []index.Index) {
	for t := first; t < end; t++ {
		list = append(list, index.Index{T: t})
	}
	return list
}

func ExampleCompile() {
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "config", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &computation.Request{
		Inputs:  []computation.IoSpecification{{Name: "input", Indexes: times(-1, 4)}},
		Outputs: []computation.IoSpecification{{Name: "output", Indexes: times(0, 4)}},
	}
	c, err := compile.Compile(nn, req, compile.Options{DebugInfo: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	computation.Print(os.Stdout, c, computation.NewNetworkInfo(nn, nil))
	// Output:
	// # 17 commands, 4 matrices, 6 sub-matrices, at most 200 bytes
	// m1  5x2  value of input[(0,-1:3)]
	// m2  4x4  value of affine_input[(0,0:3)]
	// m3  4x3  value of affine[(0,0:3)]
	// m4  4x3  value of output[(0,0:3)]
	// c0  accept m1 for input
	// c1  m2 = undefined(4, 4)
	// c2  m2 = 0
	// c3  m3 = undefined(4, 3)
	// c4  m3 = 0
	// c5  m4 = undefined(4, 3)
	// c6  m4 = 0
	// c7  no-op (permanent)
	// c8  m2(:, 0:1) += rows(m1, [0:3])
	// c9  m2(:, 2:3) += rows(m1, [1:4])
	// c10  m3 = affine.Propagate(m2)
	// c11  m4 += m3
	// c12  provide m4 for output
	// c13  ---- marker ----
	// c14  m1 = []
	// c15  m2 = []
	// c16  m3 = []
}

func ExampleNotComputableError() {
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "config", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &computation.Request{
		Inputs:  []computation.IoSpecification{{Name: "input", Indexes: times(0, 4)}},
		Outputs: []computation.IoSpecification{{Name: "output", Indexes: times(0, 4)}},
	}
	_, err = compile.Compile(nn, req, compile.Options{})
	if missing, ok := errors.AsType[*compile.NotComputableError](err); ok {
		fmt.Println(missing.Inputs[0].Node, missing.Inputs[0].First)
	}
	fmt.Println(err)
	// Output:
	// input [(0,-1)]
	// output "output" can't be computed for 1 of 4 indexes, [(0,0)]; input "input" lacks 1 index, [(0,-1)] (given: 4 indexes, t from 0 to 3); for example output(0,0) <- affine(0,0) <- input(0,-1)
}
