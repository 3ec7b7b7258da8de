package fgraph

import "testing"

// Nil values and values made without a constructor can be printed.
func TestPrintNothing(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{(*FunctionGraph)(nil).String(), "no graph"},
		{new(FunctionGraph).String(), "[]"},
		{new(Apply).String(), "no op"},
		{new(Variable).String(), "<no type>"},
		{NewInput(nil, "").String(), "<no type>"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
