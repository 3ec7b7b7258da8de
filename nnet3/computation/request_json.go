package computation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3/index"
)

// maxRequestRows bounds the rows of an input or output given by ranges, where a few digits can ask
// for any number. It is almost three hours of speech at a row every 10 ms.
const maxRequestRows = 1 << 20

// maxSpecifications bounds the number of inputs and of outputs.
const maxSpecifications = 1 << 16

// jsonRequest combines both JSON forms of a request.
type jsonRequest struct {
	// The form of the reference cases.
	Inputs              jsonSpecifications `json:"inputs"`
	NeedModelDerivative bool               `json:"need_model_derivative"`
	StoreComponentStats bool               `json:"store_component_stats"`

	// The compact form: N sequences and ranges of t.
	N        *int64          `json:"n"`
	InputT   json.RawMessage `json:"input_t"`
	OutputT  json.RawMessage `json:"output_t"`
	IvectorT json.RawMessage `json:"ivector_t"`

	// In the first form jsonSpecifications, in the second a list of names or "all".
	Outputs json.RawMessage `json:"outputs"`

	// In some files the request is a member of the object.
	Request json.RawMessage `json:"request"`
}

type jsonSpecification struct {
	Name     string      `json:"name"`
	HasDeriv bool        `json:"has_deriv"`
	Indexes  jsonIndexes `json:"indexes"`
}

type jsonSpecifications []jsonSpecification

// UnmarshalJSON refuses lists that would take a lot of memory even if their elements were empty.
func (s *jsonSpecifications) UnmarshalJSON(data []byte) error {
	if bytes.Count(data, []byte("{")) > maxSpecifications {
		return fmt.Errorf("more than %d inputs or outputs are listed", maxSpecifications)
	}
	return json.Unmarshal(data, (*[]jsonSpecification)(s))
}

type jsonIndexes []index.Index

// UnmarshalJSON reads [[n, t, x], ...]. It allocates once, for one index a bracket.
func (v *jsonIndexes) UnmarshalJSON(data []byte) error {
	rest, ok := bytes.CutPrefix(data, []byte("["))
	if !ok {
		return fmt.Errorf("indexes are %.40s, not a list of [n, t, x]", data)
	}
	list := make([]index.Index, 0, bytes.Count(rest, []byte("[")))
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n,")
		if rest[0] == ']' { // data is known to be valid JSON
			*v = list
			return nil
		}
		// Valid JSON, but not necessarily what is wanted: what is between the brackets may be
		// anything.
		end := bytes.IndexByte(rest, ']')
		var x [3]int32
		if rest[0] != '[' || !parseTriple(rest[1:end], &x) {
			return fmt.Errorf("index number %d is %.60s, not [n, t, x]", len(list), rest[:end+1])
		}
		list = append(list, index.Index{N: x[0], T: x[1], X: x[2]})
		rest = rest[end+1:]
	}
}

// parseTriple parses three numbers separated by commas.
func parseTriple(text []byte, x *[3]int32) bool {
	for i := range x {
		number, rest, more := bytes.Cut(text, []byte(","))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(number)), 10, 32)
		if err != nil || more != (i < 2) {
			return false
		}
		x[i], text = int32(n), rest
	}
	return true
}

// ReadRequestJSON reads a request in one of two JSON forms. The first, that of the reference cases,
// lists inputs and outputs with name, has_deriv and indexes, where each index is [n, t, x], next to
// need_model_derivative and store_component_stats. The second gives ranges of times:
//
//	{"n": 8, "input_t": [-28, 178], "output_t": [0, 150, 3], "ivector_t": [0, 1], "outputs": ["output"],
//	 "need_model_derivative": false}
//
// asks for the named outputs ("all" for every output-node) of sequences 0 to 7 at times 0, 3, ...,
// 147. Every input-node of the network is given at the times of input_t, except that one called
// ivector is given at those of ivector_t. Ends are exclusive; the third number is a step. Rows are
// ordered by n, then t. With need_model_derivative every output comes with a derivative. This form
// needs net for the names of inputs and outputs.
//
// ReadRequestJSON ignores other members, so a whole reference case can be read. Unless net is nil,
// it validates the request. It reads at most fileio.MaxText bytes. Errors wrap ErrRequest.
func ReadRequestJSON(r io.Reader, net *NetworkInfo) (*Request, error) {
	dec := json.NewDecoder(fileio.Limit(r, "the request", fileio.MaxText))
	var in jsonRequest
	if err := dec.Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: at byte %d: %w", ErrRequest, dec.InputOffset(), plainJSON(err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: at byte %d: there is more after the object", ErrRequest, dec.InputOffset())
	}
	if in.Request != nil {
		inner := in.Request
		in = jsonRequest{}
		if err := json.Unmarshal(inner, &in); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, plainJSON(err))
		}
	}
	req := &Request{NeedModelDerivative: in.NeedModelDerivative, StoreComponentStats: in.StoreComponentStats}
	fill := in.listed
	if in.N != nil {
		fill = in.ranges
	}
	if err := fill(req, net); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if net != nil {
		if err := req.Validate(net); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// plainJSON describes an error in terms of JSON, not of Go.
func plainJSON(err error) error {
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == io.EOF:
		return errors.New("there is nothing")
	case !errors.As(err, &mismatch):
		return err
	case mismatch.Field == "":
		return fmt.Errorf("%s where an object is wanted", mismatch.Value)
	}
	return fmt.Errorf("%s can't be %s", fileio.Excerpt(mismatch.Field, 0), mismatch.Value)
}

// listed fills in a request from the form that lists every index.
func (in *jsonRequest) listed(req *Request, _ *NetworkInfo) error {
	var outputs jsonSpecifications
	if in.Outputs == nil {
		return fmt.Errorf("there are neither outputs nor n")
	}
	if err := json.Unmarshal(in.Outputs, &outputs); err != nil {
		return fmt.Errorf("outputs: %w", plainJSON(err))
	}
	convert := func(list jsonSpecifications) []IoSpecification {
		return lists.Map(list, func(s jsonSpecification) IoSpecification {
			return IoSpecification{Name: s.Name, HasDeriv: s.HasDeriv, Indexes: s.Indexes}
		})
	}
	req.Inputs, req.Outputs = convert(in.Inputs), convert(outputs)
	return nil
}

// ranges fills in a request from the form that gives ranges.
func (in *jsonRequest) ranges(req *Request, net *NetworkInfo) error {
	if net == nil || len(net.Nodes) == 0 {
		return fmt.Errorf("ranges of t need a network that says what the inputs are")
	}
	input, err := grid(*in.N, in.InputT, "input_t")
	if err != nil {
		return err
	}
	output, err := grid(*in.N, in.OutputT, "output_t")
	if err != nil {
		return err
	}
	for _, node := range net.Nodes {
		if !node.IsInput {
			continue
		}
		spec := IoSpecification{Name: node.Name, Indexes: input}
		if node.Name == "ivector" {
			if in.IvectorT == nil {
				in.IvectorT = json.RawMessage("[0, 1]")
			}
			if spec.Indexes, err = grid(*in.N, in.IvectorT, "ivector_t"); err != nil {
				return err
			}
		}
		req.Inputs = append(req.Inputs, spec)
	}
	if in.Outputs == nil {
		return errors.New(`outputs is missing: a list of names, or "all"`)
	}
	names, err := in.outputNames(net)
	if err != nil {
		return err
	}
	for _, name := range names {
		req.Outputs = append(req.Outputs, IoSpecification{Name: name, Indexes: output, HasDeriv: in.NeedModelDerivative})
	}
	return nil
}

// outputNames returns the listed names, or those of all outputs.
func (in *jsonRequest) outputNames(net *NetworkInfo) ([]string, error) {
	var all string
	var names []string
	if json.Unmarshal(in.Outputs, &all) == nil {
		if all != "all" {
			return nil, fmt.Errorf(`outputs is %q, not a list or "all"`, fileio.Excerpt(all, 0))
		}
		for _, node := range net.Nodes {
			if node.IsOutput {
				names = append(names, node.Name)
			}
		}
		return names, nil
	}
	if bytes.Count(in.Outputs, []byte(",")) >= maxSpecifications {
		return nil, fmt.Errorf("more than %d outputs are listed", maxSpecifications)
	}
	if err := json.Unmarshal(in.Outputs, &names); err != nil {
		return nil, errors.New(`outputs is not a list of names or "all"`)
	}
	return names, nil
}

// grid returns the indexes of n sequences at the times [first, end) or [first, end, step).
func grid(n int64, text json.RawMessage, what string) ([]index.Index, error) {
	var times []int64
	if text == nil {
		return nil, fmt.Errorf("%s is missing: [first, end] or [first, end, step]", what)
	}
	if len(text) > 200 || json.Unmarshal(text, &times) != nil {
		return nil, fmt.Errorf("%s is %.60s, not [first, end] or [first, end, step]", what, text)
	}
	step := int64(1)
	if len(times) == 3 {
		step = times[2]
	}
	if len(times) != 2 && len(times) != 3 || step <= 0 || times[0] >= times[1] || times[0] <= math.MinInt32 || times[1] > math.MaxInt32 {
		return nil, fmt.Errorf("%s is %v, not [first, end] or [first, end, step]", what, times)
	}
	// Before anything is allocated, and each factor by itself, so that the product can't overflow.
	count := (times[1]-times[0]-1)/step + 1
	if n <= 0 || n > maxRequestRows || count > maxRequestRows || n*count > maxRequestRows {
		return nil, fmt.Errorf("%s: %d sequences of %d rows; want 1 to %d rows in all", what, n, count, maxRequestRows)
	}
	rows := make([]index.Index, 0, n*count)
	for i := range n {
		for t := times[0]; t < times[1]; t += step {
			rows = append(rows, index.Index{N: int32(i), T: int32(t)})
		}
	}
	return rows, nil
}
