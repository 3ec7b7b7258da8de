package lower

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// grams are sequences of numbers that are counted.
type grams struct {
	Pool      []int64
	Starts    []int // where the sequences of each length begin
	Columns   []int // of the results, by sequence
	Min, Max  int   // lengths
	Skips     int   // how far apart numbers of a sequence may be, at most, but one
	Weights   []float32
	Mode      string
	NumCounts int
}

// tfidf lowers TfIdfVectorizer for integers, or strings, which have numbers.
func (c *call) tfidf() []*value {
	shape := c.shape(c.x(0))
	p := grams{Starts: c.list("ngram_counts"), Columns: c.list("ngram_indexes"),
		Min: c.int("min_gram_length", 0), Max: c.int("max_gram_length", 0), Skips: c.int("max_skip_count", 0), Mode: c.oneOf("mode", "TF", "TF", "IDF", "TFIDF")}
	if a := c.attribute("pool_int64s"); a != nil {
		p.Pool = a.Ints
	}
	if a := c.attribute("weights"); a != nil {
		p.Weights = a.Floats
	}
	if a := c.attribute("pool_strings"); a != nil {
		p.Pool = c.texts(a.Strings)
	}
	if (c.elem(0) == onnx.String) != (c.attribute("pool_strings") != nil) {
		c.fail("elements of type %v, and others in the pool", c.elem(0))
	}
	if len(shape) < 1 || len(shape) > 2 || p.Min < 1 || p.Max < p.Min || p.Max > len(p.Starts) || p.Skips < 0 {
		c.fail("sequences of %d to %d numbers, with %d left out, in shape %v", p.Min, p.Max, p.Skips, shape)
	}
	c.checkGrams(&p)
	out := slices.Clone(shape)
	out[len(out)-1] = p.NumCounts
	c.bounded(out)
	return c.out(routine(c, "TfIdf", tfidf, p, []variable{c.integers(0)}, tensor.NewType(array.Float64, out...))[0], onnx.Float)
}

// checkGrams checks that the sequences lie in the pool, and that each has a column.
func (c *call) checkGrams(p *grams) {
	sequences, from := 0, 0
	for i, start := range p.Starts {
		end := len(p.Pool)
		if i+1 < len(p.Starts) {
			end = p.Starts[i+1]
		}
		if start < from || end < start || end > len(p.Pool) || (end-start)%(i+1) != 0 {
			c.fail("the sequences of %d numbers are from %d to %d of %d", i+1, start, end, len(p.Pool))
		}
		sequences, from = sequences+(end-start)/(i+1), start
	}
	if len(p.Columns) != sequences || p.Weights != nil && len(p.Weights) != sequences || p.Mode != "TF" && p.Weights == nil {
		c.fail("%d sequences, with %d columns and %d weights", sequences, len(p.Columns), len(p.Weights))
	}
	for _, k := range p.Columns {
		if k < 0 || k >= maxMade {
			c.fail("there is no column %d", k)
		}
		p.NumCounts = max(p.NumCounts, k+1)
	}
}

func tfidf(p grams, in []*array.Array) ([]*array.Array, error) {
	x, shape := array.Slice[int64](in[0]), slices.Clone(in[0].Shape())
	n := shape[len(shape)-1]
	shape[len(shape)-1] = p.NumCounts
	y := make([]float64, product(shape))
	for row := range product(shape[:len(shape)-1]) {
		counts := y[row*p.NumCounts:][:p.NumCounts]
		p.count(x[row*n:][:n], counts)
	}
	return []*array.Array{array.Of(y, shape...)}, nil
}

// count counts the sequences in a row. Those of one number don't depend on how many are left out
// between numbers, and count once.
func (p grams) count(row []int64, counts []float64) {
	sequence := 0
	for i, start := range p.Starts {
		length, end := i+1, len(p.Pool)
		if i+1 < len(p.Starts) {
			end = p.Starts[i+1]
		}
		for at := start; at < end; at += length {
			// Columns and weights are those of all sequences in the pool, also of lengths that are not counted.
			k := 0.0
			if length >= p.Min && length <= p.Max {
				k = occurrences(row, p.Pool[at:][:length], p.Skips)
			}
			counts[p.Columns[sequence]] += p.weighted(k, sequence)
			sequence++
		}
	}
}

func (p grams) weighted(count float64, sequence int) float64 {
	switch p.Mode {
	case "IDF":
		return math.Min(count, 1) * float64(p.Weights[sequence])
	case "TFIDF":
		return count * float64(p.Weights[sequence])
	}
	return count
}

// occurrences counts a sequence in a row, at all distances up to skips+1.
func occurrences(row, sequence []int64, skips int) float64 {
	count := 0.0
	// Larger distances find nothing in the row, and the attribute may be any number.
	for distance := 1; distance <= min(skips, len(row))+1; distance++ {
		for from := 0; from+(len(sequence)-1)*distance < len(row); from++ {
			k := 0
			for k < len(sequence) && row[from+k*distance] == sequence[k] {
				k++
			}
			if k == len(sequence) {
				count++
			}
		}
		if len(sequence) == 1 {
			break
		}
	}
	return count
}
