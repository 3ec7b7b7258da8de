package tutorial

import (
	"context"
	"os"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/standard"
)

func Example_tool() {
	language := expr.Default().Must(expr.Define(Cube{}, Cube{Inplace: true}))
	rules, err := pattern.ParseRules("own.rules", `
# The cube of the cube root of x is x.
cube_of_cbrt: canonicalize; fast_run
    (Cube (cbrt x)) => x
`)
	check(err)
	config := standard.Program{Name: "owntool", Language: language, Database: func() (*optdb.SequenceDB, error) {
		db := passes.Default()
		return db, optdb.AddRules(db, tensorpass.VocabularyOf(language), rules)
	}}
	for _, args := range [][]string{
		{"expr", "--vars=x: vector", "--trace=cube_of_cbrt", "Cube(cbrt(x))"},
		{"expr", "--vars=x: vector", "--why-not=cube_of_cbrt", "Cube(sqrt(x))"},
		{"expr", "--vars=x: vector", "--grad=x", "sum(x.Cube())"},
		{"rule", "check", "(Cube (neg x)) => (neg (Cube x))", "(Cube x) => x"},
		{"expr", "Cbue(x)"},
	} {
		config.Run(context.Background(), args, nil, os.Stdout, os.Stdout)
	}
	// Output:
	// rewriting: canonicalize/cube_of_cbrt: Cube(cbrt(x)) -> x
	// 0 ops, 2 as typed
	// [x]
	// why not: canonicalize/cube_of_cbrt: at Cube(sqrt(x)): sqrt(x) is not (cbrt x)
	// 2 ops, 2 as typed
	// [Cube(sqrt(x))]
	// 1 ops, 4 as typed
	// [mul(3.0, x, x)]
	// 1 of 2 rules are what their tags promise
	//   exact       rule1
	// ! wrong       rule2
	//     x: float64 vector = [2.0]; left: Cube(x) = [8.0]; right: x = [2.0]
	// owntool rule: not every rule is what its tags promise
	// owntool expr: Cbue(x): column 1: there is no function Cbue; did you mean Cube?
	//   Cbue(x)
	//   ^
	// "owntool help expr" tells more.
}
