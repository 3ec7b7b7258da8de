package profile_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/profile"
)

// The sample is a page of Theano's documentation; its last line, "...", stands
// for the lines that the page left out.
func TestTextIsTheanosOptimizerProfile(t *testing.T) {
	want := readLines(t, "testdata/theano.txt")
	want = want[:len(want)-1]
	var b strings.Builder
	if err := sample(t).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-theano +ours:\n%s", diff)
	}
}

// Theano's lines are ours but for its name in the labels, and for the two lines
// of things we do not have: the import of compiled modules and theano.grad.
func TestTextIsTheanosFunctionProfile(t *testing.T) {
	var want []string
	for _, line := range readLines(t, "testdata/theano_function.txt") {
		if strings.Contains(line, "Import time") || strings.Contains(line, "theano.grad") {
			continue
		}
		line = strings.Replace(line, "Theano ", "", 1)
		want = append(want, strings.Replace(line, " (includes C, CUDA code generation/compiling)", "", 1))
	}
	f := profile.Function{
		Message: "PATH_TO_A_FILE:23", CompileTime: seconds("11.31874"), Applies: 50,
		OptimizerTime: seconds("1.152431"), ValidateTime: seconds("0.02790451"), LinkTime: seconds("0.07893991"),
	}
	var b strings.Builder
	if err := f.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-theano +ours:\n%s", diff)
	}
}

func TestTextOfFunction(t *testing.T) {
	f := profile.Function{
		Message: "tdnnf, 150 frames", PeakBytes: 4096, CompileTime: 3 * time.Second, Applies: 7, LinkTime: time.Second,
		Phases:    []profile.Phase{{Name: "Compile", Time: 250 * time.Millisecond}},
		Optimizer: &profile.Record{Name: "fast_run", Class: profile.ClassSequence, Time: time.Second, Validate: time.Millisecond},
		Execution: []profile.OpCost{
			{Name: "relu", Applies: 2, Calls: 4, Time: time.Millisecond, Bytes: 4096},
			{Name: "affine", Applies: 2, Calls: 4, Time: 3 * time.Millisecond, Bytes: 8192},
		},
	}
	want := `Function profiling
==================
  Message: tdnnf, 150 frames
  Time in 0 calls to Function.__call__: 0.000000e+00s
  Peak bytes of a call: 4096
  Total compile time: 3.000000e+00s
    Number of Apply nodes: 7
    Compile time: 2.500000e-01s
    Optimizer time: 1.000000e+00s
       validate time: 1.000000e-03s
    Linker time: 1.000000e+00s

Optimizer Profile
-----------------
 SeqOptimizer  fast_run  time 1.000s for 0/0 nodes before/after optimization
   0.001s for fgraph.validate()
   0.000s for callback
   time      - (name, class, index) - validate time

Execution
---------
  <% time> <sum %> <time> <time per call> <bytes> <#call> <#apply> <name>
   75.0%   75.0%     0.003s     7.50e-04s           8192        4      2  affine
   25.0%  100.0%     0.001s     2.50e-04s           4096        4      2  relu
`
	var b strings.Builder
	if err := f.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTextOfBlocks(t *testing.T) {
	tests := []struct {
		name string
		r    profile.Record
		want string
	}{
		{"merge", profile.Record{
			Class: profile.ClassMerge, Validate: time.Millisecond, Callback: 2 * time.Millisecond,
			Counters: []profile.Counter{{Name: "nb_fail", Value: 1}, {Name: "nb_merged", Value: 12}, {Name: "nb_constant", Value: 3}, {Name: "replace_time", Value: 0.25, Unit: "s"}},
		}, ` MergeOptimizer
   nb fail=    1 merged=   12 constant=    3
   time replace=0.250000 validate=0.001000 callback=0.002000
`},
		{"group of rules", profile.Record{
			Class: profile.ClassTopo, NodesBefore: 9, NodesAfter: 4, Changed: 3, Toposort: time.Millisecond, Loop: 1500 * time.Microsecond,
			Rules: []profile.RuleRecord{{Name: "a", Attempts: 9, Time: time.Second}, {Name: "b", Attempts: 9, Applied: 3, Created: 2, Time: time.Millisecond}},
		}, ` TopoOptimizer
   nb_node (start, end, changed) (9, 4, 3)
   init io_toposort 0.001
   loop time 0.0015
   callback_time 0.0
   time taken - times applied - times tried - name - node_created
   0.001s - 3 - 9 - b - 2
   1.000s - 0 - 9 - a - 0
`},
		{"a walk with one rule, on first use", profile.Record{
			Class: profile.ClassTopo, NodesBefore: 9, NodesAfter: 9, Prepare: 2 * time.Millisecond,
			Rules: []profile.RuleRecord{{Name: "a", Attempts: 9, Time: time.Second}},
		}, ` TopoOptimizer
   nb_node (start, end, changed) (9, 9, 0)
   init io_toposort 0.0
   loop time 0.0
   callback_time 0.0
   time making rules, on first use 0.002
   time taken - times applied - times tried - name - node_created
   1.000s - 0 - 9 - a - 0
`},
		{"counters of an nnet3 pass", profile.Record{
			Class:    profile.ClassFromFunction,
			Counters: []profile.Counter{{Name: "commands", Value: 1041}, {Name: "peak before", Value: 1.5e9, Unit: "bytes"}, {Name: "peak ratio", Value: 0.375, Unit: "of Kaldi's"}},
		}, ` FromFunctionOptimizer
  commands 1041
  peak before 1500000000 bytes
  peak ratio 0.375 of Kaldi's
`},
		{"counters of a sequence", profile.Record{
			Name: "storage", Class: profile.ClassSequence, Counters: []profile.Counter{{Name: "peak", Value: 12, Unit: "bytes"}},
		}, ` SeqOptimizer  storage  time 1.000s for 0/0 nodes before/after optimization
   0.000s for fgraph.validate()
   0.000s for callback
   peak 12 bytes
   time      - (name, class, index) - validate time
`},
		{"nothing to say", profile.Record{Class: profile.ClassFromFunction}, ""},
		{"equilibrium where nothing fired", profile.Record{
			Name: "canonicalize", Class: profile.ClassEquilibrium, NodesBefore: 2, NodesAfter: 2, NodesMax: 2,
			Passes: []profile.Pass{{Time: time.Millisecond, Nodes: 2}},
			Rules:  []profile.RuleRecord{{Name: "b", Time: time.Millisecond}, {Name: "it's", Time: 2 * time.Millisecond}, {Name: "c"}},
		}, ` EquilibriumOptimizer  canonicalize
   time 0.001s for 1 passes
   nb nodes (start, end,  max) 2 2 2
   time io_toposort 0.000s
   time in local optimizers 0.003s
   time in global optimizers 0.000s
    0 - 0.001s 0 (0.000s in global opts, 0.000s io_toposort) - 2 nodes -
   0.003s - in 3 optimization that where not used (display only those with a runtime > 0)
     0.002s - it's
     0.001s - b
`},
		{"graph rewriters of an equilibrium, added up", profile.Record{
			Name: "e", Class: profile.ClassEquilibrium, Passes: []profile.Pass{{Time: time.Millisecond}},
			Children: []*profile.Record{
				{Name: "merge", Class: profile.ClassMerge, Time: time.Millisecond, Counters: []profile.Counter{{"nb_merged", 2, ""}}},
				{Name: "fold", Class: profile.ClassTopo, Index: 1, Time: 3 * time.Millisecond, NodesBefore: 9, NodesAfter: 7, NodesMax: 9, Changed: 2},
				{Name: "merge", Class: profile.ClassMerge, Index: 2, Time: time.Millisecond, Counters: []profile.Counter{{"nb_merged", 3, ""}}},
				{Name: "fold", Class: profile.ClassTopo, Index: 3, Time: 3 * time.Millisecond, NodesBefore: 7, NodesAfter: 6, NodesMax: 8, Changed: 1},
			},
		}, ` EquilibriumOptimizer  e
   time 0.001s for 1 passes
   nb nodes (start, end,  max) 0 0 0
   time io_toposort 0.000s
   time in local optimizers 0.000s
   time in global optimizers 0.000s
    0 - 0.001s 0 (0.000s in global opts, 0.000s io_toposort) - 0 nodes -
   Global, final and clean up optimizers
   0.006000s - ('fold', 'TopoOptimizer', 1) - 0.000s
     TopoOptimizer
       nb_node (start, end, changed) (9, 6, 3)
       init io_toposort 0.0
       loop time 0.0
       callback_time 0.0
   0.002000s - ('merge', 'MergeOptimizer', 0) - 0.000s
     MergeOptimizer
       nb fail=    0 merged=    5 constant=    0
       time replace=0.000000 validate=0.000000 callback=0.000000
`},
		{"a short run has more digits", profile.Record{
			Name: "e", Class: profile.ClassEquilibrium, Time: 99 * time.Millisecond, Validate: 1234 * time.Microsecond,
			Passes: []profile.Pass{{Time: 1500 * time.Nanosecond, Toposort: time.Microsecond, Applied: 1, Rules: []profile.RuleCount{{"r", 1}}}},
			Rules:  []profile.RuleRecord{{Name: "r", Applied: 1, Time: 12345 * time.Nanosecond}, {Name: "s", Time: time.Microsecond}},
		}, ` EquilibriumOptimizer  e
   time 0.000002s for 1 passes
   nb nodes (start, end,  max) 0 0 0
   time io_toposort 0.000001s
   time in local optimizers 0.000013s
   time in global optimizers 0.000000s
    0 - 0.000002s 1 (0.000000s in global opts, 0.000001s io_toposort) - 0 nodes - ('r', 1)
   times - times applied - nb node created - name:
   0.000012s - 1 - 0 - r
   0.000001s - in 1 optimization that where not used (display only those with a runtime > 0)
     0.000001s - s
`},
		{"five rules and six", profile.Record{
			Name: "e", Class: profile.ClassEquilibrium,
			Passes: []profile.Pass{
				{Applied: 5, Rules: []profile.RuleCount{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"it's", 1}}},
				{Applied: 8, Rules: []profile.RuleCount{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 3}}},
			},
		}, ` EquilibriumOptimizer  e
   time 0.000s for 2 passes
   nb nodes (start, end,  max) 0 0 0
   time io_toposort 0.000s
   time in local optimizers 0.000s
   time in global optimizers 0.000s
    0 - 0.000s 5 (0.000s in global opts, 0.000s io_toposort) - 0 nodes - ('a', 1) ('b', 1) ('c', 1) ('d', 1) ("it's", 1)
    1 - 0.000s 8 (0.000s in global opts, 0.000s io_toposort) - 0 nodes - ('f', 3) ('a', 1) ('b', 1) ('c', 1) ('d', 1) ...
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.r.Time == 0 {
				test.r.Time = time.Second
			}
			var b strings.Builder
			if err := test.r.WriteText(&b); err != nil {
				t.Fatal(err)
			}
			got := strings.TrimPrefix(b.String(), "Optimizer Profile\n-----------------\n")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCounterText(t *testing.T) {
	tests := []struct {
		value float64
		unit  string
		want  string
	}{
		{0, "", "0"}, {3, "", "3"}, {0.25, "", "0.25"}, {-7, "", "-7"}, {1 << 40, "bytes", "1099511627776 bytes"},
		{0, "s", "0.0"}, {1, "s", "1.0"}, {10, "s", "10.0"}, {0.1, "s", "0.1"}, {6.43730163574e-05, "s", "6.43730163574e-05"},
		{1e-05, "s", "1e-05"}, {0.0001, "s", "0.0001"}, {123456789012, "s", "123456789012.0"}, {1e12, "s", "1e+12"},
		{0.099999999999999, "s", "0.1"}, {-2.5, "s", "-2.5"}, {math.NaN(), "s", "nan"}, {math.Inf(1), "s", "inf"}, {math.Inf(-1), "s", "-inf"},
		{math.NaN(), "", "NaN"},
	}
	for _, test := range tests {
		if got := (profile.Counter{Value: test.value, Unit: test.unit}).Text(); got != test.want {
			t.Errorf("%v %q: %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}
