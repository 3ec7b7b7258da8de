package tensor

import (
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/tensor/array"
)

// NamedOp returns the op that prints under a name, parameters included, such as add, sum{axis=0} or DimShuffle{1,0}; and whether there
// is one. Ops that hold a program have no name that says it all.
func NamedOp(name string) (Op, bool) {
	base, params, ok := cutParams(name)
	if !ok {
		return nil, false
	}
	if o, ok := array.OpByName(base); ok {
		return elemwiseNamed(o, params)
	}
	for r := range array.NumReductions {
		if r.String() == base {
			axes, ok := axesNamed(params)
			return Reduce{r, axes, len(params) == 0}, ok
		}
	}
	if make, ok := namedOps[base]; ok {
		return make(params)
	}
	return nil, false
}

// cutParams splits Gemm{a}{b} into Gemm and the parameters.
func cutParams(name string) (base string, params []string, ok bool) {
	base, rest, _ := strings.Cut(name, "{")
	if len(rest) == 0 {
		return base, nil, base == name
	}
	params = strings.Split(rest, "}{")
	last := &params[len(params)-1]
	*last, ok = strings.CutSuffix(*last, "}")
	return base, params, ok
}

func elemwiseNamed(o array.Op, params []string) (Op, bool) {
	e := Elemwise{Op: o}
	if o == array.Cast {
		if len(params) == 0 {
			return nil, false
		}
		var ok bool
		if e.To, ok = array.ParseDType(params[0]); !ok {
			return nil, false
		}
		params = params[1:]
	}
	switch {
	case len(params) == 0 && o != array.Cast:
		return OpFor(o), true
	case len(params) == 0:
		return e, true
	case len(params) == 1 && strings.HasPrefix(params[0], "inplace="):
		k, err := strconv.Atoi(params[0][len("inplace="):])
		e.Inplace = int8(k + 1)
		return e, err == nil && k >= 0 && k < 100
	}
	return nil, false
}

func axesNamed(params []string) (axes array.Axes, ok bool) {
	if len(params) == 0 {
		return 0, true
	}
	list, ok := strings.CutPrefix(params[0], "axis=")
	if !ok || len(params) > 1 {
		return 0, false
	}
	if list == "" {
		return 0, true
	}
	for _, p := range strings.Split(list, ",") {
		d, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || d < 0 || d >= MaxDims {
			return 0, false
		}
		axes |= 1 << d
	}
	return axes, true
}

// plain returns the maker of an op without parameters.
func plain(op Op) func([]string) (Op, bool) {
	return func(params []string) (Op, bool) { return op, len(params) == 0 }
}

// placed returns the maker of an op that may work in place.
func placed(make func(inplace bool) Op) func([]string) (Op, bool) {
	return func(params []string) (Op, bool) {
		switch {
		case len(params) == 0:
			return make(false), true
		case len(params) == 1 && params[0] == "inplace":
			return make(true), true
		}
		return nil, false
	}
}

// numbered returns the maker of an op with a small number.
func numbered(make func(n int8) Op) func([]string) (Op, bool) {
	return func(params []string) (Op, bool) {
		if len(params) != 1 {
			return nil, false
		}
		n, err := strconv.Atoi(params[0])
		if err != nil || n < 0 || n > MaxDims {
			return nil, false
		}
		return make(int8(n)), true
	}
}

// typed returns the maker of an op with a type of elements.
func typed(make func(DType) Op) func([]string) (Op, bool) {
	return func(params []string) (Op, bool) {
		if len(params) != 1 {
			return nil, false
		}
		d, ok := array.ParseDType(params[0])
		return make(d), ok
	}
}

// namedOps makes the ops that are neither element-wise nor reductions.
var namedOps = map[string]func(params []string) (Op, bool){
	"dot": plain(DotOp{}), "Dot22": plain(Dot22Op{}), "Dot22Scalar": plain(Dot22ScalarOp{}),
	"Gemm": placed(func(i bool) Op { return GemmOp{i} }), "Gemv": placed(func(i bool) Op { return GemvOp{i, false} }), "BlasGemv": placed(func(i bool) Op { return GemvOp{i, true} }),
	"Ger": placed(func(i bool) Op { return GerOp{i, false} }), "BlasGer": placed(func(i bool) Op { return GerOp{i, true} }),
	"Alloc": plain(AllocOp{}), "AllocEmpty": typed(func(d DType) Op { return AllocEmptyOp{d} }),
	"Shape": plain(ShapeOp{}), "Shape_i": numbered(func(n int8) Op { return ShapeIOp{n} }),
	"MakeVector": typed(func(d DType) Op { return MakeVectorOp{d} }), "Reshape": numbered(func(n int8) Op { return ReshapeOp{n} }),
	"Join": numbered(func(n int8) Op { return JoinOp{n} }), "ARange": plain(ARangeOp{}),
	"Softmax": plain(SoftmaxOp{}), "LogSoftmax": plain(SoftmaxOp{true}), "SoftmaxGrad": plain(SoftmaxGradOp{}), "LogSoftmaxGrad": plain(SoftmaxGradOp{true}),
	"SoftmaxWithBias": plain(SoftmaxWithBiasOp{}), "CrossentropyCategorical1Hot": plain(CrossentropyCategorical1HotOp{}),
	"CrossentropyCategorical1HotGrad":       plain(CrossentropyCategorical1HotGradOp{}),
	"CrossentropySoftmaxArgmax1HotWithBias": plain(CrossentropySoftmaxArgmax1HotWithBiasOp{}),
	"CrossentropySoftmax1HotWithBiasDx":     plain(CrossentropySoftmax1HotWithBiasDxOp{}),
	"SparseDot":                             plain(SparseDotOp{}), "Usmm": placed(func(i bool) Op { return UsmmOp{i} }),
	"AdvancedSubtensor1": plain(AdvancedSubtensorOp{1}), "AdvancedSubtensor": numbered(func(n int8) Op { return AdvancedSubtensorOp{n} }),
	"AdvancedIncSubtensor1": placed(func(i bool) Op { return AdvancedIncSubtensorOp{1, false, i} }),
	"AdvancedSetSubtensor1": placed(func(i bool) Op { return AdvancedIncSubtensorOp{1, true, i} }),
	"AdvancedIncSubtensor":  advancedNamed(false), "AdvancedSetSubtensor": advancedNamed(true),
	"argmax": func(params []string) (Op, bool) {
		axes, ok := axesNamed(params)
		return ArgmaxOp{axes, len(params) == 0}, ok
	},
	"DimShuffle": dimShuffleNamed(false), "InplaceDimShuffle": dimShuffleNamed(true),
	"Subtensor": func(params []string) (Op, bool) {
		ix, ok := indexingNamed(params)
		return &SubtensorOp{ix}, ok
	},
	"IncSubtensor": changeNamed(false), "SetSubtensor": changeNamed(true),
	"Assert": func(params []string) (Op, bool) {
		return AssertOp{strings.Join(params, "}{")}, len(params) > 0
	},
	"SpecifyShape": specifyNamed,
}

func advancedNamed(set bool) func([]string) (Op, bool) {
	return func(params []string) (Op, bool) {
		inplace := len(params) == 2 && params[1] == "inplace"
		if len(params) == 0 || len(params) > 1 && !inplace {
			return nil, false
		}
		return numbered(func(n int8) Op { return AdvancedIncSubtensorOp{n, set, inplace} })(params[:1])
	}
}

func dimShuffleNamed(inplace bool) func([]string) (Op, bool) {
	return func(params []string) (Op, bool) {
		if len(params) > 1 {
			return nil, false
		}
		op := DimShuffleOp{Inplace: inplace}
		if len(params) == 0 || params[0] == "" {
			return op, true
		}
		parts := strings.Split(params[0], ",")
		if len(parts) > MaxDims {
			return nil, false
		}
		op.n = int8(len(parts))
		for i, p := range parts {
			if p = strings.TrimSpace(p); p == "x" {
				op.order[i] = NewAxis
				continue
			}
			d, err := strconv.Atoi(p)
			if err != nil || d < 0 || d >= MaxDims {
				return nil, false
			}
			op.order[i] = int8(d)
		}
		return op, true
	}
}

func changeNamed(set bool) func([]string) (Op, bool) {
	return func(params []string) (Op, bool) {
		inplace := len(params) == 2 && params[1] == "inplace"
		if inplace {
			params = params[:1]
		}
		ix, ok := indexingNamed(params)
		return &IncSubtensorOp{ix, set, inplace}, ok
	}
}

// indexingNamed reads what indexing.text prints.
func indexingNamed(params []string) (ix indexing, ok bool) {
	if len(params) != 1 {
		return ix, false
	}
	if params[0] == "" {
		return ix, true
	}
	ok = true
	read := func(text string) bound {
		switch text = strings.TrimSpace(text); text {
		case "":
			return bound{}
		case "_":
			return bound{kind: fromInput}
		}
		n, err := strconv.Atoi(text)
		ok = ok && err == nil
		return bound{fixed, n}
	}
	for _, text := range strings.Split(params[0], ",") {
		parts := strings.Split(text, ":")
		e := entry{start: read(parts[0])}
		if len(parts) > 1 {
			e.slice, e.stop, e.step = true, read(parts[1]), 1
		} else if e.start.kind == missing {
			return ix, false
		}
		if len(parts) > 2 {
			step := read(parts[2])
			e.step = step.n
			ok = ok && step.kind == fixed && step.n != 0
		}
		ix.entries = append(ix.entries, e)
		ok = ok && len(parts) <= 3
	}
	return ix, ok && len(ix.entries) <= MaxDims
}

func specifyNamed(params []string) (Op, bool) {
	if len(params) != 1 || !strings.HasPrefix(params[0], "[") || !strings.HasSuffix(params[0], "]") {
		return nil, false
	}
	var s spec
	for _, p := range strings.Split(strings.Trim(params[0], "[]"), ",") {
		n := Unknown
		if p = strings.TrimSpace(p); p != "?" {
			var err error
			if n, err = strconv.Atoi(p); err != nil || n < 0 || n > mostSize {
				return nil, false
			}
		}
		if s.ndim == MaxDims {
			return nil, false
		}
		s.shape[s.ndim] = staticSize(n)
		s.ndim++
	}
	return SpecifyShapeOp{s.intern()}, true
}
