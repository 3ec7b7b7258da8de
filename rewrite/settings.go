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

// Settings returns max-use, order and ignore-new-trees.
func (q *Equilibrium) Settings() []Setting {
	return []Setting{
		maxUseSetting(q.MaxUse), orderSetting(q.Order),
		boolSetting("ignore-new-trees", q.IgnoreNewTrees, "defer applies that a replacement inserts or affects to the next pass"),
	}
}

// Configured returns a copy of the equilibrium with one setting changed.
func (q *Equilibrium) Configured(name, value string) (Configurable, error) {
	c := *q
	var err error
	switch name {
	case "max-use":
		c.MaxUse, err = parseMaxUse(value)
	case "order":
		c.Order, err = parseOrder(value)
	case "ignore-new-trees":
		c.IgnoreNewTrees, err = parseBool(value)
	}
	return &c, err
}

// Settings returns max-use, order and visit-new.
func (w *Walk) Settings() []Setting {
	return []Setting{
		maxUseSetting(w.MaxUse), orderSetting(w.Order),
		boolSetting("visit-new", w.VisitNew, "also visit applies that the walk inserts"),
	}
}

// Configured returns a copy of the walk with one setting changed.
func (w *Walk) Configured(name, value string) (Configurable, error) {
	c := *w
	var err error
	switch name {
	case "max-use":
		c.MaxUse, err = parseMaxUse(value)
	case "order":
		c.Order, err = parseOrder(value)
	case "visit-new":
		c.VisitNew, err = parseBool(value)
	}
	return &c, err
}

func maxUseSetting(v float64) Setting {
	return Setting{Name: "max-use", Value: strconv.FormatFloat(v, 'g', -1, 64), Default: "0",
		Doc: "how often a rule may fire, as a multiple of the number of applies; 0 leaves it to the caller"}
}

func parseMaxUse(value string) (float64, error) {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a number of at least 0", value)
	}
	return v, nil
}

func orderSetting(o Order) Setting {
	return Setting{Name: "order", Value: o.String(), Default: InToOut.String(), Doc: "the direction in which the graph is traversed: in-to-out or out-to-in"}
}

func parseOrder(value string) (Order, error) {
	for _, o := range []Order{InToOut, OutToIn} {
		if o.String() == value {
			return o, nil
		}
	}
	return 0, fmt.Errorf("%q is neither %v nor %v", value, InToOut, OutToIn)
}

// String returns in-to-out or out-to-in.
func (o Order) String() string {
	if o == OutToIn {
		return "out-to-in"
	}
	return "in-to-out"
}

func boolSetting(name string, v bool, doc string) Setting {
	return Setting{Name: name, Value: strconv.FormatBool(v), Default: "false", Doc: doc}
}

func parseBool(value string) (bool, error) {
	v, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%q is neither true nor false", value)
	}
	return v, nil
}
