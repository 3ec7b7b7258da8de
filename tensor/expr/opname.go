package expr

import (
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

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

// A maker returns the op with the given parameters, and reports whether there is one.
type maker func(params []string) (tensor.Op, bool)

// ops makes the ops that are neither element-wise nor reductions.
var ops = map[string]maker{
	"ARange": plain(tensor.ARangeOp{}), "Alloc": plain(tensor.AllocOp{}), "Dot22": plain(tensor.Dot22Op{}), "Dot22Scalar": plain(tensor.Dot22ScalarOp{}),
	"LogSoftmax": plain(tensor.SoftmaxOp{Log: true}), "LogSoftmaxGrad": plain(tensor.SoftmaxGradOp{Log: true}), "Shape": plain(tensor.ShapeOp{}),
	"Softmax": plain(tensor.SoftmaxOp{}), "SoftmaxGrad": plain(tensor.SoftmaxGradOp{}), "SoftmaxWithBias": plain(tensor.SoftmaxWithBiasOp{}),
	"SparseDot": plain(tensor.SparseDotOp{}), "dot": plain(tensor.DotOp{}),
	"CrossentropyCategorical1Hot":           plain(tensor.CrossentropyCategorical1HotOp{}),
	"CrossentropyCategorical1HotGrad":       plain(tensor.CrossentropyCategorical1HotGradOp{}),
	"CrossentropySoftmaxArgmax1HotWithBias": plain(tensor.CrossentropySoftmaxArgmax1HotWithBiasOp{}),
	"CrossentropySoftmax1HotWithBiasDx":     plain(tensor.CrossentropySoftmax1HotWithBiasDxOp{}),

	"Gemm":     placed(func(inplace bool) tensor.Op { return tensor.GemmOp{Inplace: inplace} }),
	"Gemv":     placed(func(inplace bool) tensor.Op { return tensor.GemvOp{Inplace: inplace} }),
	"BlasGemv": placed(func(inplace bool) tensor.Op { return tensor.GemvOp{Inplace: inplace, BLAS: true} }),
	"Ger":      placed(func(inplace bool) tensor.Op { return tensor.GerOp{Inplace: inplace} }),
	"BlasGer":  placed(func(inplace bool) tensor.Op { return tensor.GerOp{Inplace: inplace, BLAS: true} }),
	"Usmm":     placed(func(inplace bool) tensor.Op { return tensor.UsmmOp{Inplace: inplace} }),

	"Nonzero": plain(tensor.NonzeroOp{}), "Unique": plain(tensor.UniqueOp{}), "RepeatIndex": plain(tensor.RepeatIndexOp{}),
	"Eye": typed(func(d array.DType) tensor.Op { return tensor.EyeOp{DType: d} }),
	"Det": plain(tensor.DetOp{}), "SLogDet": plain(tensor.SLogDetOp{}), "MatrixInverse": plain(tensor.MatrixInverseOp{}),
	"AllocDiag": allocDiag, "ExtractDiag": extractDiag,

	"AllocEmpty": typed(func(d array.DType) tensor.Op { return tensor.AllocEmptyOp{DType: d} }),
	"MakeVector": typed(func(d array.DType) tensor.Op { return tensor.MakeVectorOp{DType: d} }),

	"Join":    numbered(func(n int8) tensor.Op { return tensor.JoinOp{Axis: n} }),
	"Reshape": numbered(func(n int8) tensor.Op { return tensor.ReshapeOp{NDim: n} }),
	"Shape_i": numbered(func(n int8) tensor.Op { return tensor.ShapeIOp{D: n} }),

	"DimShuffle": dimShuffle(false), "InplaceDimShuffle": dimShuffle(true), "Subtensor": subtensor,
	"IncSubtensor": incSubtensor(false), "SetSubtensor": incSubtensor(true),
	"AdvancedSubtensor1": plain(tensor.AdvancedSubtensorOp{K: 1}), "AdvancedSubtensor": numbered(func(n int8) tensor.Op { return tensor.AdvancedSubtensorOp{K: n} }),
	"AdvancedIncSubtensor1": advancedInc1(false), "AdvancedIncSubtensor": advancedInc(false),
	"AdvancedSetSubtensor1": advancedInc1(true), "AdvancedSetSubtensor": advancedInc(true),

	"argmax": extremePlaceOp(false), "argmin": extremePlaceOp(true), "Matmul": plain(tensor.MatmulOp{}),
	"LayerNorm": func(params []string) (tensor.Op, bool) {
		if len(params) != 1 {
			return nil, false
		}
		n, e, ok := strings.Cut(params[0], ",")
		divisor, err := strconv.ParseFloat(n, 32)
		eps, err2 := strconv.ParseFloat(e, 32)
		return tensor.LayerNormOp{Divisor: float32(divisor), Eps: float32(eps)}, ok && err == nil && err2 == nil
	},
	"SpliceMatmul": func(params []string) (tensor.Op, bool) {
		op, ok := single(params, 100)
		return tensor.SpliceMatmulOp{N: int8(op)}, ok && op > 0
	},
	"Integers": integersOp, "MatmulInteger": func(params []string) (tensor.Op, bool) {
		float := len(params) == 1 && params[0] == "float32"
		return tensor.MatmulIntegerOp{Float: float}, float || len(params) == 0
	},
	"BlockMatmul": func(params []string) (tensor.Op, bool) {
		if len(params) != 1 {
			return nil, false
		}
		b, n, _ := strings.Cut(params[0], ",")
		n, rounded := strings.CutSuffix(n, ",rounded")
		bits, err := strconv.Atoi(b)
		terms, err2 := strconv.Atoi(n)
		op := tensor.BlockMatmulOp{Bits: bits, Terms: terms, Rounded: rounded}
		// One spelling only, the one that is printed: an op must not have several names.
		return op, err == nil && err2 == nil && op.String() == "BlockMatmul{"+params[0]+"}"
	},
	"cumsum":  onAxis(func(axis int8) tensor.Op { return tensor.CumulativeOp{Axis: axis} }),
	"cumprod": onAxis(func(axis int8) tensor.Op { return tensor.CumulativeOp{Axis: axis, Prod: true} }),
	"sort":    onAxis(func(axis int8) tensor.Op { return tensor.SortOp{Axis: axis} }),
	"argsort": onAxis(func(axis int8) tensor.Op { return tensor.ArgsortOp{Axis: axis} }),
	"IfElse": func(params []string) (tensor.Op, bool) {
		if len(params) == 0 {
			return tensor.IfElseOp{Outputs: 1}, true
		}
		n, err := strconv.Atoi(strings.Join(params, "}{"))
		return tensor.IfElseOp{Outputs: n}, err == nil && n > 1 && n <= tensor.MaxIfElse && strconv.Itoa(n) == params[0]
	},
	"Assert": func(params []string) (tensor.Op, bool) {
		return tensor.AssertOp{Message: strings.Join(params, "}{")}, len(params) > 0
	},
	"SpecifyShape": func(params []string) (tensor.Op, bool) {
		text := strings.Join(params, "}{")
		var given array.Axes
		for d, size := range strings.Split(strings.Trim(text, "[]"), ",") {
			if strings.TrimSpace(size) == "_" && d < array.MaxDims {
				given |= 1 << d
			}
		}
		shape, ok := parseShape(strings.ReplaceAll(text, "_", "?"))
		if !ok {
			return nil, false
		}
		return tensor.NewSpecifyShape(given, shape...), true
	},
}

// plain returns the maker of an op without parameters.
func plain(op tensor.Op) maker {
	return func(params []string) (tensor.Op, bool) { return op, len(params) == 0 }
}

// placed returns the maker of an op that may work in place.
func placed(make func(inplace bool) tensor.Op) maker {
	return func(params []string) (tensor.Op, bool) {
		inplace := len(params) == 1 && params[0] == "inplace"
		return make(inplace), inplace || len(params) == 0
	}
}

// numbered returns the maker of an op with a small number.
func numbered(make func(n int8) tensor.Op) maker {
	return func(params []string) (tensor.Op, bool) {
		n, ok := single(params, array.MaxDims)
		return make(int8(n)), ok
	}
}

// single reads a parameter that is a number from 0 to most.
func single(params []string, most int) (int, bool) {
	if len(params) != 1 {
		return 0, false
	}
	n, ok := integers(params[0], "", most)
	if !ok || len(n) != 1 {
		return 0, false
	}
	return n[0], true
}

// integers reads a list of numbers from 0 to most. The wildcard, if there is one, reads as -1.
func integers(text, wildcard string, most int) ([]int, bool) {
	if text == "" {
		return nil, true
	}
	parts := strings.Split(text, ",")
	list := make([]int, len(parts))
	for i, p := range parts {
		if p = strings.TrimSpace(p); p == wildcard && p != "" {
			list[i] = -1
			continue
		}
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || n > most {
			return nil, false
		}
		list[i] = n
	}
	return list, true
}

// typed returns the maker of an op with an element type.
func typed(make func(array.DType) tensor.Op) maker {
	return func(params []string) (tensor.Op, bool) {
		if len(params) != 1 {
			return nil, false
		}
		d, ok := array.ParseDType(params[0])
		return make(d), ok
	}
}

// elemwise makes element-wise ops.
func elemwise(o array.Opcode, params []string) (tensor.Op, bool) {
	e := tensor.Elemwise{Op: o}
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
	if len(params) == 0 {
		return e, true
	}
	input, ok := strings.CutPrefix(params[0], "inplace=")
	k, err := strconv.Atoi(input)
	e.Inplace = int8(k + 1)
	return e, ok && len(params) == 1 && err == nil && k >= 0 && k < 100
}

// parseAxes reads "axis=0,2".
func parseAxes(params []string) (axes array.Axes, ok bool) {
	if len(params) == 0 {
		return 0, true
	}
	list, ok := strings.CutPrefix(params[0], "axis=")
	if !ok || len(params) > 1 {
		return 0, false
	}
	dims, ok := integers(list, "", array.MaxDims-1)
	for _, d := range dims {
		axes |= 1 << d
	}
	return axes, ok
}

// onAxis returns the maker of an op that works along a dimension.
func onAxis(make func(axis int8) tensor.Op) maker {
	return func(params []string) (tensor.Op, bool) {
		if len(params) != 1 {
			return nil, false
		}
		list, ok := strings.CutPrefix(params[0], "axis=")
		axis, ok2 := integers(list, "", array.MaxDims-1)
		if !ok || !ok2 || len(axis) != 1 {
			return nil, false
		}
		return make(int8(axis[0])), true
	}
}

// extremePlaceOp returns the maker of argmax or argmin.
func extremePlaceOp(smallest bool) maker {
	return func(params []string) (tensor.Op, bool) {
		axes, ok := parseAxes(params)
		return tensor.ArgmaxOp{Axes: axes, All: len(params) == 0, Min: smallest}, ok
	}
}

func dimShuffle(inplace bool) maker {
	return func(params []string) (tensor.Op, bool) {
		order, ok := integers(strings.Join(params, "}{"), "x", array.MaxDims-1)
		if !ok || len(order) > array.MaxDims {
			return nil, false
		}
		op := tensor.NewDimShuffle(order...)
		op.Inplace = inplace
		return op, true
	}
}

func subtensor(params []string) (tensor.Op, bool) {
	indexes, ok := parseIndexes(params)
	if !ok {
		return nil, false
	}
	return tensor.NewSubtensor(indexes...), true
}

func incSubtensor(set bool) maker {
	return func(params []string) (tensor.Op, bool) {
		params, inplace := cutInplace(params)
		indexes, ok := parseIndexes(params)
		if !ok {
			return nil, false
		}
		return tensor.NewIncSubtensor(set, indexes...).WithInplace(inplace), true
	}
}

// cutInplace removes "inplace" from two parameters.
func cutInplace(params []string) ([]string, bool) {
	if len(params) == 2 && params[1] == "inplace" {
		return params[:1], true
	}
	return params, false
}

// parseIndexes reads indexes as ops print them: "1:3,_", where an underscore is an input.
func parseIndexes(params []string) (indexes []tensor.Index, ok bool) {
	if len(params) != 1 {
		return nil, false
	}
	if params[0] == "" {
		return nil, true
	}
	ok = true
	read := func(text string) *fgraph.Variable {
		switch text = strings.TrimSpace(text); text {
		case "":
			return nil
		case "_":
			// Any variable will do: the op makes an input of each bound that is no constant.
			return fgraph.NewInput(tensor.ScalarType(array.Int64), text)
		}
		n, err := strconv.Atoi(text)
		ok = ok && err == nil
		return tensor.Int(n)
	}
	for _, text := range strings.Split(params[0], ",") {
		parts := strings.Split(text, ":")
		i := tensor.At(read(parts[0]))
		if len(parts) > 1 {
			i = tensor.SliceOf(i.Start, read(parts[1]), 1)
		} else if i.Start == nil {
			return nil, false
		}
		if len(parts) > 2 {
			i = tensor.SliceBy(i.Start, i.Stop, read(parts[2]))
			ok = ok && (i.Step != 0 || i.By != nil) && len(parts) == 3
		}
		indexes = append(indexes, i)
	}
	return indexes, ok && len(indexes) <= array.MaxDims
}

func advancedInc1(set bool) maker {
	return placed(func(inplace bool) tensor.Op {
		return tensor.AdvancedIncSubtensorOp{K: 1, Set: set, Inplace: inplace}
	})
}

func advancedInc(set bool) maker {
	return func(params []string) (tensor.Op, bool) {
		params, inplace := cutInplace(params)
		return numbered(func(n int8) tensor.Op {
			return tensor.AdvancedIncSubtensorOp{K: n, Set: set, Inplace: inplace}
		})(params)
	}
}

func allocDiag(params []string) (tensor.Op, bool) {
	list, ok := offsets(params, 1)
	if !ok {
		return nil, false
	}
	return tensor.AllocDiagOp{Offset: list[0]}, true
}

// extractDiag reads a diagonal and two dimensions.
func extractDiag(params []string) (tensor.Op, bool) {
	list, ok := offsets(params, 3)
	if !ok || min(list[1], list[2]) < 0 || max(list[1], list[2]) >= array.MaxDims {
		return nil, false
	}
	return tensor.ExtractDiagOp{Offset: list[0], Dim1: int8(list[1]), Dim2: int8(list[2])}, true
}

// offsets reads a list of n numbers, which may be negative.
func offsets(params []string, n int) ([]int, bool) {
	if len(params) != 1 {
		return nil, false
	}
	parts := strings.Split(params[0], ",")
	list := make([]int, len(parts))
	for i, p := range parts {
		k, err := strconv.ParseInt(p, 10, 32)
		if err != nil {
			return nil, false
		}
		list[i] = int(k)
	}
	return list, len(list) == n
}

// integersOp makes a product of integers, given the precision, the name of the product and its parameters.
func integersOp(params []string) (tensor.Op, bool) {
	if len(params) < 2 {
		return nil, false
	}
	precision := map[string]kernel.Precision{"int8": kernel.Int8, "int16": kernel.Int16}[params[0]]
	var base tensor.Op
	ok := false
	switch name := params[1]; name {
	case "Matmul":
		base, ok = plain(tensor.MatmulOp{})(params[2:])
	case "Dot22":
		base, ok = plain(tensor.Dot22Op{})(params[2:])
	case "ConvLast":
		base, ok = windowOps[name](params[2:])
	}
	if !ok {
		return nil, false
	}
	op := tensor.NewIntegers(base, precision)
	return op, op != nil
}
