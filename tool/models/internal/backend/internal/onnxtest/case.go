package onnxtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
)

// A Case is a model with sets of inputs, by the order of the model's.
type Case struct {
	Name  string
	Model *onnx.Model
	Sets  [][]*onnx.Tensor
}

// Draw returns the case of a seed.
func Draw(seed uint64) *Case {
	b := newBuilder(seed)
	c := &Case{Name: fmt.Sprintf("random_%06d", seed)}
	for range 1 + b.IntN(3) {
		b.fresh(b.anyElem(), b.shape(0, 4))
	}
	for range 3 + b.IntN(9) {
		b.step()
	}
	c.Model, c.Sets = b.finish()
	return c
}

// Probes yields cases of each operator, type of elements and version.
func Probes(yield func(*Case) bool) {
	for _, s := range steps() {
		for _, elem := range append(anything, onnx.BFloat16) {
			for opset := int64(oldest); opset <= newest; opset++ {
				if c := probe(&s, elem, opset); c != nil && !yield(c) {
					return
				}
			}
		}
	}
}

// probe returns a case of one operator for elements of a type in a version of ONNX, or nil if there is none.
func probe(s *step, elem onnx.DataType, opset int64) *Case {
	if opset < s.since || s.until > 0 && opset > s.until {
		return nil
	}
	// Not every draw suits the operator. With seeds, a probe is the same in each run.
	for seed := range uint64(20) {
		b := newBuilder(seed)
		b.opset, b.sets, b.all, b.values = opset, 1, true, b.values[:1]
		x := b.fresh(elem, [][]int{[]int{2, 4, 4, 6}[:max(s.rank, 3)]})
		if !s.takes(b, x) || s.make(b, s.op, x) == nil {
			continue
		}
		c := &Case{Name: fmt.Sprintf("%s_%v_%d", s.op, elem, opset)}
		c.Model, c.Sets = b.finish()
		return c
	}
	return nil
}

// Write writes the case to a folder, which must not be there.
func (c *Case) Write(ctx context.Context, dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	if err := c.Model.WriteFile(ctx, filepath.Join(dir, "model.onnx")); err != nil {
		return err
	}
	for k, set := range c.Sets {
		sub := filepath.Join(dir, fmt.Sprintf("test_data_set_%d", k))
		if err := os.Mkdir(sub, 0o777); err != nil {
			return err
		}
		for i, t := range set {
			if err := fileio.Write(ctx, filepath.Join(sub, fmt.Sprintf("input_%d.pb", i)), t.Write); err != nil {
				return err
			}
		}
	}
	return nil
}

// A value is what a name stands for, with its shape in each set.
type value struct {
	name  string
	elem  onnx.DataType
	shape [][]int
	// exact says that every program computes the same bits, so that what jumps may be computed of it.
	exact bool
}

func (v *value) rank() int { return len(v.shape[0]) }

// fixed reports whether the shape is the same in all sets.
func (v *value) fixed() bool {
	for _, s := range v.shape[1:] {
		if fmt.Sprint(s) != fmt.Sprint(v.shape[0]) {
			return false
		}
	}
	return true
}

// A builder makes a model.
type builder struct {
	*rand.Rand
	opset   int64
	sets    int
	all     bool // all operators for all types, known to ONNX Runtime or not
	nodes   []*onnx.Node
	pool    []*value
	inputs  []*onnx.ValueInfo
	values  [][]*onnx.Tensor // of inputs, in each set
	initial []*onnx.Tensor
	count   *int
	depth   int
	outer   *builder // of the graph around
}

const (
	oldest = 7
	newest = 23
)

func newBuilder(seed uint64) *builder {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := &builder{Rand: rng, opset: oldest + rng.Int64N(newest-oldest+1), sets: 1, count: new(int)}
	if b.chance(0.4) {
		b.sets = 2 + b.IntN(2)
	}
	b.values = make([][]*onnx.Tensor, b.sets)
	return b
}

func (b *builder) chance(p float64) bool { return b.Float64() < p }

func pick[T any](b *builder, list ...T) T { return list[b.IntN(len(list))] }

// name returns a new name.
func (b *builder) name(prefix string) string {
	*b.count++
	return fmt.Sprint(prefix, *b.count)
}

// root returns the builder of the main graph.
func (b *builder) root() *builder {
	for b.outer != nil {
		b = b.outer
	}
	return b
}

// same returns a shape that is the same in all sets.
func (b *builder) same(shape ...int) [][]int {
	list := make([][]int, b.sets)
	for k := range list {
		list[k] = shape
	}
	return list
}

// each returns a shape, or other integers, of each set.
func (b *builder) each(f func(k int) []int) [][]int {
	list := make([][]int, b.sets)
	for k := range list {
		list[k] = f(k)
	}
	return list
}

// shape draws a shape of min to max dimensions, small and not empty, some of them other ones in each set.
func (b *builder) shape(min, max int) [][]int {
	n := min + b.IntN(max-min+1)
	list := b.each(func(int) []int { return make([]int, n) })
	for i := range n {
		size, moves := 1+b.IntN(5), b.chance(0.4)
		for k := range list {
			if moves && k > 0 {
				size = 1 + b.IntN(5)
			}
			list[k][i] = size
		}
	}
	return list
}

// fresh makes an input of the model. Its values are drawn for each set.
func (b *builder) fresh(elem onnx.DataType, shape [][]int) *value {
	return b.given(elem, shape, func(k, i int) float64 { return b.number(elem) })
}

// given makes an input of the model with values: element i of set k.
func (b *builder) given(elem onnx.DataType, shape [][]int, at func(k, i int) float64) *value {
	// Only the main graph can be given values. Graphs in nodes see its inputs by their names.
	r := b.root()
	v := &value{b.name("in"), elem, shape, true}
	info := typed(v.name, elem, shape)
	// A size that is another one in each set can't be declared, and the others needn't be.
	if b.chance(0.2) || !v.fixed() {
		for i, d := range info.Type.Tensor.Shape.Dims {
			if b.chance(0.5) || !v.fixed() {
				info.Type.Tensor.Shape.Dims[i] = &onnx.Dim{Param: fmt.Sprintf("%s_%d", v.name, i)}
			} else {
				info.Type.Tensor.Shape.Dims[i] = d
			}
		}
	}
	r.inputs = append(r.inputs, info)
	for k := range r.values {
		r.values[k] = append(r.values[k], tensorOf(v.name, elem, shape[k], func(i int) float64 { return at(k, i) }))
	}
	r.pool = append(r.pool, v)
	return v
}

// constant makes an initializer of this graph, or a Constant node.
func (b *builder) constant(elem onnx.DataType, shape []int, at func(i int) float64) *value {
	v := &value{b.name("c"), elem, b.same(shape...), true}
	t := tensorOf(v.name, elem, shape, at)
	switch {
	case b.chance(0.3):
		b.nodes = append(b.nodes, &onnx.Node{Op: "Constant", Outputs: []string{v.name}, Attributes: []*onnx.Attribute{{Name: "value", Type: onnx.AttributeTensor, Tensor: t}}})
	default:
		b.initial = append(b.initial, t)
	}
	return v
}

// drawn makes a constant of drawn elements.
func (b *builder) drawn(elem onnx.DataType, shape ...int) *value {
	return b.constant(elem, shape, func(int) float64 { return b.number(elem) })
}

// ints makes integers that an operator is given as an input: a constant if they are the same in all sets,
// or what only a run knows.
func (b *builder) ints(list [][]int) *value { return b.intsOf(onnx.Int64, list) }

func (b *builder) intsOf(elem onnx.DataType, list [][]int) *value {
	same := true
	for _, l := range list {
		same = same && fmt.Sprint(l) == fmt.Sprint(list[0])
	}
	shape := b.each(func(k int) []int { return []int{len(list[k])} })
	if same && (b.depth > 0 || b.chance(0.6)) {
		return b.constant(elem, []int{len(list[0])}, func(i int) float64 { return float64(list[0][i]) })
	}
	v := b.given(elem, shape, func(k, i int) float64 { return float64(list[k][i]) })
	r := b.root()
	r.pool = r.pool[:len(r.pool)-1] // which nothing else should change
	return v
}

// scalar makes an integer that an operator is given as an input, with no dimension or one.
func (b *builder) scalar(list []int) *value {
	if b.chance(0.5) {
		return b.integerOf(list, 1)
	}
	return b.integerOf(list)
}

func (b *builder) integerOf(list []int, dims ...int) *value {
	same := !slices.ContainsFunc(list, func(n int) bool { return n != list[0] })
	if same && (b.depth > 0 || b.chance(0.5)) {
		return b.constant(onnx.Int64, dims, func(int) float64 { return float64(list[0]) })
	}
	v := b.given(onnx.Int64, b.same(dims...), func(k, _ int) float64 { return float64(list[k]) })
	r := b.root()
	r.pool = r.pool[:len(r.pool)-1]
	return v
}

// node adds a node and its first result, whose shape is given.
func (b *builder) node(op string, in []*value, elem onnx.DataType, shape [][]int, attributes ...*onnx.Attribute) *value {
	n := &onnx.Node{Op: op, Attributes: attributes}
	exact := true
	for _, v := range in {
		if v == nil {
			n.Inputs = append(n.Inputs, "")
			continue
		}
		n.Inputs, exact = append(n.Inputs, v.name), exact && v.exact
	}
	out := &value{b.name("t"), elem, shape, exact}
	n.Outputs = []string{out.name}
	b.nodes = append(b.nodes, n)
	b.pool = append(b.pool, out)
	return out
}

// more adds a result to the last node.
func (b *builder) more(elem onnx.DataType, shape [][]int) *value {
	n := b.nodes[len(b.nodes)-1]
	out := &value{b.name("t"), elem, shape, b.pool[len(b.pool)-1].exact}
	n.Outputs = append(n.Outputs, out.name)
	b.pool = append(b.pool, out)
	return out
}

// rough marks a result as one whose last bits programs may disagree about.
func rough(v *value) *value {
	v.exact = false
	return v
}

// finish makes the model. Its outputs are the last values, and some others.
func (b *builder) finish() (*onnx.Model, [][]*onnx.Tensor) {
	g := &onnx.Graph{Name: "g", Nodes: b.nodes, Inputs: b.inputs, Initializers: b.initial}
	made := make(map[string]bool)
	for _, n := range b.nodes {
		for _, o := range n.Outputs {
			made[o] = true
		}
	}
	for i, v := range b.pool {
		if !made[v.name] || i < len(b.pool)-2 && !b.chance(0.15) {
			continue
		}
		// What no program can be given or asked for as a tensor of its own leaves as floats.
		out := v
		if v.elem == onnx.BFloat16 || isTiny(v.elem) {
			out = &value{name: b.name("o"), elem: onnx.Float, shape: v.shape}
			g.Nodes = append(g.Nodes, &onnx.Node{Op: "Cast", Inputs: []string{v.name}, Outputs: []string{out.name}, Attributes: []*onnx.Attribute{integer("to", int(onnx.Float))}})
		}
		info := typed(out.name, out.elem, out.shape)
		if !out.fixed() || b.chance(0.2) {
			for d := range info.Type.Tensor.Shape.Dims {
				info.Type.Tensor.Shape.Dims[d] = &onnx.Dim{Param: fmt.Sprintf("%s_%d", out.name, d)}
			}
		}
		g.Outputs = append(g.Outputs, info)
	}
	return &onnx.Model{IRVersion: formatOf(b.opset), Opsets: []*onnx.Opset{{Version: b.opset}}, Graph: g}, b.values
}

// formatOf returns a version of the file format that has a version of the operators. Since the fourth,
// initializers need not be inputs.
func formatOf(opset int64) int64 {
	switch {
	case opset < 15:
		return 7
	case opset < 19:
		return 8
	case opset < 21:
		return 9
	case opset < 23:
		return 10
	}
	return 11
}

func typed(name string, elem onnx.DataType, shape [][]int) *onnx.ValueInfo {
	dims := make([]*onnx.Dim, len(shape[0]))
	for i, n := range shape[0] {
		size := int64(n)
		dims[i] = &onnx.Dim{Value: &size}
	}
	return &onnx.ValueInfo{Name: name, Type: &onnx.Type{Tensor: &onnx.TensorType{Elem: elem, Shape: &onnx.Shape{Dims: dims}}}}
}
