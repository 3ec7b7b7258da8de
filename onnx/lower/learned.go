package lower

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// learned are the operators of models that other learners than networks make, as skl2onnx writes them. Where ONNX
// leaves open what is computed, it is what ONNX Runtime does.
var learned = map[string]func(c *call) []*value{
	"ai.onnx.ml.ArrayFeatureExtractor": func(c *call) []*value {
		x := c.x(0)
		c.failIf(ndim(x) == 0, "no dimensions")
		if ndim(x) == 1 {
			x = tensor.ExpandDims(x, 0)
		}
		last := ndim(x) - 1
		at := c.index(c.vector(1), c.dims(x)[last])
		return c.like(tensor.MoveAxes(tensor.Take(tensor.MoveAxes(x, []int{last}, []int{0}), at), []int{0}, []int{last}))
	},
	"ai.onnx.ml.Binarizer": func(c *call) []*value {
		x := c.x(0)
		return c.like(tensor.Cast(tensor.Map(array.Gt, x, number(c.float("threshold", 0), x)), tensor.TypeOf(x).DType()))
	},
	"ai.onnx.ml.Scaler": func(c *call) []*value {
		x := c.floating(0)
		return c.out(tensor.Mul(tensor.Sub(x, c.perColumn("offset", x)), c.perColumn("scale", x)), onnx.Float)
	},
	"ai.onnx.ml.Imputer": (*call).impute,
	"ai.onnx.ml.Normalizer": func(c *call) []*value {
		x := c.floating(0)
		axis := min(1, ndim(x)-1)
		var norm variable
		switch kind := c.text("norm", "MAX"); kind {
		case "MAX":
			norm = tensor.ReduceOver(array.Max, x, axis)
		case "L1":
			norm = absolute(x, axis)
		case "L2":
			norm = euclidean(x, axis)
		default:
			c.fail("%w: norm %q", ErrUnsupported, kind)
		}
		norm = tensor.ExpandDims(norm, axis)
		return c.out(tensor.Switch(tensor.Map(array.Eq, norm, number(0, x)), x, tensor.TrueDiv(x, norm)), onnx.Float)
	},
	"ai.onnx.ml.FeatureVectorizer": (*call).vectorizeFeatures,
	"ai.onnx.ml.OneHotEncoder": func(c *call) []*value {
		var list []int64
		if a := c.attribute("cats_strings"); a != nil && c.elem(0) == onnx.String {
			list = c.texts(a.Strings)
		} else if a := c.attribute("cats_int64s"); a != nil && c.elem(0) != onnx.String {
			list = a.Ints
		} else {
			c.fail("no categories of type %v", c.elem(0))
		}
		x := c.integers(0)
		is := tensor.Map(array.Eq, tensor.ExpandDims(x, ndim(x)), tensor.Constant(array.Of(list, len(list))))
		y := tensor.Cast(is, array.Float32)
		if !c.bool("zeros", true) {
			known := tensor.ReduceOver(array.All, tensor.ReduceOver(array.Any, is, ndim(x)), span(0, ndim(x))...)
			y = tensor.Assert(y, "OneHotEncoder: an element is no category", known)
		}
		return c.out(y, onnx.Float)
	},
	"ai.onnx.ml.LabelEncoder":   (*call).encodeLabels,
	"ai.onnx.ml.CategoryMapper": (*call).mapCategories,
	"ai.onnx.ml.ZipMap":         (*call).zipMap,
	"ai.onnx.ml.LinearRegressor": func(c *call) []*value {
		targets := c.int("targets", 1)
		p, scores := c.transform(), c.linear(targets)
		if p == "NONE" {
			return c.out(scores, onnx.Float)
		}
		return c.classified(scores, labelling{onnx.Int64, []int64{0}}, func(row []float64) (int, []float64) { return 0, p.apply(row, noSecond) }, targets)[1:]
	},
	"ai.onnx.ml.LinearClassifier": (*call).classifyLinear,
	"ai.onnx.ml.SVMClassifier":    (*call).classifyVectors,
	"ai.onnx.ml.SVMRegressor":     (*call).regressVectors,

	"ai.onnx.ml.TreeEnsembleClassifier": func(c *call) []*value { return c.ensemble(c.classifierTrees()) },
	"ai.onnx.ml.TreeEnsembleRegressor":  func(c *call) []*value { return c.ensemble(c.regressorTrees()) },
	"ai.onnx.ml.TreeEnsemble":           func(c *call) []*value { return c.ensemble(c.trees()) },
}

// floating returns an input as floats: doubles of doubles.
func (c *call) floating(k int) variable {
	if x := c.x(k); tensor.TypeOf(x).DType() == array.Float64 {
		return x
	}
	return tensor.Cast(c.x(k), array.Float32)
}

// vector returns an input with one dimension.
func (c *call) vector(k int) variable {
	x := c.x(k)
	if ndim(x) == 1 {
		return x
	}
	return c.flat(x)
}

// rows returns the first input as a matrix of floats with a row for each item.
func (c *call) rows() variable {
	x := c.floating(0)
	switch ndim(x) {
	case 1:
		return tensor.ExpandDims(x, 0)
	case 2:
		return x
	}
	c.fail("%d dimensions, not rows and columns", ndim(x))
	return nil
}

// perColumn returns an attribute with one number, or one for each column.
func (c *call) perColumn(name string, x variable) variable {
	a := c.attribute(name)
	c.failIf(a == nil || len(a.Floats) == 0 || ndim(x) == 0, "%s has no numbers", name)
	c.fits(name, len(a.Floats), x)
	return tensor.Cast(tensor.Constant(array.Of(a.Floats, len(a.Floats))), tensor.TypeOf(x).DType())
}

// fits fails unless there are as many numbers as columns, or one. If it is not known how many columns there are, the run
// finds out.
func (c *call) fits(name string, n int, x variable) {
	if columns := tensor.TypeOf(x).Dim(ndim(x) - 1); n != 1 && n != columns && columns != tensor.Unknown {
		c.fail("%s has %d numbers for %d columns", name, n, columns)
	}
}

// matrix returns a list of numbers, which is an attribute, as a matrix with so many rows and a column for each of x.
func (c *call) matrix(list []float32, rows int, x variable) *array.Array {
	if rows < 1 || rows > maxMade || len(list) == 0 || len(list)%rows != 0 {
		c.fail("%d numbers in %d rows", len(list), rows)
	}
	columns := len(list) / rows
	if n := tensor.TypeOf(x).Dim(1); n != columns && n != tensor.Unknown {
		c.fail("%d numbers in %d rows, for %d columns", len(list), rows, n)
	}
	return array.Of(list, rows, columns)
}

// impute replaces a number, or what is none.
func (c *call) impute() []*value {
	x := c.x(0)
	var by variable
	var replaced float64
	if floats := c.attribute("imputed_value_floats"); tensor.TypeOf(x).DType().IsFloat() && floats != nil {
		by, replaced = c.perColumn("imputed_value_floats", x), c.float("replaced_value_float", 0)
	} else if ints := c.attribute("imputed_value_int64s"); ints != nil && len(ints.Ints) > 0 && ndim(x) > 0 {
		c.fits("imputed_value_int64s", len(ints.Ints), x)
		by, replaced = tensor.Cast(tensor.Constant(array.Of(ints.Ints, len(ints.Ints))), tensor.TypeOf(x).DType()), float64(c.int("replaced_value_int64", 0))
	} else {
		c.fail("there are no values for elements of type %v", c.elem(0))
	}
	missing := tensor.Map(array.Eq, x, number(replaced, x))
	// NaN equals nothing, so it is asked for as such.
	if math.IsNaN(replaced) {
		missing = tensor.Map(array.IsNan, x)
	}
	return c.like(tensor.Switch(missing, by, x))
}

// vectorizeFeatures joins the columns of all inputs. Of each there are as many as an attribute says: others are cut
// off, and those that are missing are 0.
func (c *call) vectorizeFeatures() []*value {
	sizes := c.list("inputdimensions")
	c.failIf(len(sizes) != len(c.in) || len(sizes) == 0, "%d inputs, of %d sizes", len(c.in), len(sizes))
	var list []variable
	for k, size := range sizes {
		x := tensor.Cast(c.x(k), array.Float32)
		if ndim(x) == 1 {
			x = tensor.ExpandDims(x, 0)
		} else if ndim(x) != 2 {
			c.fail("input %d has %d dimensions", k, ndim(x))
		}
		columns := c.dim(x, 1)
		c.failIf(size < 0 || size > maxMade, "%d columns of input %d", size, k)
		if size > columns {
			x = tensor.PadValue(x, number(0, x), tensor.Margin{Before: tensor.Int(0), After: tensor.Int(0)}, tensor.Margin{Before: tensor.Int(0), After: tensor.Int(size - columns)})
		} else if size < columns {
			x = part(x, 1, tensor.SliceOf(tensor.Int(0), tensor.Int(size), 1))
		}
		list = append(list, x)
	}
	return c.out(tensor.Join(1, list...), onnx.Float)
}

// linear returns the sums of the columns with coefficients and an intercept, for each of so many targets.
func (c *call) linear(targets int) variable {
	x := tensor.Cast(c.rows(), array.Float32)
	y := tensor.Dot(x, tensor.Transpose(tensor.Constant(c.matrix(c.floatList("coefficients"), targets, x))))
	b := c.floatList("intercepts")
	if len(b) == 0 {
		return y
	}
	c.failIf(len(b) != targets, "%d intercepts of %d targets", len(b), targets)
	return tensor.Add(y, tensor.Constant(array.Of(b, 1, targets)))
}

// classifyLinear finds the largest of several sums, or whether one is positive.
func (c *call) classifyLinear() []*value {
	labels := c.labels("classlabels")
	// No attribute says how many targets there are, so the intercepts do.
	targets := len(c.floatList("intercepts"))
	if targets == 0 {
		targets = len(labels.codes)
	}
	scores := c.linear(targets)
	p, second := c.transform(), noSecond
	// The sign of a single score decides between two classes.
	if targets == 1 {
		if len(labels.codes) == 2 {
			second = complement
		}
		labels = c.binary(labels)
	}
	return c.classified(scores, labels, func(row []float64) (int, []float64) {
		k := largest(row)
		if len(row) == 1 {
			k = truthOf(row[0] > 0)
		}
		return k, p.apply(row, second)
	}, targets+truthOf(second != noSecond))
}

// binary returns two labels: those that there are, or 0 and 1.
func (c *call) binary(labels labelling) labelling {
	switch {
	case len(labels.codes) == 2:
		return labels
	case labels.elem == onnx.String:
		return labelling{labels.elem, c.texts([][]byte{[]byte("0"), []byte("1")})}
	}
	return labelling{onnx.Int64, []int64{0, 1}}
}

// classified returns the labels and the scores that a function makes of each row, of so many columns. It may change the
// row.
func (c *call) classified(scores variable, labels labelling, finish func(row []float64) (label int, scores []float64), columns int) []*value {
	c.failIf(labels.elem == onnx.Undefined || len(labels.codes) == 0, "there are no labels")
	rows := tensor.TypeOf(scores).Dim(0)
	out := c.nodeRoutine(c.op.Type, func(in []*array.Array) ([]*array.Array, error) {
		n, width := in[0].Dim(0), in[0].Dim(1)
		if err := fitting(n, columns); err != nil {
			return nil, err
		}
		y, z := array.New(array.Int64, n), array.New(array.Float32, n, columns)
		// With room for a second score that a transform may append.
		row := make([]float64, width, width+1)
		for i := range n {
			for j := range row {
				row[j] = in[0].Float(i*width + j)
			}
			k, scores := finish(row)
			if k >= len(labels.codes) {
				return nil, fmt.Errorf("%w: %d labels, and class %d", ErrUnsupported, len(labels.codes), k)
			}
			y.SetInt(i, labels.codes[k])
			for j, s := range scores[:min(columns, len(scores))] {
				z.SetFloat(i*columns+j, s)
			}
		}
		return []*array.Array{y, z}, nil
	}, []variable{scores}, tensor.NewType(array.Int64, rows), tensor.NewType(array.Float32, rows, columns))
	return []*value{c.typed(out[0], labels.elem), c.typed(out[1], onnx.Float)}
}

// fitting returns an error if a matrix of float64s is larger than a run may make.
func fitting(rows, columns int) error {
	if rows > 0 && columns > array.DefaultMaxBytes/8/rows {
		return fmt.Errorf("%w: %d scores of %d rows", array.ErrTooLarge, columns, rows)
	}
	return nil
}

// largest returns the index of the first largest number.
func largest(row []float64) int {
	k := 0
	for i, v := range row {
		if v > row[k] {
			k = i
		}
	}
	return k
}

func truthOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A postTransform is what an operator does with scores at the end, by its name in ONNX.
type postTransform string

// transform returns what the attribute says.
func (c *call) transform() postTransform {
	return postTransform(c.oneOf("post_transform", "NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"))
}

// A second is what becomes the score of the other class if there is one score.
type second int

const (
	noSecond   second = iota // there is no other class
	complement               // 1 less the score
	negated                  // minus the score
)

// apply transforms the scores of an item. One score is no distribution: it becomes two, or stays.
func (p postTransform) apply(row []float64, s second) []float64 {
	if len(row) > 1 {
		p.applyAll(row)
		return row
	}
	x := row[0]
	switch {
	case p == "PROBIT":
		row[0] = probit(x)
	case s != noSecond && p == "LOGISTIC":
		return append(row[:0], elementary.Sigmoid(-x), elementary.Sigmoid(x))
	case s == complement:
		return append(row[:0], 1-x, x)
	case s == negated:
		return append(row[:0], -x, x)
	}
	return row
}

func (p postTransform) applyAll(row []float64) {
	switch p {
	case "PROBIT":
		for i, x := range row {
			row[i] = probit(x)
		}
	case "LOGISTIC":
		for i, x := range row {
			row[i] = elementary.Sigmoid(x)
		}
	case "SOFTMAX", "SOFTMAX_ZERO":
		softmax(row, p == "SOFTMAX_ZERO")
	}
}

// softmax divides exponentials by their sum. Where zeros stay, they are no part of it.
func softmax(row []float64, zeros bool) {
	most := row[largest(row)]
	sum := 0.0
	for i, x := range row {
		// ONNX Runtime's bound for a zero, and what it makes of one.
		if zeros && math.Abs(x) <= 1e-7 {
			row[i] = x * elementary.Exp(-most)
			continue
		}
		row[i] = elementary.Exp(x - most)
		sum += row[i]
	}
	for i := range row {
		row[i] /= sum
	}
}

// probit returns the quantile of the normal distribution, by Winitzki's approximation of the inverse of the error
// function, as ONNX Runtime does: in float32, since it is nearly infinite close to 0 and 1.
func probit(p float64) float64 {
	const a, pi = float32(0.147), float32(3.14159)
	x := float32(2*float32(p)) - 1
	log := float32(elementary.Log(float64(float32(1-x) * float32(1+x))))
	v := 2/(pi*a) + float32(0.5*log)
	root := func(f float32) float32 { return float32(math.Sqrt(float64(f))) }
	y := root(root(float32(v*v)-float32(1/a*log)) - v)
	return math.Copysign(float64(float32(math.Sqrt2)*y), float64(x))
}
