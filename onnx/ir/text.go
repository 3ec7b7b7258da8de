package ir

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/onnx"
)

// Text is how graphs are written to files, see package graphfile: ops and types as they print,
// constants to the bit. A large constant of the model is written as its name, if there is a Source.
type Text struct {
	Operators *Operators
	Source    *Source
}

// OpText returns an op as text. A body is the number of its parameters and a graph as in a file:
// body=graph[2,"graph {…}"].
func (d Text) OpText(op fgraph.Op) (string, error) {
	o, ok := op.(*Op)
	if !ok {
		return "", fmt.Errorf("the op %v is none of ONNX", op)
	}
	if len(o.Bodies) == 0 {
		return o.String(), nil
	}
	bodies := make([]string, len(o.Bodies))
	for i, b := range o.Bodies {
		text, err := graphfile.Format(&graphfile.File{Graph: b.Graph}, d)
		if err != nil {
			return "", err
		}
		kind := "graph"
		if b.listed {
			kind = "graphs"
		}
		bodies[i] = fmt.Sprintf("%s=%s[%d,%s]", b.Name, kind, b.Params, strconv.Quote(text))
	}
	return o.textWith(attributeText, bodies), nil
}

// ParseOp returns the op of a text.
func (d Text) ParseOp(text string) (fgraph.Op, error) {
	return d.Operators.parse(text, func(name, value string) (*Body, error) {
		kind, rest, _ := strings.Cut(value, "[")
		params, quoted, _ := strings.Cut(strings.TrimSuffix(rest, "]"), ",")
		n, err := strconv.Atoi(params)
		if err != nil {
			return nil, err
		}
		inner, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, err
		}
		f, err := graphfile.Parse(name, inner, d)
		if err != nil {
			return nil, err
		}
		if n < 0 || n > len(f.Graph.Inputs()) {
			return nil, fmt.Errorf("%d parameters of %d inputs", n, len(f.Graph.Inputs()))
		}
		source := d.Source
		if source == nil {
			source = NewSource(d.Operators)
		}
		return &Body{Name: name, Graph: f.Graph, Params: n, listed: kind == "graphs"}, f.Graph.Attach(source.For())
	})
}

// ParseType returns the type of a text.
func (d Text) ParseType(text string) (fgraph.Type, error) { return ParseType(text) }

// Check returns an error if an op can't have its inputs, or not those outputs.
func (d Text) Check(a *fgraph.Apply) error {
	op, ok := a.Op().(*Op)
	if !ok || len(a.Outputs()) != op.Outputs {
		return fmt.Errorf("%w: %v has %d outputs", ErrType, a.Op(), len(a.Outputs()))
	}
	types, err := d.Operators.Infer(op, a.Inputs())
	if err != nil {
		return err
	}
	for i, t := range types {
		if !t.Accepts(a.Outputs()[i].Type()) {
			return fmt.Errorf("%w: output %d is %v", ErrType, i, t)
		}
	}
	return nil
}

// DataText returns the value of a constant: its elements, if they are few, "@name" if the model has
// it, or else the bytes.
func (d Text) DataText(_ fgraph.Type, data any) (string, error) {
	x, ok := data.(*Value)
	if !ok {
		return "_", nil
	}
	if n := x.Len(); n >= 0 && n <= maxData {
		if text, ok := elementsText(x); ok && !strings.Contains(text, "NaN") { // a NaN has a payload
			return text, nil
		}
	}
	if x.Tensor != nil && d.Source != nil && d.Source.Initializer(x.Tensor.Name) == x.Tensor {
		return "@" + strconv.Quote(x.Tensor.Name), nil
	}
	text, err := dataText(x)
	return "base64 " + text, err
}

// ParseData returns the value of a constant.
func (d Text) ParseData(t fgraph.Type, text string) (any, error) {
	u, ok := t.(Type)
	switch {
	case !ok:
		return nil, fmt.Errorf("%v is no type of ONNX", t)
	case u == omittedType:
		return omitted{}, nil
	}
	if name, ok := strings.CutPrefix(text, "@"); ok {
		name, err := strconv.Unquote(name)
		if err != nil || d.Source == nil || d.Source.Initializer(name) == nil {
			return nil, fmt.Errorf("the model has no initializer %.100s", text)
		}
		return NewValue(d.Source.Initializer(name), d.Source.Dir), nil
	}
	if coded, ok := strings.CutPrefix(text, "base64 "); ok {
		return parseBytes(u, coded)
	}
	return parseElements(u, text)
}

func parseBytes(t Type, coded string) (any, error) {
	message, ok := strings.CutPrefix(coded, "proto ")
	raw, err := base64.StdEncoding.DecodeString(message)
	switch {
	case err != nil:
		return nil, err
	case ok && !t.IsTensor():
		s, err := onnx.ParseSparseTensor(raw)
		return &Value{sparse: s}, err
	case ok:
		p, err := onnx.ParseTensor(raw)
		return NewValue(p, ""), err
	}
	return newTensor(t, raw)
}

// newTensor returns the tensor of a type whose sizes are numbers.
func newTensor(t Type, raw []byte) (*Value, error) {
	dims, ok := t.Numbers()
	if !ok || !t.IsTensor() {
		return nil, fmt.Errorf("a constant of type %v, whose sizes are no numbers", t)
	}
	x := NewValue(&onnx.Tensor{Dims: dims, DataType: t.elem, Raw: raw}, "")
	_, err := x.Bytes()
	return x, err
}

func parseElements(t Type, text string) (any, error) {
	var parts []string
	if list, ok := strings.CutPrefix(text, "["); ok {
		if list = strings.TrimSuffix(list, "]"); list != "" {
			parts = split(list, ",")
		}
	} else {
		parts = []string{text}
	}
	if t.elem == onnx.String {
		var list [][]byte
		for _, p := range parts {
			s, err := strconv.Unquote(p)
			if err != nil {
				return nil, fmt.Errorf("%.100q is no string", p)
			}
			list = append(list, []byte(s))
		}
		dims, _ := t.Numbers()
		return NewValue(&onnx.Tensor{Dims: dims, DataType: t.elem, Strings: list}, ""), nil
	}
	var raw []byte
	for _, p := range parts {
		var err error
		if raw, err = appendElement(raw, t.elem, p); err != nil {
			return nil, err
		}
	}
	return newTensor(t, raw)
}

// appendElement appends the bytes of a number.
func appendElement(raw []byte, elem onnx.DataType, text string) ([]byte, error) {
	switch elem {
	case onnx.Float, onnx.Double:
		bits := elem.Bits()
		f, err := strconv.ParseFloat(text, bits)
		if errors.Is(err, strconv.ErrSyntax) {
			return raw, err
		}
		if bits == 32 {
			return binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(f))), nil
		}
		return binary.LittleEndian.AppendUint64(raw, math.Float64bits(f)), nil
	case onnx.Bool:
		b, err := strconv.ParseBool(text)
		if b {
			return append(raw, 1), err
		}
		return append(raw, 0), err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return raw, err
	}
	return appendInt(raw, elem, n), nil
}

// NumberOf returns the number that all elements of a constant are.
func NumberOf(v *fgraph.Variable) (float64, bool) {
	x := ValueOf(v)
	if x == nil || x.Len() <= 0 {
		return 0, false
	}
	if n := x.Len(); n > 1 {
		// One look at the ends tells for most weights.
		raw, err := x.Bytes()
		size := x.Tensor.DataType.Bits() / 8
		if err != nil || size == 0 || len(raw) != n*size || string(raw[:size]) != string(raw[len(raw)-size:]) {
			return 0, false
		}
		for i := size; i < len(raw); i += size {
			if string(raw[i:i+size]) != string(raw[:size]) {
				return 0, false
			}
		}
	}
	return x.first()
}

// first returns the first element of a tensor of numbers.
func (x *Value) first() (float64, bool) {
	t := x.Tensor.DataType
	raw, err := x.Bytes()
	if kindOf(t) == 0 || t == onnx.Float16 || t == onnx.BFloat16 || t == onnx.Uint64 || err != nil || len(raw) == 0 {
		return 0, false
	}
	return numberAt(t, raw), true
}

// Filled returns a constant all of whose elements are a number.
func Filled(f float64, elem onnx.DataType, dims ...int64) (*fgraph.Variable, error) {
	var raw []byte
	switch k := kindOf(elem); {
	case elem == onnx.Float:
		raw = binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(f)))
	case elem == onnx.Double:
		raw = binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))
	case k == 0 || k == floats:
		return nil, fmt.Errorf("a number of type %v", elem)
	case f != math.Trunc(f) || math.Abs(f) > 1<<53:
		// From 2^53 on a float64 does not tell integers apart.
		return nil, fmt.Errorf("%v is no %v", f, elem)
	case k == bools && f != 0:
		raw = []byte{1}
	default:
		raw = appendInt(nil, elem, int64(f))
	}
	n := int64(1)
	for _, d := range dims {
		if n *= d; n < 0 || n > 1<<20 {
			return nil, fmt.Errorf("a constant of shape %v", dims)
		}
	}
	raw = bytes.Repeat(raw, int(n))
	return Constant(NewValue(&onnx.Tensor{Dims: dims, DataType: elem, Raw: raw}, ""), ""), nil
}

// Brief returns the text of the op for readers: as [Op.String], but what has no short form is said in
// words, and the element type to convert to has its name.
func (op *Op) Brief() string {
	return op.textWith(op.brief, bodyTexts(op.Bodies))
}

func (op *Op) brief(a *onnx.Attribute) string {
	switch {
	case a.Type == onnx.AttributeInt && (op.Type == "Cast" && a.Name == "to" || a.Name == "dtype"):
		return onnx.DataType(a.Int).String()
	case a.Tensor != nil:
		return fmt.Sprintf("tensor of %v%s", a.Tensor.DataType, listText(a.Tensor.Dims, func(n int64) string { return fmt.Sprint(n) }))
	}
	text := attributeText(a)
	if strings.HasPrefix(text, "proto[") {
		return "…"
	}
	return text
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// maxDescribed is how many nodes of a graph are described.
const maxDescribed = 30

// Describe lists the applies of the bodies, a line each. It returns "" where there is none.
func (op *Op) Describe() string {
	var text strings.Builder
	for _, b := range op.Bodies {
		names := make(map[*fgraph.Variable]string)
		list := func(vars []*fgraph.Variable) string {
			parts := make([]string, len(vars))
			for i, v := range vars {
				switch {
				case v.Name() != "":
					parts[i] = v.Name()
				case v.IsConstant():
					parts[i] = v.String()
				default:
					if names[v] == "" {
						names[v] = fmt.Sprintf("%%%d", len(names))
					}
					parts[i] = names[v]
				}
			}
			return strings.Join(parts, ", ")
		}
		fmt.Fprintf(&text, "%s(%s) → %s\n", b.Name, list(b.Graph.Inputs()), list(b.Graph.Outputs()))
		n := 0
		for a := range b.Graph.Ordered() {
			if n++; n > maxDescribed {
				fmt.Fprintf(&text, "  … %s more\n", nodes(b.Graph.NumApplies()-maxDescribed))
				break
			}
			fmt.Fprintf(&text, "  %s = %s(%s)\n", list(a.Outputs()), a.Op().(*Op).Name(), list(a.Inputs()))
		}
	}
	return text.String()
}
