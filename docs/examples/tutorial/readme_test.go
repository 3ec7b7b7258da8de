package tutorial

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

func Example_readme() {
	rule := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x") // x*y/y → x
	db := passes.Default()
	check(db.Register("simplify", rewrite.In2Out("simplify", rule), 0.5, "fast_run", "mine"))
	optimizer, err := db.Build(optdb.Include("mine", "merge1").Excluding("inplace"))
	check(err)

	g, rec := graph("(y + z)*x/(y + z)"), profile.New("optimizer", "SeqOptimizer")
	check(optimizer.Rewrite(context.Background(), g, rec))
	rec.End()
	for depth, pass := range rec.Record().All() {
		fmt.Printf("%*s%s: %d → %d applies\n", 2*depth, "", pass.Name, pass.NodesBefore, pass.NodesAfter)
	}
	fmt.Println(g)
	// Output:
	// optimizer: 4 → 0 applies
	//   merge1: 4 → 3 applies
	//   simplify: 3 → 0 applies
	// [x]
}
