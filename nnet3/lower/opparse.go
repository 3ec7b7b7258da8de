package lower

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// ParseOp reads the text of an op.
func (d *fileDialect) ParseOp(text string) (fgraph.Op, error) {
	name, rest, ok := strings.Cut(text, "{")
	inner, closed := strings.CutSuffix(rest, "}")
	if !ok || !closed {
		return nil, fmt.Errorf("%w: an op has the form Name{parameters}", errText)
	}
	switch name {
	case "Fill":
		return parseFill(inner)
	case "Block":
		return parseBlock(inner)
	case "RowRanges":
		return d.parseRowRanges(inner)
	case "Propagate":
		return d.parsePropagate(inner)
	case "Backprop":
		return d.parseBackprop(inner)
	case "Assemble", "Scale", "SelectRows", "Sum", "Concat", "Stack", "Scatter":
		return d.parseAssemble(name, inner)
	}
	return nil, fmt.Errorf("%w: there is no op %q", errText, fileio.Excerpt(name, 0))
}

// parseSize reads "3x4".
func parseSize(text string) (MatrixType, error) {
	t, err := Dialect{}.ParseType(text)
	if err != nil {
		return MatrixType{}, err
	}
	size, ok := t.(MatrixType)
	if !ok {
		return size, fmt.Errorf("%w: the size of a matrix has the form 3x4", errText)
	}
	return size, nil
}

func parseFloat(text string) (float32, error) {
	x, err := strconv.ParseFloat(text, 32)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a number", errText, fileio.Excerpt(text, 0))
	}
	return float32(x), nil
}

func parseFill(text string) (fgraph.Op, error) {
	size, value, _ := strings.Cut(text, ", ")
	t, err := parseSize(size)
	if err != nil {
		return nil, err
	}
	x, err := parseFloat(value)
	return Fill{t.Rows, t.Cols, x}, err
}

// parseRange reads "3:5".
func parseRange(text string, most int64) (first, end int32, err error) {
	a, b, _ := strings.Cut(text, ":")
	if first, err = parseInt(a, 0, most); err != nil {
		return 0, 0, err
	}
	end, err = parseInt(b, int64(first), most)
	return first, end, err
}

// parseBlock reads "0:3,2:4".
func parseBlock(text string) (fgraph.Op, error) {
	rows, cols, _ := strings.Cut(text, ",")
	var r Rect
	var err error
	if r.R0, r.R1, err = parseRange(rows, maxRows); err == nil {
		r.C0, r.C1, err = parseRange(cols, maxCols)
	}
	return Block{r}, err
}

func (d *fileDialect) parseRowRanges(text string) (fgraph.Op, error) {
	cols, list, _ := strings.Cut(text, "; ")
	o := new(RowRanges)
	var err error
	if o.Cols, err = parseInt(cols, 0, maxCols); err != nil {
		return nil, err
	}
	err = index.ParseRuns(list, 2, 2, func(t []int32) error {
		if !(t[0] == -1 && t[1] == -1 || 0 <= t[0] && t[0] <= t[1]) {
			return fmt.Errorf("%w: not a range of rows: %v", errText, t)
		}
		o.Ranges = append(o.Ranges, computation.Pair{t[0], t[1]})
		return d.claim(1)
	})
	return o, err
}

// parseAssemble reads the terms, which must be in order, and checks that the op has the name.
func (d *fileDialect) parseAssemble(name, text string) (fgraph.Op, error) {
	size, rest, more := strings.Cut(text, "; ")
	t, err := parseSize(size)
	if err != nil {
		return nil, err
	}
	var terms []Term
	for more {
		var one string
		one, rest, more = strings.Cut(rest, "; ")
		term, err := d.parseTerm(one)
		if err != nil {
			return nil, fmt.Errorf("the term %q: %w", fileio.Excerpt(one, 0), err)
		}
		if n := len(terms); n > 0 && compareTerms(&terms[n-1], &term) > 0 {
			return nil, fmt.Errorf("%w: the term %q must come before the previous term", errText, fileio.Excerpt(one, 0))
		}
		if dst := term.Dst(); dst.R1 > t.Rows || dst.C1 > t.Cols {
			return nil, fmt.Errorf("%w: the term %q writes outside of the result", errText, fileio.Excerpt(one, 0))
		}
		terms = append(terms, term)
	}
	o := newAssemble(t.Rows, t.Cols, terms)
	if kind := o.kind(); name != kind && name != "Assemble" {
		return nil, fmt.Errorf("%w: these terms make a %s, which may also be called Assemble", errText, kind)
	}
	return o, nil
}

// parseTerm reads a term, see assembleText.
func (d *fileDialect) parseTerm(text string) (t Term, err error) {
	input, rest, _ := strings.Cut(text, "[")
	source, rest, _ := strings.Cut(rest, "]")
	t.Scale = 1
	if t.Input, err = parseInt(input, 0, 1<<30); err != nil {
		return t, err
	}
	rest, at, hasAt := strings.Cut(rest, "@")
	if hasAt {
		if t.At, err = parseInt(at, -1<<31, 1<<31-1); err != nil {
			return t, err
		}
	}
	rest, scale, scaled := strings.Cut(rest, "*")
	if scaled {
		if t.Scale, err = parseFloat(scale); err != nil {
			return t, err
		}
	}
	row, col, moved := strings.Cut(rest, ",")
	if moved {
		digits, ok := strings.CutPrefix(row, ">")
		if t.DstRow, err = parseInt(digits, 0, maxRows); err == nil {
			t.DstCol, err = parseInt(col, 0, maxCols)
		}
		if err != nil || !ok {
			return t, fmt.Errorf("%w: not a place in the result: %q", errText, fileio.Excerpt(rest, 0))
		}
	} else if rest != "" {
		return t, fmt.Errorf("%w: %q", errText, fileio.Excerpt(rest, 0))
	}
	return t, d.parseSource(&t, source)
}

// parseSource reads the rows and columns of a term.
func (d *fileDialect) parseSource(t *Term, text string) error {
	end := strings.LastIndexByte(text, ',')
	if end < 0 {
		return fmt.Errorf("%w: rows and columns are missing", errText)
	}
	rows := text[:end]
	first, last, err := parseRange(text[end+1:], maxCols)
	if err != nil {
		return err
	}
	t.SrcCol, t.NumCols = first, last-first
	if list, ok := strings.CutPrefix(rows, "{"); ok {
		if t.DstRow != 0 {
			return fmt.Errorf("%w: rows one by one begin at row 0 of the result", errText)
		}
		var pairs []RowPair
		err = index.ParseRuns(strings.TrimSuffix(list, "}"), 2, 2, func(p []int32) error {
			if min(p[0], p[1]) < 0 || max(p[0], p[1]) >= maxRows || len(pairs) > 0 && pairs[len(pairs)-1].Dst > p[0] {
				return fmt.Errorf("%w: not a pair of rows in the order of the result: %v", errText, p)
			}
			pairs = append(pairs, RowPair{p[0], p[1]})
			return d.claim(1)
		})
		if err == nil && len(pairs) > 0 {
			t.setRows(pairs)
		}
	} else {
		t.SrcRow, last, err = parseRange(rows, maxRows)
		t.NumRows = last - t.SrcRow
	}
	if err == nil && (t.NumRows < 1 || t.NumCols < 1) {
		return fmt.Errorf("%w: a term has at least one row and one column", errText)
	}
	return err
}

// parseRun reads the parameters of an op that runs a component: to its fields, or flags that it
// has.
func (d *fileDialect) parseRun(text string, c *Component, pre **computation.PrecomputedIndexesInfo, instance *int32, flags []namedFlag) error {
	words := strings.Split(text, ", ")
	var err error
	if *c, err = d.parseComponent(words[0]); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		i := slices.IndexFunc(flags, func(f namedFlag) bool { return f.name == w })
		switch {
		case seen[key]:
			err = fmt.Errorf("%w: %q is repeated", errText, fileio.Excerpt(key, 0))
		case key == "instance":
			*instance, err = parseInt(value, -1<<31, 1<<31-1)
		case strings.HasPrefix(w, "indexes#"):
			*pre, err = d.indexesOf(w[len("indexes#"):])
		case i < 0:
			err = fmt.Errorf("%w: unknown parameter %q", errText, fileio.Excerpt(w, 0))
		default:
			*flags[i].flag = true
		}
		if err != nil {
			return err
		}
		seen[key] = true
	}
	return nil
}

func (d *fileDialect) parsePropagate(text string) (fgraph.Op, error) {
	var o Propagate
	err := d.parseRun(text, &o.Component, &o.Precomputed, &o.instance, o.flags())
	return o, err
}

func (d *fileDialect) parseBackprop(text string) (fgraph.Op, error) {
	var o Backprop
	if err := d.parseRun(text, &o.Component, &o.Precomputed, &o.Instance, o.flags()); err != nil {
		return nil, err
	}
	if _, ok := o.C.(component.Backpropper); !ok {
		return nil, fmt.Errorf("%w: %s has no backward pass", errText, o.C.Type())
	}
	return o, nil
}
