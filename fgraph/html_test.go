package fgraph

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestWriteHTML: every apply, input and constant is a box, every operand is a line, text
// is escaped, and tags are closed.
func TestWriteHTML(t *testing.T) {
	a, b := input("a<b"), input("b")
	x := call(op("op1"), a, constant(1))
	g := newGraph(t, list(a, b), list(call(op("op2"), x, x, b), a))
	var text strings.Builder
	if err := g.WriteHTML(&text, "x & y"); err != nil {
		t.Fatal(err)
	}
	page := text.String()
	for what, want := range map[string]int{"<rect ": 5, "<line ": 5, "a&lt;b</text>": 1, "class=\"apply output\"": 1, "class=\"input output\"": 1, "<h1>x &amp; y</h1>": 1} {
		if got := strings.Count(page, what); got != want {
			t.Errorf("%s stands there %d times, want %d:\n%s", what, got, want, page)
		}
	}
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta"}, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
