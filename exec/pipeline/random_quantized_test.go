package pipeline_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/kerneltest"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// precisions are queries by which products become integers. With byRequest, the precision of a product
// depends on what is requested.
var precisions = [...]struct {
	name      string
	query     optdb.Query
	byRequest bool
}{
	{"+int8", fastRun.Including("int8"), false},
	{"+int16", fastRun.Including("int16"), false},
	{"+int8 +int16", fastRun.Including("int8", "int16"), false},
	{"+int8 error=0.03", fastRun.Including("int8").Excluding("bound_quantization_error").Set("limit_quantization_error", "error", "0.03"), true},
}

// quantizing returns the optimizers of precisions.
func quantizing(t *testing.T) (list [len(precisions)]*optdb.Optimizer) {
	t.Helper()
	db := passes.Default()
	for i, p := range precisions {
		list[i] = build(t, db, p.query)
	}
	return list
}

// TestQuantized computes wide random networks in integers. A row is what it is alone. If frames are
// not finite, numbers are NaN or infinite where they are in float32.
func TestQuantized(t *testing.T) {
	fast, opts := build(t, passes.Default(), fastRun), quantizing(t)
	var errs [4][]float64
	for i := range uint64(cases()) {
		seed := *firstSeed + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c, in := newWide(t, seed)
			all := only(c.Request, func(index.Index) bool { return true })
			exact := planned(t, c, fast, all)
			strange := withStrangeRow(in, seed)
			want, wantStrange := rowsBy(t, c, exact, in), rowsBy(t, c, exact, strange)
			for k, p := range precisions {
				opt := opts[k]
				plan := planned(t, c, opt, all)
				if products(plan) == 0 {
					continue
				}
				got := rowsBy(t, c, plan, in)
				errs[k] = append(errs[k], relativeError(got, want))
				if at := firstDifference(rowsBy(t, c, plan, strange), wantStrange, alike); at != "" {
					t.Errorf("%s, %s: with a strange frame %s, in float32\n%s", c.Family, p.name, at, c.Config)
				}
				if p.byRequest || c.ordersByRows() {
					continue
				}
				for n := range int32(5) {
					one := only(c.Request, func(ix index.Index) bool { return ix.N == n })
					if slices.ContainsFunc(one.Outputs, func(s computation.IoSpecification) bool { return len(s.Indexes) == 0 }) {
						continue
					}
					if at := firstDifference(outputRows(t, c, opt, one, rowsOf(in, c.Request, one)), got, sameBits); at != "" {
						t.Errorf("%s, %s: alone %s, among others\n%s", c.Family, p.name, at, c.Config)
						break
					}
				}
			}
		})
	}
	for k, p := range precisions {
		e := errs[k]
		slices.Sort(e)
		if n := len(e); n > 0 {
			t.Logf("%s: %d networks, errors: median %.2g, 90 %% %.2g, 99 %% %.2g, max %.2g", p.name, n, e[n/2], e[n*9/10], e[n*99/100], e[n-1])
		}
		if len(e) < cases()/4 {
			t.Errorf("%s: only %d of %d networks have products in integers", p.name, len(e), cases())
		}
	}
}

// TestQuantizedBits computes random networks in integers with every set of kernels, and expects the
// same bits.
func TestQuantizedBits(t *testing.T) {
	cases, seed := cases(), *firstSeed
	file := os.Getenv("NNETTEST_BITS")
	if file != "" {
		if _, err := fmt.Sscan(os.Getenv("NNETTEST_CASES"), &cases, &seed); err != nil {
			t.Fatal(err)
		}
	}
	var sums kerneltest.Checksums
	opts := quantizing(t)
	for i := range uint64(cases) {
		c, in := newWide(t, seed+i)
		all := only(c.Request, func(index.Index) bool { return true })
		for _, in := range []pipeline.Values{in, withStrangeRow(in, seed+i)} {
			for k, p := range precisions {
				rows := outputRows(t, c, opts[k], all, in)
				for _, ix := range slices.SortedFunc(maps.Keys(rows), index.Compare) {
					sums.Float32s(fmt.Sprintf("seed=%d:%s", seed+i, strings.ReplaceAll(p.name, " ", "_")), rows[ix]...)
				}
			}
		}
	}
	if file != "" {
		sums.Golden(t, file, "in integers", false)
		return
	}
	file = filepath.Join(t.TempDir(), "bits.txt")
	sums.Golden(t, file, "in integers", true)
	t.Setenv("NNETTEST_BITS", file)
	t.Setenv("NNETTEST_CASES", fmt.Sprint(cases, seed))
	kerneltest.EachSet(t, t.Name())
}

// newWide returns a wide network in test mode, and inputs.
func newWide(t *testing.T, seed uint64) (*Case, pipeline.Values) {
	t.Helper()
	c, err := NewWide(seed, 2+int(seed/uint64(len(families)))%4)
	if err != nil {
		t.Fatal(err)
	}
	if err := pipeline.Calibrate(t.Context(), c.Net, c.Request, seed); err != nil {
		t.Fatal(err)
	}
	c.Net.SetTestMode(true)
	in, err := pipeline.RandomValues(c.Net, c.Request, seed)
	if err != nil {
		t.Fatal(err)
	}
	in.OutputDerivs = nil
	return c, in
}

// withStrangeRow returns inputs of which a row has an element that is not finite.
func withStrangeRow(in pipeline.Values, seed uint64) (strange pipeline.Values) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	for _, m := range in.Inputs {
		strange.Inputs = append(strange.Inputs, pipeline.Named{Name: m.Name, Matrix: kernel.Clone(m.Matrix)})
	}
	m := strange.Inputs[rnd.IntN(len(strange.Inputs))].Matrix
	kernel.Row(m, rnd.IntN(m.Rows))[rnd.IntN(m.Cols)] = float32([...]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[rnd.IntN(3)])
	return strange
}

// alike reports whether two numbers are both finite, both NaN or the same infinity.
func alike(a, b float32) bool {
	return a-a == 0 && b-b == 0 || a != a && b != b || a == b
}

// products returns the number of products in integers.
func products(plan *pipeline.Plan) (n int) {
	for _, c := range plan.Optimized.Derived {
		if p, ok := c.(*component.Product); ok && p.Precision() != kernel.Float32 {
			n++
		}
	}
	return n
}

// relativeError returns the norm of the difference of all rows, relative to that of want.
func relativeError(got, want map[index.Index][]float32) float64 {
	d, norm := 0.0, 0.0
	for ix, w := range want {
		x, y := distance(w, got[ix])
		d, norm = d+x*x, norm+y*y
	}
	if norm == 0 {
		return 0
	}
	return math.Sqrt(d / norm)
}

// firstDifference says where rows are not like those that are wanted. It returns "" if they all are.
func firstDifference(got, want map[index.Index][]float32, like func(a, b float32) bool) string {
	for _, ix := range slices.SortedFunc(maps.Keys(got), index.Compare) {
		for k, v := range got[ix] {
			if w := want[ix]; len(w) != len(got[ix]) || !like(v, w[k]) {
				return fmt.Sprintf("row %v is\n%v, and\n%v", ix, got[ix], w)
			}
		}
	}
	return ""
}

// sameBits reports whether two numbers have the same bits, or are NaN.
func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}
