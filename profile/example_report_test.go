package profile_test

import (
	"fmt"
	"os"
	"time"

	"github.com/nnopt/nnopt/profile"
)

// record returns a record such as a run of two passes leaves.
func record(folded int, took time.Duration) *profile.Record {
	fold := &profile.Record{Name: "fold", Class: profile.ClassTopo, Time: took, NodesBefore: 50, NodesAfter: 50 - folded, NodesMax: 50, Changed: folded,
		Rules: []profile.RuleRecord{{Name: "constant_folding", Attempts: 50, Applied: folded, Time: took}}}
	merge := &profile.Record{Name: "merge", Class: profile.ClassMerge, Start: took, Time: time.Millisecond, NodesBefore: 50 - folded, NodesAfter: 40 - folded, Changed: 10, NodesMax: 50 - folded}
	return &profile.Record{Name: "OPT_FAST_RUN", Class: profile.ClassSequence, Time: took + time.Millisecond,
		NodesBefore: 50, NodesAfter: 40 - folded, NodesMax: 50, Changed: folded + 10, Children: []*profile.Record{fold, merge}}
}

// What two runs did differently.
func ExampleWriteDiff() {
	if err := profile.WriteDiff(os.Stdout, record(5, 2*time.Millisecond), record(8, 9*time.Millisecond)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// time a       time b      b/a   nodes a   nodes b changed a changed b  name
	//    0.003000s    0.010000s     3.33        35        32        15        18  OPT_FAST_RUN
	//    0.002000s    0.009000s     4.50        45        42         5         8    fold
	//    0.002000s    0.009000s     4.50         0         0         5         8      . constant_folding
	//    0.001000s    0.001000s     1.00        35        32        10        10    merge
}

// Runs add up: times, attempts and rewrites.
func ExampleMerge() {
	r := profile.Merge(record(5, 2*time.Millisecond), record(8, 9*time.Millisecond))
	fold := r.Find("fold")
	fmt.Println(fold.Time, fold.Changed, fold.Rules[0].Attempts)
	// Output:
	// 11ms 13 100
}

// The report that Theano prints.
func ExampleRecord_WriteText() {
	if err := record(5, 2*time.Millisecond).WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Optimizer Profile
	// -----------------
	//  SeqOptimizer  OPT_FAST_RUN  time 0.003000s for 50/35 nodes before/after optimization
	//    0.000000s for fgraph.validate()
	//    0.000000s for callback
	//    time      - (name, class, index) - validate time
	//    0.002000s - ('fold', 'TopoOptimizer', 0) - 0.000000s
	//      TopoOptimizer
	//        nb_node (start, end, changed) (50, 45, 5)
	//        init io_toposort 0.0
	//        loop time 0.0
	//        callback_time 0.0
	//        time taken - times applied - times tried - name - node_created
	//        0.002000s - 5 - 50 - constant_folding - 0
	//    0.001000s - ('merge', 'MergeOptimizer', 0) - 0.000000s
	//      MergeOptimizer
	//        nb fail=    0 merged=    0 constant=    0
	//        time replace=0.000000 validate=0.000000 callback=0.000000
}
