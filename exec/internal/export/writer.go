package export

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
)

// batchSymbol is the name of the size that is the number of sequences.
const batchSymbol = "sequences"

// A writer makes the nodes of a model. Nodes with the same inputs and attributes are made once.
type writer struct {
	graph *onnx.Graph
	names map[string]bool // in use
	made  map[string]string
	scope string // of the names of new nodes

	weights  map[weightsKey]string
	seed     maphash.Seed
	tensors  map[uint64][]*onnx.Tensor // by the hash of their elements
	sequence string                    // an input, by which the number of sequences is known
	fault    error                     // the first
}

// weightsKey tells matrices of parameters apart by their memory.
type weightsKey struct {
	data               *float32
	rows, cols, stride int
}

func newWriter() *writer {
	return &writer{graph: new(onnx.Graph), names: make(map[string]bool), made: make(map[string]string),
		weights: make(map[weightsKey]string), seed: maphash.MakeSeed(), tensors: make(map[uint64][]*onnx.Tensor)}
}

// A value is a tensor that stands for an array of some sizes for each sequence. The first axis of the
// tensor is that of sequences. What is the same for all sequences, or for all rows, may have one of
// them: ONNX repeats it where it meets others.
type value struct {
	name    string
	dims    []int // sizes for a sequence, first of all rows
	batched bool  // there is one for each sequence
	one     bool  // there is one row for all rows, of which there are several
}

// rows returns the number of rows that the tensor has.
func (v value) rows() int {
	if v.one {
		return 1
	}
	return v.dims[0]
}

// unused returns a name that nothing has, and notes it.
func (w *writer) unused(name string) string {
	unique := name
	for k := 2; w.names[unique]; k++ {
		unique = name + "_" + strconv.Itoa(k)
	}
	w.names[unique] = true
	return unique
}

// node applies an operator with one result, and returns its name.
func (w *writer) node(op string, inputs []string, attributes ...*onnx.Attribute) string {
	key := op + "\x00" + strings.Join(inputs, "\x00")
	for _, a := range attributes {
		key += fmt.Sprintf("\x01%s %d %v", a.Name, a.Int, a.Ints)
	}
	if name, ok := w.made[key]; ok {
		return name
	}
	name := w.unused(w.scope + "/" + op)
	w.graph.Nodes = append(w.graph.Nodes, &onnx.Node{Op: op, Name: name, Inputs: inputs, Outputs: []string{name}, Attributes: attributes})
	w.made[key] = name
	return name
}

func intAttribute(name string, n int) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttributeInt, Int: int64(n)}
}

func intsAttribute(name string, list ...int) *onnx.Attribute {
	a := &onnx.Attribute{Name: name, Type: onnx.AttributeInts}
	for _, n := range list {
		a.Ints = append(a.Ints, int64(n))
	}
	return a
}

// integers returns a constant vector.
func (w *writer) integers(list ...int) string {
	data := make([]byte, 0, 8*len(list))
	for _, n := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(n))
	}
	return w.constant("/ints", onnx.Int64, []int{len(list)}, data)
}

// floats returns a constant of the given sizes.
func (w *writer) floats(values []float32, dims ...int) string {
	return w.constant("/values", onnx.Float, dims, appendFloats(make([]byte, 0, 4*len(values)), values))
}

func appendFloats(data []byte, values []float32) []byte {
	for _, x := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}

// constant returns the initializer with these elements: the same for the same.
func (w *writer) constant(suffix string, t onnx.DataType, dims []int, data []byte) string {
	sizes := lists.Map(dims, func(d int) int64 { return int64(d) })
	hash := maphash.Bytes(w.seed, data)
	for _, other := range w.tensors[hash] {
		if other.DataType == t && slices.Equal(other.Dims, sizes) && slices.Equal(other.Raw, data) {
			return other.Name
		}
	}
	tensor, err := onnx.NewTensor(w.unused(w.scope+suffix), t, sizes, data)
	if err != nil {
		if w.fault == nil {
			w.fault = err
		}
		return ""
	}
	w.tensors[hash] = append(w.tensors[hash], tensor)
	w.graph.Initializers = append(w.graph.Initializers, tensor)
	return tensor.Name
}

// transposed returns the transpose of parameters as a constant.
func (w *writer) transposed(m kernel.Matrix) string {
	// A recurrent network multiplies by the same parameters at each time. They are told by their memory,
	// since to compare elements each time would cost more than all the rest.
	key := weightsKey{rows: m.Rows, cols: m.Cols, stride: m.Stride}
	if len(m.Data) > 0 {
		key.data = &m.Data[0]
	}
	if name, ok := w.weights[key]; ok {
		return name
	}
	data := make([]byte, 0, 4*m.Rows*m.Cols)
	for j := range m.Cols {
		for i := range m.Rows {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(m.Data[i*m.Stride+j]))
		}
	}
	name := w.constant("/weights", onnx.Float, []int{m.Cols, m.Rows}, data)
	w.weights[key] = name
	return name
}

// batch returns the number of sequences, as a vector of one element.
func (w *writer) batch() string {
	scope := w.scope
	w.scope = batchSymbol
	defer func() { w.scope = scope }()
	return w.node("Shape", []string{w.sequence}, intAttribute("start", 0), intAttribute("end", 1))
}

// allRows gives a value a row for each of its rows.
func (w *writer) allRows(v value) value {
	if !v.one {
		return v
	}
	shape := slices.Repeat([]int{1}, len(v.dims)+1)
	shape[1] = v.dims[0]
	v.name, v.one = w.node("Expand", []string{v.name, w.integers(shape...)}), false
	return v
}

// allSequences gives a value one for each sequence. Without an input there is one sequence.
func (w *writer) allSequences(v value) value {
	if v.batched || w.sequence == "" {
		return v
	}
	ones := w.integers(slices.Repeat([]int{1}, len(v.dims))...)
	shape := w.node("Concat", []string{w.batch(), ones}, intAttribute("axis", 0))
	v.name, v.batched = w.node("Expand", []string{v.name, shape}), true
	return v
}
