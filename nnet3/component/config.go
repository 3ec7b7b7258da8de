package component

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// ConfigLine is a line of a network's configuration: a first word, then key=value pairs. It records
// the keys that were asked for, and all faults (Err).
type ConfigLine struct {
	// First is the word before the pairs, "component" for example. It may be empty.
	First string
	// Rand is the source of initial parameters. If it is nil, the first use creates one with a
	// fixed seed.
	Rand *rand.Rand
	// open opens a file named by a value, as in matrix=lda.mat. If it is nil, os.Open does.
	open func(name string) (io.ReadCloser, error)
	// Types makes the parts of composites. If it is nil, Kaldi does.
	Types *Registry
	// MaxNumbers limits the numbers (mostly parameters) that Init may allocate. 0 means 2²⁸;
	// negative means none.
	MaxNumbers int

	numbers int // that Init has allocated
	pairs   []pair
	asked   []string // the keys that were asked for
	errs    []error
}

type pair struct {
	key, value string
	used       bool
}

// ParseConfigLine parses a line. A '#' begins a comment, which is ignored; an empty line gives a
// ConfigLine without a first word and without pairs. A value ends at the last white space before
// the next key, so it may contain spaces; or it is enclosed in single or double quotes. If a key is
// given twice, the first value counts.
func ParseConfigLine(line string) (*ConfigLine, error) {
	c := new(ConfigLine)
	rest := strings.TrimSpace(stripComment(line))
	if first, after, _ := cutSpace(rest); !strings.Contains(first, "=") {
		if first != "" && !isName(first) {
			return nil, fmt.Errorf("%q is not a proper first word of a configuration line: %w", fileio.Excerpt(first, 0), ErrConfig)
		}
		c.First, rest = first, after
	}
	for rest != "" {
		key, after, ok := strings.Cut(rest, "=")
		if !ok || !isName(key) {
			return nil, fmt.Errorf("expected key=value at %q: %w", fileio.Excerpt(rest, 0), ErrConfig)
		}
		value := ""
		if after != "" && (after[0] == '\'' || after[0] == '"') {
			value, rest, ok = strings.Cut(after[1:], after[:1])
			if !ok {
				return nil, fmt.Errorf("the quote after %s= is not closed: %w", fileio.Excerpt(key, 0), ErrConfig)
			}
		} else {
			value, rest = cutValue(after)
		}
		rest = strings.TrimSpace(rest)
		if len(c.pairs) == maxKeys {
			return nil, fmt.Errorf("the line has more than %d keys: %w", maxKeys, ErrConfig)
		}
		if c.find(key) == nil {
			c.pairs = append(c.pairs, pair{key: key, value: value})
		}
	}
	return c, nil
}

// maxKeys limits the keys of a line. No type of component has fifty.
const maxKeys = 1000

// stripComment removes what follows a '#' that is not quoted.
func stripComment(line string) string {
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		switch ch := line[i]; {
		case quote != 0:
			if ch == quote {
				quote = 0
			}
		case (ch == '\'' || ch == '"') && i > 0 && line[i-1] == '=':
			quote = ch
		case ch == '#':
			return line[:i]
		}
	}
	return line
}

// cutValue splits s after its first value, which ends at the last white space before the next key.
func cutValue(s string) (value, rest string) {
	if eq := strings.IndexByte(s, '='); eq >= 0 {
		if space := strings.LastIndexAny(s[:eq], " \t"); space >= 0 {
			return strings.TrimSpace(s[:space]), s[space:]
		}
	}
	return strings.TrimSpace(s), ""
}

func cutSpace(s string) (before, after string, found bool) {
	if i := strings.IndexAny(s, " \t\r\n\v\f"); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:]), true
	}
	return s, "", false
}

// isName reports whether s is a letter or '_' followed by letters, digits, '_', '-' and '.'.
func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case ch == '_' || ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z':
		case i > 0 && (ch == '-' || ch == '.' || ch >= '0' && ch <= '9'):
		default:
			return false
		}
	}
	return s != ""
}

func (c *ConfigLine) find(key string) *pair {
	for i := range c.pairs {
		if c.pairs[i].key == key {
			return &c.pairs[i]
		}
	}
	return nil
}

// Value returns the text of a key's value, and whether the line has the key.
func (c *ConfigLine) Value(key string) (string, bool) {
	c.ask(key)
	p := c.find(key)
	if p == nil {
		return "", false
	}
	p.used = true
	return p.value, true
}

// Has reports whether the line has the key, without consuming it.
func (c *ConfigLine) Has(key string) bool {
	c.ask(key)
	return c.find(key) != nil
}

func (c *ConfigLine) ask(key string) {
	if !slices.Contains(c.asked, key) {
		c.asked = append(c.asked, key)
	}
}

// UnusedKeys returns the keys of the line that no one asked for.
func (c *ConfigLine) UnusedKeys() (keys []string) {
	for _, p := range c.pairs {
		if !p.used {
			keys = append(keys, p.key)
		}
	}
	return keys
}

// KnownKeys returns the keys that were asked for and that the line lacks, in the order in which
// they were first asked for. An unused key may be a misspelling of one of them.
func (c *ConfigLine) KnownKeys() (keys []string) {
	for _, key := range c.asked {
		if c.find(key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// Unused returns the pairs that no one asked for, as key=value separated by spaces.
func (c *ConfigLine) Unused() string {
	var left []string
	for _, p := range c.pairs {
		if !p.used {
			left = append(left, p.key+"="+p.value)
		}
	}
	return strings.Join(left, " ")
}

// Err returns the faults recorded so far, joined.
func (c *ConfigLine) Err() error { return errors.Join(c.errs...) }

// Fail records a fault of the line.
func (c *ConfigLine) Fail(format string, args ...any) {
	c.fail(fmt.Errorf(format+": %w", append(args, ErrConfig)...))
}

func (c *ConfigLine) fail(err error) { c.errs = append(c.errs, err) }

// check records a problem, if there is one.
func (c *ConfigLine) check(problem string) {
	if problem != "" {
		c.Fail("%s", problem)
	}
}

// require records a fault unless the line has the key.
func (c *ConfigLine) require(keys ...string) {
	for _, key := range keys {
		if !c.Has(key) {
			c.Fail("%s is required", key)
		}
	}
}

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
	open := c.open
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
