package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	parquetformat "github.com/parquet-go/parquet-go/format"

	onnxmodel "github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/tensor/array"
)

// A listColumn is a column of an input.
type listColumn struct {
	name     string
	row      bool // lacks the first axis
	codec    columnCodec
	unsigned bool
	// lists are the definition levels of elements of the lists, from the outermost one; most that of elements.
	lists []int
	most  int
}

// inputColumn finds the column of an input, which is numbers or lists of them to any depth.
func inputColumn(s *parquet.Schema, v onnxmodel.Value) (at int, c *listColumn, err error) {
	var path []string
	leaves := 0
	for i, p := range s.Columns() {
		if p[0] == v.Name {
			at, path = i, p
			leaves++
		}
	}
	codec, ok := columnCodecs[v.Type]
	switch {
	case !ok || v.Sequence:
		return 0, nil, fmt.Errorf("%v has no form in a column", v)
	case leaves == 0:
		return 0, nil, fmt.Errorf("there is no column of this name, only %s", fileio.Excerpt(strings.Join(names(s), ", "), 0))
	case leaves > 1:
		return 0, nil, errors.New("its column has fields, where numbers or lists of them were expected")
	}
	c = &listColumn{codec: codec}
	var node parquet.Node = s
	for _, name := range path {
		fields := node.Fields()
		node = fields[slices.IndexFunc(fields, func(f parquet.Field) bool { return f.Name() == name })]
		if node.Optional() || node.Repeated() {
			c.most++
		}
		if node.Repeated() {
			c.lists = append(c.lists, c.most)
		}
	}
	if len(c.lists) > array.MaxDims {
		return 0, nil, fmt.Errorf("its column has lists in lists, deeper than %d", array.MaxDims)
	}
	if !slices.Contains(codec.kinds, node.Type().Kind()) {
		return 0, nil, fmt.Errorf("its column has elements of type %v, where %s was expected", node.Type(), v.Type)
	}
	if t := node.Type().LogicalType(); t != nil {
		integer, ok := t.Value.(*parquetformat.IntType)
		c.unsigned = ok && !integer.IsSigned
	}
	c.row = len(v.Dims) == len(c.lists)+1 && v.Dims[0].Size < 0
	c.name = v.Name
	return at, c, nil
}

// names returns the names of the fields of a schema.
func names(s *parquet.Schema) (list []string) {
	for _, f := range s.Fields() {
		list = append(list, f.Name())
	}
	return list
}

// read returns the elements of lists that are of one size beside each other.
func (c *listColumn) read(values []parquet.Value) (any, error) {
	shape, elements, err := c.sizes(values)
	if err != nil {
		return nil, err
	}
	if c.row {
		shape = slices.Insert(shape, 0, 1)
	}
	return c.codec.read(elements, c.unsigned, shape)
}

var (
	errUneven = errors.New("lists of different sizes stand beside each other")
	errNull   = errors.New("null is no number")
)

// depth returns how many lists around a value have elements, or -1 if it is null.
func (c *listColumn) depth(defined int) int {
	n, _ := slices.BinarySearch(c.lists, defined+1)
	if defined < c.most && (n == len(c.lists) || c.lists[n] != defined+1) {
		return -1
	}
	return n
}

// sizes returns the sizes of the lists of a row, and their elements.
func (c *listColumn) sizes(values []parquet.Value) (shape []int, elements []parquet.Value, err error) {
	if len(values) == 0 {
		return nil, nil, errors.New("the row has no value")
	}
	// A list without elements stands as a value that is not defined beyond the list.
	defined := values[0].DefinitionLevel()
	depth := c.depth(defined)
	if depth < 0 {
		return nil, nil, errNull
	}
	shape = make([]int, len(c.lists))
	counts := make([]int, depth) // of elements of the lists that are open
	end := func(from int) error {
		for k := from; k < depth; k++ {
			if shape[k] != 0 && shape[k] != counts[k] {
				return errUneven
			}
			shape[k], counts[k] = counts[k], 0
		}
		return nil
	}
	for i, v := range values {
		again := v.RepetitionLevel() // the number of lists that go on
		if c.depth(v.DefinitionLevel()) < 0 {
			return nil, nil, errNull
		}
		if v.DefinitionLevel() != defined || again > depth || (again == 0) != (i == 0) {
			return nil, nil, errUneven
		}
		if i > 0 {
			if err := end(again); err != nil {
				return nil, nil, err
			}
		}
		for k := max(again-1, 0); k < depth; k++ {
			counts[k]++
		}
	}
	if err := end(0); err != nil {
		return nil, nil, err
	}
	if defined < c.most {
		values = nil
	}
	return shape, values, nil
}

// An outputColumn is a column of an output.
type outputColumn struct {
	name  string
	codec columnCodec
	dims  int
	row   bool // lacks the first axis
}

// maxEmpty bounds the lists without elements, of which sizes can ask for any number.
const maxEmpty = 1 << 20

// values returns an output as the values of a column.
func (o outputColumn) values(a *array.Array, column int) ([]parquet.Value, error) {
	if a == nil {
		return nil, errors.New("the model did not compute it")
	}
	shape := a.Shape()
	if o.row && len(shape) > 0 && shape[0] == 1 {
		shape = shape[1:]
	}
	if len(shape) != o.dims {
		return nil, fmt.Errorf("it has the sizes %d, where the model declares %d", shape, o.dims)
	}
	list, err := o.codec.values(a)
	if err != nil {
		return nil, err
	}
	// Levels are those of an optional list of lists; without elements, of the lists that are empty.
	defined := 1 + len(shape)
	if z := slices.Index(shape, 0); z >= 0 {
		defined, shape = 1+z, shape[:z]
		n := 1
		for _, size := range shape {
			if size > maxEmpty/n {
				return nil, fmt.Errorf("it has more than %d empty lists: its sizes are %d", maxEmpty, a.Shape())
			}
			n *= size
		}
		list = make([]parquet.Value, n)
	}
	for i := range list {
		again := 0
		if i > 0 {
			again = len(shape)
			for n := i; n%shape[again-1] == 0; again-- {
				n /= shape[again-1]
			}
		}
		list[i] = list[i].Level(again, defined, column)
	}
	return list, nil
}

// A columnCodec reads and writes the elements of columns.
type columnCodec struct {
	kinds  []parquet.Kind // that are read
	leaf   parquet.Node   // that is written
	read   func(values []parquet.Value, unsigned bool, shape []int) (*array.Array, error)
	values func(*array.Array) ([]parquet.Value, error)
}

var (
	integers = []parquet.Kind{parquet.Int32, parquet.Int64}
	reals    = append([]parquet.Kind{parquet.Float, parquet.Double}, integers...)
)

// columnCodecs are by the names of types.
var columnCodecs = map[string]columnCodec{
	"bool":    columnCodecOf([]parquet.Kind{parquet.Boolean}, parquet.Leaf(parquet.BooleanType), aBool, parquet.BooleanValue),
	"float32": columnCodecOf(reals, parquet.Leaf(parquet.FloatType), aFloat[float32], parquet.FloatValue),
	"float64": columnCodecOf(reals, parquet.Leaf(parquet.DoubleType), aFloat[float64], parquet.DoubleValue),
	"int8":    columnCodecOf(integers, parquet.Int(8), anInteger[int8], short[int8]),
	"int16":   columnCodecOf(integers, parquet.Int(16), anInteger[int16], short[int16]),
	"int32":   columnCodecOf(integers, parquet.Int(32), anInteger[int32], short[int32]),
	"int64":   columnCodecOf(integers, parquet.Int(64), anInteger[int64], long[int64]),
	"uint8":   columnCodecOf(integers, parquet.Uint(8), anInteger[uint8], short[uint8]),
	"uint16":  columnCodecOf(integers, parquet.Uint(16), anInteger[uint16], short[uint16]),
	"uint32":  columnCodecOf(integers, parquet.Uint(32), anInteger[uint32], short[uint32]),
	"uint64":  columnCodecOf(integers, parquet.Uint(64), anInteger[uint64], long[uint64]),
}

func columnCodecOf[T array.Element](kinds []parquet.Kind, leaf parquet.Node, read func(parquet.Value, bool) (T, error), write func(T) parquet.Value) columnCodec {
	return columnCodec{kinds, leaf,
		func(values []parquet.Value, unsigned bool, shape []int) (*array.Array, error) {
			elements := make([]T, len(values))
			for i, v := range values {
				var err error
				if elements[i], err = read(v, unsigned); err != nil {
					return nil, err
				}
			}
			return array.Of(elements, shape...), nil // listColumn.sizes has counted them
		},
		func(a *array.Array) ([]parquet.Value, error) {
			elements, err := onnxmodel.Slice[T](a)
			list := make([]parquet.Value, len(elements))
			for i, x := range elements {
				list[i] = write(x)
			}
			return list, err
		},
	}
}

func aBool(v parquet.Value, _ bool) (bool, error) { return v.Boolean(), nil }

func aFloat[T float32 | float64](v parquet.Value, unsigned bool) (T, error) {
	switch v.Kind() {
	case parquet.Float:
		return T(v.Float()), nil
	case parquet.Double:
		return T(v.Double()), nil
	}
	n, negative := wide(v, unsigned)
	if negative {
		return T(int64(n)), nil
	}
	return T(n), nil
}

func anInteger[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](v parquet.Value, unsigned bool) (T, error) {
	n, negative := wide(v, unsigned)
	x := T(n)
	if uint64(x) != n || (x < 0) != negative {
		if negative {
			return 0, fmt.Errorf("%d is no %T", int64(n), x)
		}
		return 0, fmt.Errorf("%d is no %T", n, x)
	}
	return x, nil
}

// wide returns an integer in 64 bits.
func wide(v parquet.Value, unsigned bool) (n uint64, negative bool) {
	switch {
	case v.Kind() == parquet.Int64:
		n = v.Uint64()
	case unsigned:
		n = uint64(v.Uint32())
	default:
		n = uint64(v.Int32())
	}
	return n, !unsigned && int64(n) < 0
}

func short[T int8 | int16 | int32 | uint8 | uint16 | uint32](x T) parquet.Value {
	return parquet.Int32Value(int32(x))
}
func long[T int64 | uint64](x T) parquet.Value { return parquet.Int64Value(int64(x)) }
