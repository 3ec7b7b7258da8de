package ir

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
)

// learners is the domain of models that other learners than networks make.
const learners = "ai.onnx.ml"

// standardLearners are its operators. Rows are those of the first input; an input with one dimension is a row.
var standardLearners = slices.Concat(
	learned(1, 1, func(c *Call) { c.like(0, 0) }, "Binarizer", "Imputer"),
	learned(1, 1, func(c *Call) { c.shaped(0, onnx.Float, 0) }, "Normalizer", "Scaler"),
	learned(1, 1, func(c *Call) { c.shaped(0, c.labelled("values", "default", "classes"), 0) }, "LabelEncoder"),
	learned(1, 1, func(c *Call) {
		switch c.Elem(0) {
		case onnx.String:
			c.shaped(0, onnx.Int64, 0)
		case onnx.Int64:
			c.shaped(0, onnx.String, 0)
		}
	}, "CategoryMapper"),
	learned(1, 1, func(c *Call) {
		dims, ranked := c.shape(0)
		n := len(c.Op.Ints("cats_int64s"))
		if a := c.Op.Attribute("cats_strings"); a != nil && c.Elem(0) == onnx.String {
			n = len(a.Strings)
		}
		c.Set(0, tensor(onnx.Float, append(dims, Known(int64(n))), ranked))
	}, "OneHotEncoder"),
	learned(2, 2, func(c *Call) {
		dims := c.ranked(0, c.Elem(0))
		if len(dims) == 1 {
			dims = append([]Dim{Known(1)}, dims...)
		}
		at, ranked := c.shape(1)
		if dims[len(dims)-1] = UnknownDim; ranked {
			dims[len(dims)-1] = product(at)
		}
		c.Set(0, NewType(c.Elem(0), dims...))
	}, "ArrayFeatureExtractor"),
	learned(1, -1, func(c *Call) {
		n := int64(0)
		for _, size := range c.Op.Ints("inputdimensions") {
			n += max(size, 0)
		}
		c.Set(0, NewType(onnx.Float, c.rows(), Known(n)))
	}, "FeatureVectorizer"),
	learned(1, 1, func(c *Call) { c.Set(0, NewType(onnx.Float, c.rows(), Known(c.Op.Int("targets", 1)))) }, "LinearRegressor"),
	learned(1, 1, func(c *Call) { c.Set(0, NewType(onnx.Float, c.rows(), Known(c.Op.Int("n_targets", 1)))) }, "TreeEnsembleRegressor"),
	learned(1, 1, func(c *Call) { c.Set(0, NewType(c.Elem(0), c.rows(), Known(c.Op.Int("n_targets", 1)))) }, "TreeEnsemble"),
	learned(1, 1, func(c *Call) { c.Set(0, NewType(onnx.Float, c.rows(), Known(1))) }, "SVMRegressor"),
	learned(1, 1, func(c *Call) {
		c.Set(0, NewType(c.labelled("classlabels"), c.rows()))
		c.Set(1, NewType(onnx.Float, c.rows(), UnknownDim))
	}, "LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"),
	learned(1, 1, func(c *Call) {
		if key := c.labelled("classlabels"); key != onnx.Undefined {
			c.Set(0, sequenceOf(AnyShape(onnx.Float).wrap("map("+key.String()+",")))
		}
	}, "ZipMap"),
	learned(1, 1, nil, "CastMap", "DictVectorizer"),
)

// learned returns operators of the domain that differ by their names alone.
func learned(least, most int, infer func(*Call), names ...string) []Operator {
	return named(Operator{Domain: learners, MinInputs: least, MaxInputs: most, Infer: infer}, names...)
}

// rows returns how many rows the first input has.
func (c *Call) rows() Dim {
	switch dims, _ := c.shape(0); len(dims) {
	case 0:
		return UnknownDim
	case 1:
		return Known(1)
	default:
		return dims[0]
	}
}

// labelled returns the type of the labels in the first list among the attributes whose names begin with one of the
// prefixes, tried in order; Undefined means that there is none. An old LabelEncoder has one list, classes_strings, and
// the numbers of its entries.
func (c *Call) labelled(prefixes ...string) onnx.DataType {
	for _, prefix := range prefixes {
		for _, a := range c.Op.Attributes {
			switch a.Name {
			case "classes_strings":
				if prefix == "classes" && c.Elem(0) == onnx.String {
					return onnx.Int64
				}
			case prefix + "_tensor":
				if a.Tensor != nil {
					return a.Tensor.DataType
				}
			}
			switch a.Name {
			case prefix + "_strings":
				return onnx.String
			case prefix + "_int64s", prefix + "_ints":
				return onnx.Int64
			case prefix + "_floats":
				return onnx.Float
			}
		}
	}
	return onnx.Undefined
}
