package lower_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/lower"
)

// window is a network that looks at two frames.
const window = `
input-node name=input dim=2
component name=a type=AffineComponent input-dim=4 output-dim=3
component-node name=a component=a input=Append(Offset(input, -1), input)
component name=b type=RectifiedLinearComponent dim=3
component-node name=b component=b input=a
output-node name=output input=b`

// compiled returns a network, and its computation for three frames of output.
func compiled(config string) (*nnet3.Nnet, *computation.Computation) {
	nn, err := nnet3.ParseConfig(strings.NewReader(config), "example", 1)
	if err != nil {
		log.Fatal(err)
	}
	req := &computation.Request{
		Inputs:  []computation.IoSpecification{{Name: "input", Indexes: frames(-1, 3)}},
		Outputs: []computation.IoSpecification{{Name: "output", Indexes: frames(0, 3)}},
	}
	c, err := compile.Compile(nn, req, compile.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return nn, c
}

func frames(first, end int32) (list []index.Index) {
	for t := first; t < end; t++ {
		list = append(list, index.Index{T: t})
	}
	return list
}

// Commands become values: no memory, no order. The Append is one Assemble, of two terms that take
// rows of the same input.
func ExampleLower() {
	nn, c := compiled(window)
	p, err := lower.Lower(c, nn)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(len(c.Commands), " commands as values:\n", fgraph.Sprint(0, p.Graph.Outputs()...), "\n")
	// Output:
	// 25 commands as values:
	// [Propagate{b}(Propagate{a}(Concat{3x4}(in0)))]
}

// What every optimizer of networks does: commands become a graph for each segment, and commands
// again. Here nothing rewrites the graph, and still the commands that copy what need not move are
// gone.
func ExampleLowerChain() {
	nn, c := compiled(window)
	chain, err := lower.LowerChain(c, nn)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range chain.Programs {
		fmt.Println(p.Graph.NumApplies(), "applies, and the input is node", p.Inputs[0].Node)
	}
	again, err := chain.Emit()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(c.Commands), "commands, then", len(again.Commands))
	// Output:
	// 3 applies, and the input is node 0
	// 25 commands, then 17
}

// All movement of rows and columns is one op, printed under the name of the special case.
func ExampleNewAssemble() {
	x := fgraph.NewInput(lower.MatrixType{Rows: 4, Cols: 2}, "x")
	y := fgraph.NewInput(lower.MatrixType{Rows: 4, Cols: 3}, "y")
	beside := lower.NewAssemble(4, 5, []lower.Term{
		{Input: 0, Scale: 1, NumRows: 4, NumCols: 2},
		{Input: 1, Scale: 1, NumRows: 4, NumCols: 3, DstCol: 2},
	}, []*fgraph.Variable{x, y})
	shifted := lower.NewAssemble(4, 2, []lower.Term{
		{Input: 0, Scale: 1, NumRows: 4, NumCols: 2},
		{Input: 0, Scale: 0.5, NumRows: 3, NumCols: 2, DstRow: 1},
	}, []*fgraph.Variable{x})
	fmt.Println(fgraph.Sprint(0, beside))
	fmt.Println(fgraph.Sprint(0, shifted))
	// Output:
	// [Concat{4x5}(x, y)]
	// [Assemble{4x2}(x)]
}

// A Block is a view. Passes look through it at the value that it is part of.
func ExampleResolve() {
	x := fgraph.NewInput(lower.MatrixType{Rows: 10, Cols: 4}, "x")
	v := lower.NewBlock(lower.NewBlock(x, lower.Rect{R0: 2, R1: 8, C0: 0, C1: 4}), lower.Rect{R0: 1, R1: 3, C0: 2, C1: 4})
	root, r := lower.Resolve(v)
	fmt.Println(fgraph.Sprint(0, v))
	fmt.Println(root, "rows", r.R0, "to", r.R1, "columns", r.C0, "to", r.C1)
	// Output:
	// [Block{3:5,2:4}(x)]
	// x rows 3 to 5 columns 2 to 4
}

// The storage decides where values live. At first every value has a matrix of its own. Then the
// parts of an Append are made where the Append wants them.
func ExamplePlanStorage() {
	nn, c := compiled(`
input-node name=input dim=2
component name=a type=AffineComponent input-dim=2 output-dim=3
component-node name=a component=a input=input
component name=b type=RectifiedLinearComponent dim=3
component-node name=b component=b input=a
output-node name=output input=Append(a, b)`)
	p, err := lower.Lower(c, nn)
	if err != nil {
		log.Fatal(err)
	}
	s, err := lower.PlanStorage(p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Peak(), "bytes")
	fmt.Println(s.PlaceTerms(), "terms are placed:", s.Peak(), "bytes")
	again, err := lower.Emit(p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(c.Commands), "commands, then", len(again.Commands))
	// Output:
	// 144 bytes
	// 2 terms are placed: 96 bytes
	// 25 commands, then 12
}
