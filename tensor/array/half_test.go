package array_test

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	. "github.com/nnopt/nnopt/tensor/array"
)

// TestNumPy computes the cases of testdata/numpy.txt.
func TestNumPy(t *testing.T) {
	data, err := os.ReadFile("testdata/numpy.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, " | ")
		var args []*Array
		for _, part := range parts[1:] {
			dtype, elements, _ := strings.Cut(part, " ")
			args = append(args, vector(t, dtype, elements))
		}
		want := args[len(args)-1]
		if got := numpyOf(t, parts[0], args[:len(args)-1], want); !Equal(got, want) {
			t.Errorf("%s\nis %v %v", line, got.DType(), got.Encode())
		}
	}
}

// numpyOf computes a function by NumPy's name.
func numpyOf(t *testing.T, name string, args []*Array, want *Array) *Array {
	t.Helper()
	var ws Workspace
	x := args[0]
	for r := range NumReductions {
		if r.String() == name {
			out := New(r.Result(x.DType()), 1)
			if err := ws.Reduce(r, out, x.Reshape(1, x.Len()), 2); err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	out := New(want.DType(), want.Len())
	switch name {
	case "cast":
		return x.Cast(want.DType())
	case "sort":
		ws.Sort(out, x, 0)
	case "argsort":
		ws.ArgSort(out, x, 0)
	case "cumsum":
		ws.Cumulate(out, x, 0, false)
	case "argmax", "argmin":
		f := ws.ArgMax
		if name == "argmin" {
			f = ws.ArgMin
		}
		if err := f(out, x.Reshape(1, x.Len()), 2); err != nil {
			t.Fatal(err)
		}
	default:
		op, ok := ParseOpcode(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		return apply(t, op, args...)
	}
	return out
}

// TestHalves converts all half floats forth and back, and rounds what is between and next to them.
func TestHalves(t *testing.T) {
	for bits := range 1 << 16 {
		f, b := F16(bits), BF16(bits)
		for _, c := range []struct {
			value float32
			round func(float32) int
			exp   int // bits of the exponent and of the fraction
		}{
			{f.Float32(), func(v float32) int { return int(F16Of(v)) }, 5}, {b.Float32(), func(v float32) int { return int(BF16Of(v)) }, 8},
		} {
			fraction := 15 - c.exp
			special, rest := bits>>fraction&(1<<c.exp-1) == 1<<c.exp-1, bits&(1<<fraction-1)
			if v := c.value; v != v {
				if !special || rest == 0 || math.IsNaN(float64(v)) != (c.round(v)&0x7fff > (1<<c.exp-1)<<fraction) {
					t.Fatalf("%x is %v", bits, v)
				}
				continue
			}
			want := exactly(bits, c.exp)
			if float64(c.value) != want || c.round(c.value) != bits {
				t.Fatalf("%x of %d bits of exponent is %v, want %v, and becomes %x", bits, c.exp, c.value, want, c.round(c.value))
			}
			next := exactly(bits+1, c.exp)
			if special || bits&0x7fff == 0x7fff || math.IsInf(next, 0) {
				continue
			}
			middle := (want + next) / 2
			above, below := float32(math.Nextafter32(float32(middle), float32(next))), math.Nextafter32(float32(middle), float32(want))
			if m := c.round(float32(middle)); float64(float32(middle)) == middle && (m != bits+bits&1 || c.round(above) != bits+1 || c.round(below) != bits) {
				t.Fatalf("%v, %v, %v become %x, %x, %x beside %x", below, middle, above, c.round(below), m, c.round(above), bits)
			}
		}
	}
	inf := float32(math.Inf(1))
	if F16Of(65519.996) != 0x7bff || F16Of(65520) != 0x7c00 || F16Of(-inf) != 0xfc00 || F16Of(0x1p-25) != 0 || F16Of(-0x1.8p-25) != 0x8001 || BF16Of(math.MaxFloat32) != 0x7f80 {
		t.Error("the limits are wrong")
	}
}

// exactly computes the number that bits are.
func exactly(bits, exp int) float64 {
	fraction := 15 - exp
	sign, e, f := 1.0, bits>>fraction&(1<<exp-1), float64(bits&(1<<fraction-1))
	if bits>>15&1 == 1 {
		sign = -1
	}
	bias := 1<<(exp-1) - 1
	switch {
	case e == 1<<exp-1:
		return math.Inf(int(sign))
	case e == 0:
		return math.Ldexp(sign*f, 1-bias-fraction)
	}
	return math.Ldexp(sign*(f+float64(int(1)<<fraction)), e-bias-fraction)
}

// TestHalfOfDouble rounds float64s once: those near the middle of two float16s are the middle as
// float32s.
func TestHalfOfDouble(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		bits := rng.IntN(0x7bff)
		x, y := exactly(bits, 5), exactly(bits+1, 5)
		v := (x + y) / 2
		want := bits
		switch rng.IntN(3) {
		case 0:
			v = math.Nextafter(v, x)
		case 1:
			v = math.Nextafter(v, y)
			want++
		default:
			want += bits & 1
		}
		if got := Scalar(v).Cast(Float16); Slice[F16](got)[0] != F16(want) {
			t.Fatalf("%v becomes %v, want %x", v, got, want)
		}
		one := New(Float16)
		if one.SetFloat(0, v); Slice[F16](one)[0] != F16(want) {
			t.Fatalf("%v is set as %v, want %x", v, one, want)
		}
	}
}

// TestHalfPrograms computes programs of several instructions on blocks: every result is rounded.
func TestHalfPrograms(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var ws Workspace
	for _, d := range []DType{Float16, BFloat16} {
		x, y, c := New(d, 3, 700), New(d, 1, 700), New(Bool, 3, 1)
		for i := range x.Len() {
			x.SetFloat(i, rng.NormFloat64())
		}
		for i := range y.Len() {
			y.SetFloat(i, rng.NormFloat64())
		}
		c.SetFloat(1, 1)
		p := NewProgram(d, d, Bool)
		third := p.Constant(Full(d, 1.0/3))
		v := p.Append(Mul, p.Append(Add, 0, 1, third), 0)
		v = p.Append(Switch, 2, v, p.Append(Neg, v))
		w := p.Cast(Float32, p.Append(Lt, v, 1))
		p.Return(v, w)
		out, less := New(d, 3, 700), New(Float32, 3, 700)
		ws.Map(p, []*Array{out, less}, []*Array{x, y, c})
		round := func(v float64) float64 { return Full(d, v).Float(0) }
		for i := range x.Len() {
			a, b := x.Float(i), y.Float(i%700)
			want := round(round(round(a+b)+round(1.0/3)) * a)
			if i/700 != 1 {
				want = -want
			}
			if out.Float(i) != want || (less.Float(i) == 1) != (want < b) {
				t.Fatalf("%v: element %d of %v and %v is %v and %v, want %v", d, i, a, b, out.Float(i), less.Float(i), want)
			}
		}
		again, err := ParseProgram(p.Listing())
		if err != nil || !again.Equal(p) {
			t.Errorf("%s: %v", p.Listing(), err)
		}
		if sum, ok := Fold(Add, d, 0, []*Array{Full(d, 256), Full(d, 1.0/3), Full(d, 1.0/3)}); !ok || sum.Float(0) != round(round(256+round(1.0/3))+round(1.0/3)) {
			t.Errorf("a sum of %v is %v", d, sum)
		}
	}
}

// TestHalfText prints numbers with as many digits as they need.
func TestHalfText(t *testing.T) {
	a := New(Float16, 6)
	for i, v := range []float64{0.1, 65504, -1, 1.0 / 3, 6e-8, math.Inf(1)} {
		a.SetFloat(i, v)
	}
	if s := a.String(); s != "[0.1, 65500.0, -1.0, 0.3333, 6e-08, inf]" {
		t.Error(s)
	}
	b := a.Cast(BFloat16)
	if s := b.String(); s != "[0.1, 65500.0, -1.0, 0.334, 5.96e-08, inf]" {
		t.Error(s)
	}
	for _, a := range []*Array{a, b} {
		if c, err := Decode(a.DType(), a.Encode()); err != nil || !Equal(a, c) {
			t.Errorf("%s: %v, %v", a.Encode(), c, err)
		}
	}
	if text, err := a.MarshalJSON(); string(text) != `[0.1,65500,-1,0.3333,6e-8,"inf"]` || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	for _, text := range []string{"[1] 65520", "[1] nan:12345", "[1] x"} {
		if c, err := Decode(Float16, text); err == nil {
			t.Errorf("%s is %v", text, c)
		}
	}
	for i, text := range []string{"[1] 18446744073709551616", "[1] -1", "[1] 4294967296"} {
		if c, err := Decode([]DType{Uint64, Uint64, Uint32}[i], text); err == nil {
			t.Errorf("%s is %v", text, c)
		}
	}
}
