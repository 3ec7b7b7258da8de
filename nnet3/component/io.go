package component

import (
	"fmt"
	"math"

	"github.com/nnopt/nnopt/exec/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Limits that keep a line of text or a broken file from asking for absurd amounts of memory.
const (
	maxDim   = 1 << 24 // columns of a matrix
	maxElems = 1 << 28 // parameters of a component that is made at random
)

// A parser reads the fields of a component. After the first error it does nothing.
type parser struct {
	r   *kaldiio.Reader
	typ string
	err error
}

func newParser(r *kaldiio.Reader, typ string) *parser { return &parser{r: r, typ: typ} }

// fail records that what was read makes no sense.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = p.r.Errorf("%s: "+format, append([]any{p.typ}, args...)...)
	}
}

func (p *parser) check(ok bool, format string, args ...any) {
	if !ok {
		p.fail(format, args...)
	}
}

// claim accounts for memory that the component needs beyond that of what is read.
func (p *parser) claim(bytes int) {
	if p.err == nil {
		if err := p.r.Claim(int64(bytes)); err != nil {
			p.err = fmt.Errorf("%s: %w", p.typ, err)
		}
	}
}

// get reads one value with read.
func get[T any](p *parser, read func(*kaldiio.Reader) (T, error)) (v T) {
	if p.err != nil {
		return v
	}
	v, err := read(p.r)
	if err != nil {
		p.err = fmt.Errorf("%s: %w", p.typ, err)
	}
	return v
}

// expect reads tokens.
func (p *parser) expect(tokens ...string) {
	if p.err != nil {
		return
	}
	if err := p.r.Expect(tokens...); err != nil {
		p.err = fmt.Errorf("%s: %w", p.typ, err)
	}
}

// at reports whether the next token is the given one.
func (p *parser) at(token string) bool { return p.err == nil && p.r.PeekIs(token) }

// maybe reads the given token if it is the next one, and reports whether it was.
func (p *parser) maybe(token string) bool {
	if !p.at(token) {
		return false
	}
	p.expect(token)
	return p.err == nil
}

// end reads the closing token and returns the first error.
func (p *parser) end() error {
	p.expect("</" + p.typ + ">")
	return p.err
}

func (p *parser) int() int          { return int(get(p, (*kaldiio.Reader).Int32)) }
func (p *parser) bool() bool        { return get(p, (*kaldiio.Reader).Bool) }
func (p *parser) float() float32    { return get(p, (*kaldiio.Reader).Float32) }
func (p *parser) double() float64   { return get(p, (*kaldiio.Reader).Float64) }
func (p *parser) ints() []int32     { return get(p, (*kaldiio.Reader).IntVector) }
func (p *parser) pairs() [][2]int32 { return get(p, (*kaldiio.Reader).IntPairVector) }

func (p *parser) vector() []float32 {
	v := get(p, (*kaldiio.Reader).Vector)
	p.check(len(v) <= maxDim, "a vector of %d elements is too long", len(v))
	return v
}

func (p *parser) doubleVector() []float64 { return get(p, (*kaldiio.Reader).DoubleVector) }

func (p *parser) matrix() kernel.Matrix {
	m := kernel.Matrix(get(p, (*kaldiio.Reader).Matrix))
	p.check(m.Rows <= maxDim && m.Cols <= maxDim, "a matrix of %d×%d is too large", m.Rows, m.Cols)
	return m
}

// dim reads a number of columns.
func (p *parser) dim() int {
	d := p.int()
	if p.err == nil && (d <= 0 || d > maxDim) {
		p.fail("dimension %d is not between 1 and %d", d, maxDim)
	}
	if p.err != nil {
		return 1
	}
	return d
}

// field reads a token and the value after it.
func field[T any](p *parser, token string, read func(*parser) T) T {
	p.expect(token)
	return read(p)
}

// optional reads a token and the value after it if the token is the next one, and returns def otherwise.
func optional[T any](p *parser, token string, read func(*parser) T, def T) T {
	if !p.maybe(token) {
		return def
	}
	return read(p)
}

// A printer writes the fields of a component.
type printer struct{ w *kaldiio.Writer }

func (p printer) token(t string)             { p.w.Token(t) }
func (p printer) int(t string, v int)        { p.w.Token(t); p.w.Int32(int32(v)) }
func (p printer) bool(t string, v bool)      { p.w.Token(t); p.w.Bool(v) }
func (p printer) float(t string, v float32)  { p.w.Token(t); p.w.Float32(v) }
func (p printer) double(t string, v float64) { p.w.Token(t); p.w.Float64(v) }
func (p printer) ints(t string, v []int32)   { p.w.Token(t); p.w.IntVector(v) }
func (p printer) vector(t string, v []float32) {
	p.w.Token(t)
	p.w.Vector(v)
}
func (p printer) matrix(t string, m kernel.Matrix) {
	p.w.Token(t)
	p.w.Matrix(kaldiio.Matrix(m))
}

func begin(w *kaldiio.Writer, c Component) printer {
	w.Token("<" + c.Type() + ">")
	return printer{w}
}

func (p printer) end(c Component) error {
	p.w.Token("</" + c.Type() + ">")
	return p.w.Err()
}

// averages returns sums divided by count, or the sums where the count is zero.
func averages(sums []float64, count float64) []float32 {
	if count == 0 {
		count = 1
	}
	avg := make([]float32, len(sums))
	for i, s := range sums {
		avg[i] = float32(s / count)
	}
	return avg
}

// sums returns averages multiplied by count.
func sums(averages []float32, count float64) []float64 {
	s := make([]float64, len(averages))
	for i, a := range averages {
		s[i] = float64(a) * count
	}
	return s
}

// rootMeans returns the square roots of sums divided by count.
func rootMeans(sumsq []float64, count float64) []float32 {
	if count == 0 {
		count = 1
	}
	rms := make([]float32, len(sumsq))
	for i, s := range sumsq {
		rms[i] = float32(math.Sqrt(s / count))
	}
	return rms
}
