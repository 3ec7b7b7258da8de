package lower

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/nnet3"
)

// errText is wrapped by errors about the text of ops, types and sections in graph files.
var errText = errors.New("lower: bad text")

// Dialect is how graphs of computations are written to files, see package graphfile: ops with all
// their parameters, components by their names in the network, components that were derived from
// them and precomputed indexes in tables in front of the graphs, and the [Program] and the
// [Storage] of each graph in sections behind it. The network is a file of its own.
//
// The programs of a chain follow each other in one file, see [Chain.Graphs] and [ChainOf].
type Dialect struct {
	// Network has the components. It is needed to read a file, and to write one with derived
	// components.
	Network *nnet3.Nnet
}

// Limits of what a file may say, so that a short text does not cost much memory.
const (
	maxRows     = 1 << 24 // of a matrix
	maxCols     = 1 << 24
	maxElements = 1 << 24 // of all lists in a file
)

// Open returns the dialect for one file.
func (d Dialect) Open() graphfile.Tables { return newFileDialect(d.Network) }

// OpText returns an op as text, for people: entries of tables are left out.
func (d Dialect) OpText(op fgraph.Op) (string, error) { return opText(op, nil) }

// ParseOp reads the text of an op that names no entry of a table.
func (d Dialect) ParseOp(text string) (fgraph.Op, error) { return d.Open().ParseOp(text) }

// ParseType returns the type of a text, such as 3x4, state(5) or memo(7).
func (Dialect) ParseType(text string) (fgraph.Type, error) {
	if rows, cols, ok := strings.Cut(text, "x"); ok {
		r, err := parseInt(rows, 0, maxRows)
		c, err2 := parseInt(cols, 0, maxCols)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("%w: the size of a matrix has the form 3x4, with at most %d rows and %d columns", errText, maxRows, maxCols)
		}
		return MatrixType{Rows: r, Cols: c}, nil
	}
	name, rest, _ := strings.Cut(text, "(")
	digits, ok := strings.CutSuffix(rest, ")")
	n, err := parseInt(digits, -1, 1<<31-1)
	switch {
	case !ok || err != nil:
	case name == "state":
		return StateType{n}, nil
	case name == "memo":
		return MemoType{n}, nil
	}
	return nil, fmt.Errorf("%w: not a type such as 3x4, state(5) or memo(7)", errText)
}

// DataText reports an error: graphs of computations have no constants but those of [Fill].
func (Dialect) DataText(t fgraph.Type, _ any) (string, error) {
	return "", fmt.Errorf("%w: a constant of type %v", errText, t)
}

// ParseData reports an error, as DataText does.
func (Dialect) ParseData(t fgraph.Type, _ string) (any, error) {
	return nil, fmt.Errorf("%w: a constant of type %v; Fill makes constants", errText, t)
}

// Check returns an error if the op of an apply can't have its inputs or outputs.
func (d Dialect) Check(a *fgraph.Apply) error { return d.Open().Check(a) }

// SectionReader returns the reader of the sections that programs and storages are written as.
func (d Dialect) SectionReader(name string) graphfile.SectionReader {
	switch name {
	case programSection:
		return func(g *fgraph.FunctionGraph, s *graphfile.Section, _ func(string) *fgraph.Variable) error {
			return readProgram(g, s, d.Network)
		}
	case storageSection:
		return readStorage
	}
	return nil
}

// parseInt reads a number from least to most.
func parseInt(text string, least, most int64) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%w: %q is not a number from %d to %d", errText, fileio.Excerpt(text, 0), least, most)
	}
	return int32(n), nil
}
