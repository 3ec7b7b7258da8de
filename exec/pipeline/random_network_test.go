package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A network is a list of config lines under construction.
type network struct {
	r        *rand.Rand
	testMode bool
	lines    []string
	dim      map[string]int // of the nodes that descriptors may name
	last     string         // the last node added, below most new layers
	outputs  []string
	frames   int  // the most frames that a request wants
	wide     bool // the network needs more context than compile.Context says
	times    int  // how many times wider layers are
}

// between draws a number from low to high, both included.
func (n *network) between(low, high int) int { return low + n.r.IntN(high-low+1) }

// units draws a number of columns or filters, which are more in wider networks.
func (n *network) units(low, high int) int { return n.times * n.between(low, high) }

// chance is true once in the given number of times.
func (n *network) chance(times int) bool { return n.r.IntN(times) == 0 }

// width draws the number of columns of a layer, sometimes one that is awkward for kernels, or 1.
func (n *network) width() int {
	switch n.r.IntN(8) {
	case 0:
		return 1
	case 1:
		return 16 * n.units(1, 3)
	default:
		return n.units(2, 24)
	}
}

// input adds the input-node "input", or another one.
func (n *network) input(name string, dim int) string {
	n.lines = append(n.lines, fmt.Sprintf("input-node name=%s dim=%d", name, dim))
	n.dim[name], n.last = dim, name
	return name
}

// output adds an output-node.
func (n *network) output(name, descriptor string) {
	n.lines = append(n.lines, fmt.Sprintf("output-node name=%s input=%s", name, descriptor))
	n.outputs = append(n.outputs, name)
}

// component adds a component of the type <typ>Component.
func (n *network) component(name, typ, format string, args ...any) {
	n.lines = append(n.lines, fmt.Sprintf("component name=%s type=%sComponent %s", name, typ, fmt.Sprintf(format, args...)))
}

// at adds a component-node for a component, and returns its name.
func (n *network) at(name, component, input string, dim int) string {
	n.lines = append(n.lines, fmt.Sprintf("component-node name=%s component=%s input=%s", name, component, input))
	n.dim[name], n.last = dim, name
	return name
}

// node adds a component and a component-node for it, with a name of their own.
func (n *network) node(typ, input string, dim int, format string, args ...any) string {
	name := fmt.Sprintf("%s%d", strings.ToLower(typ), len(n.lines))
	n.component(name, typ, format, args...)
	return n.at(name, name, input, dim)
}

// part adds a dim-range-node.
func (n *network) part(name, of string, offset, dim int) string {
	n.lines = append(n.lines, fmt.Sprintf("dim-range-node name=%s input-node=%s dim-offset=%d dim=%d", name, of, offset, dim))
	n.dim[name] = dim
	return name
}

// affine adds an affine of a random type.
func (n *network) affine(input string, in, out int) string {
	switch n.r.IntN(6) {
	case 0:
		return n.node("Affine", input, out, "input-dim=%d output-dim=%d", in, out)
	case 1:
		return n.node("Linear", input, out, "input-dim=%d output-dim=%d", in, out)
	case 2:
		return n.node("FixedAffine", input, out, "input-dim=%d output-dim=%d", in, out)
	default:
		return n.node("NaturalGradientAffine", input, out, "input-dim=%d output-dim=%d", in, out)
	}
}

// tdnn adds a TdnnComponent.
func (n *network) tdnn(input string, in, out int) string {
	return n.node("Tdnn", input, out, "input-dim=%d output-dim=%d use-bias=%t time-offsets=%s", in, out, n.chance(2), join(n.offsets(3)))
}

// dims adds a component with the dimension of the last node and options.
func (n *network) dims(typ, options string) string {
	d := n.dim[n.last]
	return n.node(typ, n.last, d, "dim=%d %s", d, options)
}

// nonlinearity adds a nonlinearity, sometimes with batch or length normalization.
func (n *network) nonlinearity() string {
	n.dims([...]string{"RectifiedLinear", "RectifiedLinear", "RectifiedLinear", "Sigmoid", "Tanh"}[n.r.IntN(5)], "")
	switch n.r.IntN(4) {
	case 0, 1:
		n.batchNorm()
	case 2:
		n.dims("Normalize", "target-rms=0.5")
	}
	return n.last
}

// batchNorm adds batch normalization, sometimes of blocks.
func (n *network) batchNorm() string {
	d := n.dim[n.last]
	return n.dims("BatchNorm", fmt.Sprintf("block-dim=%d target-rms=%g", n.divisor(d), [...]float64{1, 0.5, 2}[n.r.IntN(3)]))
}

// divisor draws a divisor of d, d itself more often than not.
func (n *network) divisor(d int) int {
	if !n.chance(3) {
		return d
	}
	var all []int
	for i := 1; i <= d; i++ {
		if d%i == 0 {
			all = append(all, i)
		}
	}
	return all[n.r.IntN(len(all))]
}

// offsets draws up to most different time offsets, ascending.
func (n *network) offsets(most int) []int {
	var list []int
	spread := n.between(1, 4)
	for range n.between(1, most) {
		if o := n.between(-spread, spread); !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	slices.Sort(list)
	return list
}

// splice returns a descriptor that appends a node at several times, and its dimension.
func (n *network) splice(node string, most int) (descriptor string, dim int) {
	var parts []string
	for _, o := range n.offsets(most) {
		parts = append(parts, offset(node, o))
	}
	if n.chance(6) { // in no order, and one twice
		n.r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		parts = append(parts, parts[0])
	}
	return appended(parts), n.dim[node] * len(parts)
}

// appended appends descriptors.
func appended(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return "Append(" + strings.Join(parts, ", ") + ")"
}

// offset shifts a node in time.
func offset(node string, t int) string {
	if t == 0 {
		return node
	}
	return fmt.Sprintf("Offset(%s, %d)", node, t)
}

// past is a node at another time, zero where it does not exist.
func past(node string, t int) string { return fmt.Sprintf("IfDefined(Offset(%s, %d))", node, t) }

func join(list []int) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, v)
	}
	return b.String()
}
