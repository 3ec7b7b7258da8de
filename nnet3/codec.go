package nnet3

import "github.com/nnopt/nnopt/nnet3/kaldiio"

// A codec reads or writes a structure of a model file. The structure names its parts once, in the
// order of the file: a codec that reads sets them, a codec that writes leaves them alone. After the
// first error a codec does nothing.
type codec struct {
	r   *kaldiio.Reader // to read, or
	w   *kaldiio.Writer // to write
	err error
}

// binary reports whether the file is binary.
func (c *codec) binary() bool {
	if c.w != nil {
		return c.w.Binary()
	}
	return c.r.Binary()
}

// check fails in a codec that reads, unless ok.
func (c *codec) check(ok bool, format string, args ...any) {
	if !ok && c.w == nil && c.err == nil {
		c.err = c.r.Errorf(format, args...)
	}
}

// has reports whether a part follows: whether to write it, or whether its token comes next.
func (c *codec) has(token string, write bool) bool {
	if c.w != nil {
		return write
	}
	return c.err == nil && c.r.PeekIs(token)
}

// token is a token without a value.
func (c *codec) token(token string) {
	if c.w != nil {
		c.w.Token(token)
	} else if c.err == nil {
		c.err = c.r.Expect(token)
	}
}

// line is a token at the end of a line.
func (c *codec) line(token string) {
	c.token(token)
	c.newline()
}

// newline ends a line of text. A codec that reads skips white space anyway.
func (c *codec) newline() {
	if c.w != nil {
		c.w.Newline()
	}
}

// value is one value.
func value[T any](c *codec, v *T, read func(*kaldiio.Reader) (T, error), write func(*kaldiio.Writer, T)) {
	if c.w != nil {
		write(c.w, *v)
	} else if c.err == nil {
		*v, c.err = read(c.r)
	}
}

func (c *codec) int(v *int) { value(c, v, (*kaldiio.Reader).Int, (*kaldiio.Writer).Int) }

func (c *codec) int32s(to ...*int32) {
	for _, v := range to {
		value(c, v, (*kaldiio.Reader).Int32, (*kaldiio.Writer).Int32)
	}
}

func (c *codec) float(v *float32) { value(c, v, (*kaldiio.Reader).Float32, (*kaldiio.Writer).Float32) }

func (c *codec) intVector(v *[]int32) {
	value(c, v, (*kaldiio.Reader).IntVector, (*kaldiio.Writer).IntVector)
}

func (c *codec) vector(v *[]float32) { value(c, v, (*kaldiio.Reader).Vector, (*kaldiio.Writer).Vector) }

// counted is a list with its length before it.
func counted[T any](c *codec, list *[]T, element func(*T)) {
	n := len(*list)
	c.int(&n)
	c.check(n >= 0, "a count is %d", n)
	elements(c, n, list, element)
}

// elements is a list of n elements. Memory grows with what is read, not with n.
func elements[T any](c *codec, n int, list *[]T, element func(*T)) {
	for i := 0; i < n && c.err == nil; i++ {
		element(at(list, i))
	}
}

// tokened is a list of elements that begin with a token, which is part of the element.
func tokened[T any](c *codec, token string, list *[]T, element func(i int, v *T)) {
	for i := 0; c.has(token, i < len(*list)); i++ {
		element(i, at(list, i))
	}
}

// at returns element i of a list, a new one if i is its length.
func at[T any](list *[]T, i int) *T {
	if i == len(*list) {
		*list = append(*list, *new(T))
	}
	return &(*list)[i]
}
