// Command embedding optimizes graphs of its own, boolean terms, with the core of nnopt alone: packages
// fgraph, rewrite and optdb. docs/embedding.md explains it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// Op is an op: anything that can be compared and has a name.
type Op string

func (o Op) String() string { return string(o) }

// Bool is the type of all values.
type Bool struct{}

func (Bool) String() string             { return "bool" }
func (Bool) Accepts(t fgraph.Type) bool { return t == Bool{} }

func apply(op Op, inputs ...*fgraph.Variable) *fgraph.Variable {
	return fgraph.NewApply(op, inputs, Bool{}).Out()
}

// notNot proposes x for not(not(x)).
var notNot = rewrite.Rule{
	Name: "not_not", Doc: "two negations cancel: not(not(x)) → x", On: []rewrite.Track{rewrite.TrackOp(Op("not"))}, Depth: 2,
	Fn: func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
		inner := n.Inputs()[0].Owner()
		if inner == nil || inner.Op() != Op("not") {
			return c.Miss("its argument is no negation"), nil
		}
		return rewrite.Replace(inner.Inputs()[0]), nil
	},
}

// andSelf proposes x for and(x, x).
var andSelf = rewrite.Rule{
	Name: "and_self", Doc: "a conjunction of a value with itself is the value: and(x, x) → x", On: []rewrite.Track{rewrite.TrackOp(Op("and"))}, Depth: 1,
	Fn: func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
		if n.Inputs()[0] != n.Inputs()[1] {
			return c.Miss("its arguments differ"), nil
		}
		return rewrite.Replace(n.Inputs()[0]), nil
	},
}

// database returns the passes: equal terms are merged, then the rules run until none fires.
func database() (*optdb.SequenceDB, error) {
	db, simplify := optdb.NewSequenceDB("terms"), optdb.NewEquilibriumDB("simplify")
	return db, errors.Join(
		db.Add(optdb.Entry{Name: "merge", Doc: "unites equal terms", Rewriter: new(rewrite.Merge), Position: 0, Tags: []string{"fast_run"}}),
		db.Register("simplify", simplify, 1, "fast_run"),
		simplify.Register("not_not", notNot, "fast_run"),
		simplify.Register("and_self", andSelf, "fast_run"))
}

func main() {
	x := fgraph.NewInput(Bool{}, "x")
	notX := func() *fgraph.Variable { return apply("not", x) }
	g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{apply("not", apply("and", notX(), notX()))})
	if err != nil {
		log.Fatal(err)
	}
	db, err := database()
	if err != nil {
		log.Fatal(err)
	}
	optimizer, err := db.Build(optdb.Include("fast_run"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g)
	if err := optimizer.Rewrite(context.Background(), g, nil); err != nil {
		log.Fatal(err)
	}
	fmt.Println(g)
}
