package kernel

import (
	"fmt"
	"math"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// levelsOf returns the codes of the rows of m, their scales and their offsets, as the documentation
// says.
func levelsOf(p Precision, m Matrix) (codes [][]int64, scale, offset []float32) {
	for i := range m.Rows {
		row := Row(m, i)
		low, high := row[0], row[0]
		for _, v := range row {
			low, high = min(low, v), max(high, v)
		}
		spread := high - low
		s := spread / float32(p.Levels())
		c := make([]int64, len(row))
		for l, v := range row {
			if spread > 0 {
				perUnit := float32(p.Levels()) / spread
				c[l] = int64(math.RoundToEven(float64(float32(float32(v-low) * perUnit))))
			}
			if p == Int16 {
				c[l] -= 4096
			}
		}
		o := low
		if p == Int16 {
			o = float32(s*4096) + low
		}
		codes, scale, offset = append(codes, c), append(scale, s), append(offset, o)
	}
	return codes, scale, offset
}

// quantizedReference computes a quantized product in int64s.
func quantizedReference(p Precision, xs, ws []Matrix, ep Epilogue, y Matrix) Matrix {
	// By term: the levels of each row of x and of w, with their scales.
	type levels struct {
		x              [][]int64
		xScale, offset []float32
		w              [][]int32
		scale          []float64
		total          []int64
	}
	parts := make([]levels, len(xs))
	for s := range parts {
		q := &parts[s]
		if xs[s].Cols > 0 {
			q.x, q.xScale, q.offset = levelsOf(p, xs[s])
		}
		for j := range y.Cols {
			w := make([]int32, ws[s].Cols)
			scale, total, _ := quantizeColumn(p, w, Row(ws[s], j))
			q.w, q.scale, q.total = append(q.w, w), append(q.scale, scale), append(q.total, total)
		}
	}
	out := Clone(y)
	for i := range y.Rows {
		for j := range y.Cols {
			var v float32
			for s := range xs {
				var t float32
				if q := &parts[s]; xs[s].Cols > 0 {
					var sum int64
					for l, c := range q.w[j] {
						sum += int64(c) * q.x[i][l]
					}
					t = float32(float32(float32(sum)*float32(q.scale[j])) * q.xScale[i])
					t += float32(q.offset[i] * float32(float64(q.total[j])*q.scale[j]))
				}
				switch {
				case s > 0:
					v = t + v
				case ep.Accumulate:
					v = t + Row(y, i)[j]
				default:
					v = t
				}
			}
			if ep.Bias != nil {
				v += ep.Bias[j]
			}
			if ep.ReLU && v < 0 {
				v = 0
			}
			if ep.Scale != nil {
				v = float32(v*ep.Scale[j]) + ep.Offset[j]
			}
			if ep.Alpha != 0 {
				v = float32(ep.Alpha*Row(ep.Residual, i)[j]) + v
			}
			Row(out, i)[j] = v
		}
	}
	return out
}

func eachQuantSet(t *testing.T, f func(t *testing.T, set quantSet, p Precision)) {
	for _, set := range quantSets {
		for _, p := range []Precision{Int8, Int16} {
			t.Run(fmt.Sprintf("%s/%s", set, p), func(t *testing.T) { f(t, set, p) })
		}
	}
}

// quantized is newQuantizedWeights for weights that can be quantized.
func quantized(t testing.TB, set quantSet, p Precision, w Matrix) *QuantizedWeights {
	t.Helper()
	q, ok := newQuantizedWeights(set, p, w)
	if !ok {
		t.Fatal("the weights can't be quantized")
	}
	return q
}

// Every set of kernels gives the bits of the formula, for all shapes and epilogues.
func TestQuantizedProducts(t *testing.T) {
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		r := newRand()
		for n, s := range []struct{ m, n, k int }{
			{0, 3, 4}, {3, 0, 4}, {1, 1, 1}, {1, 48, 160}, {2, 100, 33}, {3, 17, 15}, {4, 16, 16}, {5, 8, 100}, {6, 31, 64}, {7, 33, 5},
			{8, 49, 65}, {9, 7, 129}, {13, 64, 47}, {31, 80, 7}, {40, 24, 192}, {2, 5, 1600}, {5, 6, 0}, {700, 9, 400},
		} {
			for terms := 1; terms <= 3; terms++ {
				if !longtest.Enabled() && terms != 1+n%3 {
					continue
				}
				xs, ws := make([]Matrix, terms), make([]Matrix, terms)
				segs := make([]QuantizedSegment, terms)
				for i := range xs {
					k := s.k + 3*i
					ws[i] = random(r, s.n, k, i)
					whole := random(r, 1+2*s.m, k, i)
					q := new(QuantizedRows)
					q.quantize(set, nil, p, whole.Cols, whole)
					segs[i] = QuantizedSegment{Rows: q, First: 1, Step: i, W: quantized(t, set, p, ws[i])}
					xs[i] = Matrix{Rows: s.m, Cols: k, Stride: i * whole.Stride}
					if s.m > 0 {
						xs[i].Data = whole.Data[whole.Stride:]
					}
				}
				ep := Epilogue{}
				if bits := n + 5*terms; bits > 6 {
					ep.Accumulate, ep.ReLU = bits&1 != 0, bits&2 != 0
					if bits&4 != 0 {
						ep.Bias = random(r, 1, s.n, 0).Data
					}
					if bits&8 != 0 {
						ep.Scale, ep.Offset = random(r, 1, s.n, 0).Data, random(r, 1, s.n, 0).Data
					}
				}
				y := random(r, s.m, s.n, 2)
				if n%3 == 0 {
					ep.Alpha, ep.Residual = 0.66, y
				}
				want := quantizedReference(p, xs, ws, ep, y)
				MulQuantized(segs, ep, y)
				gapsIntact(t, y)
				equalBits(t, fmt.Sprintf("%d×%d×%d, %d terms", s.m, s.n, s.k, terms), y, want)
			}
		}
	})
}

// A product may take some columns of the rows.
func TestQuantizedColumns(t *testing.T) {
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		r := newRand()
		x, w := random(r, 5, 70, 1), random(r, 20, 13, 0)
		var rows QuantizedRows
		rows.quantize(set, nil, p, x.Cols, x)
		got, want := New(5, 20), New(5, 20)
		MulQuantized([]QuantizedSegment{{Rows: &rows, Step: 1, Col: 9, W: quantized(t, set, p, w)}}, Epilogue{}, got)
		wide := New(20, 70)
		Copy(Cols(wide, 9, 13), w)
		MulQuantized([]QuantizedSegment{{Rows: &rows, Step: 1, W: quantized(t, set, p, wide)}}, Epilogue{}, want)
		equalBits(t, "columns 9 to 21", got, want)
	})
}

// Groups of columns have scales of their own: a product is the sum of those of the groups, each
// quantized as a matrix. NaN in a group marks the row.
func TestQuantizedGroups(t *testing.T) {
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		for _, c := range []struct{ k, group, gap int }{{70, 64, 1}, {70, 7, 1}, {128, 64, 1}, {128, 64, 0}, {192, 32, 0}, {200, 33, 0}, {5, 9, 1}, {3, 1, 1}} {
			r := newRand()
			x := random(r, 7, c.k, c.gap)
			Row(x, 2)[c.k-1] = nan
			Row(x, 4)[0] = inf
			var rows QuantizedRows
			rows.quantize(set, nil, p, c.group, x)
			var segs, apart []QuantizedSegment
			for col := 0; col < c.k; col += c.group {
				n := min(c.group, c.k-col)
				w := quantized(t, set, p, random(r, 20, n, 0))
				segs = append(segs, QuantizedSegment{Rows: &rows, Step: 1, Col: col, W: w})
				part := new(QuantizedRows)
				part.quantize(set, nil, p, n, Cols(x, col, n))
				apart = append(apart, QuantizedSegment{Rows: part, Step: 1, W: w})
			}
			got, want := New(7, 20), New(7, 20)
			MulQuantized(segs, Epilogue{}, got)
			MulQuantized(apart, Epilogue{}, want)
			what := fmt.Sprintf("%d columns in groups of %d", c.k, c.group)
			equalBits(t, what, got, want)
			if rows.Marked() != 2 || !rows.IsMarked(2) || !rows.IsMarked(4) || rows.IsMarked(3) {
				t.Errorf("%s: %d rows are marked", what, rows.Marked())
			}
			if c.k > c.group {
				mustPanic(t, what, func() {
					MulQuantized([]QuantizedSegment{{Rows: &rows, Step: 1, W: quantized(t, set, p, New(20, c.group+1))}}, Epilogue{}, got)
				})
			}
		}
	})
}

// What memory held before doesn't matter, nor what a row next to it holds: kernels read beyond the
// columns that they multiply.
func TestQuantizedMemoryIsReused(t *testing.T) {
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		r := newRand()
		for _, k := range []int{5, 11, 32, 50} {
			for _, before := range []Precision{Int8, Int16} {
				var rows QuantizedRows
				rows.quantize(set, nil, before, 100, random(r, 9, 100, 0))
				Fill(Matrix{Rows: 1, Cols: len(rows.memory), Stride: len(rows.memory), Data: rows.memory}, math.Float32frombits(0x7fff7fff))
				x, w := random(r, 4, k, 0), random(r, 20, k-1, 0)
				Row(x, 2)[0] = math.Float32frombits(0x7fc07fff)
				rows.quantize(set, nil, p, k, x)
				got, want := New(4, 20), New(4, 20)
				MulQuantized([]QuantizedSegment{{Rows: &rows, Step: 1, Col: 1, W: quantized(t, set, p, w)}}, Epilogue{}, got)
				var fresh QuantizedRows
				fresh.quantize(quantGo, nil, p, k, x)
				MulQuantized([]QuantizedSegment{{Rows: &fresh, Step: 1, Col: 1, W: quantized(t, quantGo, p, w)}}, Epilogue{}, want)
				equalBits(t, fmt.Sprintf("%d columns after %v", k, before), got, want)
			}
		}
	})
}

// Codes and sums at their limits don't overflow: all numbers of the same sign, and as large as can
// be.
func TestQuantizedExtremes(t *testing.T) {
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		for _, k := range []int{1, 4, 700, 1300, 66_000} {
			if k > 1300 && p == Int16 {
				continue
			}
			x, w := New(2, k), New(3, k)
			for l := range k {
				x.Data[l], x.Data[k+l] = 3, float32(l%2)
				w.Data[l], w.Data[k+l], w.Data[2*k+l] = 1, -1, float32(1-2*(l%2))
			}
			x.Data[0] = -1
			var rows QuantizedRows
			rows.quantize(set, nil, p, x.Cols, x)
			y := New(2, 3)
			MulQuantized([]QuantizedSegment{{Rows: &rows, Step: 1, W: quantized(t, set, p, w)}}, Epilogue{}, y)
			want := quantizedReference(p, []Matrix{x}, []Matrix{w}, Epilogue{}, y)
			equalBits(t, fmt.Sprint("k = ", k), y, want)
			for i, v := range y.Data {
				var exact float64
				for l := range k {
					exact += float64(x.Data[i/3*k+l]) * float64(w.Data[i%3*k+l])
				}
				if math.Abs(float64(v)-exact) > 0.02*float64(k)+1 {
					t.Errorf("k = %d: element %d is %v, want about %v", k, i, v, exact)
				}
			}
		}
	})
}

// Rows that are not finite are marked, and give NaN. They leave other rows alone.
func TestMarkedRows(t *testing.T) {
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		for _, k := range []int{1, 5, 8, 17, 64, 100} {
			r := newRand()
			x, w := random(r, 12, k, 3), random(r, 20, k, 0)
			clean := Clone(x)
			marked := map[int]bool{}
			for i, v := range []float32{nan, inf, -inf} {
				Row(x, 1+3*i)[(k-1)*i/2] = v
				marked[1+3*i] = true
			}
			if k > 1 {
				Row(x, 11)[0], Row(x, 11)[k-1] = math.MaxFloat32, -math.MaxFloat32
				marked[11] = true
				for l := range k {
					Row(x, 9)[l] = 0
				}
				Row(x, 9)[k-1] = 1e-45
				marked[9] = true
			}
			var rows, cleanRows QuantizedRows
			rows.quantize(set, nil, p, x.Cols, x)
			cleanRows.quantize(set, nil, p, clean.Cols, clean)
			if rows.Marked() != len(marked) {
				t.Errorf("k = %d: %d rows are marked, not %d", k, rows.Marked(), len(marked))
			}
			y, want := New(12, 20), New(12, 20)
			q := quantized(t, set, p, w)
			MulQuantized([]QuantizedSegment{{Rows: &rows, Step: 1, W: q}}, Epilogue{}, y)
			MulQuantized([]QuantizedSegment{{Rows: &cleanRows, Step: 1, W: q}}, Epilogue{}, want)
			for i := range 12 {
				if rows.IsMarked(i) != marked[i] {
					t.Errorf("k = %d: row %d: marked %t", k, i, rows.IsMarked(i))
				}
				for j, v := range Row(y, i) {
					if marked[i] != (v != v) || !marked[i] && !sameBits(v, Row(want, i)[j]) {
						t.Fatalf("k = %d: element (%d, %d) is %v", k, i, j, v)
					}
				}
			}
		}
	})
}

// Rows whose range is 2⁶³ or more are marked, and weights that add up to as much are refused, so no
// product overflows before it adds up to less.
func TestWideRanges(t *testing.T) {
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		for _, k := range []int{2, 20, 65} {
			x := New(3, k)
			Row(x, 0)[k-1], Row(x, 1)[k-1], Row(x, 2)[0] = 1<<63, math.Nextafter32(1<<63, 0), -1<<64
			var rows QuantizedRows
			rows.quantize(set, nil, p, k, x)
			if !rows.IsMarked(0) || rows.IsMarked(1) || !rows.IsMarked(2) {
				t.Errorf("k = %d: marked %t, %t, %t", k, rows.IsMarked(0), rows.IsMarked(1), rows.IsMarked(2))
			}
		}
		w := New(1, 2)
		Fill(w, 1<<62)
		if _, ok := newQuantizedWeights(set, p, w); ok {
			t.Error("weights that add up to 2⁶³ are quantized")
		}
	})
}

// A row has the same bits alone as in company.
func TestQuantizedRowsAlone(t *testing.T) {
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		r := newRand()
		x, w := random(r, 29, 75, 1), random(r, 70, 75, 0)
		q := quantized(t, set, p, w)
		var rows QuantizedRows
		rows.quantize(set, nil, p, x.Cols, x)
		y := New(29, 70)
		MulQuantized([]QuantizedSegment{{Rows: &rows, Step: 1, W: q}}, Epilogue{ReLU: true}, y)
		for i := range 29 {
			var one QuantizedRows
			one.quantize(set, nil, p, Rows(x, i, 1).Cols, Rows(x, i, 1))
			alone := New(1, 70)
			MulQuantized([]QuantizedSegment{{Rows: &one, W: q}}, Epilogue{ReLU: true}, alone)
			equalBits(t, fmt.Sprint("row ", i), alone, Rows(y, i, 1))
		}
	})
}

func ones(rows, cols int) Matrix {
	m := New(rows, cols)
	Fill(m, 1)
	return m
}

func TestNotQuantizable(t *testing.T) {
	for _, v := range []float32{nan, inf, -inf, 1e-40, math.MaxFloat32} {
		w := New(3, 4)
		w.Data[5] = v
		if _, ok := NewQuantizedWeights(Int8, w); ok {
			t.Errorf("weights with %v are quantized", v)
		}
	}
	if _, ok := NewQuantizedWeights(Int16, ones(1, 1500)); ok {
		t.Error("a sum of 1500 large words is quantized")
	}
	if _, ok := NewQuantizedWeights(Int8, New(3, 4)); !ok {
		t.Error("zeros are not quantized")
	}
}

// A product that is repeated allocates nothing.
func TestQuantizedAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector drops pooled memory")
	}
	r := newRand()
	x, w, y := random(r, 20, 64, 0), random(r, 50, 64, 0), New(20, 50)
	q := quantized(t, currentQuantSet(), Int8, w)
	var rows QuantizedRows
	segs := make([]QuantizedSegment, 2)
	f := func() {
		rows.Set(Int8, x)
		segs[0] = QuantizedSegment{Rows: &rows, Step: 1, W: q}
		segs[1] = segs[0]
		MulQuantized(segs, Epilogue{}, y)
	}
	f()
	if n := testing.AllocsPerRun(20, f); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkQuantized(b *testing.B) {
	for _, s := range []struct{ m, n, k int }{{150, 1536, 160}, {206, 768, 96}, {206, 96, 768}, {70, 6008, 256}, {1, 512, 512}} {
		r := newRand()
		x, w, y := random(r, s.m, s.k, 0), random(r, s.n, s.k, 0), New(s.m, s.n)
		bias := random(r, 1, s.n, 0).Data
		ep := Epilogue{Bias: bias, ReLU: true, Scale: bias, Offset: bias}
		packed := NewWeights(w)
		flops := float64(2 * s.m * s.n * s.k)
		report := func(b *testing.B) {
			b.ReportMetric(flops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		}
		b.Run(fmt.Sprintf("%dx%dx%d/float32", s.m, s.n, s.k), func(b *testing.B) {
			for range b.N {
				packed.Mul(x, ep, y)
			}
			report(b)
		})
		for _, set := range quantSets[1:] {
			for _, p := range []Precision{Int8, Int16} {
				q := quantized(b, set, p, w)
				var rows QuantizedRows
				segs := make([]QuantizedSegment, 1)
				b.Run(fmt.Sprintf("%dx%dx%d/%s/%s", s.m, s.n, s.k, set, p), func(b *testing.B) {
					for range b.N {
						rows.quantize(set, nil, p, x.Cols, x)
						segs[0] = QuantizedSegment{Rows: &rows, Step: 1, W: q}
						MulQuantized(segs, ep, y)
					}
					report(b)
				})
			}
		}
	}
}

// Tiles are as high as kernels are, cover all rows, and are of almost one height.
func TestNextTiles(t *testing.T) {
	for _, highest := range []int{4, 6, 8} {
		for rows := 1; rows < 200; rows++ {
			lowest, left, calls := highest, rows, 0
			for left > 0 {
				height, tiles := nextTiles(left, highest)
				if left -= height * tiles; height < 1 || height > highest || height == 7 || tiles < 1 || left < 0 {
					t.Fatalf("%d rows, at most %d: %d tiles of %d leave %d", rows, highest, tiles, height, left)
				}
				lowest = min(lowest, height)
				calls++
			}
			if calls > 5 || rows > highest && lowest < highest/2 {
				t.Errorf("%d rows, at most %d: %d calls, the lowest has %d rows", rows, highest, calls, lowest)
			}
		}
	}
}

// Only kernels that the processor can execute are chosen. The processor of the third list of sets
// (AMD's Zen 4) has VNNI with registers of AVX-512 only.
func TestChooseQuantSet(t *testing.T) {
	avx2, avxVNNI := []quantSet{quantGo, quantAVX2}, []quantSet{quantGo, quantAVX2, quantAVXVNNI}
	zen4 := []quantSet{quantGo, quantAVX2, quantAVX512}
	all := []quantSet{quantGo, quantAVX2, quantAVXVNNI, quantAVX512}
	neon, dot := []quantSet{quantGo, quantNEON}, []quantSet{quantGo, quantNEON, quantDot}
	for _, c := range []struct {
		supported []quantSet
		set       kernelSet
		name      string
		want      quantSet
	}{
		{avx2, avx2Set, "", quantAVX2},
		{avx2, avx2Set, "avxvnni", quantAVX2},
		{avx2, avx512Set, "", quantAVX2},
		{avxVNNI, avx2Set, "", quantAVXVNNI},
		{avxVNNI, avx2Set, "avx2", quantAVX2},
		{avxVNNI, goSet, "go", quantGo},
		{zen4, avx2Set, "avx2", quantAVX2},
		{zen4, avx2Set, "avxvnni", quantAVX2},
		{zen4, avx2Set, "", quantAVX2},
		{zen4, avx512Set, "", quantAVX512},
		{zen4, blasSet, "blas", quantGo},
		{all, avx2Set, "avx2", quantAVX2},
		{all, avx2Set, "avxvnni", quantAVXVNNI},
		{all, avx512Set, "avx512", quantAVX512},
		{neon, neonSet, "", quantNEON},
		{neon, neonSet, "neondot", quantNEON},
		{dot, neonSet, "", quantDot},
		{dot, neonSet, "neon", quantNEON},
		{dot, goSet, "go", quantGo},
	} {
		if got := chooseQuantSet(c.supported, c.set, c.name); got != c.want {
			t.Errorf("%v, %v, %q: %v, want %v", c.supported, c.set, c.name, got, c.want)
		}
	}
}
