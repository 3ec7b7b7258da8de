package onnxpass

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// Vocabulary returns the meaning of names and numbers in rules for ONNX's nodes. Operators have
// ONNX's names, behind a domain and a dot those of other domains.
//
//	(Add x y)            the operator without attributes
//	(Concat{axis=0} ..)  with these
//	(Transpose{p} x)     with any, which p is bound to
//	(Clip x _ max)       an input that is left out matches "_" and names, see the guard given
//
// A number matches a constant all of whose elements are the number. In a replacement it is a constant
// without dimensions, of the element type of what is replaced. Operators that had another meaning in
// the version of the model don't match.
func Vocabulary(operators *ir.Operators) pattern.Vocabulary {
	v := &vocabulary{operators: operators} // which rules can compare, so that they are sifted
	v.listed = v.functions()
	return v
}

type vocabulary struct {
	operators *ir.Operators
	listed    []pattern.Function // once: every rule looks them up
}

var onOps = []rewrite.Track{rewrite.TrackType[*ir.Op]()}

// Operator returns the operator of a name, with the attributes that follow it in braces.
func (v vocabulary) Operator(name string) (pattern.Operator, bool) {
	wanted, err := v.operators.ParseOp(name)
	if err != nil || wanted.Operator() == nil {
		return pattern.Operator{}, false
	}
	o := v.operator(wanted.Domain, wanted.Type)
	o.Match = func(op fgraph.Op) bool {
		p, ok := op.(*ir.Op)
		return ok && same(p, wanted) && attributes(p) == attributes(wanted)
	}
	o.Make = func(m pattern.Making) (*fgraph.Variable, error) {
		if err := permitted(m.Like, wanted); err != nil {
			return nil, err
		}
		a, err := v.operators.Apply(wanted, m.Inputs...)
		if err != nil {
			return nil, err
		}
		return a.Out(), nil
	}
	return o, true
}

func same(p, wanted *ir.Op) bool {
	return p.Type == wanted.Type && p.Domain == wanted.Domain && p.Legacy == 0
}

// Attributes are the attributes of an op as rules capture them: as text.
type Attributes string

func attributes(op *ir.Op) Attributes {
	text := op.String()
	_, list, _ := strings.Cut(text, "{")
	return Attributes(strings.TrimSuffix(list, "}"))
}

// Family returns the operator with any attributes.
func (v vocabulary) Family(name string) (pattern.Operator, bool) {
	wanted, err := v.operators.ParseOp(name)
	if err != nil || wanted.Operator() == nil || len(wanted.Attributes) > 0 {
		return pattern.Operator{}, false
	}
	o := v.operator(wanted.Domain, wanted.Type)
	o.Match = func(op fgraph.Op) bool { p, ok := op.(*ir.Op); return ok && same(p, wanted) }
	o.Param = func(op fgraph.Op) any { return attributes(op.(*ir.Op)) }
	o.Make = func(m pattern.Making) (*fgraph.Variable, error) {
		text, ok := m.Param.(Attributes)
		if !ok {
			return nil, fmt.Errorf("%s has no attributes %v", name, m.Param)
		}
		if err := permitted(m.Like, wanted); err != nil {
			return nil, err
		}
		return v.make(name, text, m.Inputs)
	}
	return o, true
}

// permitted returns an error if the model of the graph that like is in can't have an operator.
func permitted(like *fgraph.Variable, op *ir.Op) error {
	if like == nil || like.Graph() == nil || op.Domain != "" {
		return nil
	}
	if s, ok := fgraph.FeatureOf[*ir.Source](like.Graph()); ok && !s.Permits(op.Type) {
		return fmt.Errorf("%s is of version %d of the operators, the model of version %d, which is not raised so far", op.Type, ir.Since(op.Type), s.Opset(""))
	}
	return nil
}

// make applies an operator with attributes that are text.
func (v vocabulary) make(name string, text Attributes, inputs []*fgraph.Variable) (*fgraph.Variable, error) {
	if text != "" {
		name += "{" + string(text) + "}"
	}
	op, err := v.operators.ParseOp(name)
	if err != nil {
		return nil, err
	}
	a, err := v.operators.Apply(op, inputs...)
	if err != nil {
		return nil, err
	}
	return a.Out(), nil
}

func (v vocabulary) operator(domain, typ string) pattern.Operator {
	known := v.operators.Lookup(domain, typ)
	return pattern.Operator{MinInputs: 0, MaxInputs: -1, Commutes: known.Commutes, Tracks: onOps}
}

// Equal reports whether a variable is a constant all of whose elements are a number.
func (v vocabulary) Equal(l pattern.Literal, x *fgraph.Variable) bool {
	n, ok := ir.NumberOf(x)
	return ok && n == l.Float() && (l.Type() == "" || l.Type() == ir.TypeOf(x).Elem().String())
}

// Number returns the number that all elements of a constant are.
func (v vocabulary) Number(x *fgraph.Variable) (float64, bool) { return ir.NumberOf(x) }

// Constant returns a number without dimensions, of the element type of like.
func (v vocabulary) Constant(l pattern.Literal, like *fgraph.Variable) (*fgraph.Variable, error) {
	elem := ir.TypeOf(like).Elem()
	if l.Type() != "" {
		t, err := ir.ParseType(l.Type() + "[]")
		if err != nil {
			return nil, err
		}
		elem = t.Elem()
	}
	if elem == onnx.Undefined {
		return nil, fmt.Errorf("the type of %v is not known", l)
	}
	return ir.Filled(l.Float(), elem)
}

// Functions returns the functions of rules.
func (v vocabulary) Functions() []pattern.Function { return v.listed }

// Conform gives a replacement all that is known of what it replaces.
func (v vocabulary) Conform(_ *fgraph.Apply, old, x *fgraph.Variable) (*fgraph.Variable, error) {
	return conform(old, x), nil
}

// conform returns x, which takes the place of old, with all that is known of old. Types of graphs only
// get better: what follows from a size may have been used already. Nothing can be added to a value
// that a graph has.
func conform(old, x *fgraph.Variable) *fgraph.Variable {
	a := x.Owner()
	both, ok := ir.TypeOf(x).Meet(ir.TypeOf(old))
	if a == nil || a.Graph() != nil || !ok || both == ir.TypeOf(x) {
		return x
	}
	types := lists.Map(a.Outputs(), (*fgraph.Variable).Type)
	types[x.Index()] = both
	return retyped(a, a, types).Outputs()[x.Index()]
}

// retyped returns an apply with results of other types, and the origin and the names of another one.
func retyped(a, named *fgraph.Apply, types []fgraph.Type) *fgraph.Apply {
	b := fgraph.NewApply(a.Op(), a.Inputs(), types...)
	b.SetOrigin(named.Origin())
	for i, v := range named.Outputs() {
		b.Outputs()[i].SetName(v.Name())
	}
	return b
}

// functions are those that rules call.
func (v vocabulary) functions() []pattern.Function {
	return slices.Concat(nopFunctions, reshapeFunctions, indexFunctions,
		computedFunctions, linearFunctions(v), padFunctions, productFunctions, activationFunctions, composeFunctions, normFunctions, reductionFunctions, contribFunctions(v), []pattern.Function{
			pattern.NewGuard("fits(x)", 1, "x is known to have the type and shape of what is replaced", func(a pattern.Args) bool { return sameType(a.Vars[0], a.Root.Out()) }),
		})
}

// building returns a function of rules that builds a value of others.
func (v vocabulary) building(usage string, depth int, doc string, build func(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable) pattern.Function {
	return pattern.NewBuilder(usage, depth, doc, func(a pattern.Args) (*fgraph.Variable, error) {
		return v.operators.Build(func(b *ir.Builder) *fgraph.Variable { return build(b, a.Vars) })
	})
}

// computing is building for a value that is computed at once.
func (v vocabulary) computing(usage string, depth int, doc string, build func(b *ir.Builder, vars []*fgraph.Variable) *fgraph.Variable) pattern.Function {
	return pattern.NewBuilder(usage, depth, doc, func(a pattern.Args) (*fgraph.Variable, error) {
		return v.compute(a, func(b *ir.Builder) *fgraph.Variable { return build(b, a.Vars) })
	})
}

// sameType reports whether two values are known to have the same type and shape.
func sameType(x, y *fgraph.Variable) bool {
	return ir.TypeOf(x).Elem() == ir.TypeOf(y).Elem() && sameShape(x, y)
}

// sameShape reports whether two values are known to have the same shape.
func sameShape(x, y *fgraph.Variable) bool {
	a, ranked := ir.TypeOf(x).Shape()
	b, too := ir.TypeOf(y).Shape()
	return ranked && too && slices.EqualFunc(a, b, ir.Dim.Same)
}
