package component

import (
	"math"
	"slices"

	"github.com/nnopt/nnopt/internal/lists"
)

// averages visits a vector of sums, which files divide by a count. The count comes later in files,
// so a walk that reads sets sums to the averages, for multiply.
func (f *Fields) averages(token string, sums *[]float64, count float64) {
	switch {
	case f.Copying():
		*sums = slices.Clone(*sums)
	case f.info == nil:
		v := divided(*sums, count)
		f.Vector(token, &v)
		if f.r != nil {
			*sums = doubles(v)
		}
	}
}

// divided returns sums divided by count, or the sums if the count is zero.
func divided(sums []float64, count float64) []float32 {
	if count == 0 {
		count = 1
	}
	return lists.Map(sums, func(s float64) float32 { return float32(s / count) })
}

// doubles returns v in double precision.
func doubles(v []float32) []float64 {
	return lists.Map(v, func(x float32) float64 { return float64(x) })
}

// multiply makes sums of averages.
func multiply(averages []float64, count float64) {
	for i := range averages {
		averages[i] *= count
	}
}

// rootMeans returns the square roots of sums divided by count.
func rootMeans(sumsq []float64, count float64) []float32 {
	if count == 0 {
		count = 1
	}
	return lists.Map(sumsq, func(s float64) float32 { return float32(math.Sqrt(s / count)) })
}
