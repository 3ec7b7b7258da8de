package array_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	. "github.com/nnopt/nnopt/tensor/array"
)

// vector reads a vector of a type, as NumPy prints its elements.
func vector(t *testing.T, dtype, text string) *Array {
	t.Helper()
	d, ok := ParseDType(dtype)
	if !ok {
		t.Fatalf("there is no type %s", dtype)
	}
	text = strings.NewReplacer("True", "1", "False", "0").Replace(text)
	a, err := Decode(d, "["+strconv.Itoa(len(strings.Fields(text)))+"] "+text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestUpcast compares the types of pairs with numpy.result_type, and those of bfloat16, which NumPy
// lacks, with what follows from its precision.
func TestUpcast(t *testing.T) {
	for name, row := range map[string]string{
		"bool":     "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64",
		"int8":     "int8 int8 int16 int32 int64 int16 int32 int64 float64 float16 bfloat16 float32 float64",
		"int16":    "int16 int16 int16 int32 int64 int16 int32 int64 float64 float32 float32 float32 float64",
		"int32":    "int32 int32 int32 int32 int64 int32 int32 int64 float64 float64 float64 float64 float64",
		"int64":    "int64 int64 int64 int64 int64 int64 int64 int64 float64 float64 float64 float64 float64",
		"uint8":    "uint8 int16 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64",
		"uint16":   "uint16 int32 int32 int32 int64 uint16 uint16 uint32 uint64 float32 float32 float32 float64",
		"uint32":   "uint32 int64 int64 int64 int64 uint32 uint32 uint32 uint64 float64 float64 float64 float64",
		"uint64":   "uint64 float64 float64 float64 float64 uint64 uint64 uint64 uint64 float64 float64 float64 float64",
		"float16":  "float16 float16 float32 float64 float64 float16 float32 float64 float64 float16 float32 float32 float64",
		"bfloat16": "bfloat16 bfloat16 float32 float64 float64 bfloat16 float32 float64 float64 float32 bfloat16 float32 float64",
		"float32":  "float32 float32 float32 float64 float64 float32 float32 float64 float64 float32 float32 float32 float64",
		"float64":  "float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64 float64",
	} {
		a, _ := ParseDType(name)
		for i, want := range strings.Fields(row) {
			if b := DTypes()[i]; Upcast(a, b).String() != want {
				t.Errorf("%v and %v make %v, want %s", a, b, Upcast(a, b), want)
			}
		}
	}
	for _, types := range [][]DType{{Int8, Uint8, Float16}, {Int8, Float16, Uint8}, {Float16, Uint8, Int8}} {
		if d := Upcast(types[0], types[1:]...); d != Float16 {
			t.Errorf("%v make %v", types, d)
		}
	}
	for want, types := range map[DType][]DType{
		Int64: {Bool, Int8, Uint32}, Float64: {Int8, Uint64, Uint8}, Float32: {Float16, Bool, BFloat16}, Uint64: {Uint8, Uint64, Bool}, Int32: {Uint8, Int8, Uint16},
	} {
		if d := Upcast(types[0], types[1:]...); d != want {
			t.Errorf("%v make %v, want %v", types, d, want)
		}
	}
}

// TestHolds casts the limits of each type forth and back.
func TestHolds(t *testing.T) {
	limits := map[DType][]float64{
		Bool: {0, 1}, Int8: {-128, 127}, Uint8: {0, 255}, Int16: {math.MinInt16, math.MaxInt16}, Uint16: {0, math.MaxUint16},
		Int32: {math.MinInt32, math.MaxInt32}, Uint32: {0, math.MaxUint32}, Int64: {math.MinInt64, 1<<53 + 2}, Uint64: {0, 1<<63 + 1<<11},
		Float16: {65504, 0x1p-24}, BFloat16: {0x1.fep127, 0x1p-133}, Float32: {0.5, math.MaxFloat32}, Float64: {math.MaxFloat64, 0.1},
	}
	for from, values := range limits {
		for to := range limits {
			want := !((from == Int64 || from == Uint64) && to.IsFloat()) // 1<<53 + 1 is lost
			for _, v := range values {
				want = want && Full(from, v).Cast(to).Float(0) == v
			}
			if to.Holds(from) != want {
				t.Errorf("%v holds %v: %v", to, from, !want)
			}
		}
	}
}

// TestCasts compares casts with NumPy's on amd64.
func TestCasts(t *testing.T) {
	for _, c := range []struct{ from, x, to, want string }{
		{"int8", "-128 -7 -1 0 1 3 127", "bool", "True True True False True True True"},
		{"int8", "-128 -7 -1 0 1 3 127", "uint8", "128 249 255 0 1 3 127"},
		{"int8", "-128 -7 -1 0 1 3 127", "int32", "-128 -7 -1 0 1 3 127"},
		{"int8", "-128 -7 -1 0 1 3 127", "int64", "-128 -7 -1 0 1 3 127"},
		{"int8", "-128 -7 -1 0 1 3 127", "float32", "-128 -7 -1 0 1 3 127"},
		{"uint8", "0 1 2 7 128 200 255", "bool", "False True True True True True True"},
		{"uint8", "0 1 2 7 128 200 255", "int8", "0 1 2 7 -128 -56 -1"},
		{"uint8", "0 1 2 7 128 200 255", "int32", "0 1 2 7 128 200 255"},
		{"uint8", "0 1 2 7 128 200 255", "int64", "0 1 2 7 128 200 255"},
		{"uint8", "0 1 2 7 128 200 255", "float64", "0 1 2 7 128 200 255"},
		{"int32", "-2147483648 -70000 -1 0 1 300 2147483647", "bool", "True True True False True True True"},
		{"int32", "-2147483648 -70000 -1 0 1 300 2147483647", "int8", "0 -112 -1 0 1 44 -1"},
		{"int32", "-2147483648 -70000 -1 0 1 300 2147483647", "uint8", "0 144 255 0 1 44 255"},
		{"int32", "-2147483648 -70000 -1 0 1 300 2147483647", "int64", "-2147483648 -70000 -1 0 1 300 2147483647"},
		{"int32", "-2147483648 16777217 300 2147483647", "float32", "-2147483648 16777216 300 2147483648"},
		{"int64", "-9223372036854775808 -2147483649 -1 0 255 2147483648 9223372036854775807", "int8", "0 -1 -1 0 -1 0 -1"},
		{"int64", "-9223372036854775808 -2147483649 -1 0 255 2147483648 9223372036854775807", "uint8", "0 255 255 0 255 0 255"},
		{"int64", "-9223372036854775808 -2147483649 -1 0 255 2147483648 9223372036854775807", "int32", "0 2147483647 -1 0 255 -2147483648 -1"},
		{"float64", "0.5 -1.5 300.7 -129 1e6 nan 2147483648 -2147483648.5", "int8", "0 -1 44 127 64 0 0 0"},
		{"float64", "0.5 -1.5 300.7 -129 1e6 nan 2147483648 -2147483648.5", "uint8", "0 255 44 127 64 0 0 0"},
		{"float32", "0.5 -1.5 300.7 -129 1e6 nan 1e10", "int32", "0 -1 300 -129 1000000 -2147483648 -2147483648"},
		{"bool", "True False", "int8", "1 0"}, {"bool", "True False", "uint8", "1 0"}, {"bool", "True False", "int32", "1 0"},
	} {
		x, want := vector(t, c.from, c.x), vector(t, c.to, c.want)
		if got := x.Cast(want.DType()); !Equal(got, want) {
			t.Errorf("%s %v as %s is %v, want %v", c.from, x, c.to, got, want)
		}
		for i := range x.Len() { // one element has a way of its own
			one := Full(want.DType(), 9)
			one.SetFloat(0, x.Float(i))
			if c.from != "int64" && one.Float(0) != want.Float(i) {
				t.Errorf("%v set as %s is %v, want %v", x.Float(i), c.to, one, want.Float(i))
			}
			part := new(Array)
			x.RangeTo(part, Range{Start: i, Drop: true})
			if got := part.Cast(want.DType()); got.Float(0) != want.Float(i) {
				t.Errorf("%s %v as %s is %v, want %v", c.from, part, c.to, got, want.Float(i))
			}
		}
	}
}

// TestSmallIntegers compares arithmetic, which wraps around, with NumPy's.
func TestSmallIntegers(t *testing.T) {
	x := map[string][2]string{
		"int8":  {"-128 -128 127 -7 7 100 5 0", "-1 1 1 2 -2 3 0 -128"},
		"uint8": {"0 255 200 7 3 16 5 128", "1 1 100 2 5 16 0 128"},
		"int32": {"-2147483648 2147483647 65536 -7 7 5", "-1 1 65536 2 -2 0"},
	}
	for _, c := range []struct{ dtype, op, want string }{
		{"int8", "add", "127 -127 -128 -5 5 103 5 -128"}, {"int8", "sub", "-127 127 126 -9 9 97 5 -128"}, {"int8", "mul", "-128 -128 127 -14 -14 44 0 0"},
		{"int8", "int_div", "-128 -128 127 -4 -4 33 0 0"}, {"int8", "mod", "0 0 0 1 -1 1 0 0"}, {"int8", "maximum", "-1 1 127 2 7 100 5 0"}, {"int8", "minimum", "-128 -128 1 -7 -2 3 0 -128"},
		{"int8", "lt", "True True False True False False False False"}, {"int8", "ge", "False False True False True True True True"}, {"int8", "eq", "False False False False False False False False"},
		{"int8", "and", "-128 0 1 0 6 0 0 0"}, {"int8", "or", "-1 -127 127 -5 -1 103 5 -128"}, {"int8", "xor", "127 -127 126 -5 -7 103 5 -128"},
		{"int8", "neg", "-128 -128 -127 7 -7 -100 -5 0"}, {"int8", "abs", "-128 -128 127 7 7 100 5 0"}, {"int8", "sgn", "-1 -1 1 -1 1 1 1 0"}, {"int8", "sqr", "0 0 1 49 49 16 25 0"}, {"int8", "invert", "127 127 -128 6 -8 -101 -6 -1"},
		{"uint8", "add", "1 0 44 9 8 32 5 0"}, {"uint8", "sub", "255 254 100 5 254 0 5 0"}, {"uint8", "mul", "0 255 32 14 15 0 0 0"},
		{"uint8", "int_div", "0 255 2 3 0 1 0 1"}, {"uint8", "mod", "0 0 0 1 3 0 0 0"}, {"uint8", "maximum", "1 255 200 7 5 16 5 128"}, {"uint8", "minimum", "0 1 100 2 3 16 0 128"},
		{"uint8", "lt", "True False False False True False False False"}, {"uint8", "ge", "False True True True False True True True"}, {"uint8", "eq", "False False False False False True False True"},
		{"uint8", "and", "0 1 64 2 1 16 0 128"}, {"uint8", "or", "1 255 236 7 7 16 5 128"}, {"uint8", "xor", "1 254 172 5 6 0 5 0"},
		{"uint8", "neg", "0 1 56 249 253 240 251 128"}, {"uint8", "abs", "0 255 200 7 3 16 5 128"}, {"uint8", "sgn", "0 1 1 1 1 1 1 1"}, {"uint8", "sqr", "0 1 64 49 9 0 25 0"}, {"uint8", "invert", "255 0 55 248 252 239 250 127"},
		{"int32", "add", "2147483647 -2147483648 131072 -5 5 5"}, {"int32", "sub", "-2147483647 2147483646 0 -9 9 5"}, {"int32", "mul", "-2147483648 2147483647 0 -14 -14 0"},
		{"int32", "int_div", "-2147483648 2147483647 1 -4 -4 0"}, {"int32", "mod", "0 0 0 1 -1 0"}, {"int32", "maximum", "-1 2147483647 65536 2 7 5"}, {"int32", "minimum", "-2147483648 1 65536 -7 -2 0"},
		{"int32", "lt", "True False False True False False"}, {"int32", "ge", "False True True False True True"}, {"int32", "eq", "False False True False False False"},
		{"int32", "and", "-2147483648 1 65536 0 6 0"}, {"int32", "or", "-1 2147483647 65536 -5 -1 5"}, {"int32", "xor", "2147483647 2147483646 0 -5 -7 5"},
		{"int32", "neg", "-2147483648 -2147483647 -65536 7 -7 -5"}, {"int32", "abs", "-2147483648 2147483647 65536 7 7 5"}, {"int32", "sgn", "-1 1 1 -1 1 1"}, {"int32", "sqr", "0 1 0 49 49 25"}, {"int32", "invert", "2147483647 -2147483648 -65537 6 -8 -6"},
	} {
		op, _ := ParseOpcode(c.op)
		in := []*Array{vector(t, c.dtype, x[c.dtype][0]), vector(t, c.dtype, x[c.dtype][1])}
		got := apply(t, op, in[:max(1, op.NumArgs()%3)]...)
		if op.NumArgs() < 0 {
			got = apply(t, op, in...)
		}
		if want := vector(t, got.DType().String(), c.want); !Equal(got, want) || got.DType() != in[0].DType() && got.DType() != Bool {
			t.Errorf("%s of %ss is %v, want %v", c.op, c.dtype, got, want)
		}
	}
	for _, c := range []struct{ dtype, x, y, want string }{
		{"int8", "2 -2 3 0 -1 5 7 -3", "7 7 5 0 3 3 3 2", "-128 -128 -13 1 -1 125 87 9"}, {"uint8", "2 3 255 16 7", "7 6 3 2 255", "128 217 255 0 183"},
		{"int8", "1 -1 -1 2 0", "-3 -3 -2 -1 -1", "1 -1 1 0 0"}, // which NumPy refuses
	} {
		if got := apply(t, Pow, vector(t, c.dtype, c.x), vector(t, c.dtype, c.y)); !Equal(got, vector(t, c.dtype, c.want)) {
			t.Errorf("%s to the power of %s is %v, want %s", c.x, c.y, got, c.want)
		}
	}
	got := apply(t, TrueDiv, vector(t, "int8", "-128 7"), vector(t, "int8", "-1 2"))
	if want := vector(t, "float64", "128 3.5"); !Equal(got, want) {
		t.Errorf("a quotient of int8s is %v, want %v", got, want)
	}
	got = apply(t, Add, vector(t, "int8", "-128 127"), vector(t, "uint8", "255 255"))
	if want := vector(t, "int16", "127 382"); !Equal(got, want) {
		t.Errorf("a sum of int8s and uint8s is %v, want %v", got, want)
	}
	got = apply(t, Switch, vector(t, "bool", "True False"), vector(t, "int8", "1 2"), vector(t, "int8", "3 -4"))
	if want := vector(t, "int8", "1 -4"); !Equal(got, want) {
		t.Errorf("a choice of int8s is %v, want %v", got, want)
	}
}

// TestSmallIntegerReductions compares reductions, sorting and products of matrices with NumPy's.
func TestSmallIntegerReductions(t *testing.T) {
	var ws Workspace
	for _, c := range []struct {
		x, sorted, order, sums string
		sum, prod, most, least int64
		mostAt, leastAt        int64
		dtype                  DType
	}{
		{"-128 -128 127 -7 7 100 5 0", "-128 -128 -7 0 5 7 100 127", "0 1 3 7 6 4 5 2", "-128 -256 -129 -136 -129 -29 -24 -24", -24, 0, 127, -128, 2, 0, Int8},
		{"0 255 200 7 3 16 5 128", "0 3 5 7 16 128 200 255", "0 4 6 3 5 7 2 1", "0 255 455 462 465 481 486 614", 614, 0, 255, 0, 1, 0, Uint8},
		{"-2147483648 2147483647 65536 -7 7 5", "-2147483648 -7 5 7 65536 2147483647", "0 3 5 4 2 1", "-2147483648 -1 65535 65528 65535 65540", 65540, -34480684647055360, math.MaxInt32, math.MinInt32, 1, 0, Int32},
	} {
		x := vector(t, c.dtype.String(), c.x)
		for r, want := range map[Reduction]*Array{
			Sum: Scalar(c.sum).Cast(c.dtype.Sum()), Prod: Scalar(c.prod).Cast(c.dtype.Sum()), Max: Scalar(c.most).Cast(c.dtype), Min: Scalar(c.least).Cast(c.dtype),
			All: Scalar(c.prod != 0), Any: Scalar(true),
		} {
			out := New(r.Result(c.dtype))
			if err := ws.Reduce(r, out, x, 1); err != nil || !Equal(out, want) {
				t.Errorf("%v of %v %v is %v, want %v", r, c.dtype, x, out, want)
			}
		}
		at := New(Int64)
		if err := new(Workspace).ArgMax(at, x, 1); err != nil || at.Int(0) != c.mostAt {
			t.Errorf("the place of the largest of %v is %v, %v", x, at, err)
		}
		if err := new(Workspace).ArgMin(at, x, 1); err != nil || at.Int(0) != c.leastAt {
			t.Errorf("the place of the smallest of %v is %v, %v", x, at, err)
		}
		sorted, order, sums := New(c.dtype, x.Len()), New(Int64, x.Len()), New(c.dtype.Sum(), x.Len())
		new(Workspace).Sort(sorted, x, 0)
		new(Workspace).ArgSort(order, x, 0)
		ws.Cumulate(sums, x, 0, false)
		for got, want := range map[*Array]string{sorted: c.sorted, order: c.order, sums: c.sums} {
			if !Equal(got, vector(t, got.DType().String(), want)) {
				t.Errorf("%v becomes %v, want %s", x, got, want)
			}
		}
	}
	for d, want := range map[DType][]int64{Int8: {22, -48, 56, 22}, Uint8: {22, 208, 56, 22}, Int32: {10006, 208, 312, 22}} {
		a, c := Of([]int64{100, 2, 3, 4}, 2, 2).Cast(d), New(d, 2, 2)
		if err := ws.MatMul(c, a, a); err != nil || !Equal(c, Of(want, 2, 2).Cast(d)) {
			t.Errorf("a product of matrices of %v is %v, want %v", d, c, want)
		}
	}
}

// TestEveryTypeMoves copies, cuts, takes, puts, repeats, encodes and prints arrays of each type.
func TestEveryTypeMoves(t *testing.T) {
	var ws Workspace
	for _, d := range DTypes() {
		a := Of([]int64{0, 1, 1, 0, 1, 1}, 2, 3).Cast(d)
		turned := a.Transpose(1, 0).Clone()
		if want := Of([]int64{0, 0, 1, 1, 1, 1}, 3, 2).Cast(d); !Equal(turned, want) {
			t.Errorf("%v turned is %v", a, turned)
		}
		part := new(Array)
		a.RangeTo(part, Range{Start: 1, Drop: true}, Range{Start: 2, Step: -1, Count: 3})
		if want := Of([]int64{1, 1, 0}, 3).Cast(d); !Equal(part.Clone(), want) {
			t.Errorf("a part of %v is %v", a, part)
		}
		out, index := new(Array), Of([]int64{-1, 0}, 2)
		if err := ws.Take(out, a, index); err != nil || !Equal(out, Of([]int64{0, 1, 1, 0, 1, 1}, 2, 3).Cast(d)) {
			t.Errorf("rows of %v are %v, %v", a, out, err)
		}
		if err := ws.Put(out, Full(d, 1, 2, 3), true, index); err != nil || out.Float(0) != 1 || d != Bool && out.Float(1) != 2 {
			t.Errorf("with ones it is %v, %v", out, err)
		}
		ws.Release(out)
		ws.Add(a, Full(d, 1, 1))
		if a.Float(0) != 1 || a.DType() != d || a.SharesMemory(turned) || !a.SharesMemory(part) {
			t.Errorf("%v is %v", d, a)
		}
		again, err := Decode(d, a.Encode())
		if err != nil || !Equal(again, a) || Hash(again) != Hash(a) || MaxRelDiff(a, again) != 0 {
			t.Errorf("%s is %v, %v", a.Encode(), again, err)
		}
		if a.Bytes() != 6*d.Size() {
			t.Errorf("%v takes %d bytes", d, a.Bytes())
		}
	}
	for d, text := range map[DType]string{Int8: "[1] 128", Uint8: "[1] -1", Int32: "[1] 2147483648", Bool: "[1] 2"} {
		if a, err := Decode(d, text); err == nil {
			t.Errorf("%s is %v", text, a)
		}
	}
	a := Of([]int8{-128, 127}, 2)
	if text, err := a.MarshalJSON(); a.String() != "[-128, 127]" || string(text) != "[-128,127]" || err != nil {
		t.Errorf("%v, %s, %v", a, text, err)
	}
}

// TestFoldSmallIntegers folds numbers with wrap-around.
func TestFoldSmallIntegers(t *testing.T) {
	if got, ok := Fold(Add, Int8, 0, []*Array{Scalar(int8(100)), Scalar(int8(100))}); !ok || !Equal(got, Scalar(int8(-56))) {
		t.Errorf("100 + 100 is %v, %v", got, ok)
	}
	if got, ok := Fold(Mul, Uint8, 1, []*Array{Scalar(0.5)}); ok {
		t.Errorf("0.5 among integers makes %v", got)
	}
}
