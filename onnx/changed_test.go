package onnx_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
)

// TestEveryChangeIsWritten changes each field of each message of a model that was read, one at a time,
// and reads again what is written. So there is no field whose change is forgotten, and with it a way to
// write what a message was before.
func TestEveryChangeIsWritten(t *testing.T) {
	data, original := written(t, sample()), text(sample())
	types, seen, changed := make(map[reflect.Type]bool), make(map[string]bool), 0
	parse := func() *onnx.Model {
		m, err := onnx.Parse(bytes.Clone(data)) // anew, since changes may be in the memory of data
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for at, f := range fieldsOf(parse()) {
		types[f.message] = true
		// Once with a value and once without is enough of each field.
		if key := fmt.Sprint(f, f.value.IsZero()); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		for k := range f.changes() {
			if !longtest.Enabled() && k > 0 {
				break
			}
			m := parse()
			if !fieldsOf(m)[at].changes()[k]() || text(m) == original {
				continue
			}
			changed++
			out := written(t, m)
			again, err := onnx.Parse(out)
			if err != nil {
				t.Errorf("%v, change %d: %v", f, k, err)
				continue
			}
			if want, got := text(m), text(again); got != want || bytes.Equal(out, data) {
				t.Errorf("%v, change %d is lost:\n%s\nwant\n%s", f, k, got, want)
			}
		}
	}
	// The sample has every message, or a new one would not be looked at.
	for _, m := range []any{
		onnx.Model{}, onnx.Opset{}, onnx.Entry{}, onnx.Graph{}, onnx.Node{}, onnx.Attribute{}, onnx.Tensor{}, onnx.Segment{}, onnx.SparseTensor{}, onnx.Annotation{},
		onnx.ValueInfo{}, onnx.Type{}, onnx.TensorType{}, onnx.Shape{}, onnx.Dim{}, onnx.ElementType{}, onnx.MapType{}, onnx.OpaqueType{}, onnx.Function{},
	} {
		if !types[reflect.TypeOf(m)] {
			t.Errorf("the sample has no %T", m)
		}
	}
	t.Logf("%d changes of messages of %d types", changed, len(types))
}

// text returns what users see of a message as text. A list without elements is none.
func text(m any) string {
	var b strings.Builder
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				b.WriteString("&")
				walk(v.Elem())
			}
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				fmt.Fprintf(&b, "%q", v.Bytes())
				if v.IsNil() {
					b.WriteString("nil")
				}
				return
			}
			for i := range v.Len() {
				fmt.Fprintf(&b, "[%d]", i)
				if e := v.Index(i); e.Kind() == reflect.Slice { // of bytes, of which nil is an empty one here
					fmt.Fprintf(&b, "%q", e.Bytes())
				} else {
					walk(e)
				}
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					fmt.Fprintf(&b, " %s:{", f.Name)
					walk(v.Field(i))
					b.WriteString("}")
				}
			}
		default:
			fmt.Fprintf(&b, "%q", fmt.Sprint(v.Interface()))
		}
	}
	walk(reflect.ValueOf(m))
	return b.String()
}

// A fieldOf is a field of a message.
type fieldOf struct {
	message reflect.Type
	name    string
	value   reflect.Value
}

func (f fieldOf) String() string { return fmt.Sprint(f.message.Name(), ".", f.name) }

// fieldsOf returns the fields of a message and of those in it.
func fieldsOf(m any) []fieldOf {
	var list []fieldOf
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					list = append(list, fieldOf{v.Type(), f.Name, v.Field(i)})
					walk(v.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(m))
	return list
}

// changes returns what changes a field; a change returns false if it can't be made.
func (f fieldOf) changes() []func() bool {
	set := func(v reflect.Value) func() bool {
		return func() bool {
			if reflect.DeepEqual(f.value.Interface(), v.Interface()) {
				return false
			}
			f.value.Set(v)
			return true
		}
	}
	v, t := f.value, f.value.Type()
	list := []func() bool{func() bool {
		if v.IsZero() || f.message == reflect.TypeFor[onnx.Model]() && f.name == "Graph" {
			return false
		}
		if t.Kind() == reflect.Slice && v.Len() == 0 && t.Elem().Kind() != reflect.Uint8 {
			return false
		}
		v.SetZero()
		return true
	}}
	switch t.Kind() {
	case reflect.String:
		return append(list, set(reflect.ValueOf("changed").Convert(t)), set(reflect.ValueOf(v.String()+" ")))
	case reflect.Int32, reflect.Int64, reflect.Float32:
		return append(list, set(reflect.ValueOf(17).Convert(t)), set(reflect.ValueOf(-1).Convert(t)))
	case reflect.Pointer:
		fresh := reflect.New(t.Elem())
		if t.Elem().Kind() == reflect.Int64 {
			fresh.Elem().SetInt(17)
		}
		return append(list, func() bool { v.Set(fresh); return true }, func() bool { // in place
			if v.IsNil() || t.Elem().Kind() != reflect.Int64 {
				return false
			}
			v.Elem().SetInt(v.Elem().Int() + 1)
			return true
		})
	case reflect.Slice:
		fresh := reflect.New(t.Elem()).Elem()
		if t.Elem().Kind() == reflect.Pointer {
			fresh = reflect.New(t.Elem().Elem())
		}
		return append(list,
			func() bool { v.Set(reflect.Append(v, fresh)); return true },
			func() bool { // shorter
				if v.Len() > 1 {
					v.Set(v.Slice(0, v.Len()-1))
				}
				return v.Len() > 1
			},
			func() bool { // another order
				if v.Len() < 2 || reflect.DeepEqual(v.Index(0).Interface(), v.Index(1).Interface()) {
					return false
				}
				reflect.Swapper(v.Interface())(0, 1)
				return true
			},
			func() bool { return f.changeElement() })
	}
	panic(fmt.Sprint("no change of ", f))
}

// changeElement changes the first element of a list in place.
func (f fieldOf) changeElement() bool {
	if f.value.Len() == 0 {
		return false
	}
	switch e := f.value.Index(0); e.Kind() {
	case reflect.String:
		e.SetString(e.String() + "!")
	case reflect.Int32, reflect.Int64:
		e.SetInt(e.Int() + 1)
	case reflect.Uint8, reflect.Uint64:
		e.SetUint(e.Uint() ^ 1)
	case reflect.Float32, reflect.Float64:
		e.SetFloat(e.Float() + 1)
	case reflect.Slice: // of bytes
		e.SetBytes(append(slices.Clone(e.Bytes()), '!'))
	case reflect.Pointer:
		e.Set(reflect.New(e.Type().Elem()))
	default:
		panic(fmt.Sprint("no change of an element of ", f))
	}
	return true
}
