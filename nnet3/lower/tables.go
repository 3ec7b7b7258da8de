package lower

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// The tables in front of the graphs of a file. Ops name their entries by #1, #2, ….
const (
	derivedTable = "derived"
	indexesTable = "indexes"
)

// fileDialect is the dialect for one file.
type fileDialect struct {
	Dialect
	elements int // of lists so far

	// Numbers of the components of the network, by component and by name; nil until needed.
	numbers map[component.Component]int
	byName  map[string]int

	// Writing. Entry n of a table has number n+1.
	derived     map[component.Component]int
	derivedText []string
	indexes     map[*computation.PrecomputedIndexesInfo]int
	written     []indexEntry

	// Reading.
	derivedRead []component.Component
	indexesRead []*computation.PrecomputedIndexesInfo
	sizes       map[*computation.PrecomputedIndexesInfo][2]int // rows of input and output
}

// indexEntry is precomputed indexes with the component that computes them or, if only optimizations
// make such indexes, their text.
type indexEntry struct {
	info     *computation.PrecomputedIndexesInfo
	by, text string
	backward bool
}

func newFileDialect(net *nnet3.Nnet) *fileDialect {
	return &fileDialect{Dialect: Dialect{net}, derived: make(map[component.Component]int),
		indexes: make(map[*computation.PrecomputedIndexesInfo]int), sizes: make(map[*computation.PrecomputedIndexesInfo][2]int)}
}

// OpText returns an op as text.
func (d *fileDialect) OpText(op fgraph.Op) (string, error) { return opText(op, d) }

// claim accounts for elements of lists.
func (d *fileDialect) claim(n int) error {
	if d == nil {
		return nil
	}
	if n < 0 || n > maxElements-d.elements {
		return fmt.Errorf("%w: the lists of rows have more than %d elements", errText, maxElements)
	}
	d.elements += n
	return nil
}

// componentText returns the name of a component, with its number in the table if it is derived.
func (d *fileDialect) componentText(c Component) (string, error) {
	if c.Number >= 0 || d == nil {
		return token(c.Name), nil
	}
	ref, err := d.reference(c.C)
	return token(c.Name) + ref, err
}

// reference returns the number of a derived component in the table, which it enters there, or the
// name of one of the network.
func (d *fileDialect) reference(c component.Component) (string, error) {
	if _, ok := c.(component.Derived); !ok {
		n, ok := d.number(c)
		if !ok {
			return "", fmt.Errorf("%w: the network has no such component: %s", errText, c.Type())
		}
		return token(d.Network.ComponentNames[n]), nil
	}
	n, ok := d.derived[c]
	if !ok {
		text, err := component.DerivedText(c, d.reference)
		if err != nil {
			return "", err
		}
		d.derivedText = append(d.derivedText, text)
		n = len(d.derivedText)
		d.derived[c] = n
	}
	return "#" + strconv.Itoa(n), nil
}

// number returns the number of a component in the network.
func (d *fileDialect) number(c component.Component) (int, bool) {
	if d.Network == nil {
		return 0, false
	}
	if d.numbers == nil {
		d.numbers = make(map[component.Component]int, len(d.Network.Components))
		for i, c := range slices.Backward(d.Network.Components) {
			d.numbers[c] = i
		}
	}
	n, ok := d.numbers[c]
	return n, ok
}

// parseComponent reads what componentText wrote.
func (d *fileDialect) parseComponent(text string) (Component, error) {
	at := strings.LastIndexByte(text, '#')
	if at < 0 || strings.HasSuffix(text, `"`) {
		c, number, err := d.find(text)
		if err != nil {
			return Component{}, err
		}
		return Component{C: c, Number: int32(number), Name: d.Network.ComponentNames[number]}, nil
	}
	name, err := parseToken(text[:at])
	if err != nil {
		return Component{}, err
	}
	c, err := d.referenced(text[at:])
	return Component{C: c, Number: -1, Name: name}, err
}

// find returns the component of the network that a token names.
func (d *fileDialect) find(text string) (component.Component, int, error) {
	name, err := parseToken(text)
	if err != nil {
		return nil, 0, err
	}
	if d.Network == nil {
		return nil, 0, fmt.Errorf("%w: component %s: there is no network", errText, fileio.Excerpt(text, 0))
	}
	if d.byName == nil {
		d.byName = make(map[string]int, len(d.Network.ComponentNames))
		for i, name := range slices.Backward(d.Network.ComponentNames) {
			d.byName[name] = i
		}
	}
	n, ok := d.byName[name]
	if !ok {
		return nil, 0, fmt.Errorf("%w: the network has no component %s", errText, fileio.Excerpt(text, 0))
	}
	return d.Network.Components[n], n, nil
}

// referenced returns the component that reference wrote.
func (d *fileDialect) referenced(text string) (component.Component, error) {
	digits, ok := strings.CutPrefix(text, "#")
	if !ok {
		c, _, err := d.find(text)
		return c, err
	}
	n, err := parseInt(digits, 1, 1<<30)
	if err != nil || int(n) > len(d.derivedRead) {
		return nil, fmt.Errorf("%w: there is no derived component %s above", errText, fileio.Excerpt(text, 0))
	}
	return d.derivedRead[n-1], nil
}

// indexesNumber returns the number of precomputed indexes in the table, as text. It enters them
// there.
func (d *fileDialect) indexesNumber(c Component, pre *computation.PrecomputedIndexesInfo, backward bool) (string, error) {
	if d == nil {
		return "", nil
	}
	n, ok := d.indexes[pre]
	if !ok {
		e, err := d.newEntry(c, pre)
		if err != nil {
			return "", err
		}
		d.written = append(d.written, e)
		n = len(d.written)
		d.indexes[pre] = n
	}
	d.written[n-1].backward = d.written[n-1].backward || backward
	return "#" + strconv.Itoa(n), nil
}

// newEntry returns the entry for precomputed indexes of a component, which is shared by components
// derived from it.
func (d *fileDialect) newEntry(c Component, pre *computation.PrecomputedIndexesInfo) (indexEntry, error) {
	e := indexEntry{info: pre}
	if len(pre.OutputIndexes) == 0 {
		text, ok := component.PrecomputedText(pre.Data)
		if !ok {
			return e, fmt.Errorf("%w: the indexes of %s have no text: %T", errText, c.Name, pre.Data)
		}
		e.text = text
		return e, nil
	}
	base := c.C
	for b, ok := base.(component.Derived); ok; b, ok = base.(component.Derived) {
		base = b.Base()
	}
	if c.Number >= 0 {
		e.by = token(c.Name)
		return e, nil
	}
	var err error
	e.by, err = d.reference(base)
	return e, err
}

// indexesOf returns the entry of a number.
func (d *fileDialect) indexesOf(number string) (*computation.PrecomputedIndexesInfo, error) {
	n, err := parseInt(number, 1, 1<<30)
	if err != nil || int(n) > len(d.indexesRead) {
		return nil, fmt.Errorf("%w: there are no indexes #%s above", errText, fileio.Excerpt(number, 0))
	}
	return d.indexesRead[n-1], nil
}

// Tables returns the tables.
func (d *fileDialect) Tables() []graphfile.Section {
	indexes := make([]string, len(d.written))
	for i := range d.written {
		indexes[i] = d.written[i].line()
	}
	var list []graphfile.Section
	for _, s := range [...]graphfile.Section{{Name: derivedTable, Lines: slices.Clone(d.derivedText)}, {Name: indexesTable, Lines: indexes}} {
		for i := range s.Lines {
			s.Lines[i] = fmt.Sprintf("%d = %s", i+1, s.Lines[i])
		}
		if len(s.Lines) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// line returns an entry of the table of indexes.
func (e *indexEntry) line() string {
	if e.by == "" {
		return e.text
	}
	direction := "forward"
	if e.backward {
		direction = "backward"
	}
	b := fmt.Appendf(nil, "of %s %s [", e.by, direction)
	b = appendIndexes(b, e.info.InputIndexes)
	b = append(b, "] ["...)
	b = appendIndexes(b, e.info.OutputIndexes)
	return string(append(b, ']'))
}

// appendIndexes appends a list of indexes: n/t, or n/t/x if an x is not 0.
func appendIndexes(b []byte, list []index.Index) []byte {
	k := 2
	if slices.ContainsFunc(list, func(x index.Index) bool { return x.X != 0 }) {
		k = 3
	}
	return index.AppendRuns(b, k, len(list), func(i, j int) int32 { return [3]int32{list[i].N, list[i].T, list[i].X}[j] })
}

// ReadTable reads a table.
func (d *fileDialect) ReadTable(s *graphfile.Section) (bool, error) {
	var read func(text string) error
	switch s.Name {
	case derivedTable:
		read = d.readDerived
	case indexesTable:
		read = d.readIndexes
	default:
		return false, nil
	}
	for i, line := range s.Lines {
		number, text, _ := strings.Cut(line, " = ")
		n := len(d.derivedRead) + 1
		if s.Name == indexesTable {
			n = len(d.indexesRead) + 1
		}
		if number != strconv.Itoa(n) {
			return true, s.Errorf(i, "the line begins with \"%d = \"", n)
		}
		if err := read(text); err != nil {
			return true, s.Errorf(i, "%w", err)
		}
	}
	return true, nil
}

func (d *fileDialect) readDerived(text string) error {
	c, err := component.ParseDerived(text, d.referenced)
	if err != nil {
		return err
	}
	d.derivedRead = append(d.derivedRead, c)
	return nil
}

func (d *fileDialect) readIndexes(text string) error {
	rest, ok := strings.CutPrefix(text, "of ")
	if !ok {
		data, inRows, outRows, err := component.ParsePrecomputed(text, d.claim)
		if err != nil {
			return err
		}
		d.addIndexes(&computation.PrecomputedIndexesInfo{Data: data}, inRows, outRows)
		return nil
	}
	name, rest, _ := strings.Cut(rest, " ")
	direction, lists, _ := strings.Cut(rest, " [")
	in, out, ok := strings.Cut(lists, "] [")
	out, closed := strings.CutSuffix(out, "]")
	if !ok || !closed || direction != "forward" && direction != "backward" {
		return fmt.Errorf("%w: indexes have the form \"of COMPONENT forward [inputs] [outputs]\"", errText)
	}
	c, _, err := d.find(name)
	if err != nil {
		return err
	}
	by, ok := c.(component.NonSimple)
	if !ok {
		return fmt.Errorf("%w: %s does not look at indexes", errText, c.Type())
	}
	p := new(computation.PrecomputedIndexesInfo)
	if p.InputIndexes, err = d.parseIndexes(in); err != nil {
		return err
	}
	if p.OutputIndexes, err = d.parseIndexes(out); err != nil {
		return err
	}
	if p.Data, err = by.PrecomputeIndexes(p.InputIndexes, p.OutputIndexes, direction == "backward"); err != nil {
		return fmt.Errorf("%w: %w", errText, err)
	}
	d.addIndexes(p, len(p.InputIndexes), len(p.OutputIndexes))
	return nil
}

func (d *fileDialect) addIndexes(p *computation.PrecomputedIndexesInfo, inRows, outRows int) {
	d.indexesRead = append(d.indexesRead, p)
	d.sizes[p] = [2]int{inRows, outRows}
}

func (d *fileDialect) parseIndexes(text string) (list []index.Index, err error) {
	err = index.ParseRuns(text, 2, 3, func(t []int32) error {
		list = append(list, index.Index{N: t[0], T: t[1], X: t[2]})
		return d.claim(1)
	})
	return list, err
}
