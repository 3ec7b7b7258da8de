package ir

import "slices"

// standardRecurrent are recurrent networks.
var standardRecurrent = slices.Concat(
	[]Operator{{Type: "LSTM", MinInputs: 3, MaxInputs: 8, Infer: inferRecurrent}},
	named(Operator{MinInputs: 3, MaxInputs: 6, Infer: inferRecurrent}, "GRU", "RNN"),
)

// inferRecurrent: x is [T, N, I], or [N, T, I] with layout 1, and R is [D, gates*H, H]. The results are
// all states, the last one and, of an LSTM, the last cells.
func inferRecurrent(c *Call) {
	elem := c.elemOf(0, 1, 2)
	x, w, r := c.sizesOf(0, 3), c.sizesOf(1, 3), c.sizesOf(2, 3)
	directions := Known(1)
	if c.Op.Text("direction", "forward") == "bidirectional" {
		directions = Known(2)
	}
	for _, d := range []Dim{w[0], r[0]} {
		c.meet(directions, d)
	}
	c.failIf(w[2].Differs(x[2]), "the input has %v features, and its weights %v", x[2], w[2])
	hidden := r[2]
	if n := c.Op.Int("hidden_size", 0); n > 0 {
		hidden = c.meet(hidden, Known(n))
	}
	if c.Op.Int("layout", 0) == 0 {
		c.Set(0, NewType(elem, x[0], directions, x[1], hidden))
		c.Set(1, NewType(elem, directions, x[1], hidden))
		c.Set(2, NewType(elem, directions, x[1], hidden))
		return
	}
	c.Set(0, NewType(elem, x[0], x[1], directions, hidden))
	c.Set(1, NewType(elem, x[0], directions, hidden))
	c.Set(2, NewType(elem, x[0], directions, hidden))
}
