package tensors

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// Domain returns what the machine that checks rules knows of tensors: it replaces the names of
// patterns by inputs and constants of every element type and of rank 0 to 3, with and without
// dimensions that broadcast, of the sizes 0 to 4 and of a larger one; captured parameters by those
// of the ops of package tensor and of others, which are names of ops; and a number by a constant
// that is not larger than what it is combined with. An op of the vocabulary has to be a
// tensor.Op.
//
// The default of the language, which is that of cases, is expr.Default, and that of the vocabulary
// is that of the language. types are the types of names and of the variables of rests, which are
// called ys1, ys2 and so on; those of other names are chosen.
func Domain(v pattern.Vocabulary, language *expr.Language, types map[string]tensor.Type, others ...string) rulecheck.Domain {
	language = cmp.Or(language, expr.Default())
	if v == nil {
		v = tensorpass.VocabularyOf(language)
	}
	return &domain{
		language: language, vocab: v, types: types, names: append(others, tensorOps()...),
		families: make(map[string][]pattern.Operator),
	}
}

type domain struct {
	language *expr.Language
	vocab    pattern.Vocabulary
	types    map[string]tensor.Type
	names    []string // of ops

	mu       sync.Mutex
	families map[string][]pattern.Operator
}

func (d *domain) Vocabulary() pattern.Vocabulary { return d.vocab }

// Members lists those of a family that are known by name.
func (d *domain) Members(family string) []pattern.Operator {
	d.mu.Lock()
	defer d.mu.Unlock()
	if list, ok := d.families[family]; ok {
		return list
	}
	var list []pattern.Operator
	// A vocabulary can say whether an op belongs to a family, but not list the ops of one. So they
	// are found among the ops that are known by name, once for each family.
	if families, ok := d.vocab.(pattern.Families); ok {
		f, ok := families.Family(family)
		for _, name := range d.names {
			op, known := d.vocab.Operator(name)
			if !known || !ok {
				continue
			}
			if tracked := len(op.Tracks) == 1 && op.Tracks[0].Op() != nil; !tracked || f.Match(op.Tracks[0].Op()) {
				list = append(list, op)
			}
		}
	}
	d.families[family] = list
	return list
}

// Beginnings are every element type with the first seven shapes.
func (d *domain) Beginnings() (choices [][]int, times int) {
	for t := range dtypes {
		for shape := range 7 {
			choices = append(choices, []int{t, shape, 0})
		}
	}
	return choices, 4
}

// Names returns the names that have types.
func (d *domain) Names() []string {
	var names []string
	for name := range d.types {
		names = append(names, name)
	}
	return names
}

// Expressions parses a case, also with float32s in place of float64s: the tests of Go rules mostly
// have float64s, and the same expression of float32s shows conversions that a rule forgets.
func (d *domain) Expressions(k rulecheck.Case) (list [][]*fgraph.Variable) {
	for _, vars := range []string{k.Vars, single(k.Vars)} {
		s := d.language.NewScope()
		if s.Declare(vars) != nil {
			continue
		}
		if outputs, err := s.Parse(k.Expr); err == nil {
			list = append(list, outputs)
		}
	}
	return list
}

// Graph returns a graph that knows shapes.
func (d *domain) Graph(outputs []*variable, others ...*variable) (*fgraph.FunctionGraph, error) {
	g, err := tensor.NewGraph(tensor.InputsOf(append(slices.Clone(outputs), others...)...), outputs)
	if err == nil {
		err = g.Attach(tensor.NewShapes())
	}
	return g, err
}

// single makes float32s of the floats that have no element type.
func single(vars string) string {
	groups := strings.Split(vars, ";")
	for i, g := range groups {
		if names, t, ok := strings.Cut(g, ":"); ok {
			switch t = strings.TrimSpace(t); {
			case strings.HasPrefix(t, "float64"):
				groups[i] = names + ": float32" + strings.TrimPrefix(t, "float64")
			case strings.HasPrefix(t, "["), t == "scalar", t == "vector", t == "matrix", t == "row", t == "col", t == "tensor3", t == "tensor4":
				groups[i] = names + ": float32 " + t
			}
		}
	}
	return strings.Join(groups, ";")
}
