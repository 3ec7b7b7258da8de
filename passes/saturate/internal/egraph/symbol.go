package egraph

import (
	"errors"
	"fmt"

	"github.com/nnopt/nnopt/pattern"
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
	opTable
	sigs   []Signature
	names  map[string]Symbol
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

// An opTable gives ops their numbers.
type opTable struct {
	ops []opInfo
	ids map[opInfo]Op
}

// Intern returns the op of a symbol with parameters, a comparable value or nil. Once there are graphs of a language, it
// is theirs that counts.
func (t *opTable) Intern(s Symbol, param any) Op {
	key := opInfo{s, param}
	op, ok := t.ids[key]
	if !ok {
		op = Op(len(t.ops))
		t.ids[key] = op
		t.ops = append(t.ops, key)
	}
	return op
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
	l := &Language{names: map[string]Symbol{}, opTable: opTable{ids: map[opInfo]Op{}}, guards: map[string]Guard{}, makers: map[string]Maker{}}
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

// Symbol returns the symbol of a name.
func (l *Language) Symbol(name string) (Symbol, bool) {
	s, ok := l.names[name]
	return s, ok
}

// Output returns the op that takes output i of its input. In rules, "(split x).1" is output 1
// of split, and "(split x)" its output 0.
func (l *Language) Output(i int) Op { return l.Intern(l.output, i) }

// SetGuard defines the function of a guard.
func (l *Language) SetGuard(name string, f Guard) { l.guards[name] = f }

// Types are what a language knows of types, so that rules need not mention them. Each of the
// functions may be nil. They depend on facts of the classes that they are given only; see
// [Analysis].
type Types struct {
	// Equal reports whether a class is what a number in a pattern means, and returns a node of the
	// class that shows it, such as a constant. If it is nil, a number is a leaf; see
	// [Language.SetNumbers].
	Equal func(g *Graph, c Class, l pattern.Literal) (Node, bool)
	// Witness returns the node by which explanations show a class that a rule binds, such as a
	// constant if it is a number. If it is nil, they show the node that the class was made for.
	Witness func(g *Graph, c Class) Node
	// Built returns what the last [Maker] built, if the graph keeps reasons. Explanations show
	// that; classes may have many other nodes. If it is nil, they show the node that the maker
	// returned, as it was added.
	Built func(g *Graph) *Built
}

// SetTypes says what types mean for rules.
func (l *Language) SetTypes(t Types) { l.types = t }

// SetNumbers says what numbers in rules are, without types: the leaf of a number. g is nil while rules
// are compiled, and of takes its ops from the language then.
func (l *Language) SetNumbers(of func(g *Graph, v float64) Op) { l.number = of }

// leafOf returns the leaf that a number is, without types.
func (l *Language) leafOf(e pattern.Literal) (Op, error) {
	switch {
	case l.number == nil:
		return noOp, fmt.Errorf("the language has no number %s", e)
	case e.Type() != "":
		return noOp, fmt.Errorf("%s has a type, and the language has no types", e)
	}
	return l.number(nil, e.Float()), nil
}

// literal compiles a number in a pattern, whose class is in the register of t.
func (c *compiler) literal(e pattern.Literal, t todo) error {
	shape := &c.info.nodes[t.above].args[t.arg]
	if c.r.lang.types.Equal == nil {
		op, err := c.r.lang.leafOf(e)
		if err != nil {
			return err
		}
		shape.leaf = op
		return c.leaf(op, t)
	}
	// The slot is for a node that shows which number the class is.
	shape.slot = len(c.info.slots)
	c.info.slots = append(c.info.slots, slot{reg: c.reg(), bind: -1, node: true})
	i := numbered(c.r.numbers, e, &c.r.literals, e)
	c.emit(instr{code: opEqual, in: int32(t.reg), arg: int32(i), out: int32(c.info.slots[shape.slot].reg)})
	c.ask(t.reg, t.depth)
	return nil
}
