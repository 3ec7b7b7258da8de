package nnet3

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// configError is a fault of a config line. It wraps ErrConfig.
type configError struct {
	line configLine
	err  error
}

// Error returns place, item and fault.
func (e *configError) Error() string {
	s := fmt.Sprintf("%s:%d: ", e.line.source, e.line.number)
	if item := e.line.item(); item != "" {
		s += item + ": "
	}
	return s + e.err.Error()
}

// Unwrap returns ErrConfig and the cause.
func (e *configError) Unwrap() []error { return []error{ErrConfig, e.err} }

// maxNumbers bounds the numbers that all components of a config generate. They take 4 GiB.
const maxNumbers = 1 << 30

// lineKinds are the words that config lines begin with.
var lineKinds = append([]string{"component"}, kindNames[:]...)

// configLine is a line of a config with its position.
type configLine struct {
	*component.ConfigLine
	source string
	number int
	name   string // the value of name=
}

// item returns what the line defines.
func (l *configLine) item() string {
	return strings.TrimSpace(fileio.Excerpt(l.First, 0) + " " + fileio.Excerpt(l.name, 0))
}

// configReader turns lines into a network and collects their faults.
type configReader struct {
	nn    *Nnet
	lines []configLine
	old   int // how many of the lines are those of an existing network, which the others may replace
	seed  uint64
	room  int // for numbers that components generate
	terms int // room for nodes in the trees of descriptors
	faults
	starts     []int          // by line, the number of its first node
	components map[string]int // by name
}

// ParseConfig is [Loader.ParseConfig] for the types of package component.
func ParseConfig(r io.Reader, name string, seed uint64) (*Nnet, error) {
	return Loader{}.ParseConfig(r, name, seed)
}

// ParseConfig makes a network from config lines, which it reads from r to the end. Errors mention
// the name. Random parameters depend only on the seed and the name of the component. One error,
// which wraps ErrConfig or ErrNetwork, reports all faults.
func (l Loader) ParseConfig(r io.Reader, name string, seed uint64) (*Nnet, error) {
	nn := &Nnet{types: l.types()}
	if err := nn.ReadConfig(r, name, seed); err != nil {
		return nil, err
	}
	return nn, nil
}

// ReadConfig changes the network as the config lines say. A node or component replaces that of its
// name in the network; others are added. As in Kaldi, no two lines may define the same node or
// component. Nodes may be used before they are defined. An error changes nothing.
func (nn *Nnet) ReadConfig(r io.Reader, name string, seed uint64) error {
	return nn.readConfig(r, name, seed, maxNumbers)
}

// readConfig is ReadConfig with a bound on the numbers that components generate.
func (nn *Nnet) readConfig(r io.Reader, name string, seed uint64, room int) error {
	text, err := fileio.ReadAll(r, "the file of config lines", fileio.MaxText)
	if errors.Is(err, fileio.ErrLimit) {
		err = fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	next := &Nnet{types: cmp.Or(nn.types, component.Kaldi()), Components: slices.Clone(nn.Components), ComponentNames: slices.Clone(nn.ComponentNames)}
	c := &configReader{nn: next, seed: seed, room: room, terms: descriptor.MaxSize}
	for i := range nn.Nodes {
		if line := nn.ConfigLine(i); line != "" {
			c.addLine(line, "network", i+1)
		}
	}
	c.old = len(c.lines)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		c.addLine(strings.TrimRight(line, "\r\n"), name, n)
	}
	if err := c.build(); err != nil {
		return err
	}
	if err := next.Check(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	*nn = *next
	return nil
}

// addLine parses a line. It drops an empty one.
func (c *configReader) addLine(text, source string, number int) {
	if c.full() {
		return
	}
	line, err := component.ParseConfigLine(text)
	if err != nil {
		c.fail(&configLine{ConfigLine: &component.ConfigLine{}, source: source, number: number}, err)
		return
	}
	l := configLine{ConfigLine: line, source: source, number: number}
	if line.First == "" {
		if left := line.Unused(); left != "" {
			c.failf(&l, "the line does not begin with what it defines: %s", left)
		}
		return
	}
	if !slices.Contains(lineKinds, line.First) {
		c.failf(&l, "unknown kind of line%s", didYouMean(line.First, lineKinds...))
		return
	}
	var ok bool
	if l.name, ok = line.Value("name"); !ok || l.name == "" {
		c.failf(&l, "name= is missing")
		return
	}
	if !validName(l.name) {
		c.failf(&l, "%.300q is not a valid name: a letter or _, then letters, digits, _, - and .", l.name)
		return
	}
	c.lines = append(c.lines, l)
}

// validName reports whether s may name a node or a component.
func validName(s string) bool {
	for i := range len(s) {
		ch := s[i]
		letter := ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch == '_'
		if !letter && (i == 0 || !(ch >= '0' && ch <= '9' || ch == '-' || ch == '.')) {
			return false
		}
	}
	return s != ""
}

func (c *configReader) fail(l *configLine, err error) { c.add(&configError{*l, err}) }

func (c *configReader) failf(l *configLine, format string, args ...any) {
	c.fail(l, fmt.Errorf(format, args...))
}

// didYouMean returns the end of a message about an unknown name.
func didYouMean(name string, candidates ...string) string {
	if s := spell.Nearest(name, candidates); s != "" {
		return fmt.Sprintf(" %q; did you mean %q?", fileio.Excerpt(name, 0), fileio.Excerpt(s, 0))
	}
	return fmt.Sprintf(" %q", fileio.Excerpt(name, 0))
}

// misspelt lists the unused keys of a line that look like known ones.
func misspelt(l *component.ConfigLine) string {
	var list []string
	for _, key := range l.UnusedKeys() {
		if near := spell.Nearest(key, l.KnownKeys()); near != "" {
			list = append(list, fmt.Sprintf("%s (for %s)", near, key))
		}
	}
	return strings.Join(list, ", ")
}

// build makes components and nodes from the lines.
func (c *configReader) build() error {
	c.dropReplaced()
	c.declare()
	if c.errs == nil { // if names are missing, the second pass would report follow-up faults
		for i := 0; i < len(c.lines) && !c.full(); i++ {
			c.define(i)
		}
	}
	return c.err()
}

// dropReplaced drops the lines of the network that others replace, and those that define again what a line before
// them does, which is a fault.
func (c *configReader) dropReplaced() {
	type key struct {
		component bool
		name      string
	}
	by := make(map[key]int, len(c.lines)) // the first line, except those of the network that others replace
	for i := range c.lines {
		l := &c.lines[i]
		k := key{l.First == "component", l.name}
		if first, ok := by[k]; ok && first >= c.old {
			c.failf(l, "already defined on line %d", c.lines[first].number)
			continue
		}
		by[k] = i
	}
	kept := c.lines[:0]
	for i, l := range c.lines {
		if by[key{l.First == "component", l.name}] == i {
			kept = append(kept, l)
		}
	}
	c.lines, c.old = kept, 0
}

// declare is the first pass: it makes the components, and nodes with only a kind and a name.
func (c *configReader) declare() {
	c.starts = make([]int, len(c.lines))
	c.components = make(map[string]int)
	for i, name := range c.nn.ComponentNames {
		c.components[name] = i
	}
	defined := make(map[string]*configLine)
	add := func(l *configLine, kind NodeKind, name string) {
		if other := defined[name]; other != nil {
			c.failf(l, "the name %s is taken by line %d (%s)", name, other.number, other.item())
			return
		}
		defined[name] = l
		c.nn.Nodes = append(c.nn.Nodes, Node{Kind: kind, Name: name})
	}
	for i := range c.lines {
		l := &c.lines[i]
		c.starts[i] = len(c.nn.Nodes)
		switch l.First {
		case "component":
			c.component(l)
		case "component-node":
			add(l, DescriptorNode, l.name+"_input")
			add(l, ComponentNode, l.name)
		case "input-node":
			add(l, InputNode, l.name)
		case "output-node":
			add(l, DescriptorNode, l.name)
		case "dim-range-node":
			add(l, DimRangeNode, l.name)
		}
	}
	c.nn.indexNodes()
}

// component makes the component that a line describes.
func (c *configReader) component(l *configLine) {
	typ, ok := l.Value("type")
	if !ok {
		c.failf(l, "type= is missing")
		return
	}
	comp, ok := c.nn.types.New(typ)
	if !ok {
		c.fail(l, c.unknownType(typ))
		return
	}
	name := fnv.New64a()
	io.WriteString(name, l.name)
	l.MaxNumbers = c.room
	if c.room == 0 {
		l.MaxNumbers = -1
	}
	defer func() { c.room -= l.Numbers() }()
	l.Types = c.nn.types
	l.Rand = rand.New(rand.NewPCG(c.seed, name.Sum64()))
	if err := component.Init(comp, l.ConfigLine); err != nil {
		if meant := misspelt(l.ConfigLine); meant != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, meant)
		}
		c.fail(l, err)
		return
	}
	if left := l.Unused(); left != "" {
		if meant := misspelt(l.ConfigLine); meant != "" {
			left += "; did you mean " + meant + "?"
		}
		c.failf(l, "%s does not know %s", typ, left)
		return
	}
	if i, ok := c.components[l.name]; ok {
		c.nn.Components[i] = comp
		return
	}
	c.components[l.name] = len(c.nn.Components)
	c.nn.Components = append(c.nn.Components, comp)
	c.nn.ComponentNames = append(c.nn.ComponentNames, l.name)
}

// unknownType returns the error for an unknown type of component.
func (c *configReader) unknownType(typ string) error {
	text := fileio.Excerpt(typ, 0)
	const suffix = "Component" // all types have it, so it must not count as similarity
	names := lists.Map(c.nn.types.Types(), func(t string) string { return strings.TrimSuffix(t, suffix) })
	if near := spell.Nearest(strings.TrimSuffix(typ, suffix), names); near != "" {
		return fmt.Errorf("type %q is %w; did you mean %s?", text, ErrUnsupported, near+suffix)
	}
	if near := spell.Nearest(typ, c.nn.types.Types()); near != "" && !strings.HasSuffix(typ, suffix) {
		return fmt.Errorf("type %q is %w; did you mean %s?", text, ErrUnsupported, near)
	}
	return fmt.Errorf("type %q is %w", text, ErrUnsupported)
}
