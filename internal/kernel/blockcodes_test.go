package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomCoding returns codes and what they mean.
func randomCoding(r *rand.Rand, bits, block, rows, cols int, oneZero bool) (BlockCoding, Matrix) {
	blocks := (cols + block - 1) / block
	c := BlockCoding{Rows: rows, Cols: cols, Bits: bits, Block: block, Codes: make([]byte, rows*blocks*block*bits/8+1)[1:]}
	for i := range c.Codes {
		c.Codes[i] = byte(r.Uint32())
	}
	for range rows * blocks {
		c.Scales = append(c.Scales, float32(r.NormFloat64()))
		c.Zeros = append(c.Zeros, float32(r.IntN(4*(1<<bits)))/4)
	}
	if oneZero {
		c.Zeros = c.Zeros[:1]
	}
	w := Matrix{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
	for i := range w.Data {
		row, l := i/cols, i%cols
		bit := (row*blocks*block + l) * bits
		code := c.Codes[bit/8] >> (bit % 8) & (1<<bits - 1)
		at := row*blocks + l/block
		w.Data[i] = float32((float32(code) - c.Zeros[at%len(c.Zeros)]) * c.Scales[at])
	}
	return c, w
}

// TestBlockWeights: products with codes have the bits of those with what they mean, with every set and any
// number of threads.
func TestBlockWeights(t *testing.T) {
	r := newRand()
	shapes := []struct{ rows, cols, steps, block int }{
		{1, 65, 32, 32}, {1, 200, 96, 16}, {1, 130, 700, 64}, {1, 64, 16500, 128}, {1, 40, 20, 32},
		{2, 70, 64, 16}, {7, 100, 330, 32}, {32, 144, 1100, 256}, {13, 48, 16400, 32}, {3, 33, 17, 16},
	}
	for i, s := range shapes {
		for _, bits := range []int{2, 4, 8} {
			c, w := randomCoding(r, bits, s.block, s.cols, s.steps, (i+bits/2)%2 == 0)
			x := random(r, s.rows, s.steps, 3)
			ep := Epilogue{ReLU: i%2 == 0, Bias: random(r, 1, s.cols, 0).Data, Threads: NewThreads(i % 3)}
			want := random(r, s.rows, s.cols, 2)
			mulWith(goSet, x, w, ep, want)
			for _, set := range ownSets() {
				t.Run(fmt.Sprintf("%v/%v/%d", set, s, bits), func(t *testing.T) {
					y := random(r, s.rows, s.cols, 2)
					newBlockWeights(set, ep.Threads, &c).Mul(x, ep, y)
					gapsIntact(t, y)
					equalBits(t, "product", y, want)
				})
			}
		}
	}
}

// intProduct is a product with rows that are rounded to integers in blocks, as documented.
func intProduct(x Matrix, c *BlockCoding, w Matrix, y Matrix) {
	blocks := (c.Cols + c.Block - 1) / c.Block
	for i := range y.Rows {
		for j := range y.Cols {
			total := float32(0)
			for b := range blocks {
				first, next := b*c.Block, min((b+1)*c.Block, c.Cols)
				largest, at := float32(0), j*blocks+b
				for _, v := range Row(x, i)[first:next] {
					largest = max(largest, max(v, -v))
				}
				products, sum := 0, 0
				for l := first; l < next; l++ {
					q := int(math.RoundToEven(float64(float32(Row(x, i)[l] * (127 / largest)))))
					bit := (j*blocks*c.Block + l) * c.Bits
					products += q * int(c.Codes[bit/8]>>(bit%8)&(1<<c.Bits-1))
					sum += q
				}
				if largest == 0 {
					continue
				}
				v := fma32(-c.Zeros[at%len(c.Zeros)], float32(sum), float32(products))
				total = fma32(v, float32(c.Scales[at]*(largest/127)), total)
			}
			Row(y, i)[j] = total
		}
	}
}

// TestBlockInts: products of rows that are rounded have the same bits with every set, and are near the others.
func TestBlockInts(t *testing.T) {
	r := newRand()
	for i, s := range []struct{ rows, cols, steps, block int }{{1, 65, 96, 32}, {4, 130, 700, 64}, {7, 20, 40, 16}, {9, 33, 1100, 256}} {
		for _, bits := range []int{2, 4} {
			c, w := randomCoding(r, bits, s.block, s.cols, s.steps, i%2 == 0)
			c.Ints = true
			x := random(r, s.rows, s.steps, 3)
			clear(Row(x, 0)[:16])
			want, floats := random(r, s.rows, s.cols, 2), random(r, s.rows, s.cols, 0)
			intProduct(x, &c, w, want)
			mulWith(goSet, x, w, Epilogue{}, floats)
			for i := range s.rows {
				for j, v := range Row(floats, i) {
					if d := math.Abs(float64(v - Row(want, i)[j])); d > math.Sqrt(float64(s.steps)) {
						t.Fatalf("element %d, %d is %v, far from %v", i, j, Row(want, i)[j], v)
					}
				}
			}
			for _, set := range ownSets() {
				y := random(r, s.rows, s.cols, 2)
				newBlockWeights(set, NewThreads(i%3), &c).Mul(x, Epilogue{Threads: NewThreads(i % 3)}, y)
				gapsIntact(t, y)
				equalBits(t, fmt.Sprint(set, s, bits), y, want)
			}
			x.Data[s.steps-1] = inf
			y := random(r, s.rows, s.cols, 0)
			newBlockWeights(bestSet, nil, &c).Mul(x, Epilogue{}, y)
			if y.Data[0] == y.Data[0] || s.rows > 1 && y.Data[s.cols] != y.Data[s.cols] {
				t.Fatalf("%v and %v of an infinity", y.Data[0], y.Data[s.cols])
			}
		}
	}
}

func BenchmarkBlockWeights(b *testing.B) { benchmarkBlocks(b) }

func BenchmarkBlockInts(b *testing.B) { benchmarkBlocks(b) }

func benchmarkBlocks(b *testing.B) {
	r := newRand()
	for _, s := range []struct{ rows, cols, steps, bits int }{{1, 32000, 768, 4}, {1, 768, 2048, 4}, {1, 32000, 768, 8}, {2, 2048, 768, 4}, {8, 2048, 768, 4}, {32, 2048, 768, 4}, {128, 2048, 768, 4}} {
		c, w := randomCoding(r, s.bits, 32, s.cols, s.steps, true)
		x, y := random(r, s.rows, s.steps, 0), random(r, s.rows, s.cols, 0)
		ops := float64(s.rows * s.cols * s.steps)
		report := func(b *testing.B) {
			b.ReportMetric(ops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "mul/ns")
		}
		for _, set := range ownSets()[1:] {
			c.Ints = strings.HasSuffix(b.Name(), "Ints")
			codes := newBlockWeights(set, nil, &c)
			b.Run(fmt.Sprintf("%v/%dx%dx%d/%d", set, s.rows, s.cols, s.steps, s.bits), func(b *testing.B) {
				for b.Loop() {
					codes.Mul(x, Epilogue{}, y)
				}
				report(b)
			})
		}
		p := NewWeights(w)
		b.Run(fmt.Sprintf("float/%dx%dx%d", s.rows, s.cols, s.steps), func(b *testing.B) {
			for b.Loop() {
				p.Mul(x, Epilogue{}, y)
			}
			report(b)
		})
	}
}
