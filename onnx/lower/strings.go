package lower

import (
	"fmt"
	"strings"
	"sync"

	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

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
