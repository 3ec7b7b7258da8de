package models

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestValueTexts: values of all kinds are read as they were written.
func TestValueTexts(t *testing.T) {
	w := newWorld(ir.NewSource(ir.Standard()), Options{}.complete().text(nil), session.Options{}).(world)
	floats, empty := array.Of([]float32{1, -2.5, float32(math.Inf(1)), 0}, 2, 2), array.New(array.Float32, 0, 3)
	many := array.Full(array.Float32, 0.1, 40, 3)
	for _, c := range []struct {
		typ   string
		value any
	}{
		{"float[2,2]", floats},
		{"opaque[seq(float[*])]", list{floats, empty, many}},
		{"opaque[seq(float[*])]", list{}},
		{"opaque[optional(float[n])]", floats},
		{"opaque[optional(float[n])]", nothing{}},
		{"opaque[optional(seq(float[n]))]", list{floats}},
		{"opaque[optional(seq(float[n]))]", nothing{}},
		{"float[3]", initial{}},
	} {
		typ := mustType(c.typ)
		text, err := w.FormatValue(typ, c.value)
		if err != nil {
			t.Errorf("%s: %v", c.typ, err)
			continue
		}
		got, err := w.ParseValue(typ, text)
		if err != nil || differenceOf(got, c.value) != (difference{}) || fmt.Sprint(got) != fmt.Sprint(c.value) {
			t.Errorf("%s: %q: %v, %v, want %v", c.typ, text, got, err, c.value)
		}
	}
	for _, text := range []string{"", "seq", "seq [", `seq ["float[1]"]`, "seq {}", "nothing", "float[1] [x]"} {
		if v, err := w.ParseValue(mustType("float[1]"), text); err == nil {
			t.Errorf("%q: %v", text, v)
		}
	}
}

// TestDifferences: values of other kinds, types, sizes or lengths differ, whatever their elements are.
func TestDifferences(t *testing.T) {
	one, other, ints := array.Of([]float32{1, 2}, 2), array.Of([]float32{1, 2}, 2, 1), array.Of([]int32{1, 2}, 2)
	near := array.Of([]float32{1, 2.00001}, 2)
	values := []any{one, other, ints, list{}, list{one}, list{one, one}, list{other}, nothing{}, initial{}, nil, array.Of([]float32{1, 3}, 2), list{array.Of([]float32{1, 3}, 2)}}
	w := world{}
	for i, a := range values {
		for j, b := range values {
			if text := w.Differ([]any{a}, []any{b}); (text == "") != (i == j) {
				t.Errorf("%v and %v: %q", a, b, text)
			}
		}
	}
	for _, pair := range [][2]any{{one, near}, {list{one, near}, list{near, one}}} {
		if text := w.Differ([]any{pair[0]}, []any{pair[1]}); text != "" {
			t.Error(text)
		}
	}
	if w.Differ([]any{one}, nil) == "" {
		t.Error("an output too many")
	}
}

// TestDraw: inputs of all kinds are drawn, with one size for a symbol.
func TestDraw(t *testing.T) {
	for typ, want := range map[string]string{
		"opaque[seq(float[n,2])]":           "[[7 2] [7 2]]",
		"opaque[optional(float[n])]":        "[7]",
		"opaque[seq(float[*])]":             "[[7] [7]]",
		"opaque[optional(seq(int64[n,h]))]": "[[7 5] [7 5]]",
	} {
		d := &drawing{rng: rand.New(rand.NewPCG(1, 2)), size: [2]int{7, 5}, symbols: make(map[string]int), left: 100}
		v, err := d.value(mustType(typ))
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		if got := shapesOf(v); got != want {
			t.Errorf("%s: %s, want %s", typ, got, want)
		}
		d.without = true
		v, err = d.value(mustType(typ))
		if _, _, optional := mustType(typ).ElementOf(); err != nil || (v == nothing{}) != optional {
			t.Errorf("%s: %v, %v", typ, v, err)
		}
	}
	for _, typ := range []string{"opaque[seq(opaque[seq(float[2])])]", "float[*]", "unknown", "float[1000]", "opaque[map(int64,float[2])]"} {
		d := &drawing{rng: rand.New(rand.NewPCG(1, 2)), size: [2]int{7, 5}, symbols: make(map[string]int), left: 100}
		if v, err := d.value(mustType(typ)); err == nil {
			t.Errorf("%s: %v", typ, v)
		}
	}
}

// TestDrawSum: a symbol that is named a sum of others is one.
func TestDrawSum(t *testing.T) {
	d := &drawing{rng: rand.New(rand.NewPCG(1, 2)), size: [2]int{7, 5}, symbols: make(map[string]int), left: 10000}
	for _, c := range []struct {
		dims []string
		want string
	}{{[]string{"b", "past + new"}, "[7 10]"}, {[]string{"b", "new", "past"}, "[7 5 5]"}, {[]string{"past + new", "b + past + new", "past + 1"}, "[10 17 6]"}} {
		var dims []ir.Dim
		for _, name := range c.dims {
			dims = append(dims, ir.Symbol(name))
		}
		v, err := d.value(ir.NewType(onnx.Float, dims...))
		if err != nil || shapesOf(v) != c.want {
			t.Errorf("%v: %v, %v, want %s", dims, shapesOf(v), err, c.want)
		}
	}
}

// shapesOf returns the shape of a value as text.
func shapesOf(v any) string {
	l, ok := v.(list)
	if !ok {
		return fmt.Sprint(v.(*array.Array).Shape())
	}
	var shapes [][]int
	for _, a := range l {
		shapes = append(shapes, a.Shape())
	}
	return fmt.Sprint(shapes)
}
