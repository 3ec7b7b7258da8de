package component

import (
	"fmt"

	"github.com/nnopt/nnopt/kernel"
)

// UpdatableComponent is a component with the property Updatable.
type UpdatableComponent interface {
	Component
	// Params returns views of the parameters, in the order of files; a vector is a matrix of one
	// row. After writing to them, call Renew if the component is a Renewer.
	Params() []Param
	LearningRate() float32
	SetLearningRate(rate float32)
	// IsGradient reports whether the parameters are a gradient rather than weights.
	IsGradient() bool
}

// gradientHolder is what the updatable components of this package implement for NewGradient.
type gradientHolder interface {
	// setAsGradient makes IsGradient true and the learning rate 1.
	setAsGradient()
}

// Param is a parameter of a component.
type Param struct {
	Name   string
	Values kernel.Matrix
}

// vectorParam makes a Param of a vector.
func vectorParam(name string, v []float32) Param {
	return Param{name, kernel.Matrix{Rows: 1, Cols: len(v), Stride: len(v), Data: v}}
}

// NewGradient returns a copy of c that can accumulate the gradient of its parameters: the
// parameters and the statistics are zero, the learning rate is 1.
func NewGradient(c Component) Component {
	g := Copy(c)
	if z, ok := g.(StatsZeroer); ok {
		z.ZeroStats()
	}
	if u, ok := g.(UpdatableComponent); ok {
		ScaleParams(u, 0)
		u.SetLearningRate(1)
	}
	if h, ok := g.(gradientHolder); ok {
		h.setAsGradient()
	}
	return g
}

// NumParameters returns the number of trainable parameters of u.
func NumParameters(u UpdatableComponent) int {
	n := 0
	for _, p := range u.Params() {
		n += p.Values.Rows * p.Values.Cols
	}
	return n
}

// ScaleParams multiplies the parameters of u by alpha.
func ScaleParams(u UpdatableComponent, alpha float32) {
	for _, p := range u.Params() {
		kernel.Scale(p.Values, alpha)
	}
	prepareAgain(u)
}

// Vectorize appends the parameters of u to dst, row by row in the order of Params.
func Vectorize(u UpdatableComponent, dst []float32) []float32 {
	for _, p := range u.Params() {
		for i := range p.Values.Rows {
			dst = append(dst, kernel.Row(p.Values, i)...)
		}
	}
	return dst
}

// UnVectorize is the inverse of Vectorize: it sets the parameters of u and returns the rest of src.
// If src is too short, it fails without changing anything.
func UnVectorize(u UpdatableComponent, src []float32) ([]float32, error) {
	if n := NumParameters(u); len(src) < n {
		return src, fmt.Errorf("%s: %d values for %d parameters: %w", u.Type(), len(src), n, ErrShape)
	}
	for _, p := range u.Params() {
		for i := range p.Values.Rows {
			src = src[copy(kernel.Row(p.Values, i), src):]
		}
	}
	prepareAgain(u)
	return src, nil
}

func prepareAgain(u UpdatableComponent) {
	if p, ok := u.(Renewer); ok {
		p.Renew(nil)
	}
}
