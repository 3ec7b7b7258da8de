package view

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

// Limits of the texts of a recording.
const (
	maxAlike   = 8   // ops of one hash that an op is compared with
	maxRunes   = 400 // in a text
	maxParams  = 24  // of an op
	maxLines   = 40  // of an op
	maxEntries = 16  // of a list
)

// A Sized type knows how many bytes its values take, or 0.
type Sized interface{ Bytes() int64 }

// A Parametric field of an op lists parameters, names with values, in place of one parameter.
type Parametric interface{ Params() [][2]string }

// A Counter is an op that counts the floating-point operations of an apply, where these are what
// takes its time.
type Counter interface {
	Operations(a *fgraph.Apply) int64
}

// opText is how an op appears in a recording.
type opText struct {
	op     fgraph.Op
	name   string
	kind   string
	params [][2]string
	lines  []string

	weights *histogram
}

// describer describes ops and types, each of them once.
type describer struct {
	ops   map[uint64][]*opText
	types map[fgraph.Type]typeText
}

type typeText struct {
	name  string
	bytes int64
}

// op describes an op.
func (d *describer) op(op fgraph.Op) *opText {
	// A network has thousands of applies with a few hundred different ops. Ops need not be
	// comparable, so they are found by hash. Ops of one hash that differ are rare; the bound keeps
	// a poor hash from costing quadratic time, at the price of describing an op twice.
	h := fgraph.HashOp(op)
	same := d.ops[h]
	for _, t := range same[max(0, len(same)-maxAlike):] {
		if fgraph.OpsEqual(t.op, op) {
			return t
		}
	}
	name := op.String()
	if b, ok := op.(interface{ Brief() string }); ok {
		name = b.Brief()
	}
	t := &opText{op: op, name: short(name), kind: reflect.TypeOf(op).String(), params: params(op), weights: weightsOf(op, nil)}
	t.kind = strings.TrimPrefix(t.kind, "*")
	if long, ok := op.(interface{ Describe() string }); ok {
		t.lines = lines(long.Describe())
	}
	d.ops[h] = append(d.ops[h], t)
	return t
}

// typ describes a type.
func (d *describer) typ(t fgraph.Type) typeText {
	if text, known := d.types[t]; known {
		return text
	}
	text := typeText{name: short(t.String())}
	if t, ok := t.(Sized); ok {
		text.bytes = t.Bytes()
	}
	d.types[t] = text
	return text
}

// params lists the exported fields of an op. What an op needs no field for, its name says.
func params(op fgraph.Op) [][2]string {
	v := reflect.ValueOf(op)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	var list [][2]string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || len(list) == maxParams || f.Name == "Instance" && v.Field(i).IsZero() {
			continue
		}
		if part, ok := v.Field(i).Interface().(Parametric); ok {
			for _, kv := range part.Params() {
				if len(list) < maxParams {
					list = append(list, [2]string{kv[0], short(kv[1])})
				}
			}
			continue
		}
		if text := fieldText(v.Field(i)); text != "" {
			list = append(list, [2]string{f.Name, text})
		}
	}
	return list
}

// operations counts the floating-point operations of an apply, if its op can.
func operations(a *fgraph.Apply) int64 {
	if c, ok := a.Op().(Counter); ok {
		return c.Operations(a)
	}
	return 0
}

// fieldText returns the value of a field as text, or "" if it has none that is worth to be shown.
func fieldText(v reflect.Value) string {
	if s, ok := v.Interface().(fmt.Stringer); ok && !(v.Kind() == reflect.Pointer && v.IsNil()) {
		return short(s.String())
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return "yes"
		}
		return ""
	case reflect.Slice, reflect.Array:
		switch n, of := v.Len(), v.Type().Elem().Kind(); {
		case n == 0:
			return ""
		case n > maxEntries, of == reflect.Struct, of == reflect.Slice, of == reflect.Pointer, of == reflect.Interface:
			return strconv.Itoa(n) + " entries"
		}
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.Interface:
		return ""
	case reflect.String:
		return short(v.String())
	}
	return short(fmt.Sprint(v.Interface()))
}

// lines cuts a text into lines.
func lines(text string) []string {
	list := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if n := len(list); n > maxLines {
		list = append(list[:maxLines:maxLines], fmt.Sprintf("… %d more", n-maxLines))
	}
	for i := range list {
		list[i] = short(list[i])
	}
	return list
}

// short cuts a long text.
func short(s string) string {
	if len(s) <= maxRunes {
		return s
	}
	return strings.ToValidUTF8(s[:maxRunes], "") + "…"
}

// value describes a variable.
func (d *describer) value(v *fgraph.Variable, owner int32) valueEntry {
	t := d.typ(v.Type())
	out := valueEntry{Name: short(v.Name()), Type: t.name, Bytes: t.bytes}
	switch {
	case v.Owner() != nil:
		out.Node = &owner
	case v.IsConstant():
		out.Constant, out.Weights = cmp.Or(constantText(v), "…"), weightsOf(v.Type(), v.Data())
	default:
		out.Input = true
	}
	return out
}

// constantText returns the data of a constant as the type formats it.
func constantText(v *fgraph.Variable) string {
	if f, ok := v.Type().(fgraph.DataFormatter); ok {
		return short(f.FormatData(v.Data()))
	}
	return short(fmt.Sprint(v.Data()))
}
