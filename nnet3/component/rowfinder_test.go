package component

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/nnopt/nnopt/nnet3/index"
)

// grid returns the indexes of some sequences at some times: time by time, or sequence by sequence.
func grid(sequences, first, end, step int32, bySequence bool) []index.Index {
	var list []index.Index
	if bySequence {
		for n := range sequences {
			for t := first; t < end; t += step {
				list = append(list, index.Index{N: n, T: t})
			}
		}
		return list
	}
	for t := first; t < end; t += step {
		for n := range sequences {
			list = append(list, index.Index{N: n, T: t})
		}
	}
	return list
}

// TestRowFinder compares rowFinder with a search through all rows, for various orders of rows and
// of queries.
func TestRowFinder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	shuffled := grid(3, -7, 20, 1, false)
	rnd.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	far := []index.Index{{N: 1 << 30, T: -1 << 31}, {T: index.NoTime + 1}, {X: -1}, {X: 1 << 30}, {T: 1<<31 - 1}}
	lists := [][]index.Index{nil, {{}}, grid(3, -7, 20, 1, false), grid(3, -7, 20, 1, true), grid(4, 0, 60, 3, true), shuffled, far}
	for _, in := range lists {
		f := newRowFinder(in)
		for _, out := range lists {
			for range 2 {
				for _, x := range out {
					want := int32(-1)
					for i := range in {
						if in[i] == x {
							want = int32(i)
						}
					}
					if got := f.row(x); got != want {
						t.Fatalf("%v among %d rows: row %d, want %d", x, len(in), got, want)
					}
				}
				rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
				if len(in) > 0 && len(out) > 0 && &in[0] == &out[0] {
					f = newRowFinder(in)
				}
			}
		}
	}
}

// BenchmarkRowFinder finds the inputs of a layer at three time offsets, for 16 sequences of 10² to
// 10⁴ frames.
func BenchmarkRowFinder(b *testing.B) {
	for _, frames := range []int32{100, 1000, 10000} {
		in, out := grid(16, -3, frames+3, 1, false), grid(16, 0, frames, 3, false)
		rows := make([]int32, len(out))
		b.Run(strconv.Itoa(int(frames)), func(b *testing.B) {
			for b.Loop() {
				f := newRowFinder(in)
				for _, offset := range []int32{-3, 0, 3} {
					f.atOffset(out, offset, rows)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(3*len(out)), "ns/row")
		})
	}
}
