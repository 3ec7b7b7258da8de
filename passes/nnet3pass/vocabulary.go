package nnet3pass

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// Vocabulary is [VocabularyOf] the component types of package component.
func Vocabulary() pattern.Vocabulary { return VocabularyOf(component.Kaldi()) }

// VocabularyOf returns the meaning of names and numbers in patterns of network values.
//
//	(TanhComponent x)       a component of that type runs forward, and has no effect, memo
//	                        or random result
//	(TanhComponent{c} x)    the same, and c stands for the run; a replacement runs it on
//	                        another matrix with as many rows if the component is simple
//	(Propagate{c} x)        any component runs forward
//	(Backprop{c} ...xs)     any component runs backward, and only computes a derivative
//	(Block{r} x)            a rectangle of x
//	(Assemble{a} ...xs)     any movement of rows, also by the names of its special cases:
//	                        Sum, Concat, Stack, Scale, SelectRows, Scatter
//	0                       a matrix of that number
//
// A number in a replacement is a matrix of the size of what is replaced. The guards are
// same_size(x, y), identity({c}) and once(x).
func VocabularyOf(types *component.Registry) pattern.Vocabulary { return vocabulary{types} }

type vocabulary struct{ types *component.Registry }

// propagateSuffix ends the names of component types.
const propagateSuffix = "Component"

// Operator returns the operator for a component type.
func (v vocabulary) Operator(name string) (pattern.Operator, bool) {
	if !strings.HasSuffix(name, propagateSuffix) {
		return pattern.Operator{}, false
	}
	o, ok := v.Family(name)
	o.Param, o.Make = nil, nil
	return o, ok
}

// Family returns the operator of the ops that differ in parameters only.
func (v vocabulary) Family(name string) (pattern.Operator, bool) {
	switch name {
	case "Propagate":
		return familyOf(1, 1, plain, propagateAgain), true
	case "Backprop":
		return familyOf(1, -1, func(o lower.Backprop) bool { return o.HasDX && !o.HasState && !o.InPlace }, nil), true
	case "Block":
		return familyOf(1, 1, func(lower.Block) bool { return true }, blockAgain), true
	case "Assemble", "Sum", "Concat", "Stack", "Scale", "SelectRows", "Scatter":
		return familyOf(1, -1, func(o *lower.Assemble) bool { return name == "Assemble" || strings.HasPrefix(o.String(), name+"{") }, assembleAgain), true
	}
	if typ, ok := strings.CutSuffix(name, propagateSuffix); !ok || typ == "" {
		return pattern.Operator{}, false
	}
	// Refuse a misspelled type when the rule is read; later it would just never match.
	if _, known := v.types.New(name); !known {
		return pattern.Operator{}, false
	}
	return familyOf(1, 1, func(o lower.Propagate) bool { return plain(o) && o.C.Type() == name }, propagateAgain), true
}

// special are the names of families that are no component types.
var special = []string{"Propagate", "Backprop", "Block", "Assemble", "Sum", "Concat", "Stack", "Scale", "SelectRows", "Scatter"}

// Hint says which op or component type may have been meant.
func (v vocabulary) Hint(name string) string {
	base, _, _ := strings.Cut(name, "{")
	return spell.Hint(base, append(v.types.Types(), special...))
}

// familyOf returns the operator of the ops of a Go type that match accepts. Rules capture the op.
func familyOf[O fgraph.Op](least, most int, match func(O) bool, again func(O, []*fgraph.Variable) (*fgraph.Variable, error)) pattern.Operator {
	o := pattern.Operator{
		Match:     func(op fgraph.Op) bool { o, ok := op.(O); return ok && match(o) },
		Param:     func(op fgraph.Op) any { return op },
		MinInputs: least, MaxInputs: most, Tracks: []rewrite.Track{rewrite.TrackType[O]()},
	}
	if again != nil {
		o.Make = func(m pattern.Making) (*fgraph.Variable, error) { return again(m.Param.(O), m.Inputs) }
	}
	return o
}

// propagateAgain runs a component on another matrix.
func propagateAgain(op lower.Propagate, in []*fgraph.Variable) (*fgraph.Variable, error) {
	x := lower.TypeOf(in[0])
	switch {
	case op.C.Properties()&component.Simple == 0:
		return nil, fmt.Errorf("%s is not a simple component: which rows it makes depends on its place in the network", op.Name)
	case int(x.Cols) != op.C.InputDim():
		return nil, fmt.Errorf("%s reads %d columns, not %d", op.Name, op.C.InputDim(), x.Cols)
	}
	return fgraph.NewApply(op, in, lower.MatrixType{Rows: x.Rows, Cols: int32(op.C.OutputDim())}).Out(), nil
}

func blockAgain(op lower.Block, in []*fgraph.Variable) (*fgraph.Variable, error) {
	if t := lower.TypeOf(in[0]); op.R1 > t.Rows || op.C1 > t.Cols {
		return nil, fmt.Errorf("%v of a matrix of size %v", op, t)
	}
	return lower.NewBlock(in[0], op.Rect), nil
}

func assembleAgain(op *lower.Assemble, in []*fgraph.Variable) (*fgraph.Variable, error) {
	for i := range op.Terms {
		t := &op.Terms[i]
		if int(t.Input) >= len(in) {
			return nil, fmt.Errorf("%v has more than %d inputs", op, len(in))
		}
		if s, size := t.Src(), lower.TypeOf(in[t.Input]); s.R1 > size.Rows || s.C1 > size.Cols {
			return nil, fmt.Errorf("%v reads more than an input of size %v has", op, size)
		}
	}
	return lower.NewAssemble(op.Rows, op.Cols, slices.Clone(op.Terms), in), nil
}

// Equal reports whether v is a matrix of one number.
func (vocabulary) Equal(l pattern.Literal, v *fgraph.Variable) bool {
	fill, ok := ownerOp[lower.Fill](v)
	return ok && l.Type() == "" && float64(fill.Value) == l.Float()
}

// Constant returns a matrix of one number.
func (vocabulary) Constant(l pattern.Literal, like *fgraph.Variable) (*fgraph.Variable, error) {
	t, ok := like.Type().(lower.MatrixType)
	if !ok || l.Type() != "" {
		return nil, errors.New("a number is a matrix of floats")
	}
	return lower.NewFill(t.Rows, t.Cols, float32(l.Float())), nil
}

// Functions returns the guards.
func (vocabulary) Functions() []pattern.Function {
	return []pattern.Function{
		pattern.NewGuardOfPairs("same_size(x, y)", 1, "x and y have as many rows and columns",
			func(x, y *fgraph.Variable) bool { return x.Type() == y.Type() }),
		pattern.NewGuard("identity({c})", 1, "the component of the run c copies its input", func(a pattern.Args) bool {
			return !slices.ContainsFunc(a.Params, func(p any) bool {
				op, ok := p.(lower.Propagate)
				return !ok || !isIdentity(op.C)
			})
		}),
		pattern.NewGuardOfEach("once(x)", 1, "x has a single use", func(v *fgraph.Variable) bool { return len(v.Clients()) == 1 }),
	}
}
