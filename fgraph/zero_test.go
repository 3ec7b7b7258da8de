package fgraph

import "testing"

// What is nil or was made without its constructor can be printed.
func TestPrintNothing(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{(*FunctionGraph)(nil).String(), "no graph"},
		{new(FunctionGraph).String(), "[]"},
		{new(Apply).String(), "no op"},
		{new(Variable).String(), "<no type>"},
		{NewInput(nil, "").String(), "<no type>"},
		{new(TypeError).Error(), "incompatible type"},
		{new(MissingInputError).Error(), "missing input <nil>: it is neither an input of the graph nor a constant"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
