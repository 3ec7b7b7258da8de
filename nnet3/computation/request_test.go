package computation

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/nnet3/index"
)

// TestRequestEqual: every difference counts.
func TestRequestEqual(t *testing.T) {
	if a, b := sampleRequest(), sampleRequest(); !a.Equal(b) {
		t.Error("two equal requests differ")
	}
	for name, change := range map[string]func(r *Request){
		"index":        func(r *Request) { r.Inputs[0].Indexes[13].T++ },
		"n":            func(r *Request) { r.Inputs[0].Indexes[13].N++ },
		"x":            func(r *Request) { r.Outputs[0].Indexes[1].X++ },
		"order":        func(r *Request) { v := r.Outputs[0].Indexes; v[0], v[1] = v[1], v[0] },
		"fewer":        func(r *Request) { r.Outputs[0].Indexes = r.Outputs[0].Indexes[:5] },
		"name":         func(r *Request) { r.Outputs[0].Name = "other" },
		"deriv":        func(r *Request) { r.Inputs[0].HasDeriv = false },
		"model deriv":  func(r *Request) { r.NeedModelDerivative = false },
		"statistics":   func(r *Request) { r.StoreComponentStats = true },
		"moved output": func(r *Request) { r.Inputs, r.Outputs = append(r.Inputs, r.Outputs...), nil },
	} {
		a, b := sampleRequest(), sampleRequest()
		change(b)
		if a.Equal(b) {
			t.Errorf("%s: no difference", name)
		}
	}
}

func TestRequestValidate(t *testing.T) {
	if err := sampleRequest().Validate(sampleNetwork()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		do   func(r *Request)
	}{
		{"no output", func(r *Request) { r.Outputs = nil }},
		{`input "input" is named twice`, func(r *Request) { r.Inputs = append(r.Inputs, r.Inputs[0]) }},
		{`"inptu": the network has no such node`, func(r *Request) { r.Inputs[0].Name = "inptu" }},
		{`"hidden" of the network can't be an input`, func(r *Request) { r.Inputs[0].Name = "hidden" }},
		{`"affine" of the network can't be an output`, func(r *Request) { r.Outputs[0].Name = "affine" }},
		{"no rows", func(r *Request) { r.Inputs[0].Indexes = nil }},
		{"is there twice", func(r *Request) { r.Inputs[0].Indexes[9] = r.Inputs[0].Indexes[2] }},
		{"no time", func(r *Request) { r.Inputs[0].Indexes[9].T = index.NoTime }},
		{"negative n", func(r *Request) { r.Inputs[0].Indexes[9].N = -1 }},
		{"no output comes with one", func(r *Request) { r.Outputs[0].HasDeriv = false }},
	} {
		r := sampleRequest()
		c.do(r)
		if err := r.Validate(sampleNetwork()); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("got %v, want %q", err, c.text)
		}
	}
	// A component-node may stand in for an input.
	r := sampleRequest()
	r.Inputs[0].Name = "affine"
	if err := r.Validate(sampleNetwork()); err != nil {
		t.Error(err)
	}
}

func TestReadRequestJSON(t *testing.T) {
	net := &NetworkInfo{Nodes: []NodeInfo{
		{Name: "ivector", Dim: 2, IsInput: true}, {Name: "input", Dim: 4, IsInput: true},
		{Name: "output", Dim: 3, IsOutput: true}, {Name: "output-xent", Dim: 3, IsOutput: true},
	}}
	list := func(x ...int32) (v []index.Index) {
		for i := 0; i < len(x); i += 2 {
			v = append(v, index.Index{N: x[i], T: x[i+1]})
		}
		return v
	}
	for _, c := range []struct {
		text string
		net  *NetworkInfo
		want *Request
	}{
		{`{"inputs":[{"name":"input","has_deriv":true,"indexes":[[0,1,0],[0,2,5]]}],"outputs":[{"name":"output","has_deriv":true,"indexes":[[0,1,0]]}],"need_model_derivative":true,"store_component_stats":true,"family":"x"}`, nil,
			&Request{
				Inputs:              []IoSpecification{{Name: "input", HasDeriv: true, Indexes: []index.Index{{T: 1}, {T: 2, X: 5}}}},
				Outputs:             []IoSpecification{{Name: "output", HasDeriv: true, Indexes: list(0, 1)}},
				NeedModelDerivative: true, StoreComponentStats: true,
			}},
		{`{"n":2,"output_t":[0,5,3],"input_t":[-1,2],"ivector_t":[0,1],"need_model_derivative":false,"outputs":["output"]}`, net,
			&Request{
				Inputs: []IoSpecification{
					{Name: "ivector", Indexes: list(0, 0, 1, 0)},
					{Name: "input", Indexes: list(0, -1, 0, 0, 0, 1, 1, -1, 1, 0, 1, 1)},
				},
				Outputs: []IoSpecification{{Name: "output", Indexes: list(0, 0, 0, 3, 1, 0, 1, 3)}},
			}},
		{`{"what":"training","request":{"n":1,"output_t":[0,1,1],"input_t":[0,1],"need_model_derivative":true,"outputs":"all"}}`, net,
			&Request{
				Inputs: []IoSpecification{{Name: "ivector", Indexes: list(0, 0)}, {Name: "input", Indexes: list(0, 0)}},
				Outputs: []IoSpecification{
					{Name: "output", HasDeriv: true, Indexes: list(0, 0)}, {Name: "output-xent", HasDeriv: true, Indexes: list(0, 0)},
				},
				NeedModelDerivative: true,
			}},
	} {
		got, err := ReadRequestJSON(strings.NewReader(c.text), c.net)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.text, diff)
		}
	}
	for _, text := range []string{
		"", "[]", "{}", `{"outputs":3}`, `{"n":1}`, `{"outputs":[{"name":"output","indexes":[[0,1]]}]}`, `{"outputs":[{"name":"output","indexes":[[0,1,0,2]]}]}`,
		`{"outputs":[{"name":"output","indexes":[[0,1,1.5]]}]}`, `{"outputs":[{"name":"output","indexes":["]"]}]}`, `{"outputs":[{"name":"output","indexes":{"a":[]}}]}`,
		`{"n":1,"output_t":[0,1],"input_t":[0,1],"outputs":["outptu"]}`,
		`{"n":1,"output_t":[0,1],"input_t":[0,1],"outputs":"some"}`,
		`{"n":1,"output_t":[0,1],"input_t":[1,0],"outputs":"all"}`,
		`{"n":1,"output_t":[0,1,0],"input_t":[0,1],"outputs":"all"}`,
		`{"n":0,"output_t":[0,1],"input_t":[0,1],"outputs":"all"}`,
		`{"n":9223372036854775807,"output_t":[0,1],"input_t":[0,1],"outputs":"all"}`,
		`{"n":3,"output_t":[0,1],"input_t":[-2147483648,2147483647],"outputs":"all"}`,
		`{"n":16777216,"output_t":[0,1],"input_t":[0,16777216],"outputs":"all"}`,
	} {
		if _, err := ReadRequestJSON(strings.NewReader(text), net); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if _, err := ReadRequestJSON(strings.NewReader(`{"n":1,"output_t":[0,1],"input_t":[0,1],"outputs":"all"}`), nil); !errors.Is(err, ErrRequest) {
		t.Errorf("ranges without a network: got %v", err)
	}
	if _, err := grid(1, json.RawMessage("[-9223372036854775808, 0]"), "t"); err == nil {
		t.Error("times out of range are accepted")
	}
}

// TestRequestJSONFaults: errors say what is wrong in words of JSON.
func TestRequestJSONFaults(t *testing.T) {
	net := sampleNetwork()
	for _, c := range [][2]string{
		{"", "there is nothing"},
		{"[]", "array where an object is wanted"},
		{`{"n":1e99}`, "n can't be number 1e99"},
		{`{"request":{"n":"3"}}`, "n can't be string"},
		{`{"n":1,"output_t":[0,1],"input_t":[0,1]}`, "outputs is missing"},
		{`{"n":1,"output_t":[0,1],"input_t":[0,1],"outputs":[{"name":"output"}]}`, "outputs is not a list of names"},
		{`{"n":1,"output_t":[0,1],"input_t":[0,1],"outputs":"all"} {}`, "more after the object"},
		{`{"n":1,"output_t":[0,1],"input_t":[0,1],"outputs":"all"}}`, "more after the object"},
	} {
		if _, err := ReadRequestJSON(strings.NewReader(c[0]), net); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), c[1]) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: got %v, want %s", c[0], err, c[1])
		}
	}
}

// FuzzReadRequestJSON reads requests in both JSON forms. What is read is a request of the network,
// and prints.
func FuzzReadRequestJSON(f *testing.F) {
	for _, text := range []string{
		`{"inputs":[{"name":"input","has_deriv":true,"indexes":[[0,1,0],[0,2,5]]}],"outputs":[{"name":"output","has_deriv":true,"indexes":[[0,1,0]]}],"need_model_derivative":true}`,
		`{"n":2,"output_t":[0,5,3],"input_t":[-1,2],"ivector_t":[0,1],"need_model_derivative":false,"outputs":["output"]}`,
		`{"what":"training","request":{"n":1,"output_t":[0,1,1],"input_t":[0,1],"need_model_derivative":true,"outputs":"all"}}`,
		`{"n":1024,"output_t":[0,1024],"input_t":[-2147483647,2147483647,5000],"outputs":"all"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var req *Request
		var err error
		alloctest.Check(t, "reading", len(text), func() { req, err = ReadRequestJSON(strings.NewReader(text), nil) })
		if err != nil && !errors.Is(err, ErrRequest) {
			t.Fatalf("%v is of no kind", err)
		}
		alloctest.Check(t, "reading and validating", len(text), func() { req, err = ReadRequestJSON(strings.NewReader(text), sampleNetwork()) })
		if err != nil {
			if !errors.Is(err, ErrRequest) {
				t.Fatalf("%v is of no kind", err)
			}
			return
		}
		if again, err := decode(encode(t, true, req.Write), ReadRequest); err != nil || !req.Equal(again) {
			t.Fatalf("what was written reads differently: %v", err)
		}
	})
}

// TestReadRequestJSONAllocation reads requests that are large, or ask for much with little.
func TestReadRequestJSONAllocation(t *testing.T) {
	const n = 1 << 20
	for name, text := range map[string]string{
		"specifications": `{"inputs":[{}` + strings.Repeat(",{}", n) + `],"outputs":[]}`,
		"outputs":        `{"outputs":[{}` + strings.Repeat(",{}", n) + `]}`,
		"names":          `{"n":1,"input_t":[0,1],"output_t":[0,1],"outputs":[""` + strings.Repeat(`,""`, n) + `]}`,
		"indexes":        `{"inputs":[{"name":"input","indexes":[[0,0,0]` + strings.Repeat(",[0,0,0]", n) + `]}],"outputs":[]}`,
		"brackets":       `{"inputs":[{"name":"input","indexes":[[]` + strings.Repeat(",[]", n) + `]}],"outputs":[]}`,
		"times":          `{"n":1,"input_t":[0` + strings.Repeat(",1", n) + `],"output_t":[0,1],"outputs":"all"}`,
		"ranges":         `{"n":1048576,"input_t":[0,1],"output_t":[0,1],"outputs":"some"}`,
		"nested":         strings.Repeat("[", n),
		"deep":           `{"inputs":` + strings.Repeat(`[{"indexes":`, n/8),
	} {
		alloctest.Check(t, name, len(text), func() {
			if _, err := ReadRequestJSON(strings.NewReader(text), sampleNetwork()); !errors.Is(err, ErrRequest) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
