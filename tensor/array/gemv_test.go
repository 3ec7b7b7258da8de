package array_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/tensor/array"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"
)

// otherImplementation is a BLAS that a program registers.
type otherImplementation struct{ gonum.Implementation }

// Long sums of float32s don't outgrow their terms, in any layout, and the bits of an
// element do not depend on the number of rows. NumPy's error for these vectors is 5e-4.
func TestLongSums(t *testing.T) {
	const m, k = 5, 1000000
	var ws array.Workspace
	a, x := array.Full(array.Float32, 0.1, m, k), array.Full(array.Float32, 0.1, k)
	columns := array.Full(array.Float32, 0.1, k, m).Transpose(1, 0)
	check := func(name string, y *array.Array) {
		t.Helper()
		for i, v := range y.Floats() {
			if e := math.Abs(v/(k*0.01) - 1); !(e < 5e-4) || v != y.Float(0) {
				t.Errorf("%s: element %d has the relative error %.2g", name, i, e)
			}
		}
	}
	for rows := 1; rows <= m; rows++ {
		for name, a := range map[string]*array.Array{"rows": a, "columns": columns} {
			b, y, z := new(array.Array), array.New(array.Float32, rows), array.New(array.Float32, rows, 1)
			a.RangeTo(b, array.Range{Step: 1, Count: rows})
			if err := errors.Join(ws.Gemv(1, b, x, 0, y, false), ws.MatMul(z, b, x.Reshape(k, 1))); err != nil {
				t.Fatal(err)
			}
			check("Gemv of "+name, y)
			check("MatMul of "+name, z)
			if err := ws.Gemv(-1, b, x, 2, y, false); err != nil {
				t.Fatal(err)
			}
			check("Gemv to a vector of "+name, y)
		}
	}
}

// TestGemvGer computes products with vectors of all layouts, with loops and with another BLAS.
// Gonum's BLAS, whose bits depend on the processor, must not be called.
func TestGemvGer(t *testing.T) {
	use := func(float32s blas.Float32, float64s blas.Float64) {
		blas32.Use(float32s)
		blas64.Use(float64s)
	}
	defer use(gonum.Implementation{}, gonum.Implementation{})
	fill := func(a *array.Array, seed int) *array.Array {
		for i := range a.Len() {
			a.SetFloat(i, float64((i*7+seed)%23)/7-1)
		}
		return a
	}
	vector := func(dtype array.DType, n, step, seed int) *array.Array {
		v := array.New(dtype, n*step)
		v.RangeTo(v, array.Range{Step: step, Count: n})
		return fill(v, seed)
	}
	var ws array.Workspace
	for _, dtype := range []array.DType{array.Float32, array.Float64} {
		for m := range 10 {
			for _, n := range []int{0, 1, 3, 4, 9} {
				for _, step := range []int{1, 2} {
					for _, transposed := range []bool{false, true} {
						a := fill(array.New(dtype, m, n), 1)
						if transposed {
							a = fill(array.New(dtype, n, m), 1).Transpose(1, 0)
						}
						x, y := vector(dtype, n, step, 2), vector(dtype, m, step, 3)
						for _, beta := range []float64{0, 1, -0.5} {
							var results [3]*array.Array
							for k := range results {
								use(gonum.Implementation{}, gonum.Implementation{})
								if k == 2 {
									use(otherImplementation{}, otherImplementation{})
								}
								results[k] = y.Clone()
								if err := ws.Gemv(1.5, a, x, beta, results[k], k > 0); err != nil {
									t.Fatal(err)
								}
							}
							for i := range m {
								want := beta * y.Float(i)
								for j := range n {
									want += 1.5 * a.Float(i*n+j) * x.Float(j)
								}
								for k, r := range results {
									if !(math.Abs(r.Float(i)-want) < 1e-5) || k == 1 && r.Float(i) != results[0].Float(i) {
										t.Fatalf("%v %d×%d, step %d, transposed %t, beta %v, %d: element %d is %v, want %v", dtype, m, n, step, transposed, beta, k, i, r.Float(i), want)
									}
								}
							}
						}
						c := a.Clone()
						if err := ws.Ger(1.5, y, x, c, true); err != nil {
							t.Fatal(err)
						}
						for i := range c.Len() {
							if want := a.Float(i) + 1.5*y.Float(i/n)*x.Float(i%n); !(math.Abs(c.Float(i)-want) < 1e-5) {
								t.Fatalf("%v %d×%d, step %d: element %d of the outer product is %v, want %v", dtype, m, n, step, i, c.Float(i), want)
							}
						}
					}
				}
			}
		}
	}
}

// TestGemvColumns: columns that are added in strips give the bits of those that are added element by element.
func TestGemvColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const m, n = 5000, 7
	a, x := randomArray(r, array.Float32, n, m).Transpose(1, 0), randomArray(r, array.Float32, n)
	dense, column := randomArray(r, array.Float32, m), array.New(array.Float32, 2*m)
	column.RangeTo(column, array.Range{Step: 2, Count: m})
	array.CopyTo(column, dense)
	var ws array.Workspace
	for _, y := range []*array.Array{dense, column} {
		if err := ws.Gemv(1.5, a, x, -0.5, y, false); err != nil {
			t.Fatal(err)
		}
	}
	for i := range m {
		if dense.Float(i) != column.Float(i) {
			t.Fatalf("element %d is %v, want %v", i, dense.Float(i), column.Float(i))
		}
	}
}

// TestGemvAllocates: what a product allocates does not depend on the number of rows.
func TestGemvAllocates(t *testing.T) {
	var ws array.Workspace
	count := func(rows int) float64 {
		a, x, y := array.New(array.Float32, rows, 40), array.New(array.Float32, 40), array.New(array.Float32, rows)
		return testing.AllocsPerRun(20, func() {
			if err := ws.Gemv(1, a, x, 0, y, false); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := count(4), count(400); many > few {
		t.Errorf("%v allocations for 4 rows, %v for 400", few, many)
	}
}
