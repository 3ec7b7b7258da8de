package lower

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// kernels returns a matrix of what the kernel of a support vector machine makes of each row of the input and each of
// the vectors in a list. Linear models have coefficients in place of vectors, and an offset.
func (c *call) kernels(list []float32, vectors int, linear bool, offset float64) variable {
	x := tensor.Cast(c.rows(), array.Float32)
	v := c.matrix(list, vectors, x)
	gamma, coef, degree := 0.0, 0.0, 0.0
	if a := c.attribute("kernel_params"); a != nil && len(a.Floats) > 0 {
		c.failIf(len(a.Floats) != 3, "%d parameters of the kernel", len(a.Floats))
		gamma, coef, degree = float64(a.Floats[0]), float64(a.Floats[1]), float64(a.Floats[2])
	}
	kind := c.text("kernel_type", "LINEAR")
	// Without support vectors a model is linear, whatever kernel it names.
	if linear {
		kind = "LINEAR"
	}
	if kind == "RBF" {
		return c.nodeRoutine("RBF", func(in []*array.Array) ([]*array.Array, error) {
			if in[0].Dim(1) != v.Dim(1) {
				return nil, fmt.Errorf("%w: %d columns, not %d", ErrInput, in[0].Dim(1), v.Dim(1))
			}
			return []*array.Array{distances(array.Slice[float32](in[0]), list, v.Dim(1), gamma)}, nil
		}, []variable{x}, tensor.NewType(array.Float32, tensor.TypeOf(x).Dim(0), vectors))[0]
	}
	y := tensor.Dot(x, tensor.Transpose(tensor.Constant(v)))
	scaled := func() variable { return tensor.Add(tensor.Mul(y, number(gamma, y)), number(coef, y)) }
	switch kind {
	case "LINEAR":
		return tensor.Add(y, number(offset, y))
	case "POLY":
		return tensor.Pow(scaled(), number(degree, y))
	case "SIGMOID":
		return tensor.Map(array.Tanh, scaled())
	}
	c.fail("%w: kernel %q", ErrUnsupported, kind)
	return nil
}

// distances returns exp(-gamma |x-v|²) for all rows of two matrices.
func distances(x, v []float32, columns int, gamma float64) *array.Array {
	n, m := len(x)/columns, len(v)/columns
	y := make([]float32, n*m)
	for i := range n {
		row := x[i*columns:][:columns]
		for j := range m {
			sum := 0.0
			for k, w := range v[j*columns:][:columns] {
				d := float64(row[k] - w)
				sum += float64(d * d)
			}
			y[i*m+j] = float32(elementary.Exp(-gamma * sum))
		}
	}
	return array.Of(y, n, m)
}

// floatList returns an attribute of floats, nil if there is none.
func (c *call) floatList(name string) []float32 {
	if a := c.attribute(name); a != nil {
		return a.Floats
	}
	return nil
}

func (c *call) regressVectors() []*value {
	rho, coefficients, n := c.floatList("rho"), c.floatList("coefficients"), c.int("n_supports", 0)
	if len(rho) < 1 || n > 0 && len(coefficients) != n {
		c.fail("%d offsets, and %d coefficients of %d vectors", len(rho), len(coefficients), n)
	}
	if p := c.transform(); p != "NONE" { // ONNX Runtime leaves it out
		c.fail("%w: post_transform %q", ErrUnsupported, p)
	}
	var y variable
	if n > 0 {
		y = tensor.Dot(c.kernels(c.floatList("support_vectors"), n, false, 0), tensor.Constant(array.Of(coefficients, n, 1)))
		y = tensor.Add(y, number(float64(rho[0]), y))
	} else {
		y = c.kernels(coefficients, 1, true, float64(rho[0]))
	}
	if c.bool("one_class", false) {
		y = tensor.Switch(tensor.Map(array.Gt, y, number(0, y)), number(1, y), number(-1, y))
	}
	return c.out(y, onnx.Float)
}

// classifyVectors decides between each two classes, and counts for which one that is most often.
func (c *call) classifyVectors() []*value {
	labels, p := c.labels("classlabels"), c.transform()
	m := &machine{classes: len(labels.codes), rho: c.floatList("rho"), coefficients: c.floatList("coefficients"), a: c.floatList("prob_a"), b: c.floatList("prob_b"), transform: p}
	for _, n := range c.list("vectors_per_class") {
		c.failIf(n < 0 || n > maxMade, "%d vectors of a class", n)
		m.starts = append(m.starts, m.vectors)
		m.vectors += n
	}
	m.starts = append(m.starts, m.vectors)
	pairs := m.classes * (m.classes - 1) / 2
	switch {
	case m.classes < 1 || m.classes > 1<<16 || len(m.rho) == 0:
		c.fail("%d classes, and %d offsets", m.classes, len(m.rho))
	case m.vectors == 0:
		for _, w := range m.coefficients {
			m.mixed = m.mixed || w < 0
		}
		return c.classified(c.kernels(m.coefficients, m.classes, true, float64(m.rho[0])), labels, m.decideLinear, m.classes)
	case len(m.starts) != m.classes+1 || len(m.coefficients) < (m.classes-1)*m.vectors || len(m.rho) < pairs || len(m.a) != len(m.b) || len(m.a) > 0 && len(m.a) < pairs:
		c.fail("%d coefficients, %d offsets and %d and %d probabilities of %d vectors in %d classes", len(m.coefficients), len(m.rho), len(m.a), len(m.b), m.vectors, m.classes)
	}
	columns := pairs
	if len(m.a) > 0 {
		columns = m.classes
	} else if m.classes <= 2 {
		columns = 2
	}
	return c.classified(c.kernels(c.floatList("support_vectors"), m.vectors, false, 0), labels, m.decide, columns)
}

// A machine has what a support vector machine knows of its classes.
type machine struct {
	classes, vectors int
	starts           []int // of the vectors of each class
	rho              []float32
	coefficients     []float32
	a, b             []float32 // of probabilities, none if there are none
	mixed            bool      // some coefficients are negative
	transform        postTransform
}

// decideLinear takes the largest score; of two classes the second one if scores are large enough.
func (m *machine) decideLinear(row []float64) (int, []float64) {
	k := largest(row)
	if most := row[k]; m.classes == 2 && (!m.mixed && most >= 0.5 || m.mixed && most > 0) && len(m.a) == 0 {
		k = 1
	}
	return k, m.transform.apply(row, noSecond)
}

// decide sums up what the kernel makes of the vectors of each two classes.
func (m *machine) decide(row []float64) (int, []float64) {
	var scores []float64
	votes := make([]float64, m.classes)
	for i := range m.classes {
		for j := i + 1; j < m.classes; j++ {
			// LIBSVM's layout: a vector has a coefficient for each class but its own, in rows of all vectors.
			sum := 0.0
			for k := m.starts[i]; k < m.starts[i+1]; k++ {
				sum += float64(float64(m.coefficients[m.vectors*(j-1)+k]) * row[k])
			}
			for k := m.starts[j]; k < m.starts[j+1]; k++ {
				sum += float64(float64(m.coefficients[m.vectors*i+k]) * row[k])
			}
			sum += float64(m.rho[len(scores)])
			scores = append(scores, sum)
			if sum > 0 {
				votes[i]++
			} else {
				votes[j]++
			}
		}
	}
	s := noSecond
	switch {
	case len(m.a) > 0:
		scores = m.probabilities(scores)
	case m.classes == 2 && m.transform == "NONE":
		s = negated
	case m.classes <= 2:
		s = complement
	}
	if len(scores) == 0 { // of one class
		return 0, nil
	}
	return largest(votes), m.transform.apply(scores, s)
}

// probabilities finds those of all classes from those of each two, as in "Probability Estimates for Multi-class
// Classification by Pairwise Coupling" (Wu, Lin and Weng, 2004).
func (m *machine) probabilities(scores []float64) []float64 {
	n := m.classes
	r, q := make([]float64, n*n), make([]float64, n*n)
	at := 0
	for i := range n {
		for j := i + 1; j < n; j++ {
			// Platt's scaling, and LIBSVM's bounds, which keep the quotients below finite.
			v := elementary.Sigmoid(-(float64(scores[at]*float64(m.a[at])) + float64(m.b[at])))
			v = min(max(v, 1e-7), 1-1e-7)
			r[i*n+j], r[j*n+i] = v, 1-v
			at++
		}
	}
	for i := range n {
		for j := range n {
			if i != j {
				q[i*n+i] += float64(r[j*n+i] * r[j*n+i])
				q[i*n+j] = -(r[j*n+i] * r[i*n+j])
			}
		}
	}
	p, qp := make([]float64, n), make([]float64, n)
	for i := range p {
		p[i] = 1 / float64(n)
	}
	// The tolerance is LIBSVM's, too.
	for range 100 {
		pqp := 0.0
		for i := range n {
			qp[i] = 0
			for j := range n {
				qp[i] += float64(q[i*n+j] * p[j])
			}
			pqp += float64(p[i] * qp[i])
		}
		worst := 0.0
		for _, v := range qp {
			worst = max(worst, math.Abs(v-pqp))
		}
		if worst < 0.005/float64(n) {
			break
		}
		for i := range n {
			d := (pqp - qp[i]) / q[i*n+i]
			p[i] += d
			pqp = (pqp + float64(d*(float64(d*q[i*n+i])+2*qp[i]))) / (1 + d) / (1 + d)
			for j := range n {
				qp[j] = (qp[j] + float64(d*q[i*n+j])) / (1 + d)
				p[j] /= 1 + d
			}
		}
	}
	return p
}
