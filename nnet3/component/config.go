package component

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// ConfigLine is a line of a network's configuration: a first word, then key=value pairs. It records
// the keys that were asked for, and all faults (Err).
type ConfigLine struct {
	// First is the word before the pairs, "component" for example. It may be empty.
	First string
	// Rand is the source of initial parameters. If it is nil, the first use creates one with a
	// fixed seed.
	Rand *rand.Rand
	// Open opens a file named by a value, as in matrix=lda.mat. If it is nil, os.Open does.
	Open func(name string) (io.ReadCloser, error)
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
