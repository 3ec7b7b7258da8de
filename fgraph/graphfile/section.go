package graphfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
)

// A Section is a block of lines beside the graphs of a file:
//
//	program {
//	    input node=input
//	}
//
// A section in front of the first graph is a table of its dialect, see [Tabler]. One behind a
// graph holds what a feature of that graph means, see [WrittenFeature].
type Section struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"`

	file string
	at   []int // by line: its number in the file
}

// Errorf returns an error about a line.
func (s *Section) Errorf(line int, format string, args ...any) error {
	at := 0
	if line < len(s.at) {
		at = s.at[line]
	} else if len(s.at) > 0 {
		at = s.at[len(s.at)-1]
	}
	return fmt.Errorf("%w: %s:%d: %s: %w", ErrSyntax, s.file, at, s.Name, fmt.Errorf(format, args...))
}

// A WrittenFeature is a feature that is part of what a graph means, such as decisions that later
// passes and the execution depend on.
type WrittenFeature interface {
	fgraph.Feature
	// GraphSection returns the feature as a section: its name, an identifier, and its lines. id
	// returns the text by which a variable of the graph is called. Without a name nothing is
	// written.
	GraphSection(id func(*fgraph.Variable) string) (name string, lines []string, err error)
}

// A SectionReader attaches the feature that a section says, to the graph above it. lookup returns
// the variable that is called by a text, or nil.
type SectionReader func(g *fgraph.FunctionGraph, s *Section, lookup func(id string) *fgraph.Variable) error

// A SectionDialect is a dialect that reads sections behind graphs.
type SectionDialect interface {
	Dialect
	// SectionReader returns the reader for sections of that name, or nil.
	SectionReader(name string) SectionReader
}

// A Tabler is a dialect that keeps what several ops have in common in sections in front of the
// graphs.
type Tabler interface {
	Dialect
	// Open returns the dialect for one file.
	Open() Tables
}

// Tables is the dialect for one file, with the tables that the ops of the file name entries of.
type Tables interface {
	Dialect
	// Tables returns the sections with everything that the ops whose texts were asked for need.
	Tables() []Section
	// ReadTable reads a section. It reports false if it knows none of that name.
	ReadTable(s *Section) (known bool, err error)
}

// WithSections returns a dialect that also reads the sections that the readers, by name, are for.
func WithSections(d Dialect, readers map[string]SectionReader) Dialect {
	e := extended{d, readers}
	if t, ok := d.(Tabler); ok {
		return extendedTabler{e, t}
	}
	return e
}

type extended struct {
	Dialect
	readers map[string]SectionReader
}

func (e extended) SectionReader(name string) SectionReader {
	if r := e.readers[name]; r != nil {
		return r
	}
	if d, ok := e.Dialect.(SectionDialect); ok {
		return d.SectionReader(name)
	}
	return nil
}

type extendedTabler struct {
	extended
	t Tabler
}

func (e extendedTabler) Open() Tables {
	t := e.t.Open()
	return extendedTables{extended{t, e.readers}, t}
}

type extendedTables struct {
	extended
	t Tables
}

func (e extendedTables) Tables() []Section                  { return e.t.Tables() }
func (e extendedTables) ReadTable(s *Section) (bool, error) { return e.t.ReadTable(s) }

const graphName = "graph"

// sectionName returns the name in the head of a section, or "".
func sectionName(line string) string {
	if name, ok := strings.CutSuffix(line, " {"); ok && isSectionName(name) {
		return name
	}
	return ""
}

// isSectionName reports whether a section can have the name.
func isSectionName(s string) bool { return s == graphName || isFieldName(s) }

// section reads a section, and lets the dialect make something of it.
func (r *reader) section(f *File) error {
	s := &Section{Name: sectionName(r.text), file: r.name}
	head := r.line
	for {
		if _, ok := r.next(); !ok {
			return r.fault("\"}\" is missing, which closes section %s of line %d", s.Name, head)
		}
		if r.text == "}" {
			break
		}
		if r.text != "" && r.text[0] != '#' {
			s.Lines, s.at = append(s.Lines, r.text), append(s.at, r.line)
		}
	}
	known := false
	var err error
	if f.Graph == nil {
		if t, ok := r.d.(Tables); ok {
			known, err = t.ReadTable(s)
		}
	} else if d, ok := r.d.(SectionDialect); ok {
		if read := d.SectionReader(s.Name); read != nil {
			g := f.Graph
			if len(f.More) > 0 {
				g = f.More[len(f.More)-1]
			}
			known, err = true, read(g, s, func(id string) *fgraph.Variable { return r.vars[id] })
		}
	}
	if err != nil && !errors.Is(err, ErrSyntax) {
		r.line = head
		err = r.fault("section %s: %w", s.Name, err)
	}
	if err == nil && !known {
		r.line = head
		err = r.fault("there is no section %q here", s.Name)
	}
	return err
}

// check returns an error unless the section can be written.
func (s *Section) check() error {
	if !isFieldName(s.Name) {
		return fmt.Errorf("%q is not the name of a section", s.Name)
	}
	for _, line := range s.Lines {
		if line != strings.TrimSpace(line) || line == "" || line == "}" || line[0] == '#' || strings.Contains(line, "\n") {
			return fmt.Errorf("%q can't be a line of section %s", fileio.Excerpt(line, 0), s.Name)
		}
	}
	return nil
}
