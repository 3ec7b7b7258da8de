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

	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// ConfigLine is a line of a network's configuration: a first word, then key=value pairs. It remembers which keys were
// asked for, and the first value that could not be understood (Err).
type ConfigLine struct {
	// First is the word before the pairs, "component" for example. It may be empty.
	First string
	// Rand draws initial parameters. Left nil, a source with a fixed seed is made when it is first needed.
	Rand *rand.Rand
	// Open opens a file named by a value, as in matrix=lda.mat. Left nil, os.Open does.
	Open func(name string) (io.ReadCloser, error)
	// MaxNumbers is how many numbers (parameters, for the most part) Init may make room for. 0 means 2²⁸, less than 0 none.
	MaxNumbers int

	numbers int // that Init made room for

	line  string
	pairs []pair
	asked []string // the keys that were asked for
	errs  []error
}

type pair struct {
	key, value string
	used       bool
}

// ParseConfigLine parses a line. A comment, begun by '#', is not part of the line; a line of nothing else gives a
// ConfigLine without a first word and pairs. A value ends at the last white space before the next key, so it may
// hold spaces; or it stands in single or double quotes. When a key is given twice, the first one counts.
func ParseConfigLine(line string) (*ConfigLine, error) {
	c := &ConfigLine{line: line}
	rest := strings.TrimSpace(stripComment(line))
	if first, after, _ := cutSpace(rest); !strings.Contains(first, "=") {
		if first != "" && !isName(first) {
			return nil, fmt.Errorf("%q is not a proper first word of a configuration line: %w", first, ErrConfig)
		}
		c.First, rest = first, after
	}
	for rest != "" {
		key, after, ok := strings.Cut(rest, "=")
		if !ok || !isName(key) {
			return nil, fmt.Errorf("expected key=value at %q: %w", clip(rest), ErrConfig)
		}
		value := ""
		switch {
		case after != "" && (after[0] == '\'' || after[0] == '"'):
			value, rest, ok = strings.Cut(after[1:], after[:1])
			if !ok {
				return nil, fmt.Errorf("the quote after %s= is not closed: %w", key, ErrConfig)
			}
		default:
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

// maxKeys bounds the keys of a line. No type of component has fifty.
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

// cutValue splits s after the value at its beginning, which reaches up to the white space before the next key.
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

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

func (c *ConfigLine) find(key string) *pair {
	for i := range c.pairs {
		if c.pairs[i].key == key {
			return &c.pairs[i]
		}
	}
	return nil
}

// Line returns the line that was parsed.
func (c *ConfigLine) Line() string { return c.line }

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

// UnusedKeys returns the keys that the line has and nobody asked for.
func (c *ConfigLine) UnusedKeys() (keys []string) {
	for _, p := range c.pairs {
		if !p.used {
			keys = append(keys, p.key)
		}
	}
	return keys
}

// KnownKeys returns the keys that were asked for and that the line doesn't have, in the order in which they were first asked
// for: one of them may be what an unused key was meant to be.
func (c *ConfigLine) KnownKeys() (keys []string) {
	for _, key := range c.asked {
		if c.find(key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// Unused returns the pairs that were not asked for, as key=value separated by spaces; empty if there are none.
func (c *ConfigLine) Unused() string {
	var left []string
	for _, p := range c.pairs {
		if !p.used {
			left = append(left, p.key+"="+p.value)
		}
	}
	return strings.Join(left, " ")
}

// Err returns what was wrong with the values asked for so far.
func (c *ConfigLine) Err() error { return errors.Join(c.errs...) }

// Fail records a fault of the line.
func (c *ConfigLine) Fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format+": %w", append(args, ErrConfig)...))
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
	s, ok := c.Value(key)
	if !ok {
		return def
	}
	v, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
	if err != nil {
		c.Fail("%s=%s is not an integer", key, clip(s))
		return def
	}
	return int(v)
}

// Float returns a key's value, which must be finite, or def if the line doesn't have the key.
func (c *ConfigLine) Float(key string, def float32) float32 {
	s, ok := c.Value(key)
	if !ok {
		return def
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 32)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		c.Fail("%s=%s is not a number", key, clip(s))
		return def
	}
	return float32(v)
}

// Bool returns a key's value (true, false, or their first letters), or def if the line doesn't have the key.
func (c *ConfigLine) Bool(key string, def bool) bool {
	s, ok := c.Value(key)
	if !ok {
		return def
	}
	switch strings.TrimSpace(s) {
	case "true", "True", "t", "T":
		return true
	case "false", "False", "f", "F":
		return false
	}
	c.Fail("%s=%s is neither true nor false", key, clip(s))
	return def
}

// Ints returns a key's value, integers separated by commas or colons, and whether the line has the key.
func (c *ConfigLine) Ints(key string) ([]int32, bool) {
	s, ok := c.Value(key)
	if !ok {
		return nil, false
	}
	v, err := splitInts(strings.ReplaceAll(s, ":", ","))
	if err != nil {
		c.Fail("%s=%s is not a list of integers", key, clip(s))
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

// dim returns a key's value, which the line must have, and which must do as a number of columns.
func (c *ConfigLine) dim(key string) int {
	if !c.Has(key) {
		c.Fail("%s is required", key)
		return 1
	}
	return c.dimOr(key, 1)
}

// dimOr is dim, for a key that may be left out.
func (c *ConfigLine) dimOr(key string, def int) int {
	v := c.Int(key, def)
	if v <= 0 || v > maxDim {
		c.Fail("%s=%d is not between 1 and %d", key, v, maxDim)
		return 1
	}
	return v
}

// Numbers returns how many numbers Init made room for.
func (c *ConfigLine) Numbers() int { return c.numbers }

// room returns how many numbers there still is room for.
func (c *ConfigLine) room() int {
	if c.MaxNumbers == 0 {
		return maxElems - c.numbers
	}
	return max(c.MaxNumbers, 0) - c.numbers
}

// makeRoom reports whether there is room for rows×cols numbers more, and records a fault where not.
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

func (c *ConfigLine) source() *rand.Rand {
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(1, 2))
	}
	return c.Rand
}

// matrix reads the matrix in the file named by a key's value. It reports whether the line has the key.
func (c *ConfigLine) matrix(key string) (kernel.Matrix, bool) {
	m, ok := readFile(c, key, (*kaldiio.Reader).Matrix)
	return kernel.Matrix(m), ok
}

// vector reads the vector in the file named by a key's value. It reports whether the line has the key.
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
		c.errs = append(c.errs, fmt.Errorf("%s=%s: %w", key, name, err))
	}
	return v, true
}
