package tensors

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

type variable = fgraph.Variable

func newInput(t tensor.Type, name string) *variable { return fgraph.NewInput(t, name) }

// dtypes are the element types, the simplest first, and then again those in which most faults show: a
// rule that is wrong in another way than by its types is wrong in them.
var dtypes = func() []array.DType {
	list := []array.DType{array.Float64, array.Int64, array.Float32, array.Bool}
	for _, d := range array.DTypes() {
		if !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return append(list, array.Float64, array.Float64, array.Float32, array.Int64, array.Float64, array.Int8, array.Float32)
}()

// A palette says from which values the elements of arguments are taken.
type palette uint8

const (
	ordinary palette = iota // numbers other than zero, of moderate size
	small                   // few integers around zero, for indexes and sizes
	finite                  // numbers, also near the limits of the type
	all                     // also NaN, infinities and zeros
	apart                   // 1, and numbers whose products overflow or underflow
)

var (
	nice     = []float64{1, 2, -1, 0.5, 3, -2, 1.5, -0.5, 2.5, -1.5, -3, 0.25}
	moderate = []float64{10, -10, 0.1, 100, 1000, -1000, 1e-3, -1e-3, 0.999999, 1e-10, -1e-10, 1e5, 7.5, -0.1}
	singular = []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1)}
	limits16 = []float64{65504, -65504, 30000, -30000, 0x1p-24, -0x1p-20, 0x1p-14, 2048, 2050, 1e-4}
	limits32 = []float64{math.MaxFloat32, -math.MaxFloat32, 1e30, -1e30, 1e-30, math.SmallestNonzeroFloat32, -1e-40, 0x1p-126, 16777216, 0x1p24 + 2}
	limits64 = []float64{math.MaxFloat64, -math.MaxFloat64, 1e200, -1e200, 1e-200, 5e-324, -1e-310, 0x1p-1022, 0x1p53, 0x1p53 + 2}
	integers = []int64{math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 1<<53 + 1, -1<<53 - 1, 1 << 31, 1 << 62, 3037000500, -1 << 31, 1 << 32, 1000}
	smaller  = map[array.DType][]int64{
		array.Int8:   {math.MaxInt8, math.MinInt8, math.MinInt8 + 1, 1 << 6, 12, 100},
		array.Int16:  {math.MaxInt16, math.MinInt16, math.MinInt16 + 1, 1<<11 + 1, 1 << 14, 182, 1000},
		array.Int32:  {math.MaxInt32, math.MinInt32, math.MinInt32 + 1, 1<<24 + 1, -1<<24 - 1, 1 << 30, 46341, 1000},
		array.Uint8:  {math.MaxUint8, math.MaxUint8 - 1, 1 << 7, 1<<7 - 1, 16, 200},
		array.Uint16: {math.MaxUint16, math.MaxUint16 - 1, 1 << 15, 1<<15 - 1, 256, 1000},
		array.Uint32: {math.MaxUint32, math.MaxUint32 - 1, 1 << 31, 1<<31 - 1, 1 << 16, 1<<24 + 1, 1000},
		array.Uint64: {-1, -2, math.MinInt64, math.MaxInt64, 1 << 32, 1<<53 + 1, 1000}, // as int64s of the same bits
	}
)

// isInteger reports whether a type has integers, which wrap around.
func isInteger(d array.DType) bool { return d.IsInteger() }

// integerLimits returns the numbers next to the limits of a type of integers, as near as floats are
// to them: that and what is beyond wraps around.
func integerLimits(d array.DType) (below, above float64) {
	bits := 8 * d.Size()
	switch {
	case d.IsUnsigned():
		return -1, math.Ldexp(1, bits)
	case bits == 64:
		return math.MinInt64, math.MaxInt64
	}
	return -math.Ldexp(1, bits-1) - 1, math.Ldexp(1, bits-1)
}

// fill returns an array whose elements are taken from a palette.
func fill(rng *rand.Rand, p palette, d array.DType, shape []int) *array.Array {
	a := array.New(d, shape...)
	for i := range a.Len() {
		setElement(rng, p, a, i)
	}
	return a
}

func setElement(rng *rand.Rand, p palette, a *array.Array, i int) {
	switch d := a.DType(); {
	case d == array.Bool:
		a.SetFloat(i, float64(rng.IntN(2)))
	case !d.IsFloat():
		a.SetInt(i, integerOf(rng, p, d))
	default:
		a.SetFloat(i, floatOf(rng, p, d))
	}
}

// integerOf returns the bits of an integer.
func integerOf(rng *rand.Rand, p palette, d array.DType) int64 {
	k, v := rng.IntN(8), int64(0)
	switch {
	case p == small:
		v = int64(rng.IntN(8)) - 3
	case p == ordinary || p == apart || k < 4:
		if v = int64(rng.IntN(9)) + 1; rng.IntN(2) == 0 {
			v = -v
		}
	case p == all && k < 6:
		v = int64(rng.IntN(3)) - 1
	default:
		return limitOf(rng, d)
	}
	if d.IsUnsigned() {
		v = max(v, -v) // it would be near the limit otherwise
	}
	return v
}

// limitOf returns the bits of an integer near the limits of a type.
func limitOf(rng *rand.Rand, d array.DType) int64 {
	if list := smaller[d]; list != nil {
		return list[rng.IntN(len(list))]
	}
	return integers[rng.IntN(len(integers))]
}

func floatOf(rng *rand.Rand, p palette, d array.DType) float64 {
	k := rng.IntN(8)
	switch {
	case p == apart:
		largest, _ := limits(d)
		far := elementary.Pow(largest, 0.66)
		return []float64{1, far, -far, 1 / far}[k%4]
	case p == all && k < 3:
		return singular[rng.IntN(len(singular))]
	case p >= finite && k < 5:
		if d == array.Float64 {
			return limits64[rng.IntN(len(limits64))]
		}
		if d == array.Float16 {
			return limits16[rng.IntN(len(limits16))]
		}
		return limits32[rng.IntN(len(limits32))]
	case p >= finite && k < 6:
		return moderate[rng.IntN(len(moderate))]
	case k < 7:
		return nice[rng.IntN(len(nice))]
	}
	v := 0.1 + float64(3*rng.Float64())
	if rng.IntN(2) == 0 {
		v = -v
	}
	return v
}

// A sizing chooses the sizes that types leave open.
type sizing uint8

const (
	equal     sizing = iota // all are one size
	fromRight               // the last dimensions of all arguments are one size, and so on
	fromLeft
	free // every one is another
)

// distinct are sizes by dimension.
var distinct = [array.MaxDims]int{3, 2, 4, 5, 1, 2, 3, 4}

// shape returns the sizes of an argument of a type.
func (z sizing) shape(rng *rand.Rand, t tensor.Type, size int) []int {
	shape := t.Shape()
	for d, n := range shape {
		if n != tensor.Unknown {
			continue
		}
		switch z {
		case equal:
			shape[d] = size
		case fromRight:
			shape[d] = distinct[len(shape)-1-d]
		case fromLeft:
			shape[d] = distinct[d]
		case free:
			shape[d] = rng.IntN(4)
		}
	}
	return shape
}

// A plan is a way to choose arguments.
type plan struct {
	palette palette
	sizing  sizing
	size    int // for equal; 0 means large
	empty   bool
	long    int // the size of dimension dim, unless 0
	dim     int
	times   int
}

// plans are the runs of an expression with dimensions of unknown size.
var plans = []plan{
	{palette: ordinary, size: 3, times: 2}, {palette: ordinary, sizing: fromRight, times: 1}, {palette: ordinary, sizing: fromLeft, times: 1},
	{palette: small, size: 2, times: 2}, {palette: small, sizing: free, times: 4}, {palette: small, size: 3, times: 2}, {palette: small, sizing: fromLeft, times: 1},
	{palette: ordinary, times: 1}, {palette: finite, times: 2}, {palette: all, times: 2},
	{palette: finite, size: 2, times: 2}, {palette: all, size: 2, times: 3}, {palette: all, size: 1, times: 3}, {palette: small, times: 1},
	{palette: ordinary, empty: true, times: 1}, {palette: small, size: 1, times: 1},
}

// scalarPlans are the runs of an expression whose sizes are all known.
var scalarPlans = []plan{{palette: ordinary, times: 12}, {palette: small, times: 12}, {palette: finite, times: 16}, {palette: all, times: 24}}

// arguments returns values for the inputs.
func (p plan) arguments(rng *rand.Rand, inputs []*variable) []*array.Array {
	size := p.size
	if size == 0 && !p.empty {
		size = [array.MaxDims + 1]int{1, 200, 12, 5, 3, 2, 2, 2, 2}[rankOf(inputs)]
	}
	args := make([]*array.Array, len(inputs))
	for i, v := range inputs {
		t := tensor.TypeOf(v)
		shape := p.sizing.shape(rng, t, size)
		if p.long > 0 && p.dim < len(shape) && t.Shape()[p.dim] == tensor.Unknown {
			shape[p.dim] = p.long
		}
		a := fill(rng, p.palette, t.DType(), shape)
		if t.IsCSR() {
			a = array.ToCSR(a)
		}
		args[i] = a
	}
	return args
}

// rankOf returns the largest number of dimensions of a list.
func rankOf(inputs []*variable) (rank int) {
	for _, v := range inputs {
		rank = max(rank, tensor.TypeOf(v).NDim())
	}
	return rank
}
