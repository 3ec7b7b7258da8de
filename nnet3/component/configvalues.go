package component

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// Int returns a key's value, or def if the line doesn't have the key.
func (c *ConfigLine) Int(key string, def int) int {
	return configValue(c, key, def, "not an integer", func(s string) (int, bool) {
		v, err := strconv.ParseInt(s, 10, 32)
		return int(v), err == nil
	})
}

// Float returns a key's value, which must be finite, or def if the line doesn't have the key.
func (c *ConfigLine) Float(key string, def float32) float32 {
	return configValue(c, key, def, "not a number", func(s string) (float32, bool) {
		v, err := strconv.ParseFloat(s, 32)
		return float32(v), err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
	})
}

// Bool returns a key's value (true, false, or their first letters), or def if the line doesn't have
// the key.
func (c *ConfigLine) Bool(key string, def bool) bool {
	return configValue(c, key, def, "neither true nor false", func(s string) (v, ok bool) {
		switch s {
		case "true", "True", "t", "T":
			return true, true
		case "false", "False", "f", "F":
			return false, true
		}
		return false, false
	})
}

// configValue returns a key's value, or def if the line doesn't have the key or parse fails. what
// says how it fails.
func configValue[T any](c *ConfigLine, key string, def T, what string, parse func(string) (T, bool)) T {
	s, ok := c.Value(key)
	if !ok {
		return def
	}
	v, ok := parse(strings.TrimSpace(s))
	if !ok {
		c.Fail("%s=%s is %s", key, fileio.Excerpt(s, 0), what)
		return def
	}
	return v
}

// Ints returns a key's value, integers separated by commas or colons, and whether the line has the
// key.
func (c *ConfigLine) Ints(key string) ([]int32, bool) {
	s, ok := c.Value(key)
	if !ok {
		return nil, false
	}
	v, err := splitInts(strings.ReplaceAll(s, ":", ","))
	if err != nil {
		c.Fail("%s=%s is not a list of integers", key, fileio.Excerpt(s, 0))
	}
	return v, true
}

func splitInts(s string) ([]int32, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var list []int32
	for word := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
		if err != nil {
			return nil, err
		}
		list = append(list, int32(v))
	}
	return list, nil
}

// dim returns the value of a required key, which must be a possible number of columns.
func (c *ConfigLine) dim(key string) int {
	if !c.Has(key) {
		c.Fail("%s is required", key)
		return 1
	}
	return c.dimOr(key, 1)
}

// dimOr is dim for an optional key.
func (c *ConfigLine) dimOr(key string, def int) int {
	v := c.Int(key, def)
	if v <= 0 || v > maxDim {
		c.Fail("%s=%d is not between 1 and %d", key, v, maxDim)
		return 1
	}
	return v
}

// dimAndBlock reads dim and block-dim, which divides it and by default equals it.
func (c *ConfigLine) dimAndBlock() (dim, block int) {
	dim = c.dim("dim")
	block = c.dimOr("block-dim", dim)
	c.check(noMultiple("dim", dim, "block-dim", block))
	return dim, block
}

// Numbers returns how many numbers Init has allocated.
func (c *ConfigLine) Numbers() int { return c.numbers }

// room returns how many more numbers may be allocated.
func (c *ConfigLine) room() int {
	if c.MaxNumbers == 0 {
		return maxElems - c.numbers
	}
	return max(c.MaxNumbers, 0) - c.numbers
}

// makeRoom claims room for rows×cols numbers. It records a fault and reports false if there isn't
// any.
func (c *ConfigLine) makeRoom(rows, cols int) bool {
	if rows < 0 || cols < 0 || rows > 0 && cols > c.room()/rows {
		c.Fail("%d×%d parameters are more than the %d that are allowed", rows, cols, c.room())
		return false
	}
	c.numbers += rows * cols
	return true
}

// randn returns a matrix of normally distributed numbers.
func (c *ConfigLine) randn(rows, cols int, mean, stddev float32) kernel.Matrix {
	if !c.makeRoom(rows, cols) {
		rows, cols = 0, 0
	}
	m := kernel.New(rows, cols)
	r := c.source()
	for i := range m.Data {
		m.Data[i] = float32(float32(r.NormFloat64())*stddev) + mean
	}
	return m
}

// randnVector is randn for a vector.
func (c *ConfigLine) randnVector(n int, mean, stddev float32) []float32 {
	return c.randn(1, n, mean, stddev).Data
}

// weights returns weights at random, as param-stddev says.
func (c *ConfigLine) weights(rows, cols int) weights {
	stddev := c.Float("param-stddev", 1/float32(math.Sqrt(float64(max(cols, 1)))))
	w := weights{m: c.randn(rows, cols, 0, stddev)}
	w.changed()
	return w
}

// source returns the source of random numbers.
func (c *ConfigLine) source() *rand.Rand {
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(1, 2))
	}
	return c.Rand
}

// matrix reads a matrix from the file that a key names. It reports whether the line has the key.
func (c *ConfigLine) matrix(key string) (kernel.Matrix, bool) {
	m, ok := readFile(c, key, (*kaldiio.Reader).Matrix)
	return kernel.Matrix(m), ok
}

// vector reads a vector from the file that a key names. It reports whether the line has the key.
func (c *ConfigLine) vector(key string) ([]float32, bool) {
	return readFile(c, key, (*kaldiio.Reader).Vector)
}

func readFile[T any](c *ConfigLine, key string, read func(*kaldiio.Reader) (T, error)) (v T, ok bool) {
	name, ok := c.Value(key)
	if !ok {
		return v, false
	}
	open := c.Open
	if open == nil {
		open = func(name string) (io.ReadCloser, error) { return os.Open(name) }
	}
	f, err := open(name)
	if err == nil {
		defer f.Close()
		var r *kaldiio.Reader
		if r, err = kaldiio.NewReader(f, name); err == nil {
			v, err = read(r)
		}
	}
	if err != nil {
		c.fail(fmt.Errorf("%s=%s: %w", key, name, err))
	}
	return v, true
}
