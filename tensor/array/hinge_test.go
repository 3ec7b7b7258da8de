package array

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestHinges: programs with hinges have the bits of their operations one by one, and only what is one
// becomes one.
func TestHinges(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	x := New(Float32, 777)
	for i := range x.Len() {
		x.SetFloat(i, 8*r.Float64()-4)
	}
	for i, v := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), -3, 3} {
		x.SetFloat(i, v)
	}
	for _, c := range []struct {
		name                  string
		slope, offset, lo, hi float64
		build                 func(p *Program, x, line, bounded int) int
		instructions          int
	}{
		{"swish", 1.0 / 6, 0.5, 0, 1, func(p *Program, x, _, bounded int) int { return p.Append(Mul, x, bounded) }, 1},
		{"swish, other order", 1.0 / 6, 0.5, 0, 1, func(p *Program, x, _, bounded int) int { return p.Append(Mul, bounded, x) }, 1},
		{"sigmoid", 0.2, 0.5, 0, 1, func(p *Program, x, _, bounded int) int { return bounded }, 1},
		{"bounds in the wrong order", 0.2, 0.5, 1, -1, func(p *Program, x, _, bounded int) int { return bounded }, 1},
		{"the line is read again", 0.2, 0.5, 0, 1, func(p *Program, x, line, bounded int) int { return p.Append(Mul, line, bounded) }, 5},
		{"read twice", 0.2, 0.5, 0, 1, func(p *Program, x, line, bounded int) int { return p.Append(Mul, x, p.Append(Sqr, bounded)) }, 3},
		{"no offset", 0.2, 0, 0, 1, func(p *Program, x, line, bounded int) int { return bounded }, 4},
		{"no number", 0.2, 0.5, math.NaN(), 1, func(p *Program, x, line, bounded int) int { return bounded }, 4},
		{"leaky, a bound", 0.2, 0, -0.4, 0, nil, 1},
		{"leaky, other order, a bound of zero", 0.2, 1, 0, 0, nil, 1},
		{"leaky, the bound first", 0.2, 0, 0, 1, nil, 2},
		{"a negative slope", -0.2, 0, 0, 0, nil, 3},
	} {
		p := NewProgram(Float32)
		if c.build == nil { // a leaky ReLU
			p.Append(Mul, p.Constant(Full(Float32, c.slope)), 0)
			if c.offset > 0 {
				p.Append(Maximum, len(p.types)-1, 0)
			} else {
				p.Append(Maximum, 0, len(p.types)-1)
			}
			lo := p.Constant(Full(Float32, c.lo))
			if c.hi > 0 {
				p.Return(p.Append(Maximum, lo, lo-1))
			} else {
				p.Return(p.Append(Maximum, lo-1, lo))
			}
			checkHinges(t, c.name, p, x, c.instructions)
			continue
		}
		number := func(v float64) int { return p.Constant(Full(Float32, v)) }
		line := p.Append(Add, number(c.offset), p.Append(Mul, number(c.slope), 0))
		bounded := p.Append(Maximum, number(c.lo), p.Append(Minimum, number(c.hi), line))
		p.Return(c.build(p, 0, line, bounded))
		checkHinges(t, c.name, p, x, c.instructions)
	}
}

// TestGELU: what GELU comes to is one instruction, and what looks similar is not.
func TestGELU(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	x := New(Float32, 777)
	for i := range x.Len() {
		x.SetFloat(i, 20*r.Float64()-10)
	}
	for i, v := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), -15, 15} {
		x.SetFloat(i, v)
	}
	for _, c := range []struct {
		name         string
		build        func(p *Program, t int) int
		instructions int // with the one that makes t
	}{
		{"gelu", func(p *Program, t int) int { return p.Append(Mul, 0, p.Append(Erfc, p.Append(Neg, t))) }, 2},
		{"other order", func(p *Program, t int) int { return p.Append(Mul, p.Append(Erfc, p.Append(Neg, t)), 0) }, 2},
		{"times t", func(p *Program, t int) int { return p.Append(Mul, p.Append(Erfc, p.Append(Neg, t)), t) }, 2},
		{"more follows", func(p *Program, t int) int {
			return p.Append(Sqr, p.Append(Mul, p.Append(Erfc, p.Append(Neg, t)), 0))
		}, 3},
		{"no negation", func(p *Program, t int) int { return p.Append(Mul, 0, p.Append(Erfc, t)) }, 3},
		{"the square", func(p *Program, t int) int {
			e := p.Append(Erfc, p.Append(Neg, t))
			return p.Append(Mul, e, e)
		}, 4},
		{"read twice", func(p *Program, t int) int {
			e := p.Append(Erfc, p.Append(Neg, t))
			return p.Append(Add, e, p.Append(Mul, 0, e))
		}, 5},
		{"of something else", func(p *Program, t int) int { return p.Append(Mul, 0, p.Append(Abs, p.Append(Neg, t))) }, 4},
	} {
		p := NewProgram(Float32)
		p.Return(c.build(p, p.Append(TrueDiv, 0, p.Constant(Full(Float32, 1.4142135)))))
		checkHinges(t, c.name, p, x, c.instructions)
	}
}

// checkHinges compares a program of x with its operations one at a time.
func checkHinges(t *testing.T, name string, p *Program, x *Array, instructions int) {
	if n := len(p.placed); n != instructions {
		t.Errorf("%s: %d instructions, want %d", name, n, instructions)
	}
	var ws Workspace
	got := New(Float32, x.Len())
	ws.Map(p, []*Array{got}, []*Array{x})
	// One operation at a time.
	values := make([]*Array, len(p.types))
	values[0] = x
	for _, k := range p.consts {
		values[k.value], _ = k.data.BroadcastTo(x.Len())
	}
	for _, in := range p.code {
		q := NewProgram(Float32, Float32)
		if in.numArgs == 1 {
			q = NewProgram(Float32)
		}
		args := []int{0, 1}[:in.numArgs]
		q.Return(q.Append(in.op, args...))
		var list []*Array
		for _, a := range in.args[:in.numArgs] {
			list = append(list, values[a])
		}
		values[in.dst] = New(Float32, x.Len())
		ws.Map(q, []*Array{values[in.dst]}, list)
	}
	for i, v := range Slice[float32](values[p.outs[0]]) {
		if g := Slice[float32](got)[i]; math.Float32bits(g) != math.Float32bits(v) && (g == g || v == v) {
			t.Errorf("%s of %g is %g, not %g", name, x.Float(i), g, v)
		}
	}
}
