package backend

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nnopt/nnopt/exec/session"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/lower"
)

// readList reads a SequenceProto, or an OptionalProto of one or of a tensor, as tensors: none if there
// is no value.
func readList(file string, t *onnx.Type) ([]*onnx.Tensor, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	const tensorValues, sequenceValue = 3, 5 // the fields of both, and of an OptionalProto alone
	if t.Optional != nil && isList(t) {
		values, err := fields(data, sequenceValue)
		if err != nil || len(values) == 0 {
			return nil, err
		}
		data = values[0]
	}
	values, err := fields(data, tensorValues)
	if err != nil {
		return nil, err
	}
	if t.Optional != nil && !isList(t) {
		values = values[:min(len(values), 1)]
	}
	list := make([]*onnx.Tensor, len(values))
	for i, data := range values {
		if list[i], err = onnx.ParseTensor(data); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// fields returns the messages of a field.
func fields(data []byte, want protowire.Number) ([][]byte, error) {
	var found [][]byte
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, fmt.Errorf("%w: %w", ErrCase, protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(num, typ, data[n:])
		if size < 0 {
			return nil, fmt.Errorf("%w: %w", ErrCase, protowire.ParseError(size))
		}
		if num == want && typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(data[n:])
			found = append(found, v)
		}
		data = data[n+size:]
	}
	return found, nil
}

// isList reports whether a value is given by its items: a sequence, or an optional one.
func isList(t *onnx.Type) bool {
	if t != nil && t.Optional != nil {
		t = t.Optional.Elem
	}
	return t != nil && t.Sequence != nil
}

// ReadItems returns the tensors in a file of a sequence or of an optional value, by the names that session.Model takes
// them by. External data are in a folder.
func ReadItems(file, dir string, v *onnx.ValueInfo) ([]Output, error) {
	list, err := readList(file, v.Type)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var values []Output
	for i, t := range list {
		a, err := lower.ArrayOf(t, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		name := v.Name
		if isList(v.Type) {
			name = lower.Item(name, i)
		}
		values = append(values, Output{name, t.DataType, a})
	}
	return values, nil
}

// tooMany returns an error if an output that is a sequence has items that it should not have.
func (c *Case) tooMany(f *session.Function, want []Output) error {
	for _, o := range f.Outputs() {
		named := func(w Output) bool { return w.Name == o.Name }
		for _, v := range c.Model.Graph.Outputs {
			if isList(v.Type) && strings.HasPrefix(o.Name, v.Name+"[") && !slices.ContainsFunc(want, named) {
				return fmt.Errorf("output %s: %w: there should be no such item", o.Name, ErrDiffers)
			}
		}
	}
	return nil
}
