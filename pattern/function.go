package pattern

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
)

// A Function is a Go function that rules call by name. One of Holds, Param and Build is set.
type Function struct {
	Name string
	// Usage is how the function is called, with parameters of ops in braces: "scales(x, {a})".
	// A rule must hand it as many arguments, of these kinds. More are of the kind of the last.
	// If Usage is empty, anything goes.
	Usage string
	Doc   string // what it answers, in one sentence
	// Depth is how far the function looks from its arguments: 1 is at their types and values
	// only, 2 at the applies that compute them, 0 anywhere. It corresponds to Depth in
	// [rewrite.Description].
	Depth int
	// Holds is the condition of a guard. It must not keep the slices in the arguments.
	Holds func(Args) bool
	// Param computes parameters of an op in a replacement: "(sum{union(a, b)} x)".
	Param func(Args) (any, error)
	// Build makes a variable in a replacement, where it is written like an op. If it returns
	// nil, the rule proposes nothing.
	Build func(Args) (*fgraph.Variable, error)
}

// Args are what a rule hands to a Go function.
type Args struct {
	Context *rewrite.Context   // nil for a [Matcher]
	Root    *fgraph.Apply      // the apply that the pattern matches
	Vars    []*fgraph.Variable // those bound to the names, with all variables of rests
	Params  []any              // captured parameters bound to the names
	// Bounds returns numbers between which the elements of variable i are, where they are numbers. It is nil
	// where nothing more is known than the variable tells.
	Bounds func(i int) (least, most float64)
}

// NewGuard returns a guard, whose name is that in usage.
func NewGuard(usage string, depth int, doc string, holds func(Args) bool) Function {
	return Function{Name: nameIn(usage), Usage: usage, Depth: depth, Doc: doc, Holds: holds}
}

// NewGuardOfEach returns a guard that asks the same of each of its variables.
func NewGuardOfEach(usage string, depth int, doc string, holds func(*fgraph.Variable) bool) Function {
	return NewGuard(usage, depth, doc, func(a Args) bool {
		return !slices.ContainsFunc(a.Vars, func(v *fgraph.Variable) bool { return !holds(v) })
	})
}

// NewGuardOfPairs returns a guard that compares each of its variables with the first one.
func NewGuardOfPairs(usage string, depth int, doc string, holds func(first, v *fgraph.Variable) bool) Function {
	return NewGuard(usage, depth, doc, func(a Args) bool {
		return !slices.ContainsFunc(a.Vars[1:], func(v *fgraph.Variable) bool { return !holds(a.Vars[0], v) })
	})
}

// NewBuilder returns a function that makes a variable. Its name is that in usage: "(item x)".
func NewBuilder(usage string, depth int, doc string, build func(Args) (*fgraph.Variable, error)) Function {
	return Function{Name: nameIn(usage), Usage: usage, Depth: depth, Doc: doc, Build: build}
}

// nameIn returns the name of a function from its usage.
func nameIn(usage string) string {
	name := strings.TrimPrefix(usage, "(")
	if i := strings.IndexAny(name, "( )"); i >= 0 {
		name = name[:i]
	}
	return name
}
