package pipeline_test

import (
	"fmt"
	"strings"
)

// delay draws how far a recurrence looks back or ahead.
func (n *network) delay() int {
	t := -n.between(1, 3)
	if n.chance(5) {
		t = -t
	}
	return t
}

// rnn is a layer that sees its own past output.
func (n *network) rnn() {
	d, dim := n.splice(n.input("input", n.width()), 4)
	width, t := n.width(), n.delay()
	a := n.affine(d, dim, width)
	n.component("recurrent", "NaturalGradientAffine", "input-dim=%d output-dim=%d", width, width)
	n.component("nonlin", [...]string{"RectifiedLinear", "Tanh", "Sigmoid"}[n.r.IntN(3)], "dim=%d", width)
	n.at("recurrent", "recurrent", offset("nonlin", t), width)
	n.at("nonlin", "nonlin", fmt.Sprintf("Sum(%s, IfDefined(recurrent))", a), width)
	n.finish()
}

// clockwork is an rnn whose output layer depends on the time.
func (n *network) clockwork() {
	d, dim := n.splice(n.input("input", n.width()), 4)
	width, out := n.width(), n.width()
	a := n.affine(d, dim, width)
	n.component("recurrent", "NaturalGradientAffine", "input-dim=%d output-dim=%d", width, width)
	n.component("nonlin", "RectifiedLinear", "dim=%d", width)
	n.at("recurrent", "recurrent", offset("nonlin", -1), width)
	n.at("nonlin", "nonlin", fmt.Sprintf("Sum(%s, IfDefined(recurrent))", a), width)
	var choices []string
	for i := range n.between(2, 3) {
		choices = append(choices, n.affine(offset("nonlin", [...]int{0, -1, 1}[i]), width, out))
	}
	sum := "Switch(" + strings.Join(choices, ", ") + ")"
	if n.chance(2) {
		sum = n.node("LogSoftmax", sum, out, "dim=%d", out)
	}
	n.output("output", sum)
}

// lstm is long short-term memory of many small components, with a learned constant as the cell at
// time -1.
func (n *network) lstm() {
	width := n.units(2, 16)
	n.component("c0", "Constant", "output-dim=%d output-stddev=1", width)
	n.input("input", n.width())
	n.at("c0", "c0", "c0", width)
	n.gates("input", width, 1, -1, "Sum(Failover(Offset(c1, -1), c0), IfDefined(Offset(c2, -1)))", "Sum(c1, c2)")
}

// lstmTruncation is lstm with components that truncate backpropagation through time.
func (n *network) lstmTruncation() {
	width, t := n.units(2, 16), n.delay()
	n.input("input", n.width())
	n.component("trunc", "BackpropTruncation", "dim=%d %s", width, n.truncation(t))
	n.at("c", "trunc", "Sum(c1, c2)", width)
	n.gates("input", width, 2, t, past("c", t), "Sum(c1, c2)")
}

func (n *network) truncation(t int) string {
	return fmt.Sprintf("scale=%g clipping-threshold=%d zeroing-threshold=%d zeroing-interval=%d recurrence-interval=%d",
		[...]float64{1, 1.1}[n.r.IntN(2)], n.between(5, 50), n.between(1, 15), n.between(1, 30), max(t, -t))
}

// gates adds an LSTM without its cell: three gates with peepholes, the input, and the projection,
// part of which recurs, truncated if truncated is 2. before and now are the descriptors of the
// cell.
func (n *network) gates(input string, width, truncated, t int, before, now string) {
	recurrent, rest := n.units(1, 8), n.units(0, 8)
	d, dim := n.splice(input, 3)
	d, dim = fmt.Sprintf("Append(%s, %s)", d, past("r", t)), dim+recurrent
	for _, gate := range []string{"i", "f", "o"} {
		cell := before
		if gate == "o" {
			cell = now
		}
		n.component("W"+gate, "NaturalGradientAffine", "input-dim=%d output-dim=%d", dim, width)
		n.component("P"+gate, "PerElementScale", "dim=%d param-stddev=0.5", width)
		n.component(gate, "Sigmoid", "dim=%d", width)
		n.at(gate+"1", "W"+gate, d, width)
		n.at(gate+"2", "P"+gate, cell, width)
		n.at(gate, gate, fmt.Sprintf("Sum(%s1, %s2)", gate, gate), width)
	}
	n.component("g", "Tanh", "dim=%d", width)
	n.component("Wg", "NaturalGradientAffine", "input-dim=%d output-dim=%d", dim, width)
	n.component("product", "ElementwiseProduct", "input-dim=%d output-dim=%d", 2*width, width)
	n.at("g1", "Wg", d, width)
	n.at("g", "g", "g1", width)
	n.at("h", "g", now, width)
	n.at("c1", "product", fmt.Sprintf("Append(f, %s)", before), width)
	n.at("c2", "product", "Append(i, g)", width)
	n.at("m", "product", "Append(o, h)", width)
	n.component("projection", "NaturalGradientAffine", "input-dim=%d output-dim=%d", width, recurrent+rest)
	n.at("p", "projection", "m", recurrent+rest)
	if truncated == 2 {
		n.part("r_pre", "p", 0, recurrent)
		n.component("trunc_r", "BackpropTruncation", "dim=%d %s", recurrent, n.truncation(t))
		n.at("r", "trunc_r", "r_pre", recurrent)
	} else {
		n.part("r", "p", 0, recurrent)
	}
	n.last = "p"
	n.finish()
}

// fastLstm is one or two LSTM layers, each with one affine and one nonlinearity for all gates,
// stacked or in both directions.
func (n *network) fastLstm() {
	d, dim := n.splice(n.input("input", n.width()), 3)
	x := n.affine(d, dim, n.units(2, 16))
	t := n.delay()
	a := n.fastLstmLayer("a", x, t)
	switch n.r.IntN(3) {
	case 0:
		n.fastLstmLayer("b", a, t)
	case 1:
		b := n.fastLstmLayer("b", x, -t)
		sum := n.dim[a] + n.dim[b]
		n.node("NoOp", fmt.Sprintf("Append(%s, %s)", a, b), sum, "dim=%d", sum)
	}
	n.finish()
}

func (n *network) fastLstmLayer(p, x string, t int) string {
	cell, recurrent, rest := n.units(1, 10), n.units(1, 6), n.units(0, 6)
	n.component(p+"_W", "NaturalGradientAffine", "input-dim=%d output-dim=%d", n.dim[x]+recurrent, 4*cell)
	n.at(p+"_W", p+"_W", fmt.Sprintf("Append(%s, %s)", x, past(p+"_r", t)), 4*cell)
	n.component(p+"_lstm", "LstmNonlinearity", "cell-dim=%d", cell)
	n.at(p+"_lstm", p+"_lstm", fmt.Sprintf("Append(%s_W, %s)", p, past(p+"_c", t)), 2*cell)
	n.part(p+"_c_pre", p+"_lstm", 0, cell)
	n.part(p+"_m", p+"_lstm", cell, cell)
	n.component(p+"_rp", "NaturalGradientAffine", "input-dim=%d output-dim=%d", cell, recurrent+rest)
	n.at(p+"_rp", p+"_rp", p+"_m", recurrent+rest)
	n.part(p+"_r_pre", p+"_rp", 0, recurrent)
	n.component(p+"_cr", "BackpropTruncation", "dim=%d %s", cell+recurrent, n.truncation(t))
	n.at(p+"_cr", p+"_cr", fmt.Sprintf("Append(%s_c_pre, %s_r_pre)", p, p), cell+recurrent)
	n.part(p+"_c", p+"_cr", 0, cell)
	n.part(p+"_r", p+"_cr", cell, recurrent)
	n.last = p + "_rp"
	return n.last
}

// gru is a projected gated recurrent unit, or one with an output gate.
func (n *network) gru() {
	d, dim := n.splice(n.input("input", n.width()), 3)
	x := n.affine(d, dim, n.units(2, 16))
	width, cell, t := n.dim[x], n.units(2, 12), n.delay()
	recurrent := n.between(1, cell)
	projected := n.chance(2)
	gate := func(name string, size int) {
		n.component("W_"+name, "NaturalGradientAffine", "input-dim=%d output-dim=%d", width+recurrent, size)
		n.component(name, "Sigmoid", "dim=%d", size)
		n.at(name+"_pre", "W_"+name, fmt.Sprintf("Append(%s, %s)", x, past("s", t)), size)
		n.at(name, name, name+"_pre", size)
	}
	gate("z", cell)
	n.component("W_h", "NaturalGradientAffine", "input-dim=%d output-dim=%d", width, cell)
	n.at("hpart", "W_h", x, cell)
	y := "c"
	if projected {
		gate("r", recurrent)
		n.component("gru", "GruNonlinearity", "cell-dim=%d recurrent-dim=%d", cell, recurrent)
		state := past("c", t)
		if recurrent < cell { // otherwise the nonlinearity takes the cell for what goes round
			state += ", " + past("s", t)
		}
		n.at("gru", "gru", fmt.Sprintf("Append(z, r, hpart, %s)", state), 2*cell)
		n.part("c", "gru", cell, cell)
	} else {
		gate("o", cell)
		n.component("gru", "OutputGruNonlinearity", "cell-dim=%d", cell)
		n.at("gru", "gru", fmt.Sprintf("Append(z, hpart, %s)", past("c", t)), 2*cell)
		n.part("c", "gru", cell, cell)
		n.component("co", "ElementwiseProduct", "input-dim=%d output-dim=%d", 2*cell, cell)
		y = n.at("co", "co", "Append(c, o)", cell)
	}
	rest := n.units(0, 6)
	n.component("W_y", "NaturalGradientAffine", "input-dim=%d output-dim=%d", cell, recurrent+rest)
	n.at("y", "W_y", y, recurrent+rest)
	n.part("s_pre", "y", 0, recurrent)
	n.component("s", "BackpropTruncation", "dim=%d %s", recurrent, n.truncation(t))
	n.at("s", "s", "s_pre", recurrent)
	n.last = "y"
	n.finish()
}

// descriptors is layers joined by everything in the descriptor language.
func (n *network) descriptors() {
	width := n.units(1, 12)
	nodes := []string{n.input("input", width)}
	if n.chance(2) {
		nodes = append(nodes, n.input("other", width))
	}
	for i := range n.between(1, 4) {
		parts := make([]string, n.between(1, 3))
		for k := range parts {
			parts[k] = n.sum(nodes, 2, width)
		}
		dim := width * len(parts)
		if n.chance(4) {
			parts, dim = append(parts, past(fmt.Sprintf("tail%d", i), n.delay())), dim+width
		}
		y := fmt.Sprintf("layer%d", i)
		n.component(y, [...]string{"NaturalGradientAffine", "Linear", "Affine"}[n.r.IntN(3)], "input-dim=%d output-dim=%d", dim, 2*width)
		n.at(y, y, appended(parts), 2*width)
		y = n.nonlinearity()
		nodes = append(nodes, n.part(fmt.Sprintf("tail%d", i), y, n.between(0, width), width))
		if n.chance(3) {
			nodes = append(nodes, n.part(fmt.Sprintf("head%d", i), y, 0, width))
		}
	}
	n.output("output", n.sum(nodes, 2, width))
	if n.chance(3) {
		n.output("output2", n.sum(nodes, 1, width))
	}
}

// sum draws a descriptor of one part.
func (n *network) sum(nodes []string, depth, width int) string {
	kinds := 7
	if depth == 0 {
		kinds = 2
	}
	switch n.r.IntN(kinds) {
	case 2:
		return fmt.Sprintf("Sum(%s, %s)", n.sum(nodes, depth-1, width), n.sum(nodes, depth-1, width))
	case 3:
		return fmt.Sprintf("Sum(%s, Const(%d, %d))", n.sum(nodes, depth-1, width), n.between(-2, 2), width)
	case 4:
		n.wide = true
		return fmt.Sprintf("Failover(%s, %s)", offset(nodes[n.r.IntN(len(nodes))], n.between(-9, 9)), n.sum(nodes, depth-1, width))
	case 5:
		return fmt.Sprintf("Sum(%s, IfDefined(%s))", n.sum(nodes, depth-1, width), n.leaf(nodes, 1))
	default:
		return n.leaf(nodes, 2)
	}
}

// leaf draws a descriptor without sums.
func (n *network) leaf(nodes []string, depth int) string {
	node := nodes[n.r.IntN(len(nodes))]
	kinds := 6
	if depth == 0 {
		kinds = 3
	}
	switch n.r.IntN(kinds) {
	case 3:
		return fmt.Sprintf("Round(%s, %d)", node, n.between(1, 3))
	case 4:
		return fmt.Sprintf("Switch(%s, %s)", n.leaf(nodes, depth-1), n.leaf(nodes, depth-1))
	case 5:
		return fmt.Sprintf("Scale(%d, %s)", n.between(-2, 3), node)
	case 0:
		return node
	default:
		return offset(node, n.between(-3, 3))
	}
}
