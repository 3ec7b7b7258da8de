package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/internal/view"
	"github.com/nnopt/nnopt/tool/networks"
)

// The networks that are recorded: the one of nnopt demo, and one of full size.
const (
	demoNetwork = "../../../networks/demo/tdnnf.config"
	fullNetwork = "../../../../nnet3/testdata/models/tdnnf_1k.config"
)

// chunk is a typical request of a decoder.
var chunk = pipeline.Chunk{Frames: 150, Subsampling: 3, Sequences: 1, Outputs: []string{"output"}}

func optimizer(t testing.TB) *optdb.Optimizer {
	t.Helper()
	q, err := optdb.ParseQuery("+fast_run")
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.Default().Build(q)
	if err != nil {
		t.Fatal(err)
	}
	return opt
}

// expression records the optimization of an expression, and why rules did not fire.
func expression(t testing.TB, variables, text string) *view.Recording {
	t.Helper()
	s, err := view.Record(t.Context(), optimizer(t), func() (*fgraph.FunctionGraph, error) {
		scope := expr.NewScope()
		if err := scope.Declare(variables); err != nil {
			return nil, err
		}
		outputs, err := scope.Parse(text)
		if err != nil {
			return nil, err
		}
		return tensor.NewGraph(scope.Inputs(), outputs)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddMisses(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Recording.Title, s.Recording.Subject = "expression", text
	return s.Recording
}

// recordNetwork records the optimization of a request to a network.
func recordNetwork(t testing.TB, file string) *view.Recording {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	nn, _, err := pipeline.LoadFrom(f, filepath.Base(file), 20)
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, chunk)
	if err != nil {
		t.Fatal(err)
	}
	opt, r := optimizer(t), view.NewRecorder()
	plan, err := pipeline.Build(r.Watch(t.Context()), nn, req, pipeline.Options{Optimizer: opt, Record: true})
	if err != nil {
		t.Fatal(err)
	}
	out := r.Recording(opt, plan.Profile, networks.Code(plan.Compiled, plan.Optimized, plan.Info(plan.Optimized)))
	out.Title = filepath.Base(file)
	return out
}

// deep is twenty chains of n pairs of operations, which have much in common.
func deep(n int) string {
	chains := make([]string, 20)
	for i := range chains {
		chains[i] = "x"
		for k := range n {
			chains[i] = fmt.Sprintf("tanh(%s*y + %d)", chains[i], i+k+1)
		}
	}
	return "[" + strings.Join(chains, ", ") + "]"
}

// wide is n short chains side by side.
func wide(n int) string {
	terms := make([]string, n)
	for i := range terms {
		terms[i] = fmt.Sprintf("exp(x*%d + y)", i+2)
	}
	return "[" + strings.Join(terms, ", ") + "]"
}

// A state is a graph at some point of a recording, kept by applying its steps one by one.
type state struct {
	alive  map[int32]bool
	inputs map[int32][]int32
}

func begin(r *view.Recording) *state {
	s := &state{alive: make(map[int32]bool), inputs: make(map[int32][]int32)}
	for _, n := range r.Start.Nodes {
		s.alive[n] = true
	}
	return s
}

func (s *state) apply(step *view.Step) {
	for _, n := range step.New {
		s.alive[n] = true
	}
	for _, n := range step.Gone {
		delete(s.alive, n)
	}
}

// changes returns what a page must show of a run of steps: the change of every apply drawn.
func changes(r *view.Recording, from, to int) map[string]string {
	s := begin(r)
	for i := range from {
		s.apply(&r.Steps[i])
	}
	want := make(map[string]string)
	for n := range s.alive {
		want[fmt.Sprint(n)] = "gone"
	}
	for i := from; i < to; i++ {
		s.apply(&r.Steps[i])
	}
	for n := range s.alive {
		if _, before := want[fmt.Sprint(n)]; before {
			want[fmt.Sprint(n)] = "kept"
		} else {
			want[fmt.Sprint(n)] = "new"
		}
	}
	return want
}

// leaves returns the passes that run no others.
func leaves(r *view.Recording) []int {
	inner := make(map[int]bool)
	for _, p := range r.Passes {
		inner[p.Parent] = true
	}
	var list []int
	for i := range r.Passes {
		if !inner[i] {
			list = append(list, i)
		}
	}
	return list
}
