package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// code returns a code as a number, from how the set holds it.
func (q *QuantizedRows) code(i, l int) int {
	if q.set.words(q.precision) {
		return int(*(*int16)(unsafe.Pointer(&q.codes[i*q.stride+2*l])))
	}
	c := q.codes[i*q.stride+l]
	if q.set == quantDot {
		c ^= 1 << 7
	}
	return int(c)
}

// Rows with one scale are within half a step of what they were, zeros have no error, and all sets give
// the same codes.
func TestSetTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, shape := range [][2]int{{1, 1}, {3, 2}, {5, 17}, {4, 64}, {7, 203}} {
		for name, shift := range map[string]float64{"around zero": 0, "above": 7, "below": -7, "no negative": math.Inf(-1), "no positive": math.Inf(1)} {
			m := New(shape[0], shape[1])
			for i := range m.Data {
				switch v := r.NormFloat64(); {
				case r.IntN(4) == 0:
				case math.IsInf(shift, 0):
					m.Data[i] = float32(math.Copysign(v, -shift))
				default:
					m.Data[i] = float32(v + shift)
				}
			}
			eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
				var q, plain QuantizedRows
				q.together(set, nil, p, m)
				plain.together(quantGo, nil, p, m)
				scale, offset := float64(q.params[0]), float64(q.params[1])
				for i := range m.Rows {
					for l, v := range Row(m, i) {
						c := q.code(i, l)
						if other := plain.code(i, l); c != other {
							t.Fatalf("%s %v: row %d column %d is %d, in Go %d", name, shape, i, l, c, other)
						}
						value := float64(scale*float64(c)) + offset
						if diff := math.Abs(value - float64(v)); diff > scale*0.501 || v == 0 && diff > scale*1e-3 {
							t.Fatalf("%s %v: %v has code %d, which is %v with steps of %v", name, shape, v, c, value, scale)
						}
					}
				}
				if q.marked > 0 || q.params[2*m.Rows-1] != plain.params[1] || q.params[0] != plain.params[0] {
					t.Fatalf("%s %v: %d rows marked; parameters %v, in Go %v", name, shape, q.marked, q.params, plain.params)
				}
			})
		}
	}
}

// One row that can't be quantized marks all. Rows of zeros can.
func TestSetTogetherMarks(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32, 1e-44, 0, 1} {
		for _, cols := range []int{3, 40} {
			eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
				m := New(4, cols)
				Row(m, 2)[1] = float32(v)
				var q QuantizedRows
				q.together(set, nil, p, m)
				want := 4
				if v == 0 || v == 1 {
					want = 0
				}
				if q.Marked() != want || q.IsMarked(0) != (want > 0) {
					t.Errorf("%v among zeros in %d columns: %d rows are marked, want %d", v, cols, q.Marked(), want)
				}
			})
		}
	}
}

// Products of patches are those of the same rows, and padding adds nothing.
func TestPatches(t *testing.T) {
	const lines, cols, run, patches = 3, 41, 9, 7
	r := rand.New(rand.NewPCG(5, 6))
	m, w := New(lines, cols), New(21, 3*run)
	for _, a := range []Matrix{m, w} {
		for i := range a.Data {
			a.Data[i] = float32(r.NormFloat64())
		}
	}
	eachQuantSet(t, func(t *testing.T, set quantSet, p Precision) {
		var q, rows QuantizedRows
		q.together(set, nil, p, m)
		rows.SetPatches(&q, patches, 3*run)
		x := New(patches, 3*run)
		for i := range patches {
			rows.SetRun(i, 0, &q, i%lines, 4*i, run)
			copy(Row(x, i), Row(m, i%lines)[4*i:][:run])
			rows.SetZeros(i, run, run)
			rows.SetRun(i, 2*run, &q, (i+1)%lines, 2*i, run)
			copy(Row(x, i)[2*run:], Row(m, (i+1)%lines)[2*i:][:run])
		}
		y := New(patches, w.Rows)
		qw := quantized(t, set, p, w)
		MulQuantized([]QuantizedSegment{{Rows: &rows, Step: 1, W: qw}}, Epilogue{}, y)
		scale, offset := q.params[0], q.params[1]
		for j := range w.Rows {
			codes := make([]int32, w.Cols)
			step, total, _ := quantizeColumn(p, codes, Row(w, j))
			for i := range patches {
				sum := int64(0)
				for l, c := range codes {
					v := int64(0)
					switch {
					case l < run:
						v = int64(q.code(i%lines, 4*i+l))
					case l < 2*run:
						v = -int64(math.RoundToEven(float64(offset / scale)))
					default:
						v = int64(q.code((i+1)%lines, 2*i+l-2*run))
					}
					sum += v * int64(c)
				}
				want := float32(float32(float32(sum)*float32(step)) * scale)
				want += float32(offset * float32(float64(total)*step))
				if got := Row(y, i)[j]; got != want {
					t.Fatalf("element %d,%d is %v, want %v", i, j, got, want)
				}
			}
		}
	})
}

func BenchmarkSetTogether(b *testing.B) {
	for _, cols := range []int{56 * 64, 14 * 256} {
		m := New(14, cols)
		for i := range m.Data {
			m.Data[i] = float32(i % 251)
		}
		b.Run(fmt.Sprintf("%dx%d", m.Rows, m.Cols), func(b *testing.B) {
			var q QuantizedRows
			for b.Loop() {
				(*Threads)(nil).SetTogether(&q, Int8, m)
			}
			b.ReportMetric(float64(len(m.Data))*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "floats/ns")
		})
	}
}

// Rounding to even is that of package math, for zeros and halves of both signs, and what has no fraction.
func TestRound(t *testing.T) {
	var x []float32
	for _, v := range []float32{0, 0.25, 0.5, 0.75, 1.5, 2.5, 8388607.5, 8388609, 1e10, math.MaxFloat32, float32(math.Inf(1)), 0.49999997, 1e-40} {
		x = append(x, v, -v)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		x = append(x, float32(r.NormFloat64()*100))
	}
	dst := make([]float32, len(x))
	Float32Map("round")(dst, x, nil)
	for i, v := range x {
		if want := float32(math.RoundToEven(float64(v))); math.Float32bits(dst[i]) != math.Float32bits(want) {
			t.Errorf("%v is rounded to %v", v, dst[i])
		}
	}
}
