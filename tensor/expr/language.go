package expr

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Language gives names their meaning: ops, which have the same names in expressions, in
// patterns, in graphs that are printed, and in files of graphs; and functions, which only
// expressions have. It never changes, and several goroutines may use it.
type Language struct {
	ops     map[string]maker
	aliases map[string]string // other names of ops
	// Of names that are no part of the default language:
	added map[string]func(in ...*fgraph.Variable) (*fgraph.Variable, error)
	is    map[string]func(fgraph.Op) bool
}

// A Definition adds a name to a language: an op or a function.
type Definition struct {
	Name string
	// Op returns the op of the name with the given parameters, in braces behind
	// the name in the text of the op, and reports whether there is one: Clip{0}{1} has the
	// parameters 0 and 1. The op has to print as its name and parameters.
	Op func(params []string) (tensor.Op, bool)
	// Function returns what a call of the name in an expression means. Numbers among the
	// arguments have the type of the tensors beside them.
	Function func(in ...*fgraph.Variable) (*fgraph.Variable, error)

	// is reports whether an op is one of the name, with whichever parameters. It lets patterns
	// capture them: (Clip{p} x). It may be missing.
	is func(op fgraph.Op) bool

	examples []tensor.Op
}

// Define returns the definition of ops that have one name, and of which each prints in its own
// way, such as Cube and Cube{inplace}.
func Define(ops ...tensor.Op) Definition {
	d := Definition{examples: ops, is: func(o fgraph.Op) bool {
		return slices.ContainsFunc(ops, func(op tensor.Op) bool { return fgraph.OpsEqual(op, o) })
	}, Op: func(params []string) (tensor.Op, bool) {
		text := ""
		if len(params) > 0 {
			text = "{" + strings.Join(params, "}{") + "}"
		}
		for _, op := range ops {
			name := op.String()
			if base, _, _ := strings.Cut(name, "{"); base+text == name {
				return op, true
			}
		}
		return nil, false
	}}
	if len(ops) > 0 {
		d.Name, _, _ = strings.Cut(ops[0].String(), "{")
	}
	return d
}

// Default returns the language of the ops of package tensor.
func Default() *Language { return standard() }

var standard = sync.OnceValue(func() *Language {
	l := &Language{
		ops: maps.Clone(ops), aliases: aliases,
		added: make(map[string]func(...*fgraph.Variable) (*fgraph.Variable, error)), is: make(map[string]func(fgraph.Op) bool),
	}
	maps.Copy(l.ops, windowOps)
	for o := range array.NumOpcodes {
		l.ops[o.String()] = func(params []string) (tensor.Op, bool) { return elemwise(o, params) }
	}
	for r := range array.NumReductions {
		l.ops[r.String()] = func(params []string) (tensor.Op, bool) {
			axes, ok := parseAxes(params)
			return tensor.Reduce{Op: r, Axes: axes, All: len(params) == 0}, ok
		}
	}
	return l
})

// aliases are other names of ops: those of Theano's and NumPy's functions, and bitwise_or, because
// "or" means alternatives in patterns and nothing in Python.
var aliases = map[string]string{
	"abs_": "abs", "absolute": "abs", "and_": "and", "bitwise_and": "and", "or_": "or", "bitwise_or": "or", "bitwise_xor": "xor", "bitwise_not": "invert",
	"divide": "true_div", "floor_divide": "int_div", "negative": "neg", "power": "pow", "reciprocal": "inv", "sign": "sgn", "sqrt_": "sqrt", "square": "sqr",
	"tensor_copy": "identity", "conj": "identity", "conjugate": "identity", "fill": "second",
	"shape": "Shape", "softmax": "Softmax", "log_softmax": "LogSoftmax", "sdot": "SparseDot", "categorical_crossentropy": "CrossentropyCategorical1Hot",
	"det": "Det", "slogdet": "SLogDet", "matrix_inverse": "MatrixInverse", "alloc": "Alloc",
}

// constants are the names of values.
var constants = []string{"None", "True", "False", "nan", "inf"}

// ErrDefinition says that a language can't have a definition.
var ErrDefinition = errors.New("bad definition")

// With returns the language with further names. A name that the language has already, or that can't
// be written, is an error, and so is an op that does not print as what it is defined as.
func (l *Language) With(defs ...Definition) (*Language, error) {
	next := &Language{ops: maps.Clone(l.ops), aliases: l.aliases, added: maps.Clone(l.added), is: maps.Clone(l.is)}
	var faults []error
	for _, d := range defs {
		if err := next.add(d); err != nil {
			faults = append(faults, fmt.Errorf("%w: %s: %w", ErrDefinition, d.Name, err))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return next, nil
}

// Must returns the language with further names, which are part of the program: it panics on an
// error of With.
func (l *Language) Must(defs ...Definition) *Language {
	next, err := l.With(defs...)
	if err != nil {
		panic(err)
	}
	return next
}

func (l *Language) add(d Definition) error {
	// A name has to be one token, or no text could have it.
	tokens, err := lex(d.Name)
	_, isType := array.ParseDType(d.Name)
	switch {
	case err != nil || len(tokens) != 2 || tokens[0].kind != tokenName || strings.Contains(d.Name, "{"):
		return errors.New("that is not a name")
	case isType || keywords[d.Name] != "" || modules[d.Name] || slices.Contains(constants, d.Name):
		return errors.New("the name means something else in expressions")
	case l.knows(d.Name):
		return errors.New("the language has that name already")
	case (d.Op == nil) == (d.Function == nil):
		return errors.New("either an op or a function is expected")
	case d.Function != nil:
		l.added[d.Name] = d.Function
		return nil
	}
	l.ops[d.Name] = d.Op
	if d.is != nil {
		l.is[d.Name] = d.is
	}
	// Graphs are written to files by these names, so what is printed has to be read as the same op.
	for _, op := range d.examples {
		text := op.String()
		if known, ok := l.Op(text); !ok || !strings.HasPrefix(text, d.Name) || !fgraph.OpsEqual(known, op) {
			return fmt.Errorf("the op %s does not print as that name with its own parameters in braces", text)
		}
	}
	return nil
}

// Op returns the op that prints under a name, parameters included, such as add, sum{axis=0} or
// DimShuffle{1,0}, and reports whether there is one. Some ops have further names, such as
// bitwise_or. A Composite has no name that describes it in full.
func (l *Language) Op(name string) (tensor.Op, bool) {
	base, params, ok := cutParams(name)
	if !ok {
		return nil, false
	}
	if full, ok := l.aliases[base]; ok {
		base = full
	}
	if make, ok := l.ops[base]; ok {
		if op, ok := make(params); ok {
			return op, true
		}
	}
	return nil, false
}

// Is returns what tells whether an op has a name that was added to the default language, and
// reports whether that is known.
func (l *Language) Is(name string) (is func(fgraph.Op) bool, ok bool) {
	is, ok = l.is[name]
	return is, ok
}

// NewScope returns a scope with the given inputs, under their names.
func (l *Language) NewScope(inputs ...*fgraph.Variable) *Scope {
	s := &Scope{lang: l, byName: make(map[string]*fgraph.Variable)}
	for _, v := range inputs {
		s.declare(v)
	}
	return s
}

// NewScopeOf returns a strict scope in which names mean variables, which need not be inputs.
func (l *Language) NewScopeOf(named map[string]*fgraph.Variable) *Scope {
	s := l.NewScope()
	s.Strict = true
	maps.Copy(s.byName, named)
	return s
}

// Dialect returns how graphs of the language are written to files.
func (l *Language) Dialect() Dialect { return Dialect{Language: l} }

// Hint says what the name of an op may have been meant to be, such as "; did you mean mul?". It
// returns "" if it has no idea.
func (l *Language) Hint(name string) string {
	base, _, _ := strings.Cut(name, "{")
	switch {
	case base == name && l.isFunction(name):
		return "; it is a function of expressions, not a single op"
	case base != name && (l.ops[base] != nil || l.aliases[base] != ""):
		return fmt.Sprintf("; %s takes other parameters", base)
	}
	return spell.Hint(base, l.Names())
}

// Names returns the names of ops, sorted, without parameters.
func (l *Language) Names() []string {
	names := slices.Collect(maps.Keys(l.ops))
	names = slices.AppendSeq(names, maps.Keys(l.aliases))
	slices.Sort(names)
	return names
}

// Functions returns the names of the functions of expressions, sorted.
func (l *Language) Functions() []string {
	names := slices.Collect(maps.Keys(l.added))
	for _, t := range tables {
		names = slices.AppendSeq(names, maps.Keys(t))
	}
	names = slices.AppendSeq(names, maps.Keys(listFunctions))
	slices.Sort(names)
	return slices.Compact(names)
}

// callHint is Hint for what is called in an expression.
func (l *Language) callHint(name string) string {
	if base, _, hasParams := strings.Cut(name, "{"); hasParams || l.ops[base] != nil {
		return l.Hint(name)
	}
	return spell.Hint(name, append(l.Functions(), l.Names()...))
}

// isFunction reports whether a name is that of a function, and can't be a variable that was not
// declared. A name in listFunctions, such as grad, can.
func (l *Language) isFunction(name string) bool {
	return l.added[name] != nil || slices.ContainsFunc(tables, func(t map[string]function) bool { return t[name] != nil })
}

// isOp reports whether a name is that of an op.
func (l *Language) isOp(name string) bool {
	_, ok := l.Op(name)
	return ok
}

// knows reports whether a name means anything in expressions or patterns.
func (l *Language) knows(name string) bool {
	return l.ops[name] != nil || l.aliases[name] != "" || l.isFunction(name) || listFunctions[name] != nil || name == compositeName
}
