package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/nnopt/nnopt/exec/model"
	"github.com/nnopt/nnopt/tensor/array"
)

// headerLength is the header with the bytes of JSON of a body that has binary tensors behind them.
const headerLength = "Inference-Header-Content-Length"

// A request is the JSON of an inference request.
type request struct {
	ID         string `json:"id"`
	Parameters struct {
		BinaryOutput bool `json:"binary_data_output"`
	} `json:"parameters"`
	Inputs  []tensor `json:"inputs"`
	Outputs []tensor `json:"outputs"`
}

// A tensor is one of a request, of an answer, or of metadata, where -1 is any size.
type tensor struct {
	Name       string          `json:"name"`
	Datatype   string          `json:"datatype"`
	Shape      []int           `json:"shape"`
	Parameters *parameters     `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

type parameters struct {
	BinarySize *int  `json:"binary_data_size,omitempty"`
	Binary     *bool `json:"binary_data,omitempty"`
}

// A datatype is a type of elements.
type datatype struct {
	name, element string // in the protocol, and in models
	fromJSON      func(data []byte, shape []int) (model.Shaped, error)
	fromBinary    func(data []byte, shape []int) (model.Shaped, error)
	appendBinary  func(to []byte, a *array.Array) ([]byte, error)
}

// datatypes are those of the protocol but BYTES, strings.
var datatypes = []datatype{
	of[bool]("BOOL", "bool"), of[float32]("FP32", "float32"), of[float64]("FP64", "float64"), of[array.F16]("FP16", "float16"), of[array.BF16]("BF16", "bfloat16"),
	of[int8]("INT8", "int8"), of[int16]("INT16", "int16"), of[int32]("INT32", "int32"), of[int64]("INT64", "int64"),
	of[uint8]("UINT8", "uint8"), of[uint16]("UINT16", "uint16"), of[uint32]("UINT32", "uint32"), of[uint64]("UINT64", "uint64"),
}

func of[T array.Element](name, element string) datatype {
	size := binary.Size(*new(T))
	return datatype{name, element,
		func(data []byte, shape []int) (model.Shaped, error) {
			if name == "FP16" || name == "BF16" {
				return model.Shaped{}, errors.New("numbers of 16 bits have to be binary")
			}
			var list []T
			err := json.Unmarshal(flat(data), &list)
			return model.Tensor(list, shape...), err
		},
		func(data []byte, shape []int) (model.Shaped, error) {
			list := make([]T, len(data)/size)
			if len(data)%size != 0 {
				return model.Shaped{}, fmt.Errorf("%d bytes are no elements of %d bytes", len(data), size)
			}
			_, err := binary.Decode(data, binary.LittleEndian, list)
			return model.Tensor(list, shape...), err
		},
		func(to []byte, a *array.Array) ([]byte, error) {
			list, err := model.Slice[T](a)
			if err != nil {
				return nil, err
			}
			return binary.Append(to, binary.LittleEndian, list)
		},
	}
}

// flat returns nested lists of numbers as one: the protocol allows both.
func flat(data []byte) []byte {
	if bytes.IndexByte(data, '{') >= 0 || bytes.IndexByte(data, '"') >= 0 || len(data) == 0 || data[0] != '[' {
		return data // no list of numbers, which json.Unmarshal says
	}
	inner := bytes.Map(func(r rune) rune {
		if r == '[' || r == ']' {
			return -1
		}
		return r
	}, data)
	if len(bytes.Trim(inner, " \t\r\n,")) == 0 {
		return []byte("[]")
	}
	return slices.Concat([]byte("["), inner, []byte("]"))
}

func protocolName(element string) string {
	for _, d := range datatypes {
		if d.element == element {
			return d.name
		}
	}
	return "BYTES"
}

// readRequest reads a body: JSON, and as many bytes as it says behind it. length is the header, if there is one.
func readRequest(body []byte, length string) (*request, model.Inputs, error) {
	head, rest := body, []byte(nil)
	if length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(body) {
			return nil, nil, fmt.Errorf("%s is %q, for a body of %d bytes", headerLength, length, len(body))
		}
		head, rest = body[:n], body[n:]
	}
	req, inputs := new(request), make(model.Inputs)
	if err := json.Unmarshal(head, req); err != nil {
		return nil, nil, err
	}
	for _, t := range req.Inputs {
		i := slices.IndexFunc(datatypes, func(d datatype) bool { return d.name == t.Datatype })
		if i < 0 {
			return nil, nil, fmt.Errorf("input %q: datatype %q", t.Name, t.Datatype)
		}
		if _, twice := inputs[t.Name]; twice {
			return nil, nil, fmt.Errorf("input %q is given twice", t.Name)
		}
		x, err := model.Shaped{}, error(nil)
		if t.Parameters != nil && t.Parameters.BinarySize != nil {
			n := *t.Parameters.BinarySize
			if n < 0 || n > len(rest) || t.Data != nil {
				return nil, nil, fmt.Errorf("input %q: binary_data_size is %d, and there are %d bytes", t.Name, n, len(rest))
			}
			x, err = datatypes[i].fromBinary(rest[:n], t.Shape)
			rest = rest[n:]
		} else {
			x, err = datatypes[i].fromJSON(t.Data, t.Shape)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("input %q: %w", t.Name, err)
		}
		inputs[t.Name] = x
	}
	if len(rest) > 0 {
		return nil, nil, fmt.Errorf("%d bytes that are no input's", len(rest))
	}
	return req, inputs, nil
}

// An answer is the JSON of an answer, and what follows it.
type answer struct {
	ModelName    string   `json:"model_name"`
	ModelVersion string   `json:"model_version"`
	ID           string   `json:"id,omitempty"`
	Outputs      []tensor `json:"outputs"`
	binary       []byte
}

// add adds an output. NaN and infinities, which JSON lacks, are strings in it.
func (o *answer) add(name string, a *array.Array, asBinary bool) error {
	t := tensor{Name: name, Shape: slices.Clone(a.Shape())}
	i := slices.IndexFunc(datatypes, func(d datatype) bool { return d.element == a.DType().String() })
	if i < 0 {
		return fmt.Errorf("output %q has elements of type %v", name, a.DType())
	}
	t.Datatype = datatypes[i].name
	before, err := len(o.binary), error(nil)
	if asBinary {
		if o.binary == nil {
			o.binary = []byte{} // also if there are no elements
		}
		o.binary, err = datatypes[i].appendBinary(o.binary, a)
		size := len(o.binary) - before
		t.Parameters = &parameters{BinarySize: &size}
	} else {
		t.Data, err = a.Reshape(a.Len()).MarshalJSON()
	}
	o.Outputs = append(o.Outputs, t)
	return err
}

func (o *answer) write(w http.ResponseWriter) {
	if o.binary == nil {
		reply(w, http.StatusOK, o)
		return
	}
	head, err := json.Marshal(o)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(headerLength, strconv.Itoa(len(head)))
	w.Header().Set("Content-Length", strconv.Itoa(len(head)+len(o.binary)))
	w.Write(head)
	w.Write(o.binary)
}
