package view_test

import (
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tool/internal/view"
)

// A state is the graph of a recording after some steps.
type state struct {
	r       *view.Recording
	live    []bool
	in      [][]int32
	outputs []int32
}

func newState(r *view.Recording) *state {
	s := &state{r: r, live: make([]bool, len(r.Nodes)), outputs: slices.Clone(r.Start.Outputs)}
	for i := range r.Nodes {
		s.in = append(s.in, slices.Clone(r.Nodes[i].In))
	}
	for _, n := range r.Start.Nodes {
		s.live[n] = true
	}
	return s
}

// step makes a step, which must fit.
func (s *state) step(k int) error {
	t := &s.r.Steps[k]
	for _, n := range t.New {
		if s.live[n] {
			return fmt.Errorf("step %d: node %d is new, but there", k, n)
		}
		s.live[n] = true
	}
	for _, w := range t.Rewired {
		if !s.live[w[0]] {
			return fmt.Errorf("step %d: node %d is not there, but reads something else", k, w[0])
		}
		s.in[w[0]][w[1]] = w[2]
	}
	for _, o := range t.Outputs {
		s.outputs[o[0]] = o[1]
	}
	if t.All != nil {
		s.outputs = slices.Clone(t.All)
	}
	for _, n := range t.Gone {
		if !s.live[n] {
			return fmt.Errorf("step %d: node %d is gone, but was not there", k, n)
		}
		s.live[n] = false
	}
	return s.check(k)
}

// check reports a node or output that reads what is not there.
func (s *state) check(k int) error {
	there := func(v int32) bool {
		n := s.r.Values[v].Node
		return n == nil || s.live[*n]
	}
	for n, live := range s.live {
		if live && !(slices.IndexFunc(s.in[n], func(v int32) bool { return !there(v) }) < 0) {
			return fmt.Errorf("step %d: node %d (%s) reads what is not there", k, n, s.r.Nodes[n].Op)
		}
	}
	for i, v := range s.outputs {
		if !there(v) {
			return fmt.Errorf("step %d: output %d is not there", k, i)
		}
	}
	return nil
}

var seed = maphash.MakeSeed()

// sum returns a hash of what is computed, and how.
func sum(op string, inputs []uint64) uint64 {
	return maphash.Comparable(seed, fmt.Sprint(op, inputs))
}

// signature identifies a graph: the number of its applies, and what they compute.
func (s *state) signature() [2]uint64 {
	memo := make(map[int32]uint64)
	var of func(v int32) uint64
	of = func(v int32) uint64 {
		h, known := memo[v]
		if known {
			return h
		}
		val := s.r.Values[v]
		if val.Node == nil {
			h = sum(val.Name+val.Constant+val.Type, nil)
		} else {
			var in []uint64
			for _, w := range s.in[*val.Node] {
				in = append(in, of(w))
			}
			node := s.r.Nodes[*val.Node]
			h = sum(node.Op+fmt.Sprint(slices.Index(node.Out, v))+val.Type, in)
		}
		memo[v] = h
		return h
	}
	var all []uint64
	for _, v := range s.outputs {
		all = append(all, of(v))
	}
	count := uint64(0)
	for _, live := range s.live {
		if live {
			count++
		}
	}
	return [2]uint64{count, sum("", all)}
}

// watcher is the feature that computes the signature of a graph after every change.
type watcher struct{ seen [][2]uint64 }

func (w *watcher) OnAttach(g *fgraph.FunctionGraph) error {
	w.seen = append(w.seen, signature(g))
	return nil
}

func (w *watcher) OnCommit(g *fgraph.FunctionGraph, _ []fgraph.Replacement, _ fgraph.Reason) {
	w.seen = append(w.seen, signature(g))
}

// signature is state.signature of a graph.
func signature(g *fgraph.FunctionGraph) [2]uint64 {
	memo := make(map[*fgraph.Variable]uint64)
	var of func(v *fgraph.Variable) uint64
	of = func(v *fgraph.Variable) uint64 {
		h, known := memo[v]
		if known {
			return h
		}
		if a := v.Owner(); a == nil {
			constant := ""
			if v.IsConstant() {
				constant = v.Type().(fgraph.DataFormatter).FormatData(v.Data())
			}
			h = sum(v.Name()+constant+v.Type().String(), nil)
		} else {
			var in []uint64
			for _, w := range a.Inputs() {
				in = append(in, of(w))
			}
			h = sum(a.Op().String()+fmt.Sprint(v.Index())+v.Type().String(), in)
		}
		memo[v] = h
		return h
	}
	var all []uint64
	for _, v := range g.Outputs() {
		all = append(all, of(v))
	}
	return [2]uint64{uint64(g.NumApplies()), sum("", all)}
}

// TestReplay: the steps of a recording lead through the states of the graph, all of them and no
// other.
func TestReplay(t *testing.T) {
	opt := build(t, "+fast_run")
	cases := 300
	if !longtest.Enabled() {
		cases = 20
	}
	steps := 0
	for i := range cases {
		g := randomGraph(t, uint64(i))
		w := new(watcher)
		if err := g.Attach(w); err != nil {
			t.Fatal(err)
		}
		subject, err := view.Record(t.Context(), opt, func() (*fgraph.FunctionGraph, error) { return g, nil })
		if err != nil {
			t.Fatal(err)
		}
		r := subject.Recording
		s := newState(r)
		if err := s.check(-1); err != nil {
			t.Fatal(err)
		}
		got := [][2]uint64{s.signature()}
		for k := range r.Steps {
			if err := s.step(k); err != nil {
				t.Fatal(err)
			}
			got = append(got, s.signature())
		}
		if want := slices.Compact(w.seen); !slices.Equal(slices.Compact(got), want) {
			t.Fatalf("expression %d: %d states, want %d", i, len(got), len(want))
		}
		steps += len(r.Steps)
		checkPasses(t, r)
	}
	if steps < 10*cases {
		t.Errorf("%d steps in %d expressions: too few to say anything", steps, cases)
	}
}

// checkPasses checks that the steps of a pass are those that name it or a pass in it.
func checkPasses(t *testing.T, r *view.Recording) {
	t.Helper()
	inside := func(p, q int) bool {
		for p >= 0 && p != q {
			p = r.Passes[p].Parent
		}
		return p == q
	}
	for q := range r.Passes {
		for k := range r.Steps {
			within := k >= r.Passes[q].Steps[0] && k < r.Passes[q].Steps[1]
			if named := inside(r.Steps[k].Pass, q); named != within {
				t.Fatalf("step %d is in pass %d (%s): %v; within its steps: %v", k, q, r.Passes[q].Name, named, within)
			}
		}
	}
}

// TestNetworks: the steps of recordings of networks fit, every command is tied to nodes that are
// there, and the other way round.
func TestNetworks(t *testing.T) {
	files := []string{"../../networks/demo/tdnnf.config"}
	if more, err := filepath.Glob("../../../nnet3/testdata/models/*.config"); err == nil && longtest.Enabled() {
		files = append(files, more...)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			chunk := demoChunk
			chunk.Outputs = nil
			subject, plan := network(t, file, chunk, "+fast_run")
			r := subject.Recording
			checkCommands(t, r, newState(r), r.Commands.Before, plan.Compiled.Commands)
			s := newState(r)
			for k := range r.Steps {
				if err := s.step(k); err != nil {
					t.Fatal(err)
				}
			}
			checkCommands(t, r, s, r.Commands.After, plan.Optimized.Commands)
			checkPasses(t, r)
			if most := slices.MaxFunc(r.Commands.After, func(a, b view.Command) int { return int(a.Bytes - b.Bytes) }); most.Bytes != plan.Optimized.MaxMemory() {
				t.Errorf("peak %d bytes, want %d", most.Bytes, plan.Optimized.MaxMemory())
			}
		})
	}
}

// checkCommands checks that commands are tied to nodes of a state, and every node that is more
// than a view to a command.
func checkCommands(t *testing.T, r *view.Recording, s *state, list []view.Command, commands []computation.Command) {
	t.Helper()
	if len(list) != len(commands) {
		t.Fatalf("%d commands, want %d", len(list), len(commands))
	}
	tied := make([]bool, len(r.Nodes))
	for i, c := range list {
		for _, n := range c.Nodes {
			if !s.live[n] {
				t.Fatalf("command %d, %s, is tied to node %d, which is not there", i, c.Text, n)
			}
			tied[n] = true
		}
		if kind := commands[i].Type; len(c.Nodes)+len(c.Values) == 0 && kind < computation.NoOperation {
			t.Errorf("command %d, %s, is tied to nothing", i, c.Text)
		}
	}
	for n, live := range s.live {
		if kind := r.Nodes[n].Kind; live && !tied[n] && kind != "lower.Block" && kind != "lower.Assemble" { // those may cost nothing
			t.Errorf("node %d, %s, is tied to no command", n, r.Nodes[n].Op)
		}
	}
}

// randomGraph makes a graph of random expressions.
func randomGraph(t *testing.T, seed uint64) *fgraph.FunctionGraph {
	t.Helper()
	gen := tensortest.NewGenerator(seed)
	gen.Grow(60)
	inputs, _ := gen.Inputs()
	g, err := tensor.NewGraph(inputs, gen.Outputs(6))
	if err != nil {
		t.Fatal(err)
	}
	return g
}
