package kaldiio

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Range is a rectangle of a matrix, which a script may ask for after a file name: [0:9],
// [0:9,3:5] or [:,3:5]. Both ends are included. Absent bounds are -1.
type Range struct{ FirstRow, LastRow, FirstCol, LastCol int }

// parseRange parses the text between the brackets.
func parseRange(text string) (Range, error) {
	rows, cols, _ := strings.Cut(text, ",")
	r := Range{-1, -1, -1, -1}
	var ok1, ok2 bool
	r.FirstRow, r.LastRow, ok1 = parseInterval(rows)
	r.FirstCol, r.LastCol, ok2 = parseInterval(cols)
	if !ok1 || !ok2 || text == "" {
		return r, fmt.Errorf("range [%.60s]: want [first:last], [first:last,first:last] or [:,first:last]: %w", text, ErrSpecifier)
	}
	return r, nil
}

// parseInterval parses "first:last". A lone ":" or nothing means everything.
func parseInterval(text string) (first, last int, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || text == ":" {
		return -1, -1, true
	}
	a, b, found := strings.Cut(text, ":")
	if !found {
		return 0, 0, false
	}
	x, err1 := strconv.ParseUint(strings.TrimSpace(a), 10, 31)
	y, err2 := strconv.ParseUint(strings.TrimSpace(b), 10, 31)
	return int(x), int(y), err1 == nil && err2 == nil && x <= y
}

// excessRows is how many rows a range may exceed a matrix, because tools that count frames differ.
const excessRows = 3

// ErrRange means that a matrix lacks rows or columns of a range.
var ErrRange = errors.New("range out of bounds")

// Slice returns the rectangle of the matrix, which shares its memory. As in Kaldi the last row may
// be up to three rows beyond the end; otherwise missing rows or columns are an ErrRange.
func (m Matrix) Slice(r Range) (Matrix, error) {
	row, rows, col, cols, err := r.in(m.Rows, m.Cols)
	if err != nil {
		return Matrix{}, err
	}
	return Matrix{Rows: rows, Cols: cols, Stride: m.Stride, Data: m.Data[row*m.Stride+col : (row+rows-1)*m.Stride+col+cols]}, nil
}

// in returns the rectangle of a matrix of given rows and columns: its first row, its rows, its
// first column and its columns. Both are at least one.
func (r Range) in(rows, cols int) (row, height, col, width int, err error) {
	r0, r1, c0, c1 := 0, rows-1, 0, cols-1
	if r.FirstRow >= 0 {
		r0, r1 = r.FirstRow, r.LastRow
	}
	if r.FirstCol >= 0 {
		c0, c1 = r.FirstCol, r.LastCol
	}
	if r1 >= rows && r1 < rows+excessRows {
		r1 = rows - 1
	}
	if r0 > r1 || r1 >= rows || c0 > c1 || c1 >= cols {
		return 0, 0, 0, 0, fmt.Errorf("rows %d to %d, columns %d to %d of a matrix of %d by %d: %w", r0, r1, c0, c1, rows, cols, ErrRange)
	}
	return r0, r1 - r0 + 1, c0, c1 - c0 + 1, nil
}

// ScriptLine is a line of a script: a key, the rxfilename of an object, and perhaps a range of it.
type ScriptLine struct {
	Key, Name string
	Range     Range
	HasRange  bool
}

// File returns the name of the file without an offset.
func (s *ScriptLine) File() string {
	name, _ := splitOffset(s.Name)
	return name
}

// ParseScriptLine parses a line of a script. The error wraps ErrSpecifier.
func ParseScriptLine(line string) (ScriptLine, error) {
	text := strings.TrimSpace(line)
	if text == "" {
		return ScriptLine{}, fmt.Errorf("empty line: %w", ErrSpecifier)
	}
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return ScriptLine{}, fmt.Errorf("line %.60q has a key and nothing else: %w", line, ErrSpecifier)
	}
	s := ScriptLine{Key: text[:i], Name: strings.TrimSpace(text[i:])}
	if s.Name[0] == '[' || strings.IndexByte(s.Name, 0) >= 0 {
		return s, fmt.Errorf("line %.60q has an object where a script has the name of a file; is this an archive, ark:? %w", line, ErrSpecifier)
	}
	if strings.HasSuffix(s.Name, "]") {
		open := strings.LastIndexByte(s.Name, '[')
		if open < 0 {
			return s, fmt.Errorf("line %.60q: a bracket is not opened: %w", line, ErrSpecifier)
		}
		var err error
		if s.Range, err = parseRange(s.Name[open+1 : len(s.Name)-1]); err != nil {
			return s, err
		}
		s.HasRange = true
		s.Name = strings.TrimSpace(s.Name[:open])
	}
	return s, nil
}

const (
	maxScriptLine = math.MaxUint16 // bytes of a line; a longer line means that the file is not a script
	maxScript     = 1 << 30        // bytes of a script that is kept in memory
)

// scriptLine reads the next line of a script; ok is false at its end.
func (r *Reader) scriptLine() (line ScriptLine, ok bool, err error) {
	if r.atEOF() {
		return line, false, nil
	}
	at := r.Offset()
	text, err := r.lineOf(maxScriptLine)
	if err != nil {
		return line, false, err
	}
	if len(text) > maxScriptLine {
		return line, false, r.errorAt(at, ErrCorrupt, "a line that is far too long for a script")
	}
	if line, err = ParseScriptLine(text); err != nil {
		r.line--
		e := r.errorAt(at, ErrCorrupt, err.Error())
		r.line++
		return line, false, e
	}
	return line, true, nil
}

// ReadScript returns the lines of the script that an rxfilename names.
func ReadScript(o *Opener, rxfilename string) ([]ScriptLine, error) {
	f, err := o.OpenInput(rxfilename)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []ScriptLine
	err = newReader(f, rxfilename).eachScriptLine(func(line ScriptLine) error {
		lines = append(lines, line)
		return nil
	})
	return lines, err
}

// eachScriptLine calls keep for each line of a script that is kept in memory.
func (r *Reader) eachScriptLine(keep func(ScriptLine) error) error {
	for {
		line, more, err := r.scriptLine()
		if err != nil || !more {
			return err
		}
		if r.Offset() > maxScript {
			return r.Errorf("a script of more than %d bytes, the limit where it is held in memory", maxScript)
		}
		if err := keep(line); err != nil {
			return err
		}
	}
}
