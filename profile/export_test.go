package profile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/profile"
)

func sampleFunction(t testing.TB) *profile.Function {
	return &profile.Function{
		Message: "a <b> & 'c'", CompileTime: 11 * time.Second, Applies: 50, LinkTime: time.Second,
		Phases:    []profile.Phase{{Name: "Compile", Time: time.Second}},
		Optimizer: sample(t),
		Execution: []profile.OpCost{{Name: "affine", Applies: 1, Calls: 2, Time: time.Second, Bytes: 5}, {Name: "relu"}},
	}
}

func TestJSONRoundTrip(t *testing.T) {
	want := sampleFunction(t)
	var b bytes.Buffer
	if err := want.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"time_ns": 751816000`, `"name": "local_dimshuffle_lift"`, `"nodes_before": 123`, `"a <b> & 'c'"`} {
		if !strings.Contains(b.String(), key) {
			t.Errorf("no %s", key)
		}
	}
	got, err := profile.ReadJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadJSONRefuses(t *testing.T) {
	for _, text := range []string{"", "{", `{"calls": "two"}`, `{"optimizer": {"name": "x", "children": [null]}}`} {
		if f, err := profile.ReadJSON(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "profile: reading JSON: ") {
			t.Errorf("%q: %v %v", text, f, err)
		}
	}
}

func TestTrace(t *testing.T) {
	f := &profile.Function{Message: "m", Optimizer: &profile.Record{
		Name: "seq", Class: profile.ClassSequence, Time: 5 * time.Millisecond, NodesBefore: 3, NodesAfter: 2,
		Children: []*profile.Record{{
			Name: "eq", Class: profile.ClassEquilibrium, Start: time.Millisecond, Time: 4 * time.Millisecond, NodesBefore: 3, NodesAfter: 2,
			Passes: []profile.Pass{{Time: 2 * time.Millisecond, Nodes: 3, Applied: 1, Rules: []profile.RuleCount{{"r", 1}}}, {Time: time.Millisecond, Nodes: 2}},
			Rules:  []profile.RuleRecord{{Name: "r", Applied: 1}, {Name: "s"}},
		}},
	}}
	var b bytes.Buffer
	if err := f.WriteTrace(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		TraceEvents []struct {
			Name, Ph string
			TS, Dur  float64
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	type slice struct {
		Name    string
		TS, Dur float64
	}
	var slices []slice
	for _, e := range got.TraceEvents {
		if e.Ph == "X" {
			slices = append(slices, slice{e.Name, e.TS, e.Dur})
		}
	}
	want := []slice{{"seq", 0, 5000}, {"eq", 1000, 4000}, {"eq pass", 1000, 2000}, {"eq pass", 3000, 1000}}
	if diff := cmp.Diff(want, slices); diff != "" {
		t.Error(diff)
	}
	for _, e := range got.TraceEvents {
		if e.Name == "eq" && (e.Args["rule r"] != 1.0 || e.Args["rule s"] != nil) {
			t.Errorf("args of the equilibrium: %v", e.Args)
		}
	}
}

func TestTraceOfNothing(t *testing.T) {
	var b bytes.Buffer
	if err := new(profile.Function).WriteTrace(&b); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("%v %s", err, b.Bytes())
	}
}

type failing struct{}

var errFull = errors.New("disk full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	f := sampleFunction(t)
	for name, err := range map[string]error{
		"text": f.WriteText(failing{}), "record": f.Optimizer.WriteText(failing{}), "json": f.WriteJSON(failing{}),
		"trace": f.WriteTrace(failing{}), "diff": profile.WriteDiff(failing{}, f.Optimizer, nil),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
