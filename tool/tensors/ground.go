package tensors

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
)

// How many values there are of each variable: of scalars, all are computed in one call.
const (
	groundElements = 96
	groundWide     = 1 << 12 // to compare two terms
	groundSquares  = 6       // runs with matrices of a size
	groundSize     = 3
)

// A ground computes terms: those of scalars on vectors of all draws.
type ground struct {
	scalars bool
	n       int // elements of a vector
	ws      array.Workspace
	kernels map[kernelKey]tensor.Kernel
}

// A kernelKey is an element-wise op with the types of up to three inputs.
type kernelKey struct {
	op    tensor.Elemwise
	types [3]array.DType
	n     int
}

// Ground returns variables of types of the language, float64 scalars by default. Scalars have values in
// three runs: positive ones, all but zero, and all that there are of a type of few, or those at the
// limits of a larger one.
func (d *domain) Ground(types string, each int, rng *rand.Rand, known []map[string]any) (*rulecheck.Ground, error) {
	if types == "" {
		types = "float64 scalar"
	}
	g := &ground{scalars: true, kernels: make(map[kernelKey]tensor.Kernel)}
	r := &rulecheck.Ground{Compute: g.compute, Guards: guardsFor, Constant: g.constant, Conditions: conditions}
	var names rulecheck.Namer
	for text := range strings.SplitSeq(types, ";") {
		for range each {
			scope := d.language.NewScope()
			name := names.Next()
			text := strings.TrimSpace(text)
			if _, plain := array.ParseDType(text); plain {
				text += " scalar"
			}
			if err := scope.Declare(name + ": " + text); err != nil {
				return nil, fmt.Errorf("--types: %w", err)
			}
			v := newInput(scope.Inputs()[0].Type().(tensor.Type), name)
			r.Leaves = append(r.Leaves, v)
			g.scalars = g.scalars && tensor.TypeOf(v).NDim() == 0
		}
	}
	if g.scalars {
		r.Every = func(leaves []*variable) *rulecheck.Ground {
			h := &ground{scalars: true, kernels: make(map[kernelKey]tensor.Kernel)}
			if !h.enumerable(leaves) {
				return nil
			}
			every := *r
			every.Leaves, every.Runs, every.Compute, every.Constant = leaves, [][]any{h.every(leaves)}, h.compute, h.constant
			return &every
		}
	}
	switch {
	case g.scalars && g.enumerable(r.Leaves):
		r.Runs, r.All = [][]any{g.every(r.Leaves)}, true
		r.Digest = func(_ int, v any) (uint64, bool) { return g.digest(v), true }
	case g.scalars:
		g.draw(r, rng, known)
	default:
		squares := func(r *rulecheck.Ground, rng *rand.Rand, n, size int) {
			for range n {
				var values []any
				for _, v := range r.Leaves {
					t := tensor.TypeOf(v)
					values = append(values, fill(rng, ordinary, t.DType(), equal.shape(rng, t, size)))
				}
				r.Runs = append(r.Runs, values)
			}
		}
		squares(r, rng, groundSquares, groundSize)
		r.Digest = func(_ int, v any) (uint64, bool) { return g.digest(v), told(v.(*array.Array)) }
		r.Wide = func(rng *rand.Rand, _ func(*variable) bool) *rulecheck.Ground {
			wide := *r
			wide.Runs = nil
			squares(&wide, rng, 4*groundSquares, groundSize+1)
			return &wide
		}
	}
	r.Same = same
	return r, nil
}

// guardsFor returns the guards of types, the weakest first.
func guardsFor(t fgraph.Type) []string {
	d := t.(tensor.Type).DType()
	switch {
	case d.IsFloat():
		return []string{"float"}
	case d == array.Bool:
		return []string{"integer", "bool"}
	}
	return []string{"integer", "wide"}
}

// conditions are those of numbers, and of terms.
var conditions = func() (list []rulecheck.Condition) {
	of := func(name string, n int, holds func(c []float64) bool) {
		args := slices.Repeat([]string{"c"}, n)
		list = append(list, rulecheck.Condition{Guard: pattern.Guard{Func: name, Args: args}, Holds: holds})
	}
	of("number", 1, func([]float64) bool { return true })
	of("nonzero", 1, func(c []float64) bool { return c[0] != 0 })
	of("nonnegative", 1, func(c []float64) bool { return c[0] >= 0 })
	of("positive", 1, func(c []float64) bool { return c[0] > 0 })
	of("negative", 1, func(c []float64) bool { return c[0] < 0 })
	of("number", 2, func([]float64) bool { return true })
	of("descending", 2, func(c []float64) bool { return c[0] >= c[1] })
	of("positive", 2, func(c []float64) bool { return c[0] > 0 && c[1] > 0 })
	list = append(list, rulecheck.Condition{Guard: pattern.Guard{Func: "nonnegative", Args: []string{"x"}}}, rulecheck.Condition{Guard: pattern.Guard{Func: "at_least", Args: []string{"x", "x"}}})
	return list
}()

// maxEvery bounds the values of all variables together that are all computed.
const maxEvery = 1 << 16

// enumerable reports whether all values of variables can be computed at once.
func (g *ground) enumerable(leaves []*variable) bool {
	g.n = 1
	for _, v := range leaves {
		switch d := tensor.TypeOf(v).DType(); {
		case d == array.Bool:
			g.n *= 2
		case !d.IsFloat() && d.Size() == 1:
			g.n *= 1 << 8
		default:
			return false
		}
		if g.n > maxEvery {
			return false
		}
	}
	return true
}

// every returns vectors with all combinations of values.
func (g *ground) every(leaves []*variable) (values []any) {
	stride := 1
	for _, v := range leaves {
		d := tensor.TypeOf(v).DType()
		count := 1 << 8
		if d == array.Bool {
			count = 2
		}
		a := array.New(d, g.n)
		for i := range g.n {
			a.SetInt(i, int64(i/stride%count))
		}
		stride *= count
		values = append(values, a)
	}
	return values
}

// draw draws vectors of values: positive ones; all but zero, with those for which rules were wrong; and
// any, which tell apart integers only.
func (g *ground) draw(r *rulecheck.Ground, rng *rand.Rand, known []map[string]any) {
	g.n = groundElements
	r.Runs = make([][]any, 3)
	float := true
	r.Wide = func(rng *rand.Rand, guard func(*variable) bool) *rulecheck.Ground {
		h := &ground{scalars: true, n: groundWide, kernels: make(map[kernelKey]tensor.Kernel)}
		wide := *r
		wide.Compute, wide.Constant, wide.Runs = h.compute, h.constant, [][]any{nil}
		for _, v := range r.Leaves {
			a := array.New(tensor.TypeOf(v).DType(), h.n)
			for i := range h.n {
				if setNumber(rng, a, i, guard(v)); i%4 == 3 && !a.DType().IsFloat() {
					setElement(rng, all, a, i)
				} else if a.DType().IsFloat() && rng.IntN(512) == 0 {
					a.SetFloat(i, 0) // few enough for same, where they make a side NaN
				} else if x := a.Float(i); i%4 == 3 {
					a.SetFloat(i, math.Copysign(math.Ceil(math.Abs(x)/4)/2, x)) // often the same as another one
				}
			}
			wide.Runs[0] = append(wide.Runs[0], a)
		}
		return &wide
	}
	for _, v := range r.Leaves {
		d := tensor.TypeOf(v).DType()
		float = float && d.IsFloat()
		positive, any, special := array.New(d, g.n), array.New(d, g.n), array.New(d, g.n)
		for i := range g.n {
			setNumber(rng, positive, i, true)
			setNumber(rng, any, i, false)
			setElement(rng, all, special, i)
		}
		for i, values := range known[max(0, len(known)-g.n):] {
			if a, ok := values[v.Name()].(*array.Array); ok && a.Len() > 0 && !a.IsCSR() {
				if x := a.Float(0); x-x == 0 {
					any.SetFloat(i, x)
				}
			}
		}
		r.Runs[0], r.Runs[1], r.Runs[2] = append(r.Runs[0], positive), append(r.Runs[1], any), append(r.Runs[2], special)
	}
	if float {
		r.Guard, r.Guarded = "nonnegative", func(v *variable) *variable { return tensor.Map(array.Abs, v) }
		r.Cells = cells
		r.Runs = r.Runs[:2] // what differs for special values the check says
	}
	r.Digest = func(run int, v any) (uint64, bool) {
		a := v.(*array.Array)
		return g.digest(v), told(a)
	}
}

// cells returns the open intervals between numbers. At these themselves, whose bounds functions may not have, both sides
// of what follows by cases are the same by continuity, or are not numbers.
func cells(numbers []float64) (list [][2]float64) {
	least := math.Inf(-1)
	for _, x := range numbers {
		list = append(list, [2]float64{least, math.Nextafter(x, math.Inf(-1))})
		least = math.Nextafter(x, math.Inf(1))
	}
	return append(list, [2]float64{least, math.Inf(1)})
}

// setNumber draws a number by which terms are told apart. Sums, differences and products of few of them
// are exact, and far from each other, so that what only seems equal by rounding is few.
func setNumber(rng *rand.Rand, a *array.Array, i int, positive bool) {
	d := a.DType()
	if d == array.Bool {
		a.SetFloat(i, float64(rng.IntN(2)))
		return
	}
	v := float64(1+rng.IntN(1<<10)) / 128
	if k := rng.IntN(8); k < 2 {
		v = math.Ldexp(v, []int{-6, 5}[k]) // narrow draws make bounds of terms seem constants
	}
	if !d.IsFloat() {
		v = float64(rng.IntN(5)) // with zeros in several variables at once
		if rng.IntN(4) == 0 {
			v = float64(rng.IntN(100))
		}
	}
	if !positive && rng.IntN(2) == 0 && !d.IsUnsigned() {
		v = -v
	}
	a.SetFloat(i, v)
}

// constant returns a constant as a vector where terms are vectors.
func (g *ground) constant(v *variable) any {
	a := tensor.ConstantOf(v)
	if !g.scalars || a.Len() != 1 {
		return a
	}
	wide := array.New(a.DType(), g.n)
	for i := range g.n {
		put(wide, i, a, 0)
	}
	return wide
}

// compute computes an apply. One of scalars is computed on vectors.
func (g *ground) compute(ctx context.Context, a *fgraph.Apply, inputs []any) (any, error) {
	in := lists.Map(inputs, func(v any) *array.Array { return v.(*array.Array) })
	kernel, err := g.kernel(a, in)
	if err != nil {
		return nil, err
	}
	g.ws.Reset()
	g.ws.MaxBytes, g.ws.Context = maxBytes, ctx
	out, err := tensor.Run(a, kernel, &g.ws, in)
	if err != nil {
		return nil, err
	}
	return out[0].Clone(), nil
}

// kernel returns the kernel of an apply. Those of scalars are for vectors.
func (g *ground) kernel(a *fgraph.Apply, in []*array.Array) (tensor.Kernel, error) {
	op, ok := a.Op().(tensor.Elemwise)
	if !ok || !g.scalars || len(in) > 3 {
		return tensor.Compile(a)
	}
	key := kernelKey{op: op, n: len(in)}
	vectors := make([]*variable, len(in))
	for i, x := range in {
		key.types[i] = x.DType()
		vectors[i] = newInput(tensor.VectorType(x.DType()), "")
	}
	if k := g.kernels[key]; k != nil {
		return k, nil
	}
	v, err := tensor.Try(func() *variable { return tensor.MustApply(op, vectors...) })
	if err != nil {
		return nil, err
	}
	k, err := tensor.Compile(v.Owner())
	if err == nil {
		g.kernels[key] = k
	}
	return k, err
}

// told reports whether values tell something: there are some, and a quarter of them is finite.
func told(a *array.Array) bool {
	finite := 0
	for i := range a.Len() {
		if v := a.Float(i); v-v == 0 {
			finite++
		}
	}
	return finite > 0 && 4*finite >= a.Len()
}

// same compares values up to rounding, where both are finite, as they have to be nearly everywhere if one is.
func same(x, y any) bool {
	a, b := x.(*array.Array), y.(*array.Array)
	if a.DType() != b.DType() || !array.SameShape(a, b) {
		return false
	}
	apart := 0
	for i := range a.Len() {
		if !a.DType().IsFloat() {
			if a.Int(i) != b.Int(i) {
				return false
			}
			continue
		}
		v, w := a.Float(i), b.Float(i)
		if (v-v == 0) != (w-w == 0) {
			if apart++; 64*apart > a.Len() {
				return false
			}
		}
		if d := math.Abs(v - w); d-d == 0 && d > 1e-9+float64(1e-6*math.Max(math.Abs(v), math.Abs(w))) {
			return false
		}
	}
	return true
}

// digest hashes a value: floats with 7 digits, and as 0 what rounding leaves of a difference.
func (g *ground) digest(v any) uint64 {
	a := v.(*array.Array)
	h := uint64(14695981039346656037)
	mix := func(word uint64) {
		h = (h ^ word) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	for _, n := range a.Shape() {
		mix(uint64(n))
	}
	float := a.DType().IsFloat()
	for i := range a.Len() {
		if float {
			mix(short(a.Float(i)))
		} else {
			mix(uint64(a.Int(i)))
		}
	}
	return h
}

// short returns the bits of a number, rounded to 24 of them. NaNs are one value.
func short(x float64) uint64 {
	switch {
	case x != x:
		return 1
	case math.Abs(x) < 1e-11:
		return 0
	}
	return (math.Float64bits(x) + 1<<28) >> 29
}
