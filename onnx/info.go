package onnx

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// String returns the type in ONNX's text form: float[batch, 3, ?], seq(int64[n]), map(string, float).
// An unknown number of dimensions is [], and a scalar has no brackets.
func (m *Type) String() string {
	switch {
	case m == nil:
		return "unknown"
	case m.Tensor != nil:
		return m.Tensor.String()
	case m.SparseTensor != nil:
		return "sparse_tensor(" + m.SparseTensor.String() + ")"
	case m.Sequence != nil:
		return "seq(" + m.Sequence.Elem.String() + ")"
	case m.Optional != nil:
		return "optional(" + m.Optional.Elem.String() + ")"
	case m.Map != nil:
		return "map(" + m.Map.Key.String() + ", " + m.Map.Value.String() + ")"
	case m.Opaque != nil:
		return "opaque(" + m.Opaque.Domain + ", " + m.Opaque.Name + ")"
	}
	return "unknown"
}

// String returns the type in ONNX's text form, see [Type.String].
func (m *TensorType) String() string {
	if m.Shape == nil {
		return m.Elem.String() + "[]"
	}
	if len(m.Shape.Dims) == 0 {
		return m.Elem.String()
	}
	dims := make([]string, len(m.Shape.Dims))
	for i, d := range m.Shape.Dims {
		switch {
		case d.Value != nil:
			dims[i] = strconv.FormatInt(*d.Value, 10)
		default:
			dims[i] = cmp.Or(d.Param, "?")
		}
	}
	return m.Elem.String() + "[" + strings.Join(dims, ", ") + "]"
}

// An Info describes a model.
type Info struct {
	IRVersion int64       `json:"ir_version"`
	Producer  string      `json:"producer,omitempty"`
	Opsets    []*Opset    `json:"opsets"`
	Inputs    []ValueText `json:"inputs"` // without those that are initializers as well
	Outputs   []ValueText `json:"outputs"`
	// Defaults lists the inputs that are initializers, too: whoever runs the model may give them other values.
	Defaults []string `json:"defaults,omitempty"`
	// Unsorted counts the nodes that stand before one whose output they read, which is against ONNX's rules.
	Unsorted int `json:"unsorted,omitempty"`
	// Initializers counts the constants, also of subgraphs, Elements their elements and Bytes what
	// those take. External lists the files that have some of them.
	Initializers int      `json:"initializers"`
	Elements     int64    `json:"elements"`
	Bytes        int64    `json:"bytes"`
	External     []string `json:"external,omitempty"`
	// Nodes counts the nodes, also of subgraphs and functions.
	Nodes     int      `json:"nodes"`
	Ops       []OpInfo `json:"ops"` // the most frequent ones first
	Functions []string `json:"functions,omitempty"`
	// Metadata is what the producer says about the model.
	Metadata []*Entry `json:"metadata,omitempty"`
}

// A ValueText is a named value with its type in ONNX's text form.
type ValueText struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// An OpInfo is an operator, with its domain unless that is ONNX's own, and the number of its nodes.
type OpInfo struct {
	Op    string `json:"op"`
	Nodes int    `json:"nodes"`
}

// Info describes the model.
func (m *Model) Info() *Info {
	x := &Info{IRVersion: m.IRVersion, Producer: strings.TrimSpace(m.ProducerName + " " + m.ProducerVersion), Inputs: []ValueText{}, Outputs: []ValueText{}, Ops: []OpInfo{}}
	x.Opsets, x.Metadata = append([]*Opset{}, m.Opsets...), m.Metadata
	constant := m.Graph.Initial()
	for _, v := range m.Graph.Inputs {
		if constant[v.Name] {
			x.Defaults = append(x.Defaults, v.Name)
		} else {
			x.Inputs = append(x.Inputs, ValueText{v.Name, v.Type.String()})
		}
	}
	for _, v := range m.Graph.Outputs {
		x.Outputs = append(x.Outputs, ValueText{v.Name, v.Type.String()})
	}
	counts, files := make(map[string]int), make(map[string]bool)
	for g := range m.graphs() {
		x.Unsorted += unsorted(g.Nodes)
		for _, t := range g.Initializers {
			x.Initializers++
			n, bytes := t.size()
			x.Elements, x.Bytes = x.Elements+n, x.Bytes+bytes
			for _, e := range t.External {
				if e.Key == "location" {
					files[e.Value] = true
				}
			}
		}
		for _, n := range g.Nodes {
			x.Nodes++
			op := n.Op
			if n.Domain != "" && n.Domain != "ai.onnx" {
				op = n.Domain + "." + op
			}
			counts[op]++
		}
	}
	for op, n := range counts {
		x.Ops = append(x.Ops, OpInfo{op, n})
	}
	slices.SortFunc(x.Ops, func(a, b OpInfo) int { return cmp.Or(b.Nodes-a.Nodes, strings.Compare(a.Op, b.Op)) })
	for f := range files {
		x.External = append(x.External, f)
	}
	slices.Sort(x.External)
	for _, f := range m.Functions {
		x.Functions = append(x.Functions, strings.TrimPrefix(f.Domain+"."+f.Name, "."))
	}
	return x
}

// unsorted counts the nodes that read an output of a later node, themselves or in a graph that they hold.
func unsorted(nodes []*Node) (n int) {
	made := make(map[string]int) // by the node of that number
	for i, node := range nodes {
		for _, name := range node.Outputs {
			made[name] = i
		}
	}
	var uses Uses
	for i, node := range nodes {
		// A name that no node makes has 0 in made, and is behind none.
		if slices.ContainsFunc(uses.Of(node), func(name string) bool { return name != "" && made[name] > i }) {
			n++
		}
	}
	return n
}

// graphs yields the graph of the model and all graphs within it, and the bodies of its functions as
// graphs.
func (m *Model) graphs() iter.Seq[*Graph] {
	all := []*Graph{m.Graph}
	for _, f := range m.Functions {
		all = append(all, &Graph{Nodes: f.Nodes})
	}
	return Nested(all...)
}

// size returns the number of elements of a tensor and the bytes that they take, 0 if there can't be
// such a tensor.
func (m *Tensor) size() (elements, bytes int64) {
	if m.DataType == String {
		for _, s := range m.Strings {
			bytes += int64(len(s))
		}
		return int64(len(m.Strings)), bytes
	}
	if elements, bytes, err := m.extent(); err == nil {
		return elements, bytes
	}
	return 0, 0
}

// oneLine is an excerpt of a text that may have several lines, such as a list of characters that a model reads.
func oneLine(s string) string { return strings.ReplaceAll(fileio.Excerpt(s, 0), "\n", `\n`) }

// Text returns the description as lines.
func (x *Info) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ir-version: %d\n", x.IRVersion)
	for _, o := range x.Opsets {
		fmt.Fprintf(&b, "opset: %s\n", strings.TrimSpace(o.Domain+" "+strconv.FormatInt(o.Version, 10)))
	}
	if x.Producer != "" {
		fmt.Fprintf(&b, "producer: %s\n", oneLine(x.Producer))
	}
	for _, e := range x.Metadata {
		fmt.Fprintf(&b, "metadata %s: %s\n", oneLine(e.Key), oneLine(e.Value))
	}
	for _, v := range x.Inputs {
		fmt.Fprintf(&b, "input %s: %s\n", oneLine(v.Name), v.Type)
	}
	if n := len(x.Defaults); n > 0 {
		list := strings.Join(x.Defaults[:min(n, shownDefaults)], ", ")
		if n > shownDefaults {
			list += fmt.Sprintf(", … %d in all", n)
		}
		fmt.Fprintf(&b, "inputs with a default: %s\n", list)
	}
	for _, v := range x.Outputs {
		fmt.Fprintf(&b, "output %s: %s\n", oneLine(v.Name), v.Type)
	}
	fmt.Fprintf(&b, "initializers: %d, %d elements, %d bytes\n", x.Initializers, x.Elements, x.Bytes)
	for _, f := range x.External {
		fmt.Fprintf(&b, "external: %s\n", f)
	}
	for _, f := range x.Functions {
		fmt.Fprintf(&b, "function: %s\n", f)
	}
	fmt.Fprintf(&b, "nodes: %d\n", x.Nodes)
	for _, o := range x.Ops {
		fmt.Fprintf(&b, "  %-24s %d\n", o.Op, o.Nodes)
	}
	if x.Unsorted > 0 {
		fmt.Fprintf(&b, "out of order: %d nodes read what one behind them computes\n", x.Unsorted)
	}
	return b.String()
}

// shownDefaults is how many inputs with a default are named.
const shownDefaults = 10
