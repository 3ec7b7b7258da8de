package expr_test

import (
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/expr"
)

func ExampleScope_Parse() {
	s := expr.NewScope()
	if err := s.Declare("x y z: vector; X: matrix"); err != nil {
		panic(err)
	}
	for _, text := range []string{"(y + z)*x/(y + z)", "true_div(mul(add(y, z), x), add(y, z))", "X.T[1:3, None]", "sum(X, axis=0) + s"} {
		out, err := s.Parse(text)
		fmt.Println(fgraph.Sprint(0, out...), err)
	}
	_, err := s.Parse("X + [1, 2")
	fmt.Println(err)
	_, err = s.Parse("dot(X, exp(x, y))")
	fmt.Println(err)
	// Output:
	// [true_div(mul(add(y, z), x), add(y, z))] <nil>
	// [true_div(mul(add(y, z), x), add(y, z))] <nil>
	// [DimShuffle{0,x,1}(Subtensor{1:3}(DimShuffle{1,0}(X)))] <nil>
	// [add(sum{axis=0}(X), DimShuffle{x}(s))] <nil>
	// column 10: "]" expected, not end
	// column 8: exp: 2 arguments, it takes 1
}

func ExampleOp() {
	for _, name := range []string{"add", "sum{axis=0}", "Subtensor{1:3,_}", "sum{axis=9}"} {
		op, ok := expr.Default().Op(name)
		fmt.Println(op, ok)
	}
	// Output:
	// add true
	// sum{axis=0} true
	// Subtensor{1:3,_} true
	// <nil> false
}
