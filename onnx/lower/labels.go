package lower

import (
	"math"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A labelling is a list of what an operator encodes, or of what it makes of that: numbers, numbers of strings, or bits
// of floats.
type labelling struct {
	elem  onnx.DataType
	codes []int64
}

// labels returns the labelling that attributes have whose names begin with a word, and where there is none an empty one.
func (c *call) labels(prefix string) labelling {
	if a := c.attribute(prefix + "_strings"); a != nil {
		return labelling{onnx.String, c.texts(a.Strings)}
	}
	// Operators and their versions name it differently.
	for _, name := range []string{prefix + "_int64s", prefix + "_ints"} {
		if a := c.attribute(name); a != nil {
			return labelling{onnx.Int64, a.Ints}
		}
	}
	if a := c.attribute(prefix + "_floats"); a != nil {
		l := labelling{elem: onnx.Float}
		for _, f := range a.Floats {
			l.codes = append(l.codes, floatCode(float64(f)))
		}
		return l
	}
	if a := c.attribute(prefix + "_tensor"); a != nil && a.Tensor != nil {
		x, err := c.tensorOf(a.Tensor, c.dir())
		c.failIf(err != nil, "%s_tensor: %w", prefix, err)
		return labelling{a.Tensor.DataType, codesOf(x)}
	}
	return labelling{}
}

// floatCode returns the bits of a number, the same ones for all that is none and for both zeros.
func floatCode(f float64) int64 {
	if f != f {
		f = math.NaN()
	}
	// The sum makes 0 of -0.
	return int64(math.Float64bits(f + 0))
}

// codesOf returns the elements of an array as a labelling has them.
func codesOf(a *array.Array) []int64 {
	codes := make([]int64, a.Len())
	for i := range codes {
		if codes[i] = a.Int(i); a.DType().IsFloat() {
			codes[i] = floatCode(a.Float(i))
		}
	}
	return codes
}

// otherwise returns what attributes say for an element that is no key, as a labelling has it.
func (c *call) otherwise(elem onnx.DataType) int64 {
	switch elem {
	case onnx.String:
		return c.texts([][]byte{[]byte(c.text("default_string", "_Unused"))})[0]
	case onnx.Float:
		return floatCode(c.float("default_float", 0))
	}
	return c.op.Int("default_int64", -1)
}

// encodeLabels replaces each element that is a key by its value.
func (c *call) encodeLabels() []*value {
	if list := c.labels("classes"); list.elem != onnx.Undefined { // of the first version
		return c.mapBothWays(list, labelling{onnx.Int64, lists.Range[int64](len(list.codes))})
	}
	keys, values, otherwise := c.labels("keys"), c.labels("values"), c.labels("default")
	missing := c.otherwise(values.elem)
	if len(otherwise.codes) == 1 && otherwise.elem == values.elem {
		missing = otherwise.codes[0]
	} else if otherwise.elem != onnx.Undefined {
		c.fail("a default of type %v for %v", otherwise.elem, values.elem)
	}
	return c.lookUp(keys, values, missing)
}

// mapCategories maps strings to integers, and integers to strings.
func (c *call) mapCategories() []*value {
	names, numbers := c.attribute("cats_strings"), c.attribute("cats_int64s")
	if names == nil || numbers == nil {
		c.fail("cats_strings or cats_int64s is missing")
	}
	return c.mapBothWays(labelling{onnx.String, c.texts(names.Strings)}, labelling{onnx.Int64, numbers.Ints})
}

func (c *call) mapBothWays(names, numbers labelling) []*value {
	if c.elem(0) == names.elem {
		return c.lookUp(names, numbers, c.otherwise(onnx.Int64))
	}
	return c.lookUp(numbers, names, c.otherwise(names.elem))
}

// lookUp replaces each element by the value of its key, the first of equal ones.
func (c *call) lookUp(keys, values labelling, missing int64) []*value {
	if len(keys.codes) != len(values.codes) || keys.elem != c.elem(0) {
		c.fail("%d keys of type %v and %d values for elements of type %v", len(keys.codes), keys.elem, len(values.codes), c.elem(0))
	}
	byKey := make(map[int64]int64, len(keys.codes))
	for i, key := range keys.codes {
		if _, twice := byKey[key]; !twice {
			byKey[key] = values.codes[i]
		}
	}
	d, err := dtypeOf(values.elem)
	c.failIf(err != nil, "%w", err)
	x, floats := c.x(0), d.IsFloat()
	if d = array.Int64; floats {
		d = array.Float64
	}
	y := c.nodeRoutine("LookUp", func(in []*array.Array) ([]*array.Array, error) {
		y := array.New(d, in[0].Shape()...)
		for i, code := range codesOf(in[0]) {
			v, ok := byKey[code]
			if !ok {
				v = missing
			}
			if floats {
				y.SetFloat(i, math.Float64frombits(uint64(v)))
			} else {
				y.SetInt(i, v)
			}
		}
		return []*array.Array{y}, nil
	}, []variable{x}, tensor.NewType(d, tensor.TypeOf(x).Shape()...))[0]
	return c.out(y, values.elem)
}

// zipMap gives the columns of its input keys: the result is a sequence of maps, one for each row.
func (c *call) zipMap() []*value {
	x := c.rows()
	keys := array.Of([]int64(nil), 0)
	if a := c.attribute("classlabels_strings"); a != nil {
		texts := lists.Map(a.Strings, func(text []byte) string { return string(text) })
		keys = array.OfStrings(texts, len(texts))
	} else if a := c.attribute("classlabels_int64s"); a != nil {
		keys = array.Of(a.Ints, len(a.Ints))
	}
	if columns := c.dim(x, 1); columns != keys.Len() {
		c.fail("%d keys for %d columns", keys.Len(), columns)
	}
	y := c.typed(x, c.elem(0))
	y.keys = keys
	return []*value{y}
}
