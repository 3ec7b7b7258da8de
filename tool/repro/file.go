package repro

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
)

// Names of the fields of a reproducer.
const (
	fieldQuery   = "query"
	fieldCheck   = "check" // "graph"
	fieldBudget  = "budget"
	fieldSeed    = "seed"
	fieldValues  = "values"  // a line for each input
	fieldFailure = "failure" // the Kind
	fieldPass    = "pass"
	fieldRule    = "rule"
	fieldNode    = "node"
	fieldError   = "error"
)

var fields = []string{fieldQuery, fieldCheck, fieldBudget, fieldSeed, fieldValues, fieldFailure, fieldPass, fieldRule, fieldNode, fieldError}

// File returns the case as a file: a reproducer. Its Build is not part of it, and neither are its
// values if its world is no [Formatter].
func (c *Case) File() (*graphfile.File, error) {
	f := &graphfile.File{Graph: c.Graph}
	add := func(name, text string) {
		if text != "" {
			f.Head = append(f.Head, graphfile.Field{Name: name, Text: strings.TrimRight(text, "\n")})
		}
	}
	add(fieldFailure, string(c.Failure.Kind))
	add(fieldPass, c.Failure.Pass)
	add(fieldRule, c.Failure.Rule)
	add(fieldNode, c.Failure.Node)
	if c.Failure.Err != nil {
		add(fieldError, c.Failure.Err.Error())
	}
	add(fieldQuery, c.Query.String())
	if c.Checked {
		add(fieldCheck, "graph")
	}
	if c.Budget != nil {
		add(fieldBudget, strconv.Itoa(*c.Budget))
	}
	if c.Seed != 0 {
		add(fieldSeed, strconv.FormatUint(c.Seed, 10))
	}
	if format, ok := find[Formatter](c.World); ok && c.Values != nil {
		var lines []string
		for i, v := range c.Graph.Inputs() {
			text, err := format.FormatValue(v.Type(), c.Values[i])
			if err != nil {
				return nil, fmt.Errorf("the value of %v: %w", v, err)
			}
			lines = append(lines, text)
		}
		add(fieldValues, "\n"+strings.Join(lines, "\n"))
	}
	f.Head = append(f.Head, c.Notes...)
	return f, nil
}

// FromFile returns the case of a file. A file without a failure is also a case. The error is an
// ErrCase.
func FromFile(f *graphfile.File, w World, build func(optdb.Query) (*optdb.Optimizer, error)) (*Case, error) {
	c := &Case{World: w, Build: build, Graph: f.Graph}
	var errs []error
	fault := func(name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", ErrCase, name, err))
		}
	}
	var err error
	if c.Query, err = optdb.ParseQuery(f.Field(fieldQuery)); err != nil {
		fault(fieldQuery, err)
	}
	switch text := f.Field(fieldCheck); text {
	case "":
	case "graph":
		c.Checked = true
	default:
		fault(fieldCheck, fmt.Errorf("%q; want graph", text))
	}
	if text := f.Field(fieldBudget); text != "" {
		n, err := strconv.Atoi(text)
		if err == nil && n < 0 {
			err = errors.New("it is negative")
		}
		fault(fieldBudget, err)
		c.Budget = &n
	}
	if text := f.Field(fieldSeed); text != "" {
		c.Seed, err = strconv.ParseUint(text, 10, 64)
		fault(fieldSeed, err)
	}
	if text := f.Field(fieldValues); text != "" {
		c.Values, err = c.parseValues(text)
		fault(fieldValues, err)
	}
	c.Failure = Failure{Kind: Kind(f.Field(fieldFailure)), Pass: f.Field(fieldPass), Rule: f.Field(fieldRule), Node: f.Field(fieldNode)}
	if k := c.Failure.Kind; k != None && !slices.Contains(kinds, k) {
		fault(fieldFailure, fmt.Errorf("there is no failure %q, only %v", k, kinds))
	}
	if text := f.Field(fieldError); text != "" {
		c.Failure.Err = errors.New(text)
	}
	for _, h := range f.Head {
		if !slices.Contains(fields, h.Name) {
			c.Notes = append(c.Notes, h)
		}
	}
	return c, errors.Join(errs...)
}

// parseValues reads the values of the inputs.
func (c *Case) parseValues(text string) (values []any, err error) {
	format, ok := find[Formatter](c.World)
	if !ok {
		return nil, errors.New("no formatter: values can't be read")
	}
	lines := strings.Split(strings.TrimPrefix(text, "\n"), "\n")
	inputs := c.Graph.Inputs()
	if len(lines) != len(inputs) {
		return nil, fmt.Errorf("%d lines for %d inputs", len(lines), len(inputs))
	}
	for i, line := range lines {
		v, err := format.ParseValue(inputs[i].Type(), line)
		if err != nil {
			return nil, fmt.Errorf("of %v: %w", inputs[i], err)
		}
		values = append(values, v)
	}
	return values, nil
}
