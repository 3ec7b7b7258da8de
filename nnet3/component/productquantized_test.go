package component

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/index"
)

// normal returns a matrix of normal numbers.
func normal(r *rand.Rand, rows, cols int, scale float64) kernel.Matrix {
	m := kernel.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(r.NormFloat64() * scale)
	}
	return m
}

// quantizedTDNN returns a TDNN with random parameters as a product, in float32 and quantized, with
// its precomputed indexes for 20 output rows.
func quantizedTDNN(t *testing.T, r *rand.Rand, to kernel.Precision, in, out int, extend func(*Product) *Product) (float, q *Product, pre Precomputed, rows int) {
	t.Helper()
	c := newComponent(t, "TdnnComponent", fmt.Sprintf("input-dim=%d output-dim=%d time-offsets=-1,0,2", in, out), r).(*tdnnComponent)
	var inputs, outputs []index.Index
	for i := range 20 {
		outputs = append(outputs, index.Index{T: int32(i)})
	}
	for i := -1; i < 22; i++ {
		inputs = append(inputs, index.Index{T: int32(i)})
	}
	pre, err := c.PrecomputeIndexes(inputs, outputs, false)
	if err != nil {
		t.Fatal(err)
	}
	float, _ = NewProduct(c)
	float = extend(float)
	q, ok := float.Quantized(to)
	if !ok {
		t.Fatal("not quantized")
	}
	return float, q, pre, len(inputs)
}

var precisions = []kernel.Precision{kernel.Int8, kernel.Int16}

// Rows that depend on NaN or an infinity have the bits of float32, other rows are not affected,
// whatever is done to the result.
func TestQuantizedStrangeRows(t *testing.T) {
	for _, to := range precisions {
		r := rand.New(rand.NewPCG(1, 2))
		for name, extend := range map[string]func(*Product) *Product{
			"plain":    func(p *Product) *Product { return p },
			"residual": func(p *Product) *Product { p, _ = p.Onto(0.5); return p },
			"relu": func(p *Product) *Product {
				p, _ = p.Follow(newComponent(t, "RectifiedLinearComponent", "dim=24", r))
				return p
			},
		} {
			float, q, pre, rows := quantizedTDNN(t, r, to, 40, 24, extend)
			clean := normal(r, rows, 40, 1)
			strange := kernel.Clone(clean)
			strange.Data[40*4+7] = float32(math.NaN())
			strange.Data[40*11] = float32(math.Inf(-1))
			old := normal(r, 20, 24, 1)
			run := func(p *Product, in kernel.Matrix) kernel.Matrix {
				y := kernel.Clone(old)
				if _, err := p.Propagate(new(Workspace), ForwardPass{Pre: pre}, in, y); err != nil {
					t.Fatal(err)
				}
				return y
			}
			got, want, ok := run(q, strange), run(float, strange), run(q, clean)
			changed := 0
			for i := range 20 {
				if strangeRow := touches(i, 4, 11); strangeRow {
					changed++
					sameBits(t, fmt.Sprintf("%s, %s: row %d", to, name, i), kernel.Row(got, i), kernel.Row(want, i))
				} else {
					sameBits(t, fmt.Sprintf("%s, %s: row %d", to, name, i), kernel.Row(got, i), kernel.Row(ok, i))
				}
			}
			if changed != 6 {
				t.Errorf("%d rows depend on the strange ones", changed)
			}
		}
	}
}

// touches reports whether output row i takes one of the input rows.
func touches(i int, rows ...int) bool {
	for _, r := range rows {
		if at := r - 1; i == at+1 || i == at || i == at-2 {
			return true
		}
	}
	return false
}

// sameBits fails unless two rows have the same bits; all NaN count as equal.
func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for j := range want {
		if math.Float32bits(got[j]) != math.Float32bits(want[j]) && (got[j] == got[j] || want[j] == want[j]) {
			t.Fatalf("%s: element %d is %v, want %v", what, j, got[j], want[j])
		}
	}
}

// Rows of the input that a workspace keeps give the same result.
func TestKeptRows(t *testing.T) {
	for _, to := range precisions {
		r := rand.New(rand.NewPCG(1, 2))
		_, q, pre, rows := quantizedTDNN(t, r, to, 33, 17, func(p *Product) *Product { return p })
		in := normal(r, rows, 33, 1)
		var w Workspace
		first, second := kernel.New(20, 17), kernel.New(20, 17)
		var integers kernel.QuantizedRows
		integers.SetGroups(to, in.Cols, in)
		pass := ForwardPass{Pre: pre, Rows: &integers}
		if _, err := q.Propagate(&w, pass, in, first); err != nil {
			t.Fatal(err)
		}
		kernel.Fill(in, 0)
		if _, err := q.Propagate(&w, pass, in, second); err != nil {
			t.Fatal(err)
		}
		sameBits(t, to.String(), second.Data, first.Data)
	}
}

// The error of a product is at most 1.1 times its estimate, in random products of all shapes, with
// normal and rectified rows.
func TestQuantizationError(t *testing.T) {
	products := 10_000
	if !longtest.Enabled() {
		products = 300
	}
	r := rand.New(rand.NewPCG(3, 4))
	worst := 0.0
	for n := range products {
		k, cols, rows := 32+r.IntN(100), 40+r.IntN(60), 30+r.IntN(30)
		if n%50 < 2 {
			k += 2 * groupColumns
		}
		x, w := normal(r, rows, k, math.Exp(4*r.NormFloat64())), normal(r, cols, k, math.Exp(4*r.NormFloat64()))
		if n%3 == 1 {
			for i := range x.Data {
				x.Data[i] = max(x.Data[i], 0)
			}
		}
		to := precisions[n%2]
		base := new(linearComponent)
		base.weights.m = w
		float, _ := NewProduct(base)
		q, ok := float.Quantized(to)
		if !ok {
			t.Fatal("not quantized")
		}
		want, got := kernel.New(rows, cols), kernel.New(rows, cols)
		for p, y := range map[*Product]kernel.Matrix{float: want, q: got} {
			if _, err := p.Propagate(new(Workspace), ForwardPass{}, x, y); err != nil {
				t.Fatal(err)
			}
		}
		estimate, ok := q.QuantizationError(nil, x, rows)
		if !ok {
			t.Fatal("no estimate")
		}
		sum := 0.0
		for i := range got.Data {
			d := float64(got.Data[i]) - float64(want.Data[i])
			sum += d * d
		}
		worst = max(worst, math.Sqrt(sum/float64(len(got.Data)))/estimate)
	}
	t.Logf("the largest error is %.3f times its estimate", worst)
	if worst > 1.1 {
		t.Errorf("an error is %.3f times its estimate", worst)
	}
}

// Products of any width, with rows and parameters of any size, are finite where those in float32 are,
// have the same value in rows of equal elements, and have the bits of float32 in rows with NaN or
// infinities. A row has the same bits alone.
func TestQuantizedRanges(t *testing.T) {
	products := 10_000
	if !longtest.Enabled() {
		products = 500
	}
	r := rand.New(rand.NewPCG(5, 6))
	for n := range products {
		k, cols, rows := 1+r.IntN(60), 1+r.IntN(40), 2+r.IntN(6)
		if n%25 == 0 {
			k += r.IntN(4 * groupColumns)
		}
		w := normal(r, cols, k, math.Exp2(float64(r.IntN(100)-60)))
		clear(kernel.Row(w, r.IntN(cols)))
		x := kernel.New(rows, k)
		for i := range rows {
			strangeRow(r, kernel.Row(x, i))
		}
		base := new(linearComponent)
		base.weights.m = w
		float, _ := NewProduct(base)
		q, ok := float.Quantized(precisions[n%2])
		if !ok {
			continue // parameters too small
		}
		want, got, alone := kernel.New(rows, cols), kernel.New(rows, cols), kernel.New(1, cols)
		propagate := func(p *Product, in, out kernel.Matrix) {
			if _, err := p.Propagate(new(Workspace), ForwardPass{}, in, out); err != nil {
				t.Fatal(err)
			}
		}
		propagate(float, x, want)
		propagate(q, x, got)
		one := r.IntN(rows)
		propagate(q, kernel.Rows(x, one, 1), alone)
		sameBits(t, fmt.Sprint("product ", n, ": a row alone"), alone.Data, kernel.Row(got, one))
		for i := range rows {
			for j, v := range kernel.Row(want, i) {
				g := kernel.Row(got, i)[j]
				if finite := v-v == 0 && math.Abs(float64(v)) < 1e38; finite && g-g != 0 {
					t.Fatalf("product %d (k=%d, %v): element (%d, %d) is %v, in float32 %v", n, k, q.Precision(), i, j, g, v)
				}
			}
			if v := kernel.Row(x, i); slices.ContainsFunc(v, func(v float32) bool { return v-v != 0 }) {
				sameBits(t, fmt.Sprint("product ", n, ": a strange row"), kernel.Row(got, i), kernel.Row(want, i))
			}
		}
	}
}

// strangeRow fills a row with equal elements, with denormal, normal or very large ones, or with one that
// is not finite.
func strangeRow(r *rand.Rand, row []float32) {
	kind := r.IntN(7)
	scale := []float64{1, 1e-42, 1e-20, 1e37, 1, 1, 1e-3}[kind]
	for l := range row {
		row[l] = float32(r.NormFloat64() * scale)
		if kind == 4 {
			row[l] = row[0]
		}
	}
	if kind == 5 {
		row[r.IntN(len(row))] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32}[r.IntN(4)]
	}
}

// The text of a quantized product gives the same product.
func TestQuantizedText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, to := range precisions {
		_, q, _, _ := quantizedTDNN(t, r, to, 33, 17, func(p *Product) *Product { return p })
		text, err := DerivedText(q, func(Component) (string, error) { return "tdnn", nil })
		if err != nil {
			t.Fatal(err)
		}
		find := func(string) (Component, error) { return q.Base(), nil }
		c, err := ParseDerived(text, find)
		if err != nil {
			t.Fatal(err)
		}
		if c.(*Product).Precision() != to || c.Type() != q.Type() {
			t.Errorf("%s became %s", q.Type(), c.Type())
		}
		for _, wrong := range []string{"int4", "float32", ""} {
			if _, err := ParseDerived(strings.Replace(text, to.String(), wrong, 1), find); !errors.Is(err, errDerived) {
				t.Errorf("precision %q: %v", wrong, err)
			}
		}
	}
}

// Parameters that were not prepared become integers once a run, unless they change.
func TestQuantizedOnceARun(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, to := range precisions {
		_, q, pre, rows := quantizedTDNN(t, r, to, 33, 17, func(p *Product) *Product { return p })
		in, weights := normal(r, rows, 33, 1), q.blocks[0].w
		var w Workspace
		propagate := func() *kernel.QuantizedWeights {
			if _, err := Propagate(q, &w, ForwardPass{Pre: pre}, in, kernel.New(20, 17)); err != nil {
				t.Fatal(err)
			}
			return w.integersOf(weights, q.form())[0]
		}
		first := propagate()
		if propagate() == first {
			t.Errorf("%v: integers are kept without a run", to)
		}
		w.Begin()
		first = propagate()
		if propagate() != first {
			t.Errorf("%v: quantized twice in a run", to)
		}
		weights.changed()
		second := propagate()
		if second == first {
			t.Errorf("%v: integers of parameters that have changed", to)
		}
		w.Begin()
		if propagate() == second {
			t.Errorf("%v: integers of another run", to)
		}
	}
}
