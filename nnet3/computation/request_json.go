package computation

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/nnopt/nnopt/nnet3/index"
)

// maxRequestRows bounds the rows of an input or output that is given by ranges, where a few digits ask for any number.
const maxRequestRows = 1 << 24

// jsonRequest is both JSON forms of a request at once.
type jsonRequest struct {
	// The form of the reference cases.
	Inputs              []jsonSpecification `json:"inputs"`
	NeedModelDerivative bool                `json:"need_model_derivative"`
	StoreComponentStats bool                `json:"store_component_stats"`

	// The compact form: N sequences, ranges of t.
	N        *int64  `json:"n"`
	InputT   []int64 `json:"input_t"`
	OutputT  []int64 `json:"output_t"`
	IvectorT []int64 `json:"ivector_t"`

	// A list of jsonSpecification in the first form; in the second a list of names, or "all".
	Outputs json.RawMessage `json:"outputs"`

	// A file may hold the request as a member of this name.
	Request json.RawMessage `json:"request"`
}

type jsonSpecification struct {
	Name     string     `json:"name"`
	HasDeriv bool       `json:"has_deriv"`
	Indexes  [][3]int32 `json:"indexes"`
}

// ReadRequestJSON reads a request in one of two JSON forms. The first is that of the reference cases: inputs and outputs with
// name, has_deriv and indexes, each index an [n, t, x], and need_model_derivative and store_component_stats. The second
// speaks of ranges:
//
//	{"n": 8, "input_t": [-28, 178], "output_t": [0, 150, 3], "ivector_t": [0, 1], "outputs": ["output"],
//	 "need_model_derivative": false}
//
// asks for the times 0, 3, ..., 147 of the named outputs ("all" for every output-node) of sequences 0 to 7. Every
// input-node of the network is given at the times of input_t, or of ivector_t if it is called ivector; ends are exclusive,
// the third number is a step. Rows are ordered by n, then t. With need_model_derivative every output comes with a
// derivative. This form needs net, for the names of inputs and outputs.
//
// Other members of the object are ignored, so that a whole reference case can be read. The request is validated if net is
// not nil. Errors wrap ErrRequest.
func ReadRequestJSON(r io.Reader, net *NetworkInfo) (*Request, error) {
	dec := json.NewDecoder(r)
	var in jsonRequest
	if err := dec.Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: at byte %d: %w", ErrRequest, dec.InputOffset(), err)
	}
	if in.Request != nil {
		inner := in.Request
		in = jsonRequest{}
		if err := json.Unmarshal(inner, &in); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
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

// listed fills in the form that lists every index.
func (in *jsonRequest) listed(req *Request, _ *NetworkInfo) error {
	var outputs []jsonSpecification
	if in.Outputs == nil {
		return fmt.Errorf("there are neither outputs nor n")
	}
	if err := json.Unmarshal(in.Outputs, &outputs); err != nil {
		return fmt.Errorf("outputs: %w", err)
	}
	convert := func(list []jsonSpecification) []IoSpecification {
		specs := make([]IoSpecification, len(list))
		for i, s := range list {
			specs[i] = IoSpecification{Name: s.Name, HasDeriv: s.HasDeriv, Indexes: make([]index.Index, len(s.Indexes))}
			for k, x := range s.Indexes {
				specs[i].Indexes[k] = index.Index{N: x[0], T: x[1], X: x[2]}
			}
		}
		return specs
	}
	req.Inputs, req.Outputs = convert(in.Inputs), convert(outputs)
	return nil
}

// ranges fills in the form that gives ranges.
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
	for i := range net.Nodes {
		node := &net.Nodes[i]
		if !node.IsInput {
			continue
		}
		spec := IoSpecification{Name: node.Name, Indexes: input}
		if node.Name == "ivector" {
			times := in.IvectorT
			if times == nil {
				times = []int64{0, 1}
			}
			if spec.Indexes, err = grid(*in.N, times, "ivector_t"); err != nil {
				return err
			}
		}
		req.Inputs = append(req.Inputs, spec)
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

// outputNames returns the names that the request lists, or those of all outputs.
func (in *jsonRequest) outputNames(net *NetworkInfo) ([]string, error) {
	var all string
	if json.Unmarshal(in.Outputs, &all) == nil {
		if all != "all" {
			return nil, fmt.Errorf(`outputs is %q, not a list or "all"`, all)
		}
		var names []string
		for i := range net.Nodes {
			if net.Nodes[i].IsOutput {
				names = append(names, net.Nodes[i].Name)
			}
		}
		return names, nil
	}
	var names []string
	if err := json.Unmarshal(in.Outputs, &names); err != nil {
		return nil, fmt.Errorf("outputs: %w", err)
	}
	return names, nil
}

// grid returns the indexes of n sequences at the times [first, end) or [first, end, step).
func grid(n int64, times []int64, what string) ([]index.Index, error) {
	step := int64(1)
	if len(times) == 3 {
		step = times[2]
	}
	if len(times) != 2 && len(times) != 3 || step <= 0 || times[0] >= times[1] || times[0] <= math.MinInt32 || times[1] > math.MaxInt32 {
		return nil, fmt.Errorf("%s is %v, not [first, end] or [first, end, step]", what, times)
	}
	count := (times[1]-times[0]-1)/step + 1
	if n <= 0 || n > maxRequestRows || count > maxRequestRows || n*count > maxRequestRows {
		return nil, fmt.Errorf("%s: %d sequences of %d rows; there must be some, and at most %d in all", what, n, count, maxRequestRows)
	}
	rows := make([]index.Index, 0, n*count)
	for i := range n {
		for t := times[0]; t < times[1]; t += step {
			rows = append(rows, index.Index{N: int32(i), T: int32(t)})
		}
	}
	return rows, nil
}
