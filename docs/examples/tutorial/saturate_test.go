package tutorial

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
)

// saturating returns an optimizer that saturates with two equations.
func saturating() *optdb.Optimizer {
	equations, err := pattern.ParseRules("my.rules", `
# A chain of products can be bracketed in two ways.
associate: ; mine
    (dot (dot x y) z) <=> (dot x (dot y z))

# A sum of products with a common factor is a product.
factor: ; mine
    (add (dot x y) (dot x z) ...rest) <=> (add (dot x (add y z)) ...rest)
`)
	check(err)
	db := saturate.NewDB("saturate")
	for _, e := range equations {
		rule, err := pattern.New(tensorpass.Vocabulary(), e)
		check(err)
		check(db.Register(e.Name, rule, e.Tags...))
	}
	optimizer, err := db.Build(optdb.Include("mine"))
	check(err)
	return optimizer
}

func Example_saturate() {
	s := expr.NewScope()
	check(s.Declare("A B: matrix; v w: vector"))
	e, err := tensor.NewGraph(s.Inputs(), []*fgraph.Variable{s.MustParse("dot(dot(A, B), v) + dot(A, w)")})
	check(err)

	ctx := rewrite.WithOptions(context.Background(), rewrite.Options{Trace: rewrite.TraceTo(os.Stdout)})
	rec := profile.New("saturate", profile.ClassSaturation)
	check(saturating().Rewrite(ctx, e, rec))
	rec.End()
	fmt.Println(e)

	var report strings.Builder
	check(rec.Record().WriteText(&report))
	numbers := regexp.MustCompile(`\d\.\d+(e[+-]\d+)?`)
	fmt.Print(numbers.ReplaceAllString(report.String(), "…"))
	// Output:
	// rewriting: +mine/associate: dot(dot(A, B), v) -> dot(A, dot(B, v))
	// rewriting: +mine/factor: add(dot(A, dot(B, v)), dot(A, w)) -> dot(A, add(dot(B, v), w))
	// [dot(A, add(dot(B, v), w))]
	// Optimizer Profile
	// -----------------
	//  Saturation saturate
	//    time …s for 3 laps, ended by: saturated
	//    nb nodes (start, end) 4 3
	//    time matching …s, applying …s, rebuilding …s, extraction …s
	//    12 e-nodes, 10 classes
	//    cost (before, after) … …
	//     0 - …s 1 applied of 1 matches - 10 e-nodes, 9 classes
	//     1 - …s 1 applied of 3 matches - 12 e-nodes, 10 classes
	//     2 - …s 0 applied of 0 matches - 12 e-nodes, 10 classes
	//    times applied - matches - name:
	//    1 - 2 - associate
	//    1 - 2 - factor
}
