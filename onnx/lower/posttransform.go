package lower

import (
	"math"

	"github.com/nnopt/nnopt/kernel/elementary"
)

// A postTransform is what an operator does with scores at the end, by its name in ONNX.
type postTransform string

// transform returns what the attribute says.
func (c *call) transform() postTransform {
	return postTransform(c.oneOf("post_transform", "NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"))
}

// A second is what becomes the score of the other class if there is one score.
type second int

const (
	noSecond   second = iota // there is no other class
	complement               // 1 less the score
	negated                  // minus the score
)

// apply transforms the scores of an item. One score is no distribution: it becomes two, or stays.
func (p postTransform) apply(row []float64, s second) []float64 {
	if len(row) > 1 {
		p.applyAll(row)
		return row
	}
	x := row[0]
	switch {
	case p == "PROBIT":
		row[0] = probit(x)
	case s != noSecond && p == "LOGISTIC":
		return append(row[:0], elementary.Sigmoid(-x), elementary.Sigmoid(x))
	case s == complement:
		return append(row[:0], 1-x, x)
	case s == negated:
		return append(row[:0], -x, x)
	}
	return row
}

func (p postTransform) applyAll(row []float64) {
	switch p {
	case "PROBIT":
		for i, x := range row {
			row[i] = probit(x)
		}
	case "LOGISTIC":
		for i, x := range row {
			row[i] = elementary.Sigmoid(x)
		}
	case "SOFTMAX", "SOFTMAX_ZERO":
		softmax(row, p == "SOFTMAX_ZERO")
	}
}

// softmax divides exponentials by their sum. Where zeros stay, they are no part of it.
func softmax(row []float64, zeros bool) {
	most := row[largest(row)]
	sum := 0.0
	for i, x := range row {
		// ONNX Runtime's bound for a zero, and what it makes of one.
		if zeros && math.Abs(x) <= 1e-7 {
			row[i] = x * elementary.Exp(-most)
			continue
		}
		row[i] = elementary.Exp(x - most)
		sum += row[i]
	}
	for i := range row {
		row[i] /= sum
	}
}

// probit returns the quantile of the normal distribution, by Winitzki's approximation of the inverse of the error
// function, as ONNX Runtime does: in float32, since it is nearly infinite close to 0 and 1.
func probit(p float64) float64 {
	const a, pi = float32(0.147), float32(3.14159)
	x := float32(2*float32(p)) - 1
	log := float32(elementary.Log(float64(float32(1-x) * float32(1+x))))
	v := 2/(pi*a) + float32(0.5*log)
	root := func(f float32) float32 { return float32(math.Sqrt(float64(f))) }
	y := root(root(float32(v*v)-float32(1/a*log)) - v)
	return math.Copysign(float64(float32(math.Sqrt2)*y), float64(x))
}
