package rulecheck

import (
	"context"
	"hash/fnv"
	"math/rand/v2"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
)

// A Domain is what the machine needs to know of a dialect. [World] is one for dialects that say how
// their values are drawn, computed and compared; package tensors has one that also knows how
// arithmetic rounds.
type Domain interface {
	// Vocabulary returns the meaning of the names in rules.
	Vocabulary() pattern.Vocabulary
	// Members returns operators of a family, such as those of the sums over some axes.
	Members(family string) []pattern.Operator
	// Beginnings are first choices for an expression that are all tried before random ones, and
	// how often each is.
	Beginnings() (choices [][]int, times int)
	// Begin makes the first choices of an expression, such as the type that most of its inputs
	// have.
	Begin(t *Tape) Drawer
	// Names returns the names that have been given types.
	Names() []string
	// Expressions returns the outputs of expressions for a case.
	Expressions(c Case) [][]*fgraph.Variable
	// Graph returns a graph of copies of what outputs are computed from. It also has the inputs of
	// others, and the features that rules ask for.
	Graph(outputs []*fgraph.Variable, others ...*fgraph.Variable) (*fgraph.FunctionGraph, error)
	// Judge returns a judge of one rule.
	Judge(t Trial) Judge
	// Ground returns variables of some types with values, by which terms are told apart where rules are searched for. types
	// is a list as the dialect writes it, separated by semicolons; "" means the simplest. each is how many variables there
	// are of a type. known are further values by name: those for which a rule was wrong.
	Ground(types string, each int, rng *rand.Rand, known []map[string]any) (*Ground, error)
}

// A Drawer draws the variables of one expression.
type Drawer interface {
	// Argument makes an input or a constant for a name. asked reports whether guards or formulas
	// look at it.
	Argument(name string, asked bool) (*fgraph.Variable, error)
	// Literal makes a value of a number in a pattern.
	Literal(l pattern.Literal) (*fgraph.Variable, error)
	// Indexes returns how many further inputs an op of have inputs reads as indexes, or -1 if it
	// reads none.
	Indexes(op pattern.Operator, have int) int
	// Rest makes an input for one of the names that replace a rest.
	Rest(name string, index bool) *fgraph.Variable
}

// A Placer is a Drawer that is told what for it draws.
type Placer interface {
	// Place says that the next argument or literal is an input of an op, and which inputs that has
	// so far.
	Place(op string, inputs []*fgraph.Variable)
}

// A Trial is what a judge is to know of a rule.
type Trial struct {
	Context context.Context // the judge ends with it
	Tags    []string
	Seed    uint64
	Brief   bool // examples that are wrong are not made smaller
	Rand    *rand.Rand
}

// A Judge compares what one rule replaces with its replacements.
type Judge interface {
	// Compare compares both sides of an instance. again makes the instance of other choices, nil if
	// there is none; it is nil itself for one that was not drawn. Compare reports false if the sides
	// can't be computed.
	Compare(in *Instance, again func(choices []int) *Instance) bool
	// Fault notes what is wrong with an instance that can't be compared.
	Fault(in *Instance, class Class, text string)
	// Refuted reports whether an instance has been found for which the rule is wrong.
	Refuted() bool
	// Report sums up what was found. trouble says which rewrites never fired.
	Report(trouble []string) Report
}

// NewRand returns the source of the choices for a rule.
func NewRand(name string, seed uint64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), seed))
}
