package models

import (
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/onnxpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// newDomain returns what the machine that checks rules knows of nodes of ONNX. The names of a pattern
// are tensors of small shapes, some of whose sizes only the run knows, and constants.
func newDomain(o Options) rulecheck.Domain {
	o = o.complete()
	w := rulecheck.World{
		Rules:    onnxpass.Vocabulary(o.Operators),
		Params:   paramsOf,
		Random:   random,
		Evaluate: newWorld(ir.NewSource(o.Operators), nil, o.lowering("", nil)).(world).Evaluate,
		Compare:  compareArrays,
		Smaller:  smaller,
		Parse: func(c rulecheck.Case) [][]*fgraph.Variable {
			g, err := onnxpass.ParseGraph(c.Expr, o.Operators)
			if err != nil {
				return nil // the tests of the rules have read it
			}
			return [][]*fgraph.Variable{g.Outputs()}
		},
		Attach: func(g *fgraph.FunctionGraph) error {
			s := ir.NewSource(o.Operators)
			s.Evaluator = lower.Evaluator{Options: o.lowering("", nil).Options}
			return g.Attach(s)
		},
	}
	for _, text := range shapes {
		w.Types = append(w.Types, mustType(text))
	}
	return &domain{Domain: w.Domain(), vocabulary: w.Rules}
}

// rules lists the rules of a database, with the graphs of their tests.
func (o Options) rules(cfg *tool.Config, d *tool.Dialect, list []optdb.Listing) []rulecheck.Entry {
	cases := make(map[string][]rulecheck.Case)
	for _, c := range onnxpass.Cases() {
		if c.Want != "!" {
			cases[c.Rule] = append(cases[c.Rule], rulecheck.Case{Expr: c.Graph})
		}
	}
	inDatabase, ours := make(map[string]bool), make(map[string]bool)
	for i := range list {
		inDatabase[list[i].Name] = true
	}
	var entries []rulecheck.Entry
	for _, l := range onnxpass.Rules() {
		name := rewrite.Describe(l.Rule).Name
		ours[name] = true
		if inDatabase[name] {
			entries = append(entries, rulecheck.Entry{Rule: l.Rule, Groups: l.Groups, Tags: l.Tags, Cases: cases[name]})
		}
	}
	return append(entries, cfg.TextRules(d, list, func(name string) bool { return ours[name] })...)
}

func (o Options) domain(types string) (rulecheck.Domain, error) {
	if types != "" {
		return nil, tool.Usagef("--vars has no meaning for rules for ONNX's nodes")
	}
	return newDomain(o), nil
}

type domain struct {
	rulecheck.Domain
	vocabulary pattern.Vocabulary
}

// shapes are the types that most names of an expression have. A size with a name is known only in a
// run, see sizeOf.
var shapes = []string{
	"float[2,3]", "float[3]", "float[]", "float[2,3,4]", "float[1,3,4,4]", "float[2,4,5,6]", "float[n,3]", "float[n,m]", "float[n,3,h,h]",
	"float[1,1]", "float[one,3]", "float[?,3]", "float[3,3]", "float[2,3,1]", "float[0,3]", "float[1,3,1,4]", "double[2,3]", "int64[2,3]", "int64[3]",
	"bool[2,3]", "int32[n,3]",
}

func mustType(text string) ir.Type {
	t, err := ir.ParseType(text)
	if err != nil {
		panic(err)
	}
	return t
}

// sizeOf returns the size that a run has for one that is not known before.
func sizeOf(d ir.Dim, rng *rand.Rand) int {
	switch d.String() {
	case "n":
		return 2
	case "m":
		return 3
	case "h":
		return 4
	case "one":
		return 1
	}
	if n, ok := d.Number(); ok {
		return int(n)
	}
	if d.IsUnknown() {
		return rng.IntN(4)
	}
	h := fnv.New32a()
	h.Write([]byte(d.String()))
	return int(h.Sum32()%3) + 2 // the same for all inputs
}

// special are values at the limits of what there is.
var special = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1, -1, 3e38, -3e38, 1e-30}

// random returns a value of a type.
func random(t fgraph.Type, limits bool, rng *rand.Rand) any {
	u := t.(ir.Type)
	dims, _ := u.Shape()
	shape := lists.Map(dims, func(d ir.Dim) int { return sizeOf(d, rng) })
	a, err := lower.NewArray(u.Elem(), shape...)
	if err != nil {
		return err
	}
	for i := range a.Len() {
		switch {
		case u.Elem() == onnx.Bool:
			a.SetFloat(i, float64(rng.IntN(2)))
		case !a.DType().IsFloat():
			a.SetFloat(i, float64(rng.IntN(6)-2))
		case limits && rng.IntN(3) == 0:
			a.SetFloat(i, special[rng.IntN(len(special))])
		default:
			a.SetFloat(i, math.Round(rng.NormFloat64()*64)/64)
		}
	}
	return a
}

// nearLimits is the class of rules that are off where a value is infinite, NaN or nearly too large for its
// type, as those are that compute constants ahead: (x*a)*b may be infinite where x*(a*b) is not.
const nearLimits rulecheck.Class = "limits"

// compareArrays returns the class of a difference.
func compareArrays(left, right any) rulecheck.Class {
	if l, ok := left.(list); ok {
		return compareLists(l, right)
	}
	a, ok := left.(*array.Array)
	b, too := right.(*array.Array)
	if !ok || !too {
		if left == right {
			return rulecheck.Exact
		}
		return rulecheck.Wrong
	}
	if a.DType() != b.DType() || !slices.Equal(a.Shape(), b.Shape()) {
		return rulecheck.Wrong
	}
	class := rulecheck.Exact
	// Near the limits of floats a sum may lose all digits of its smaller terms, also in elements that
	// are not large themselves.
	norm, limits := 0.0, false
	for i := range a.Len() {
		x, y := math.Abs(a.Float(i)), math.Abs(b.Float(i))
		limits = limits || !(x < 1e15 && y < 1e15)
		if x < math.Inf(1) {
			norm = max(norm, x)
		}
	}
	for i := range a.Len() {
		x, y := a.Float(i), b.Float(i)
		finite := !math.IsNaN(x) && !math.IsInf(x, 0) && !math.IsNaN(y) && !math.IsInf(y, 0)
		switch {
		case x == y || math.IsNaN(x) && math.IsNaN(y):
		case !a.DType().IsFloat():
			return rulecheck.Wrong
		case finite && math.Abs(x-y) <= float64(1e-4*math.Abs(x))+1e-7 || finite && !limits && math.Abs(x-y) <= 1e-5*norm:
			if class == rulecheck.Exact {
				class = rulecheck.Rounding
			}
		case limits || !finite:
			class = nearLimits
		default:
			return rulecheck.Wrong
		}
	}
	return class
}

// compareLists returns the worst class of the tensors of two sequences.
func compareLists(left list, right any) rulecheck.Class {
	r, ok := right.(list)
	if !ok || len(left) != len(r) {
		return rulecheck.Wrong
	}
	worst := rulecheck.Exact
	for i := range left {
		// Limits is worse than Rounding, and nothing is worse than Wrong.
		if c := compareArrays(left[i], r[i]); worst == rulecheck.Exact || c == rulecheck.Wrong || c == nearLimits && worst != rulecheck.Wrong {
			worst = c
		}
	}
	return worst
}

// smaller yields simpler values of the same shape.
func smaller(_ fgraph.Type, value any) iter.Seq[any] {
	return func(yield func(any) bool) {
		a := value.(*array.Array)
		for i := range a.Len() {
			for _, to := range []float64{0, 1} {
				x := a.Float(i)
				if x == to || x == 0 || to == 1 && math.Abs(x) <= 1 {
					continue
				}
				b := a.Clone()
				b.SetFloat(i, to)
				if !yield(b) {
					return
				}
			}
		}
	}
}

// params are attributes of operators, the simplest first.
var params = map[string][]string{
	"Transpose":             {"perm=ints[1,0]", "perm=ints[0,2,1]", "perm=ints[2,0,1]", "perm=ints[1,0,2]", "perm=ints[0,2,3,1]", "perm=ints[0,3,1,2]", "perm=ints[0,1]", "perm=ints[0,1,2]", "perm=ints[1,2,0]", "perm=ints[0,2,1,3]", "", "perm=ints[0,1,3,2]"},
	"Cast":                  {"to=1", "to=7", "to=6", "to=9", "to=11"},
	"Conv":                  {"", "pads=ints[1,1,1,1]", "strides=ints[2,2]", "group=3", "pads=ints[1,0,2,1]", "auto_pad=\"SAME_UPPER\"", "group=4", "dilations=ints[2,2], pads=ints[2,2,2,2]", "auto_pad=\"VALID\"", "group=3, pads=ints[1,1,1,1]", "group=2"},
	"ConvTranspose":         {"", "strides=ints[2,2]", "pads=ints[1,1,1,1]", "group=3", "strides=ints[2,2], output_padding=ints[1,1]"},
	"MaxPool":               {"kernel_shape=ints[2,2]", "kernel_shape=ints[3,3], pads=ints[1,1,1,1]", "kernel_shape=ints[2,2], strides=ints[2,2]", "kernel_shape=ints[2,2], ceil_mode=1, strides=ints[2,2]", "auto_pad=\"SAME_UPPER\", kernel_shape=ints[2,2]"},
	"AveragePool":           {"kernel_shape=ints[2,2]", "kernel_shape=ints[3,3], pads=ints[1,1,1,1]", "count_include_pad=1, kernel_shape=ints[3,3], pads=ints[1,1,1,1]", "kernel_shape=ints[2,2], strides=ints[2,2]", "ceil_mode=1, kernel_shape=ints[2,2], strides=ints[2,2]"},
	"Gemm":                  {"", "transB=1", "transA=1", "alpha=2.0", "beta=0.5", "alpha=0.5, beta=2.0, transB=1"},
	"Resize":                {"mode=\"nearest\"", "coordinate_transformation_mode=\"asymmetric\", mode=\"nearest\"", "mode=\"linear\""},
	"LayerNormalization":    {"", "axis=-1", "axis=1", "axis=-1, epsilon=0.1"},
	"BatchNormalization":    {"", "epsilon=0.1"},
	"LeakyRelu":             {"", "alpha=0.5", "alpha=-0.5", "alpha=2.0"},
	"Elu":                   {"", "alpha=2.0"},
	"HardSigmoid":           {"", "alpha=0.1666667, beta=0.5"},
	"Pad":                   {"", "mode=\"constant\"", "mode=\"reflect\"", "mode=\"edge\""},
	"ArgMax":                {"", "axis=1", "axis=1, keepdims=0", "axis=-1, select_last_index=1"},
	"Shape":                 {"", "start=1", "end=1", "end=-1, start=0"},
	"Einsum":                {"equation=\"ij,jk->ik\"", "equation=\"ij,kj->ik\"", "equation=\"bij,bjk->bik\"", "equation=\"ij,ij->i\""},
	"DepthToSpace":          {"blocksize=2", "blocksize=2, mode=\"CRD\""},
	"Reshape":               {"", "allowzero=1"},
	"Split":                 {"axis=0", "axis=1", "axis=-1"},
	"InstanceNormalization": {"", "epsilon=0.1"},
	"Gelu":                  {"", "approximate=\"tanh\""},
	"LpNormalization":       {"", "axis=1, p=1"},
	"Squeeze":               {""}, "Unsqueeze": {""}, "Expand": {""}, "Clip": {""}, "Slice": {""},
}

// paramsOf returns attributes for a family: those that its operator has, or axes.
func paramsOf(family string) []any {
	list, ok := params[family]
	switch {
	case ok:
	case strings.HasPrefix(family, "Reduce"):
		list = []string{"keepdims=1", "keepdims=0", "", "keepdims=0, noop_with_empty_axes=1"}
	default:
		list = []string{"", "axis=0", "axis=1", "axis=-1", "axis=2"}
	}
	return lists.Map(list, func(text string) any { return onnxpass.Attributes(text) })
}
