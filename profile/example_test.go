package profile_test

import (
	"fmt"

	"github.com/nnopt/nnopt/profile"
)

func Example() {
	rec := profile.New("fast_run", profile.ClassSequence)
	fold := rec.Begin("fold", profile.ClassTopo)
	fold.Nodes(5) // before
	fold.AddRule(profile.RuleRecord{Name: "constant_folding", Attempts: 5, Applied: 2})
	fold.Changed(2)
	fold.Nodes(3) // after
	fold.End()
	rec.End()

	r := rec.Record().Find("fold")
	fmt.Println(r.Class, r.NodesBefore, r.NodesAfter, r.Changed)
	// Output:
	// TopoOptimizer 5 3 2
}
