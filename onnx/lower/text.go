package lower

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// textual are operators of strings.
var textual = map[string]func(c *call) []*value{
	"StringConcat": func(c *call) []*value {
		// Numbers are below 1<<31, so one integer has those of two strings that are broadcast.
		pairs := tensor.Add(tensor.Mul(c.x(0), number(1<<31, c.x(0))), c.x(1))
		return c.out(c.eachNumber("StringConcat", pairs, array.Int64, func(in []int64) (*array.Array, error) {
			first, second := array.New(array.Int64, len(in)), array.New(array.Int64, len(in))
			for i, n := range in {
				first.SetInt(i, n>>31)
				second.SetInt(i, n&(1<<31-1))
			}
			list, err := c.strings.read(first)
			if err != nil {
				return nil, err
			}
			rest, err := c.strings.read(second)
			for i := range rest {
				list[i] += rest[i]
			}
			if err != nil {
				return nil, err
			}
			return c.strings.Numbers(array.OfStrings(list, len(list)))
		}), onnx.String)
	},
	"RegexFullMatch": func(c *call) []*value {
		// ONNX says RE2, which Go's are.
		r, err := regexp.Compile(`\A(?:` + c.text("pattern", "") + `)\z`)
		c.failIf(err != nil, "%w: %w", ErrUnsupported, err)
		return c.out(c.eachString("RegexFullMatch", c.x(0), array.Bool, func(list []string) (*array.Array, error) {
			return array.Of(lists.Map(list, r.MatchString), len(list)), nil
		}), onnx.Bool)
	},
	"StringNormalizer": (*call).normalizeStrings,
	"StringSplit":      (*call).splitStrings,
}

// eachNumber computes elements of a type of int64s, one for each.
func (c *call) eachNumber(name string, x variable, d array.DType, f func(in []int64) (*array.Array, error)) variable {
	return c.nodeRoutine(name, func(in []*array.Array) ([]*array.Array, error) {
		y, err := f(array.Slice[int64](in[0]))
		if err != nil {
			return nil, err
		}
		return []*array.Array{y.Reshape(in[0].Shape()...)}, nil
	}, []variable{x}, tensor.NewType(d, tensor.TypeOf(x).Shape()...))[0]
}

// eachString is eachNumber for strings.
func (c *call) eachString(name string, x variable, d array.DType, f func(list []string) (*array.Array, error)) variable {
	return c.eachNumber(name, x, d, func(in []int64) (*array.Array, error) {
		list, err := c.strings.read(array.Of(in, len(in)))
		if err != nil {
			return nil, err
		}
		return f(list)
	})
}

// cases are what StringNormalizer does with the case of letters.
var cases = map[string]func(string) string{"NONE": func(s string) string { return s }, "LOWER": strings.ToLower, "UPPER": strings.ToUpper}

// normalizeStrings removes words from a list, and changes the case of the others. Of none at least an empty one is left.
func (c *call) normalizeStrings() []*value {
	change, ok := cases[c.text("case_change_action", "NONE")]
	n := ndim(c.x(0))
	c.failIf(!ok || n < 1 || n > 2, "case %q in %d dimensions", c.text("case_change_action", "NONE"), n)
	key := strings.ToLower
	if c.bool("is_case_sensitive", false) {
		key = cases["NONE"]
	}
	stop := make(map[string]bool)
	if a := c.attribute("stopwords"); a != nil {
		for _, word := range a.Strings {
			stop[key(string(word))] = true
		}
	}
	shape := tensor.TypeOf(c.x(0)).Shape()
	shape[n-1] = tensor.Unknown
	return c.out(c.nodeRoutine("StringNormalizer", func(in []*array.Array) ([]*array.Array, error) {
		shape := slices.Clone(in[0].Shape())
		if n == 2 && shape[0] != 1 {
			return nil, fmt.Errorf("%w: %d lists of strings", ErrUnsupported, shape[0])
		}
		list, err := c.strings.read(in[0])
		if err != nil {
			return nil, err
		}
		// Words are compared as they come, before their case is changed.
		list = slices.DeleteFunc(list, func(s string) bool { return stop[key(s)] })
		for i, s := range list {
			list[i] = change(s)
		}
		if len(list) == 0 {
			list = []string{""}
		}
		shape[n-1] = len(list)
		y, err := c.strings.Numbers(array.OfStrings(list, shape...))
		return []*array.Array{y}, err
	}, []variable{c.x(0)}, tensor.NewType(array.Int64, shape...))[0], onnx.String)
}

// splitStrings divides strings at a delimiter or white space, and counts the parts of each. Empty ones fill the last
// dimension.
func (c *call) splitStrings() []*value {
	delimiter, most := c.text("delimiter", ""), -1
	if c.attribute("maxsplit") != nil {
		most = c.int("maxsplit", 0)
	}
	x := c.x(0)
	shape := tensor.TypeOf(x).Shape()
	out := c.nodeRoutine("StringSplit", func(in []*array.Array) ([]*array.Array, error) {
		list, err := c.strings.read(in[0])
		if err != nil {
			return nil, err
		}
		parts, counts, longest := make([][]string, len(list)), make([]int64, len(list)), 0
		for i, s := range list {
			parts[i] = partsOf(s, delimiter, most)
			counts[i], longest = int64(len(parts[i])), max(longest, len(parts[i]))
		}
		if longest*len(list) > maxMade {
			return nil, fmt.Errorf("%w: %d strings in %d parts", ErrUnsupported, len(list), longest)
		}
		all := make([]string, len(list)*longest)
		for i, p := range parts {
			copy(all[i*longest:], p)
		}
		y, err := c.strings.Numbers(array.OfStrings(all, append(slices.Clone(in[0].Shape()), longest)...))
		return []*array.Array{y, array.Of(counts, in[0].Shape()...)}, err
	}, []variable{x}, tensor.NewType(array.Int64, append(slices.Clone(shape), tensor.Unknown)...), tensor.NewType(array.Int64, shape...))
	return []*value{c.typed(out[0], onnx.String), c.typed(out[1], onnx.Int64)}
}

// partsOf divides a string at most so often, unless that is negative. White space at its ends is no part.
func partsOf(s, delimiter string, most int) []string {
	switch {
	case s == "": // of which ONNX does not say that it has a part
		return nil
	case delimiter != "":
		if most >= 0 {
			// SplitN counts parts, maxsplit counts cuts.
			most++
		}
		return strings.SplitN(s, delimiter, most)
	}
	var parts []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimLeftFunc(s, unicode.IsSpace) {
		end := strings.IndexFunc(s, unicode.IsSpace)
		if end < 0 || len(parts) == most {
			return append(parts, s)
		}
		parts, s = append(parts, s[:end]), s[end:]
	}
	return parts
}

// formatted returns numbers as strings.
func (c *call) formatted(x variable) variable {
	return c.nodeRoutine("Format", func(in []*array.Array) ([]*array.Array, error) {
		list := make([]string, in[0].Len())
		for i := range list {
			switch d := in[0].DType(); {
			case d == array.Float64:
				list[i] = decimal(in[0].Float(i), 1e17, 64)
			case d.IsFloat():
				list[i] = decimal(in[0].Float(i), 1e8, 32)
			case d == array.Uint64:
				list[i] = strconv.FormatUint(uint64(in[0].Int(i)), 10)
			default:
				list[i] = strconv.FormatInt(in[0].Int(i), 10)
			}
		}
		y, err := c.strings.Numbers(array.OfStrings(list, in[0].Shape()...))
		return []*array.Array{y}, err
	}, []variable{x}, tensor.NewType(array.Int64, tensor.TypeOf(x).Shape()...))[0]
}

// decimal returns a number with the fewest digits from which its type is read again, large and small ones with an
// exponent.
func decimal(v, large float64, bits int) string {
	switch {
	case v != v:
		return "NaN"
	case math.IsInf(v, 1):
		return "INF"
	case math.IsInf(v, -1):
		return "-INF"
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-4 || abs >= large) {
		format = 'e'
	}
	return strconv.FormatFloat(v, format, -1, bits)
}

// parsed returns the numbers that strings say, as float64s or, for a type of integers, int64s.
func (c *call) parsed(x variable, to onnx.DataType) variable {
	d := array.Float64
	if _, _, integers := to.Limits(); integers {
		d = array.Int64
	}
	return c.eachString("Parse", x, d, func(list []string) (*array.Array, error) {
		y := array.New(d, len(list))
		for i, s := range list {
			s = strings.TrimSpace(s)
			v, err := strconv.ParseFloat(s, 64)
			if y.SetFloat(i, v); d == array.Int64 {
				var n int64
				if n, err = strconv.ParseInt(s, 10, 64); err != nil {
					// The upper half of uint64 has the bits of negative numbers here.
					var u uint64
					u, err = strconv.ParseUint(s, 10, 64)
					n = int64(u)
				}
				y.SetInt(i, n)
			}
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrInput, err)
			}
		}
		return y, nil
	})
}

// ranks returns the places of strings among those of the tensor in their order: equal ones have one place.
func (c *call) ranks(x variable) variable {
	return c.eachString("Ranks", x, array.Int64, func(list []string) (*array.Array, error) {
		sorted := slices.Compact(slices.Sorted(slices.Values(list)))
		ranks := make([]int64, len(list))
		for i, s := range list {
			k, _ := slices.BinarySearch(sorted, s)
			ranks[i] = int64(k)
		}
		return array.Of(ranks, len(ranks)), nil
	})
}

// A stringTable holds the strings of a graph of tensors, which has their numbers, int64s, in their place: equal ones have
// equal numbers, and the empty one is 0. Strings of the graph last, and others are forgotten between runs when there
// are many. It may be used by any number of goroutines, which say when a run begins and ends.
type stringTable struct {
	runs    sync.RWMutex // held by runs, for which strings must not change their numbers
	begun   sync.Once
	mu      sync.Mutex // of all below
	list    []string
	numbers map[string]int64
	bytes   int
	lasting int // how many strings last
	lasts   int // and their bytes
}

const (
	// keptBytes is how many bytes of strings that don't last are there before they are forgotten.
	keptBytes = 1 << 20
	// maxBytes bounds the strings of runs: a loop may make each twice as long as the one before.
	maxBytes = 1 << 28
	// headerBytes is what a string takes besides its text, in the list and in the map.
	headerBytes = 64
)

func newStrings() *stringTable {
	return &stringTable{list: []string{""}, numbers: map[string]int64{"": 0}, lasting: 1}
}

// Begin begins a run, which ends with End.
func (s *stringTable) Begin() {
	// What there is before the first run is of the graph, and lasts.
	s.begun.Do(s.keep)
	s.runs.RLock()
	s.mu.Lock()
	many := s.bytes-s.lasts > keptBytes
	s.mu.Unlock()
	if many {
		// forget waits until no run is left, this one included.
		s.runs.RUnlock()
		s.forget()
		s.runs.RLock()
	}
}

// End ends a run: numbers that it was given are no strings any more.
func (s *stringTable) End() { s.runs.RUnlock() }

// forget forgets what does not last, when no run is left.
func (s *stringTable) forget() {
	s.runs.Lock()
	defer s.runs.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.list[s.lasting:] {
		delete(s.numbers, text)
	}
	// Or the list would keep the texts alive behind its end.
	clear(s.list[s.lasting:])
	s.list, s.bytes = s.list[:s.lasting], s.lasts
}

// keep makes all strings last that are there.
func (s *stringTable) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lasting, s.lasts = len(s.list), s.bytes
}

// Numbers returns the numbers of an array of strings. Another array it returns as it is.
func (s *stringTable) Numbers(a *array.Array) (*array.Array, error) {
	if a.DType() != array.String {
		return a, nil
	}
	list, err := s.of(a.Strings())
	if err != nil {
		return nil, err
	}
	return array.Of(list, a.Shape()...), nil
}

// of returns the numbers of strings.
func (s *stringTable) of(texts []string) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]int64, len(texts))
	for i, text := range texts {
		n, ok := s.numbers[text]
		if !ok {
			if s.bytes += len(text) + headerBytes; s.bytes > maxBytes {
				s.bytes -= len(text) + headerBytes
				return nil, fmt.Errorf("%w: strings of more than %d bytes", ErrUnsupported, maxBytes)
			}
			n = int64(len(s.list))
			s.list, s.numbers[text] = append(s.list, text), n
		}
		list[i] = n
	}
	return list, nil
}

// Texts returns the strings of numbers, the inverse of Numbers.
func (s *stringTable) Texts(a *array.Array) (*array.Array, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := make([]string, a.Len())
	for i := range texts {
		n := a.Int(i)
		if n < 0 || n >= int64(len(s.list)) {
			return nil, fmt.Errorf("%w: %d is no string", ErrInput, n)
		}
		texts[i] = s.list[n]
	}
	return array.OfStrings(texts, a.Shape()...), nil
}

// read is Texts for the elements of an array of strings that a routine is given.
func (s *stringTable) read(a *array.Array) ([]string, error) {
	a, err := s.Texts(a)
	if err != nil {
		return nil, err
	}
	return a.Strings(), nil
}

// moving are the operators that move strings, besides those in moves, or compare them.
var moving = func() map[string]bool {
	m := make(map[string]bool)
	for name := range strings.FieldsSeq(`Identity Shape Size Equal If Loop Scan SequenceMap Unique ScatterElements ScatterND Scatter TfIdfVectorizer
		SequenceConstruct SequenceInsert SequenceErase SequenceLength Optional OptionalHasElement OptionalGetElement ai.onnx.ml.LabelEncoder
		ai.onnx.ml.CategoryMapper ai.onnx.ml.OneHotEncoder ai.onnx.ml.ArrayFeatureExtractor`) {
		m[name] = true
	}
	return m
}()

// refuseStrings fails if an operator would compute with the numbers of strings.
func (c *call) refuseStrings() error {
	name := c.op.Name()
	if textual[name] != nil || moves[name] || moving[name] && c.text("reduction", "none") == "none" {
		return nil
	}
	for k, v := range c.in {
		if v != nil && v.elem == onnx.String && !(v.none || v.list != nil) {
			return fmt.Errorf("%w: strings as input %d of %s", ErrUnsupported, k, name)
		}
	}
	return nil
}

// texts returns the numbers of strings of an attribute, which last.
func (c *call) texts(list [][]byte) []int64 {
	texts := lists.Map(list, func(text []byte) string { return string(text) })
	numbers, err := c.strings.of(texts)
	c.failIf(err != nil, "%w", err)
	return numbers
}
