package egraph

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Symbol is the name of an op without its parameters, numbered by a [Language].
type Symbol uint32

// An Op is a symbol with parameters, numbered by a [Language] and by the graphs over it.
type Op uint32

const noOp = ^Op(0)

// ErrLanguage means that a declaration contradicts itself or another one.
var ErrLanguage = errors.New("bad declaration")

// A Signature declares a symbol.
type Signature struct {
	Name string
	// Inputs bound the number of inputs: {2, 2} is a binary op, {0, -1} has any number.
	Inputs [2]int
	// Commutes says that the order of the inputs does not matter.
	Commutes bool
	// Outputs is the number of outputs, if there are several. Output i is a node of its own, see
	// [Language.Output].
	Outputs int
}

// A Language is a set of symbols with the functions that rules call. It is set up once. Rules and
// graphs that are made after that share it, also concurrently.
type Language struct {
	sigs   []Signature
	ops    []opInfo
	names  map[string]Symbol
	ids    map[opInfo]Op
	guards map[string]Guard
	makers map[string]Maker
	number func(*Graph, float64) Op
	types  Types
	output Symbol
}

type opInfo struct {
	sym   Symbol
	param any
}

// Args are what a rule asks a guard about.
type Args struct {
	Root    Node    // that the pattern matches; its class is replaced
	Classes []Class // those bound to the names, with all classes of rests
	Params  []any   // captured parameters bound to the names
}

// A Guard decides whether classes satisfy a condition of a rule. It depends on their facts and on
// parameters only, and must not change the graph or keep the slices in the arguments.
type Guard func(g *Graph, a Args) bool

// NewLanguage returns a language without symbols.
func NewLanguage() *Language {
	l := &Language{names: map[string]Symbol{}, ids: map[opInfo]Op{}, guards: map[string]Guard{}, makers: map[string]Maker{}}
	l.output, _ = l.Declare(Signature{Name: ".output", Inputs: [2]int{1, 1}})
	return l
}

// Declare adds a symbol.
func (l *Language) Declare(s Signature) (Symbol, error) {
	lo, hi := s.Inputs[0], s.Inputs[1]
	fault := ""
	switch _, twice := l.names[s.Name]; {
	case s.Name == "":
		fault = "it has no name"
	case twice:
		fault = "it is declared twice"
	case lo < 0 || hi < -1 || hi >= 0 && hi < lo || hi > maxInputs:
		fault = fmt.Sprintf("%d to %d inputs", lo, hi)
	case s.Outputs < 0 || s.Outputs > maxInputs:
		fault = fmt.Sprintf("%d outputs", s.Outputs)
	}
	if fault != "" {
		return 0, fmt.Errorf("%w: %s: %s", ErrLanguage, s.Name, fault)
	}
	sym := Symbol(len(l.sigs))
	l.names[s.Name] = sym
	l.sigs = append(l.sigs, s)
	return sym, nil
}

// maxInputs bounds the number of inputs and outputs of a node.
const maxInputs = 1 << 20

// Op returns the op of a symbol with parameters, a comparable value or nil. Once there are graphs,
// theirs is [Graph.Intern].
func (l *Language) Op(s Symbol, param any) Op {
	key := opInfo{s, param}
	op, ok := l.ids[key]
	if !ok {
		op = Op(len(l.ops))
		l.ids[key] = op
		l.ops = append(l.ops, key)
	}
	return op
}

// Symbol returns the symbol of a name.
func (l *Language) Symbol(name string) (Symbol, bool) {
	s, ok := l.names[name]
	return s, ok
}

// Output returns the op that takes output i of its input. In rules, "(split x).1" is output 1
// of split, and "(split x)" its output 0.
func (l *Language) Output(i int) Op { return l.Op(l.output, i) }

// SetGuard defines the function of a guard.
func (l *Language) SetGuard(name string, f Guard) { l.guards[name] = f }

// cloneOps returns a copy of the tables of ops, to which a graph adds its own.
func (l *Language) cloneOps() ([]opInfo, map[opInfo]Op) {
	return slices.Clone(l.ops), maps.Clone(l.ids)
}
