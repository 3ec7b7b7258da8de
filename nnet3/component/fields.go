package component

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Limits that keep a line of text or a broken file from asking for absurd amounts of memory.
const (
	maxDim   = 1 << 24 // columns of a matrix
	maxElems = 1 << 28 // parameters of a component that is made at random
)

// Fields visits the parts of a component, in the order of Kaldi's files. A component lists its
// parts once, in its method Fields; [Registry.Read], [Write], [Info] and [Copy] each make a walk of their
// own. A walk that reads or copies sets the values that it is shown; other walks leave them alone.
//
// After the first error a walk does nothing.
type Fields struct {
	r    *kaldiio.Reader // in a walk that reads
	w    *kaldiio.Writer // in one that writes
	info *bytes.Buffer   // in one that describes; with none of these, the walk copies
	typ  string
	err  error

	types *Registry // in a walk that reads

	closed bool // the closing token was read
	shared bool // the copy of the component is the component itself
}

// Write writes c, including its opening and closing tokens.
func Write(c Component, w *kaldiio.Writer) error {
	f := Fields{w: w, typ: c.Type()}
	w.Token("<" + f.typ + ">")
	c.Fields(&f)
	if f.err != nil {
		return f.err
	}
	w.Token("</" + f.typ + ">")
	return w.Err()
}

// Info describes c in one line: its type, its dimensions, its settings, and the root mean square of
// each parameter.
func Info(c Component) string {
	f := Fields{info: new(bytes.Buffer), typ: c.Type()}
	fmt.Fprintf(f.info, "%s, input-dim=%d, output-dim=%d", f.typ, c.InputDim(), c.OutputDim())
	c.Fields(&f)
	if u, ok := c.(UpdatableComponent); ok {
		for _, p := range u.Params() {
			if n := p.Values.Rows * p.Values.Cols; n > 0 {
				fmt.Fprintf(f.info, ", %s-rms=%.4g", p.Name, math.Sqrt(kernel.MatrixDot(p.Values, p.Values)/float64(n)))
			}
		}
	}
	return f.info.String()
}

// Copy returns a component that shares nothing with c. Derived components, which are immutable, and
// components that aren't pointers are returned as they are.
func Copy(c Component) Component {
	if reflect.TypeOf(c).Kind() != reflect.Pointer {
		return c
	}
	old := reflect.ValueOf(c).Elem()
	d := reflect.New(old.Type())
	d.Elem().Set(old)
	var f Fields
	dup := d.Interface().(Component)
	dup.Fields(&f)
	if f.shared {
		return c
	}
	return dup
}

// Reading reports whether the walk has just read the values that it was shown, without an error.
// Then is the time to check them and to derive what follows from them.
func (f *Fields) Reading() bool { return f.r != nil && f.err == nil }

// Copying reports whether the values are those of another component. What else the two share
// has to be copied.
func (f *Fields) Copying() bool { return f.r == nil && f.w == nil && f.info == nil }

// Check records an error unless ok, in a walk that reads.
func (f *Fields) Check(ok bool, format string, args ...any) {
	if !ok && f.Reading() {
		f.err = f.r.Errorf("%s: "+format, append([]any{f.typ}, args...)...)
	}
}

// check records a problem, if there is one, in a walk that reads.
func (f *Fields) check(problem string) { f.Check(problem == "", "%s", problem) }

// Claim accounts for memory that the component needs in addition to what is read.
func (f *Fields) Claim(bytes int) {
	if f.Reading() {
		f.fail(f.r.Claim(int64(bytes)))
	}
}

// Token visits a token without a value.
func (f *Fields) Token(token string) {
	switch {
	case f.r != nil:
		f.expect(token)
	case f.w != nil:
		f.w.Token(token)
	}
}

// Has reports whether the next part, which may be missing from files, is there. It begins with the
// token.
func (f *Fields) Has(token string) bool {
	return f.r == nil || f.err == nil && f.r.PeekIs(token)
}

// Int visits a 32-bit integer. Here and below, a value with an empty token directly follows the
// previous value.
func (f *Fields) Int(token string, v *int) {
	value(f, token, v, func(r *kaldiio.Reader) (int, error) {
		n, err := r.Int32()
		return int(n), err
	}, func(w *kaldiio.Writer, n int) { w.Int32(int32(n)) })
}

// Dim visits a number of columns, which is at least 1.
func (f *Fields) Dim(token string, v *int) {
	f.Int(token, v)
	f.Check(*v > 0 && *v <= maxDim, "dimension %d is not between 1 and %d", *v, maxDim)
	if f.r != nil && f.err != nil {
		*v = 1
	}
}

// Bool visits a boolean, T or F in text.
func (f *Fields) Bool(token string, v *bool) {
	value(f, token, v, (*kaldiio.Reader).Bool, (*kaldiio.Writer).Bool)
}

// Flag visits a boolean that is true if the token is there.
func (f *Fields) Flag(token string, v *bool) {
	switch {
	case f.r != nil:
		if *v = f.err == nil && f.Has(token); *v {
			f.expect(token)
		}
	case f.w != nil && *v:
		f.w.Token(token)
	case f.info != nil:
		f.describe(token, *v)
	}
}

// Float visits a number in single precision.
func (f *Fields) Float(token string, v *float32) {
	value(f, token, v, (*kaldiio.Reader).Float32, (*kaldiio.Writer).Float32)
}

// Double visits a number in double precision.
func (f *Fields) Double(token string, v *float64) {
	value(f, token, v, (*kaldiio.Reader).Float64, (*kaldiio.Writer).Float64)
}

// Ints visits a list of integers.
func (f *Fields) Ints(token string, v *[]int32) {
	list(f, token, v, (*kaldiio.Reader).IntVector, (*kaldiio.Writer).IntVector)
	if f.info != nil {
		f.describe(token, shorten(*v, ",", func(n int32) string { return fmt.Sprint(n) }))
	}
}

// Pairs visits a list of pairs of integers.
func (f *Fields) Pairs(token string, v *[][2]int32) {
	list(f, token, v, (*kaldiio.Reader).IntPairVector, (*kaldiio.Writer).IntPairVector)
	if f.info != nil {
		f.describe(token, shorten(*v, ";", func(p [2]int32) string { return fmt.Sprintf("%d,%d", p[0], p[1]) }))
	}
}

// Vector visits a vector in single precision.
func (f *Fields) Vector(token string, v *[]float32) {
	list(f, token, v, (*kaldiio.Reader).Vector, (*kaldiio.Writer).Vector)
	f.Check(len(*v) <= maxDim, "a vector of %d elements is too long", len(*v))
}

// DoubleVector visits a vector in double precision.
func (f *Fields) DoubleVector(token string, v *[]float64) {
	list(f, token, v, (*kaldiio.Reader).DoubleVector, (*kaldiio.Writer).DoubleVector)
}

// Matrix visits a matrix in single precision.
func (f *Fields) Matrix(token string, m *kernel.Matrix) {
	switch {
	case f.r != nil:
		f.expect(token)
		*m = kernel.Matrix(get(f, (*kaldiio.Reader).Matrix))
		f.Check(m.Rows <= maxDim && m.Cols <= maxDim, "a matrix of %d×%d is too large", m.Rows, m.Cols)
	case f.w != nil:
		f.w.Token(token)
		f.w.Matrix(kaldiio.Matrix(*m))
	case f.Copying():
		*m = kernel.Clone(*m)
	}
}

// doubleMatrix visits a matrix in double precision.
func (f *Fields) doubleMatrix(token string, m *kaldiio.DoubleMatrix) {
	switch {
	case f.Copying():
		m.Data = slices.Clone(m.Data)
	case f.info == nil:
		value(f, token, m, (*kaldiio.Reader).DoubleMatrix, (*kaldiio.Writer).DoubleMatrix)
	}
}

// weights visits a matrix that inputs are multiplied by.
func (f *Fields) weights(token string, w *weights) {
	if f.Copying() {
		*w = w.copy()
		return
	}
	if !f.Reading() {
		m := w.elements()
		f.Matrix(token, &m)
		return
	}
	f.Matrix(token, &w.m)
	w.changed()
}

// Optional visits a value that is written unless it equals absent. A file without the value means
// absent, too.
func Optional[T comparable](f *Fields, field func(token string, v *T), token string, v *T, absent T) {
	if f.r != nil || *v != absent {
		Since(f, field, token, v, absent)
	}
}

// Since visits a value that older files lack. For these it is absent.
func Since[T any](f *Fields, field func(token string, v *T), token string, v *T, absent T) {
	if f.Has(token) {
		field(token, v)
	} else {
		*v = absent
	}
}

// Skip reads past a value in older files.
func Skip[T any](f *Fields, field func(token string, v *T), token string) {
	if f.r != nil && f.Has(token) {
		var v T
		field(token, &v)
	}
}

// derived is all that a derived component visits. It can't be read or written.
func (f *Fields) derived() {
	f.shared = true
	f.fail(errDerived)
}

// part visits component number n of a composite.
func (f *Fields) part(c *Component, n int) {
	switch {
	case f.r != nil:
		token := get(f, (*kaldiio.Reader).Token)
		part, ok := f.types.New(strings.TrimSuffix(strings.TrimPrefix(token, "<"), ">"))
		if _, nested := part.(*compositeComponent); !ok || nested {
			f.Check(false, "%s can't be part of a composite", fileio.Excerpt(token, 0))
		}
		if *c = part; f.err == nil {
			f.err = f.types.Read(part, f.r)
		}
	case f.w != nil && f.err == nil:
		f.err = Write(*c, f.w)
	case f.info != nil:
		fmt.Fprintf(f.info, ", component%d={%s}", n, Info(*c))
	case f.Copying():
		*c = Copy(*c)
	}
}

// value visits a value that assignment copies.
func value[T any](f *Fields, token string, v *T, read func(*kaldiio.Reader) (T, error), write func(*kaldiio.Writer, T)) {
	switch {
	case f.r != nil:
		f.expect(token)
		*v = get(f, read)
	case f.w != nil:
		if token != "" {
			f.w.Token(token)
		}
		write(f.w, *v)
	case f.info != nil:
		f.describe(token, *v)
	}
}

// list visits a slice, which a copy must not share. Descriptions leave it out.
func list[T any](f *Fields, token string, v *[]T, read func(*kaldiio.Reader) ([]T, error), write func(*kaldiio.Writer, []T)) {
	switch {
	case f.Copying():
		*v = slices.Clone(*v)
	case f.info == nil:
		value(f, token, v, read, write)
	}
}

// get reads one value.
func get[T any](f *Fields, read func(*kaldiio.Reader) (T, error)) (v T) {
	if f.err != nil {
		return v
	}
	v, err := read(f.r)
	f.fail(err)
	return v
}

// expect reads a token.
func (f *Fields) expect(token string) {
	if f.err == nil && token != "" {
		f.fail(f.r.Expect(token))
	}
}

// fail records an error of the reader or the writer.
func (f *Fields) fail(err error) {
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", f.typ, err)
	}
}

// describe adds a value to a description, under the name of its token as configuration lines spell
// it: <HeightOut> becomes height-out.
func (f *Fields) describe(token string, v any) {
	if token == "" {
		fmt.Fprintf(f.info, ",%.6g", v)
		return
	}
	f.info.WriteString(", ")
	for i, r := range strings.Trim(token, "<>") {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				f.info.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		f.info.WriteRune(r)
	}
	switch v.(type) {
	case float32, float64:
		fmt.Fprintf(f.info, "=%.6g", v)
	default:
		fmt.Fprintf(f.info, "=%v", v)
	}
}

// shorten joins the first elements of a list.
func shorten[T any](list []T, separator string, text func(T) string) string {
	const most = 16
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteString(separator)
		}
		if i == most {
			b.WriteString("…")
			break
		}
		b.WriteString(text(v))
	}
	return b.String()
}
