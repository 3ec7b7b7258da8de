package array_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
)

// TestHinges: programs with hinges have the bits of their operations one by one, and only what is one
// becomes one.
func TestHinges(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	x := array.New(array.Float32, 777)
	for i := range x.Len() {
		x.SetFloat(i, 8*r.Float64()-4)
	}
	for i, v := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), -3, 3} {
		x.SetFloat(i, v)
	}
	for _, c := range []struct {
		name                  string
		slope, offset, lo, hi float64
		build                 func(p *array.Program, x, line, bounded int) int
		instructions          int
	}{
		{"swish", 1.0 / 6, 0.5, 0, 1, func(p *array.Program, x, _, bounded int) int { return p.Append(array.Mul, x, bounded) }, 1},
		{"swish, other order", 1.0 / 6, 0.5, 0, 1, func(p *array.Program, x, _, bounded int) int { return p.Append(array.Mul, bounded, x) }, 1},
		{"sigmoid", 0.2, 0.5, 0, 1, func(p *array.Program, x, _, bounded int) int { return bounded }, 1},
		{"bounds in the wrong order", 0.2, 0.5, 1, -1, func(p *array.Program, x, _, bounded int) int { return bounded }, 1},
		{"the line is read again", 0.2, 0.5, 0, 1, func(p *array.Program, x, line, bounded int) int { return p.Append(array.Mul, line, bounded) }, 5},
		{"read twice", 0.2, 0.5, 0, 1, func(p *array.Program, x, line, bounded int) int {
			return p.Append(array.Mul, x, p.Append(array.Sqr, bounded))
		}, 3},
		{"no offset", 0.2, 0, 0, 1, func(p *array.Program, x, line, bounded int) int { return bounded }, 4},
		{"no number", 0.2, 0.5, math.NaN(), 1, func(p *array.Program, x, line, bounded int) int { return bounded }, 4},
		{"leaky, a bound", 0.2, 0, -0.4, 0, nil, 1},
		{"leaky, other order, a bound of zero", 0.2, 1, 0, 0, nil, 1},
		{"leaky, the bound first", 0.2, 0, 0, 1, nil, 2},
		{"a negative slope", -0.2, 0, 0, 0, nil, 3},
	} {
		p := array.NewProgram(array.Float32)
		if c.build == nil { // a leaky ReLU
			args := []int{0, p.Append(array.Mul, p.Constant(array.Full(array.Float32, c.slope)), 0)}
			if c.offset > 0 {
				slices.Reverse(args)
			}
			p.Append(array.Maximum, args...)
			lo := p.Constant(array.Full(array.Float32, c.lo))
			if c.hi > 0 {
				p.Return(p.Append(array.Maximum, lo, lo-1))
			} else {
				p.Return(p.Append(array.Maximum, lo-1, lo))
			}
			checkHinges(t, c.name, p, x, c.instructions)
			continue
		}
		number := func(v float64) int { return p.Constant(array.Full(array.Float32, v)) }
		line := p.Append(array.Add, number(c.offset), p.Append(array.Mul, number(c.slope), 0))
		bounded := p.Append(array.Maximum, number(c.lo), p.Append(array.Minimum, number(c.hi), line))
		p.Return(c.build(p, 0, line, bounded))
		checkHinges(t, c.name, p, x, c.instructions)
	}
}

// TestGELU: what GELU comes to is one instruction, and what looks similar is not.
func TestGELU(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	x := array.New(array.Float32, 777)
	for i := range x.Len() {
		x.SetFloat(i, 20*r.Float64()-10)
	}
	for i, v := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), -15, 15} {
		x.SetFloat(i, v)
	}
	for _, c := range []struct {
		name         string
		build        func(p *array.Program, t int) int
		instructions int // with the one that makes t
	}{
		{"gelu", func(p *array.Program, t int) int {
			return p.Append(array.Mul, 0, p.Append(array.Erfc, p.Append(array.Neg, t)))
		}, 1},
		{"other order", func(p *array.Program, t int) int {
			return p.Append(array.Mul, p.Append(array.Erfc, p.Append(array.Neg, t)), 0)
		}, 1},
		{"halved", func(p *array.Program, t int) int {
			y := p.Append(array.Mul, 0, p.Append(array.Erfc, p.Append(array.Neg, t)))
			return p.Append(array.Mul, p.Constant(array.Full(array.Float32, 0.5)), y)
		}, 1},
		{"t is read again", func(p *array.Program, t int) int {
			return p.Append(array.Add, t, p.Append(array.Mul, 0, p.Append(array.Erfc, p.Append(array.Neg, t))))
		}, 3},
		{"times t", func(p *array.Program, t int) int {
			return p.Append(array.Mul, p.Append(array.Erfc, p.Append(array.Neg, t)), t)
		}, 2},
		{"more follows", func(p *array.Program, t int) int {
			return p.Append(array.Sqr, p.Append(array.Mul, p.Append(array.Erfc, p.Append(array.Neg, t)), 0))
		}, 2},
		{"no negation", func(p *array.Program, t int) int { return p.Append(array.Mul, 0, p.Append(array.Erfc, t)) }, 3},
		{"the square", func(p *array.Program, t int) int {
			e := p.Append(array.Erfc, p.Append(array.Neg, t))
			return p.Append(array.Mul, e, e)
		}, 4},
		{"read twice", func(p *array.Program, t int) int {
			e := p.Append(array.Erfc, p.Append(array.Neg, t))
			return p.Append(array.Add, e, p.Append(array.Mul, 0, e))
		}, 5},
		{"of something else", func(p *array.Program, t int) int {
			return p.Append(array.Mul, 0, p.Append(array.Abs, p.Append(array.Neg, t)))
		}, 4},
	} {
		p := array.NewProgram(array.Float32)
		p.Return(c.build(p, p.Append(array.TrueDiv, 0, p.Constant(array.Full(array.Float32, 1.4142135)))))
		checkHinges(t, c.name, p, x, c.instructions)
	}
}

// TestQuantizing: what quantizes is one instruction with the same bytes, unless a step is read again or is another one.
func TestQuantizing(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	x := array.New(array.Float32, 777)
	for i := range x.Len() {
		x.SetFloat(i, 300*r.Float64()-150)
	}
	for i, v := range []float64{0, math.Inf(1), math.Inf(-1), math.NaN(), 0.25, -0.75, 1e30} {
		x.SetFloat(i, v)
	}
	for _, c := range []struct {
		name         string
		to           array.DType
		lo, hi       float64
		instructions int
	}{{"bytes", array.Uint8, 0, 255, 1}, {"with signs", array.Int8, -128, 127, 1}, {"no number", array.Uint8, math.NaN(), 255, 6}, {"words", array.Int16, 0, 255, 6}} {
		build := func(again bool) *array.Program {
			p := array.NewProgram(array.Float32, array.Float32, array.Float32)
			number := func(v float64) int { return p.Constant(array.Full(array.Float32, v)) }
			quotient := p.Append(array.TrueDiv, 0, 1)
			sum := p.Append(array.Add, 2, p.Append(array.Round, quotient))
			codes := p.Cast(c.to, p.Append(array.Minimum, number(c.hi), p.Append(array.Maximum, sum, number(c.lo))))
			if again {
				return p.Return(codes, quotient)
			}
			return p.Return(codes)
		}
		p, apart := build(false), build(true)
		if n := hidden(p, "placed").Len(); n != c.instructions {
			t.Errorf("%s: %d instructions, want %d", c.name, n, c.instructions)
		}
		if n := hidden(apart, "placed").Len(); n != 6 {
			t.Errorf("%s: %d instructions where one is read again, want 6", c.name, n)
		}
		var ws array.Workspace
		in := []*array.Array{x, array.Full(array.Float32, 0.5).Reshape(1), array.Full(array.Float32, 100).Reshape(1)}
		got, want, other := array.New(c.to, x.Len()), array.New(c.to, x.Len()), array.New(array.Float32, x.Len())
		ws.Map(p, []*array.Array{got}, in)
		ws.Map(apart, []*array.Array{want, other}, in)
		for i := range x.Len() {
			if g, w := got.Float(i), want.Float(i); g != w {
				t.Errorf("%s of %g is %g, not %g", c.name, x.Float(i), g, w)
			}
		}
	}
}

// checkHinges compares a program of x with its operations one at a time.
func checkHinges(t *testing.T, name string, p *array.Program, x *array.Array, instructions int) {
	if n := hidden(p, "placed").Len(); n != instructions {
		t.Errorf("%s: %d instructions, want %d", name, n, instructions)
	}
	var ws array.Workspace
	got := array.New(array.Float32, x.Len())
	ws.Map(p, []*array.Array{got}, []*array.Array{x})
	// One operation at a time.
	values := []*array.Array{x}
	for v := range p.Values() {
		if v.Constant != nil {
			all, _ := v.Constant.BroadcastTo(x.Len())
			values = append(values, all)
			continue
		}
		q := array.NewProgram(slices.Repeat([]array.DType{array.Float32}, len(v.Args))...)
		q.Return(q.Append(v.Op, []int{0, 1}[:len(v.Args)]...))
		var args []*array.Array
		for _, a := range v.Args {
			args = append(args, values[a])
		}
		y := array.New(array.Float32, x.Len())
		ws.Map(q, []*array.Array{y}, args)
		values = append(values, y)
	}
	for i, v := range array.Slice[float32](values[p.Results()[0]]) {
		if g := array.Slice[float32](got)[i]; math.Float32bits(g) != math.Float32bits(v) && (g == g || v == v) {
			t.Errorf("%s of %g is %g, not %g", name, x.Float(i), g, v)
		}
	}
}

// hidden returns a field of what p refers to. How fast something is computed is in no result, and
// test files inside of this package would have the compiler make all of it twice.
func hidden(p any, field string) reflect.Value { return reflect.ValueOf(p).Elem().FieldByName(field) }
