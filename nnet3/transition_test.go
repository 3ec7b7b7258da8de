package nnet3

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// extended has two entries, one of which has a self-loop with its own class.
func extended() *transitionModel {
	return &transitionModel{
		topology: topology{
			Phones:     []int32{1, 2, 5},
			PhoneEntry: []int32{-1, 0, 1, -1, -1, 0},
			Entries: [][]hmmState{
				{{0, 1, []transition{{0, 0.5}, {1, 0.5}}}, {noPdf, noPdf, nil}},
				{{0, 0, []transition{{0, 0.25}, {1, 0.75}}}, {noPdf, noPdf, nil}},
			},
		},
		tuples:   []tuple{{1, 0, 0, 1}, {2, 0, 2, 2}, {5, 0, 3, 4}},
		logProbs: []float32{0, -0.5, -0.25},
	}
}

// classic is extended with ordinary self-loops.
func classic() *transitionModel {
	m := extended()
	m.topology.Entries[0][0].SelfLoopPdfClass = 0
	for i := range m.tuples {
		m.tuples[i].SelfLoopPdf = m.tuples[i].ForwardPdf
	}
	return m
}

func TestTransitionModel(t *testing.T) {
	for name, m := range map[string]*transitionModel{"classic": classic(), "extended": extended()} {
		for _, binary := range []bool{true, false} {
			var out bytes.Buffer
			w := kaldiio.NewWriter(&out, binary)
			w.Header()
			m.code(&codec{w: w})
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out.String(), "<Tuples>"); got != (name == "extended") {
				t.Errorf("%s, binary %v: tuples of four: %v", name, binary, got)
			}
			read := func(data []byte) (*transitionModel, error) {
				r, err := kaldiio.NewReader(bytes.NewReader(data), name)
				if err != nil {
					return nil, err
				}
				return readTransitionModel(r)
			}
			got, err := read(out.Bytes())
			if err != nil {
				t.Fatalf("%s, binary %v: %v", name, binary, err)
			}
			if diff := cmp.Diff(m, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Errorf("%s, binary %v: -want +got\n%s", name, binary, diff)
			}
			for n := range out.Len() - 1 {
				if _, err := read(out.Bytes()[:n]); !errors.Is(err, kaldiio.ErrTruncated) && !errors.Is(err, kaldiio.ErrCorrupt) {
					t.Fatalf("%s, binary %v: %d bytes of %d: %v", name, binary, n, out.Len(), err)
				}
			}
		}
	}
}

func TestTopologyErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"<TopologyEntry> <ForPhones> 0 ", "phone 0 is not between 1 and"},
		{"<TopologyEntry> <ForPhones> 2000000000 ", "is not between 1 and"},
		{"<TopologyEntry> <ForPhones> 3 3 ", "phone 3 is in two entries"},
		{"<TopologyEntry> <ForPhones> 3 </ForPhones> <State> 1 ", "expected state 0, got state 1"},
		{"<TopologyEntry> <ForPhones> 3 </ForPhones> <State> 0 <Final> ", "older than nnet3"},
	} {
		r, err := kaldiio.NewReader(strings.NewReader("<TransitionModel> <Topology> "+c.text), "t")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readTransitionModel(r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestModelForms reads a network with and without the rest of a .mdl file.
func TestModelForms(t *testing.T) {
	const raw = "<Nnet3> \ninput-node name=input dim=2\noutput-node name=output input=input objective=linear\n\n<NumComponents> 0 \n</Nnet3> "
	const am = raw + "<LeftContext> 3 <RightContext> 4 <Priors>  [ 0.25 0.75 ]\n"
	var tm bytes.Buffer
	w := kaldiio.NewWriter(&tm, false)
	classic().code(&codec{w: w})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"raw": raw, "am": am, "mdl": tm.String() + am} {
		m, _, err := readModelBytes(name, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Raw != (name == "raw") || (m.transitions != nil) != (name == "mdl") || len(m.Priors) != map[bool]int{true: 0, false: 2}[m.Raw] {
			t.Errorf("%s: %+v", name, m)
		}
		if got := string(modelBytes(t, m, false)); got != text {
			t.Errorf("%s: %s", name, firstDifference([]byte(text), []byte(got)))
		}
		r, err := kaldiio.NewReader(strings.NewReader(text), name)
		if err != nil {
			t.Fatal(err)
		}
		if nn, err := ReadNnet(r); err != nil || len(nn.Nodes) != 2 {
			t.Errorf("%s, the network alone: %v", name, err)
		}
	}
	if _, _, err := readModelBytes("x", []byte(tm.String()+raw)); !errors.Is(err, kaldiio.ErrTruncated) {
		t.Errorf("a .mdl file without contexts: %v", err)
	}
	if _, _, err := readModelBytes("x", []byte(strings.Replace(am, "0.75 ", "", 1))); !errors.Is(err, ErrNetwork) {
		t.Errorf("one prior for two columns: %v", err)
	}
}
