package rewrite

import (
	"fmt"
	"math"
	"strconv"
)

// A Setting is an option of a rewriter as text, such as max-use=8.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default string `json:"default"`
	Doc     string `json:"doc"`
}

// A Configurable is a rewriter with settings. Queries change them, as in
// canonicalize{max-use=8}.
type Configurable interface {
	// Settings returns all settings with their present values.
	Settings() []Setting
	// Configured returns a copy of the rewriter, of the same type, with another value for
	// one of its settings. An error says which values there are.
	Configured(name, value string) (Configurable, error)
}

// A field is a setting and the place of its value.
type field struct {
	name, preset, doc string
	print             func() string
	parse             func(string) error
}

func settings(fields []field) []Setting {
	list := make([]Setting, len(fields))
	for i, f := range fields {
		list[i] = Setting{Name: f.name, Value: f.print(), Default: f.preset, Doc: f.doc}
	}
	return list
}

// configure sets one of the fields. Callers know that there is one of that name.
func configure(fields []field, name, value string) error {
	for _, f := range fields {
		if f.name == name {
			return f.parse(value)
		}
	}
	return nil
}

func (q *Equilibrium) fields() []field {
	return []field{
		maxUseField(&q.MaxUse), orderField(&q.Order),
		boolField("ignore-new-trees", &q.IgnoreNewTrees, "defer applies that a replacement inserts or affects to the next pass"),
	}
}

// Settings returns max-use, order and ignore-new-trees.
func (q *Equilibrium) Settings() []Setting { return settings(q.fields()) }

// Configured returns a copy of the equilibrium with one setting changed.
func (q *Equilibrium) Configured(name, value string) (Configurable, error) {
	c := *q
	return &c, configure(c.fields(), name, value)
}

func (w *Walk) fields() []field {
	return []field{
		maxUseField(&w.MaxUse), orderField(&w.Order),
		boolField("visit-new", &w.VisitNew, "also visit applies that the walk inserts"),
	}
}

// Settings returns max-use, order and visit-new.
func (w *Walk) Settings() []Setting { return settings(w.fields()) }

// Configured returns a copy of the walk with one setting changed.
func (w *Walk) Configured(name, value string) (Configurable, error) {
	c := *w
	return &c, configure(c.fields(), name, value)
}

func maxUseField(v *float64) field {
	return field{
		"max-use", "0", "how often a rule may fire, as a multiple of the number of applies; 0 leaves it to the caller",
		func() string { return strconv.FormatFloat(*v, 'g', -1, 64) },
		func(text string) error {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || !(x >= 0) || math.IsInf(x, 0) {
				return fmt.Errorf("%q is not a number of at least 0", text)
			}
			*v = x
			return nil
		},
	}
}

func orderField(v *Order) field {
	return field{
		"order", InToOut.String(), "the direction in which the graph is traversed: in-to-out or out-to-in",
		func() string { return v.String() },
		func(text string) error {
			for _, o := range []Order{InToOut, OutToIn} {
				if o.String() == text {
					*v = o
					return nil
				}
			}
			return fmt.Errorf("%q is neither %v nor %v", text, InToOut, OutToIn)
		},
	}
}

func boolField(name string, v *bool, doc string) field {
	return field{
		name, "false", doc,
		func() string { return strconv.FormatBool(*v) },
		func(text string) error {
			x, err := strconv.ParseBool(text)
			if err != nil {
				return fmt.Errorf("%q is neither true nor false", text)
			}
			*v = x
			return nil
		},
	}
}

// String returns in-to-out or out-to-in.
func (o Order) String() string {
	if o == OutToIn {
		return "out-to-in"
	}
	return "in-to-out"
}
