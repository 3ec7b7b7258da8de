// Relalg is a dialect of its own, made outside of nnopt: plans of the relational algebra.
// Their values are tables, which are bags of rows: a row may occur twice, and rows are in an order
// only behind a Sort, and behind the filters and projections of one.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

// An Op is an op with its parameters as text, such as Filter{a<3 & b=c}:
//
//	Scan{1000}         a base table of about 1000 rows
//	Filter{a<3 & b=c}  the rows for which all comparisons hold; with NULL none does
//	Project{a, b}      the columns
//	Join{a=b & c<d}    the pairs of rows for which all comparisons hold, each of a column of one table
//	                   with one of the other; the tables have no column in common
//	LeftJoin{a=b}      the same, and with NULLs the rows of the left table that have no pair
//	Union              the rows of both tables
//	Aggregate{a; count as n, sum(b) as m}  a row for each value of a
//	Sort{a, b}         the rows, sorted by a, then by b; SortInPlace overwrites its input
type Op struct{ Kind, Param string }

// The kinds of ops.
const (
	Scan, Filter, Project, Join, LeftJoin = "Scan", "Filter", "Project", "Join", "LeftJoin"
	Union, Aggregate, Sort, SortInPlace   = "Union", "Aggregate", "Sort", "SortInPlace"
)

func (op Op) String() string             { return strings.TrimSuffix(op.Kind+"{"+op.Param+"}", "{}") }
func (op Op) Commutes() bool             { return op.Kind == Join || op.Kind == Union }
func (op Op) ViewMap() []fgraph.Alias    { return views[op.Kind] }
func (op Op) DestroyMap() []fgraph.Alias { return destroys[op.Kind] }

var (
	views      = map[string][]fgraph.Alias{Scan: {{Output: 0, Input: 0}}}
	destroys   = map[string][]fgraph.Alias{SortInPlace: {{Output: 0, Input: 0}}}
	arity      = map[string]int{Scan: 1, Filter: 1, Project: 1, Join: 2, LeftJoin: 2, Union: 2, Aggregate: 1, Sort: 1, SortInPlace: 1}
	column     = regexp.MustCompile(`[A-Za-z_]\w*`)
	comparison = regexp.MustCompile(`([A-Za-z_]\w*)(=|<>|<=|>=|<|>)([A-Za-z_]\w*|-?\d{1,18})`)
	newColumn  = regexp.MustCompile(`(?:count|sum\(([A-Za-z_]\w*)\)) as ([A-Za-z_]\w*)`)
	opText     = regexp.MustCompile(fmt.Sprintf(`^(Scan{\d{1,9}}|(Filter|Join|LeftJoin){%[2]s( & %[2]s)*}|`+
		`(Project|Sort|SortInPlace){%[1]s(, %[1]s)*}|Union|Aggregate{%[1]s(, %[1]s)*; %[3]s(, %[3]s)*})$`, column, comparison, newColumn))
)

// names returns the names of columns in a text.
func names(text string) []string { return column.FindAllString(text, -1) }

// joined returns a list as text, sorted, and each part once.
func joined(list []string, separator string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), separator)
}

// ParseOp reads the text of an op. It sorts comparisons, and the columns of a Project.
func ParseOp(text string) (op Op, err error) {
	if !opText.MatchString(text) {
		return op, fmt.Errorf("%q is no op, such as Filter{a<3 & b=c} or Union", text)
	}
	op.Kind, op.Param, _ = strings.Cut(strings.TrimSuffix(text, "}"), "{")
	switch op.Kind {
	case Filter, Join, LeftJoin:
		op.Param = joined(comparison.FindAllString(op.Param, -1), " & ")
	case Project:
		op.Param = joined(names(op.Param), ", ")
	}
	return op, nil
}

// A Schema is the type of tables: the names of their columns, sorted, as the text "[a, b]". So the
// join of x and y has the type of the join of y and x.
type Schema string

func (s Schema) String() string             { return string(s) }
func (s Schema) Accepts(t fgraph.Type) bool { return t == s }
func (s Schema) Dialect() string            { return "relalg" }
func (s Schema) Columns() []string          { return names(string(s)) }

// NewSchema returns the type of tables with these columns.
func NewSchema(columns ...string) Schema { return Schema("[" + joined(columns, ", ") + "]") }

// Check returns an error that names a column that is missing.
func (s Schema) Check(columns ...string) error {
	for _, c := range columns {
		if !slices.Contains(s.Columns(), c) {
			return fmt.Errorf("there is no column %s in %s", c, s)
		}
	}
	return nil
}

// columnsOf returns the columns of tables.
func columnsOf(tables ...*fgraph.Variable) Schema {
	var all []string
	for _, v := range tables {
		s, _ := v.Type().(Schema)
		all = append(all, s.Columns()...)
	}
	return NewSchema(all...)
}

// Make applies an op to tables. The error names a column that is missing.
func Make(op Op, inputs ...*fgraph.Variable) (*fgraph.Variable, error) {
	op, err := ParseOp(op.String())
	if err != nil || len(inputs) != arity[op.Kind] {
		return nil, cmp.Or(err, fmt.Errorf("%s of %d tables", op, len(inputs)))
	}
	x, y, reads := columnsOf(inputs[0]), columnsOf(inputs[1:]...), names(op.Param)
	made := x.Columns()
	switch op.Kind {
	case Project:
		made = reads
	case Union:
		reads, err = y.Columns(), y.Check(made...)
	case Join, LeftJoin:
		for _, c := range comparison.FindAllString(op.Param, -1) {
			if len(names(c)) < 2 || x.Check(names(c)...) == nil || y.Check(names(c)...) == nil {
				err = fmt.Errorf("%s does not compare a column of %s with one of %s", c, x, y)
			}
		}
		x, made = columnsOf(inputs...), append(made, y.Columns()...)
	case Aggregate:
		made, reads = names(by(op.Param)), names(by(op.Param))
		for _, m := range newColumn.FindAllStringSubmatch(op.Param, -1) {
			made, reads = append(made, m[2]), append(reads, names(m[1])...)
		}
	}
	s := NewSchema(made...)
	if err == nil && len(s.Columns()) < len(made) {
		err = fmt.Errorf("a column occurs twice in %v", made)
	}
	if err = cmp.Or(err, x.Check(reads...)); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return fgraph.NewApply(op, inputs, s).Out(), nil
}

// by returns the columns in a parameter, for an Aggregate those by which it groups.
func by(param string) string { list, _, _ := strings.Cut(param, ";"); return list }

// A Row has the values of its columns, without those that are NULL.
type Row map[string]int64

// order compares rows in some columns. NULL comes first.
func order(by []string) func(a, b Row) int {
	value := func(r Row, c string) int64 {
		if v, known := r[c]; known {
			return v
		}
		return math.MinInt64
	}
	return func(a, b Row) (sign int) {
		for _, c := range by {
			sign = cmp.Or(sign, cmp.Compare(value(a, c), value(b, c)))
		}
		return sign
	}
}

// A Table has rows. Order are the columns by which they are sorted, if any.
type Table struct {
	Schema Schema
	Rows   []Row
	Order  []string
}

// String returns the rows in a line: [{"a":1,"b":2},{"a":3}], where b is NULL in the second row.
func (t *Table) String() string {
	text, _ := json.Marshal(append([]Row{}, t.Rows...)) // names and numbers are no error
	return string(text)
}

// ParseValue reads the rows of a table.
func (Dialect) ParseValue(s fgraph.Type, text string) (any, error) {
	t := &Table{Schema: s.(Schema)}
	err := json.Unmarshal([]byte(text), &t.Rows)
	for _, row := range t.Rows {
		err = cmp.Or(err, t.Schema.Check(slices.Sorted(maps.Keys(row))...))
	}
	return t, err
}

// Random returns a table of up to 5 rows, with few different values, so that joins find pairs.
func Random(r *rand.Rand, s Schema) *Table {
	t := &Table{Schema: s, Rows: make([]Row, r.IntN(6))}
	for i := range t.Rows {
		t.Rows[i] = Row{}
		for _, c := range s.Columns() {
			if v := r.Int64N(5); v < 4 {
				t.Rows[i][c] = v
			}
		}
	}
	return t
}

// Smaller returns tables without one of the rows.
func (t *Table) Smaller() (list []any) {
	for i := range t.Rows {
		list = append(list, &Table{Schema: t.Schema, Rows: slices.Concat(t.Rows[:i], t.Rows[i+1:])})
	}
	return list
}

// sorted returns the table with its rows sorted by columns.
func (t *Table) sorted(by []string) *Table {
	return &Table{t.Schema, slices.SortedStableFunc(slices.Values(t.Rows), order(by)), by}
}

// Difference says how a table differs from the one that is wanted, or returns "".
func Difference(want, got *Table) string {
	a, b := want.sorted(want.Schema.Columns()), got.sorted(want.Schema.Columns())
	if a.String() != b.String() {
		return fmt.Sprintf("rows %s, not %s", b, a)
	} else if got.String() != got.sorted(want.Order).String() {
		return fmt.Sprintf("rows %s, which are not sorted by %v", got, want.Order)
	}
	return ""
}

// Apply computes an apply of its input x, or of x and y. The result of Scan is x, and so is that of
// SortInPlace.
func Apply(a *fgraph.Apply, x, y *Table) *Table {
	op, s, out := a.Op().(Op), columnsOf(a.Out()), &Table{Schema: columnsOf(a.Out())}
	switch op.Kind {
	case Scan:
		return x
	case Union:
		return &Table{Schema: s, Rows: slices.Concat(x.Rows, y.Rows)}
	case Aggregate:
		return &Table{Schema: s, Rows: op.aggregate(x.Rows)}
	case Sort:
		return x.sorted(names(op.Param))
	case SortInPlace:
		*x = *x.sorted(names(op.Param))
		return x
	case Filter, Project:
		// An order by a, then by b, is one by a if only b is left out, and none if a is.
		for len(out.Order) < len(x.Order) && s.Check(x.Order[len(out.Order)]) == nil {
			out.Order = x.Order[:len(out.Order)+1]
		}
		y = &Table{Rows: []Row{nil}} // each row is paired with nothing
	}
	for _, left := range x.Rows {
		before := len(out.Rows)
		for _, right := range y.Rows {
			row := maps.Clone(left)
			if maps.Copy(row, right); holds(op.Param, row) {
				out.Rows = append(out.Rows, row.only(s))
			}
		}
		if op.Kind == LeftJoin && len(out.Rows) == before {
			out.Rows = append(out.Rows, left)
		}
	}
	return out
}

// only returns the values of some columns.
func (r Row) only(s Schema) Row {
	r = maps.Clone(r)
	maps.DeleteFunc(r, func(c string, _ int64) bool { return s.Check(c) != nil })
	return r
}

// holds reports whether all comparisons in a text hold for a row.
func holds(text string, row Row) bool {
	for _, m := range comparison.FindAllStringSubmatch(text, -1) {
		a, known := row[m[1]]
		b, too := row[m[3]]
		if n, err := strconv.ParseInt(m[3], 10, 64); err == nil {
			b, too = n, true
		}
		// An operator has the signs for which it holds, such as < and > in <>.
		if !known || !too || !strings.Contains(m[2], "<=>"[cmp.Compare(a, b)+1:][:1]) {
			return false
		}
	}
	return true
}

// aggregate returns the rows of an Aggregate.
func (op Op) aggregate(rows []Row) []Row {
	columns, groups := NewSchema(names(by(op.Param))...), make(map[string]Row)
	for _, row := range rows {
		group := row.only(columns)
		key := fmt.Sprint(group)
		if groups[key] == nil {
			groups[key] = group
		}
		for _, m := range newColumn.FindAllStringSubmatch(op.Param, -1) {
			if v, known := row[m[1]]; known {
				groups[key][m[2]] += v
			} else if m[1] == "" {
				groups[key][m[2]]++
			}
		}
	}
	return slices.SortedFunc(maps.Values(groups), order(columns.Columns()))
}
