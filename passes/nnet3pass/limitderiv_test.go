package nnet3pass_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/nnet3pass"
)

// derivTimes are limits to the times of derivatives.
type derivTimes struct{ Min, Max, MaxRelative int32 }

var allDerivTimes = derivTimes{math.MinInt32, math.MaxInt32, math.MaxInt32}

// limit returns the query with the limits.
func (t derivTimes) limit(q optdb.Query) optdb.Query {
	const entry = "limit_derivative_times"
	set := func(q optdb.Query, name string, v int32) optdb.Query { return q.Set(entry, name, strconv.Itoa(int(v))) }
	return set(set(set(q.Including(entry), "min-deriv-time", t.Min), "max-deriv-time", t.Max), "max-deriv-time-relative", t.MaxRelative)
}

// limited optimizes a computation by a query, with limits to the times of derivatives.
func limited(t testingT, nn *nnet3.Nnet, c *computation.Computation, query string, times derivTimes) *computation.Computation {
	t.Helper()
	q, err := optdb.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.Default().Build(times.limit(q))
	if err != nil {
		t.Fatal(err)
	}
	got, err := passes.Optimize(context.Background(), c, nn, opt, nil)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	if err := computation.Check(got, computation.NewNetworkInfo(nn, got.Derived), computation.CheckOptions{AllowUnused: true}); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return got
}

// zeroedByHand is a computation that sets derivatives outside of the limits to zero whenever
// something may have written to them.
func zeroedByHand(c *computation.Computation, low, high int32) *computation.Computation {
	d := *c
	d.Submatrices = slices.Clone(c.Submatrices)
	d.Commands = nil
	outside := make([][]int32, len(c.Matrices)) // sub-matrices
	for m := range c.Matrices {
		info := c.MatrixDebugInfo[m]
		for i, row := range info.Cindexes {
			if ti := row.Index.T; info.IsDeriv && ti != index.NoTime && (ti < low || ti > high) {
				d.Submatrices = append(d.Submatrices, computation.SubMatrixInfo{Matrix: int32(m), RowOffset: int32(i), NumRows: 1, NumCols: c.Matrices[m].Cols})
				outside[m] = append(outside[m], int32(len(d.Submatrices)-1))
			}
		}
	}
	for _, cmd := range c.Commands {
		d.Commands = append(d.Commands, cmd)
		touched := map[int32]bool{}
		var order []int32
		touch := func(sub int32) {
			if m := c.Submatrices[sub].Matrix; !touched[m] {
				touched[m] = true
				order = append(order, m)
			}
		}
		for arg := range cmd.Submatrices {
			touch(*arg)
		}
		if cmd.Type == computation.AddToRowsMulti {
			for _, p := range c.IndexesMulti[cmd.Args[1]] {
				touch(max(p[0], 0))
			}
		}
		if cmd.Type == computation.DeallocMatrix || cmd.Type == computation.AllocMatrix {
			continue
		}
		for _, m := range order {
			for _, sub := range outside[m] {
				d.Commands = append(d.Commands, computation.NewScaledCommand(computation.SetConst, 0, sub))
			}
		}
	}
	return &d
}

// results returns all numbers of a run, by what they are.
func results(t testingT, nn *nnet3.Nnet, c *computation.Computation, req *computation.Request) map[string][]float32 {
	t.Helper()
	in, err := pipeline.RandomValues(nn, req, 5)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pipeline.Run(context.Background(), c, nn, req, in)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]float32{}
	for _, list := range [][]pipeline.Named{got.Outputs, got.InputDerivs} {
		for _, m := range list {
			all["matrix of "+m.Name] = m.Matrix.Data
		}
	}
	if got.Gradient != nil {
		for i, comp := range got.Gradient.Components {
			// The gradient of a nonlinearity that repairs itself has a part from times whose
			// derivative is zero, unless they are left out.
			if u, ok := comp.(component.UpdatableComponent); ok && !strings.HasSuffix(comp.Type(), "NonlinearityComponent") {
				all["gradient of "+got.Gradient.ComponentNames[i]] = component.Vectorize(u, nil)
			}
		}
	}
	return all
}

func compareResults(t testingT, what string, got, want map[string][]float32, tolerance float64) {
	t.Helper()
	for name, w := range want {
		agree(t, what+": "+name, got[name], w, tolerance)
	}
}

// limits are the queries that limits are tested with.
var limitQueries = []string{"none", "+fast_run", "+fast_compile", "+fast_run -consolidate_model_update -fusion"}

// TestLimitDerivTimesProperty: limits that include all times change nothing. Others have the same
// results as derivatives set to zero by hand.
func TestLimitDerivTimesProperty(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := drawNetwork(t)
		nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: rapid.IntRange(1, 12).Draw(t, "frames"), Derivative: true,
			ExtraLeft: rapid.IntRange(0, 6).Draw(t, "left"), Sequences: rapid.IntRange(1, 3).Draw(t, "sequences")})
		if err != nil {
			t.Skip(err)
		}
		req.Input("input").HasDeriv = rapid.Bool().Draw(t, "input derivative")
		c, err := compile.Compile(nn, req, compile.Options{DebugInfo: true})
		if err != nil {
			t.Skip(err)
		}
		query := rapid.SampledFrom(limitQueries).Draw(t, "query")
		low := rapid.Int32Range(-8, 12).Draw(t, "low")
		high := low + rapid.Int32Range(0, 14).Draw(t, "length")
		times := derivTimes{Min: low, Max: high, MaxRelative: math.MaxInt32}
		want := results(t, nn, zeroedByHand(c, low, high), req)
		compareResults(t, fmt.Sprintf("%s [%d, %d]\n%s\n", query, low, high, text), results(t, nn, limited(t, nn, c, query, times), req), want, 1e-4)

		wide := derivTimes{Min: -1000, Max: 1000, MaxRelative: math.MaxInt32}
		if a, b := limited(t, nn, c, query, wide), limited(t, nn, c, query, allDerivTimes); a.Counts().Commands != b.Counts().Commands {
			t.Fatalf("limits that contain all times make %d commands of %d", a.Counts().Commands, b.Counts().Commands)
		}
	})
}

// TestLimitDerivTimes limits the derivatives of the reference cases to the times of the outputs, or
// to fewer.
func TestLimitDerivTimes(t *testing.T) {
	for i, dir := range caseDirs(t) {
		if !longtest.Enabled() && i%3 != 0 {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			nn, req := trainingCase(t, dir)
			c, err := compile.Compile(nn, req, compile.Options{DebugInfo: true})
			if err != nil {
				t.Fatal(err)
			}
			first, last := int32(math.MaxInt32), int32(math.MinInt32)
			for _, row := range req.Outputs[0].Indexes {
				first, last = min(first, row.T), max(last, row.T)
			}
			for _, limits := range [][2]int32{{first + 1, last - 1}, {first, last}, {last + 100, last + 200}}[:longtest.Of(1, 3)] {
				want := results(t, nn, zeroedByHand(c, limits[0], limits[1]), req)
				for _, query := range limitQueries[:longtest.Of(2, 4)] {
					got := limited(t, nn, c, query, derivTimes{Min: limits[0], MaxRelative: limits[1] - last})
					compareResults(t, fmt.Sprintf("%s %v", query, limits), results(t, nn, got, req), want, 1e-3)
					a, b := limited(t, nn, c, query, allDerivTimes).Counts(), got.Counts()
					t.Logf("%-45s %v: %d commands and %d bytes, without limits %d and %d", query, limits, b.Commands, b.MaxMemoryBytes, a.Commands, a.MaxMemoryBytes)
				}
			}
		})
	}
}

// trainingCase loads a reference case, and asks for the gradient of its network.
func trainingCase(t *testing.T, dir string) (*nnet3.Nnet, *computation.Request) {
	t.Helper()
	nn, _, err := pipeline.Load(filepath.Join(dir, "model.raw"), 1)
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 8, Derivative: true, Sequences: 2, ExtraLeft: 4})
	if err != nil {
		t.Skip(err)
	}
	nn.SetTestMode(true)
	for _, comp := range nn.Components {
		if bn, ok := comp.(component.BatchNorm); ok {
			bn.SetTestMode(false)
		}
	}
	req.Input("input").HasDeriv = true
	return nn, req
}

const stack = `
input-node name=input dim=3
component name=a type=AffineComponent input-dim=3 output-dim=5
component-node name=a component=a input=input
component name=b type=SigmoidComponent dim=5
component-node name=b component=b input=a
component name=c type=AffineComponent input-dim=10 output-dim=2
component-node name=c component=c input=Append(b, Offset(b, 1))
output-node name=output input=c`

// compileStack compiles a small network for training.
func compileStack(t *testing.T, opts compile.Options) (*nnet3.Nnet, *computation.Request, *computation.Computation) {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(stack), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 6, Derivative: true})
	if err != nil {
		t.Fatal(err)
	}
	req.StoreComponentStats = true
	req.Input("input").HasDeriv = true
	c, err := compile.Compile(nn, req, opts)
	if err != nil {
		t.Fatal(err)
	}
	return nn, req, c
}

// TestLimitDerivTimesRows: backward runs have the rows inside of the limits, none where there are
// none, and statistics are kept where there are some.
func TestLimitDerivTimesRows(t *testing.T) {
	nn, req, c := compileStack(t, compile.Options{DebugInfo: true})
	for _, test := range []struct {
		low, high int32
		rows      []int32 // of the backward runs of c, b, a
		stats     int
	}{
		{-5, 100, []int32{6, 7, 7}, 1},
		{0, 6, []int32{6, 7, 7}, 1},
		{2, 4, []int32{3, 3, 3}, 1},
		{4, 100, []int32{2, 3, 3}, 1},
		{6, 6, []int32{1, 1}, 1}, // there is no output at time 6
		{7, 100, nil, 0},
		{4, 2, nil, 0},
	} {
		got := limited(t, nn, c, "none", derivTimes{Min: test.low, Max: test.high, MaxRelative: math.MaxInt32})
		var rows []int32
		stats := 0
		for _, cmd := range got.Commands {
			if cmd.Type.IsBackprop() {
				rows = append(rows, got.Submatrices[cmd.Args[4]].NumRows)
			}
			if cmd.Type == computation.Propagate && cmd.Args[5] == 1 {
				stats++
			}
		}
		if !slices.Equal(rows, test.rows) || stats != test.stats {
			t.Errorf("[%d, %d]: backward runs of %v rows, want %v; %d with statistics, want %d", test.low, test.high, rows, test.rows, stats, test.stats)
		}
	}
	got := results(t, nn, limited(t, nn, c, "+fast_run", derivTimes{Min: 7, Max: 100, MaxRelative: math.MaxInt32}), req)
	for name, data := range got {
		if name != "matrix of output" && slices.ContainsFunc(data, func(x float32) bool { return x != 0 }) {
			t.Errorf("%s is not zero although all derivatives are", name)
		}
	}
}

// kinds are networks whose backward passes are of different kinds.
var kinds = map[string]string{
	"layers": stack,
	// Derivatives of rows that are used several times are summed up by ranges.
	"ranges": `
input-node name=input dim=3
component name=a type=AffineComponent input-dim=3 output-dim=4
component-node name=a component=a input=input
component name=b type=AffineComponent input-dim=4 output-dim=3
component-node name=b component=b input=Round(a, 3)
component name=c type=AffineComponent input-dim=6 output-dim=2
component-node name=c component=c input=Append(b, Offset(b, 4))
output-node name=output input=c`,
	// Components that look at other rows.
	"general": `
input-node name=input dim=3
component name=a type=TdnnComponent input-dim=3 output-dim=4 time-offsets=-1,0,2
component-node name=a component=a input=input
component name=b type=RectifiedLinearComponent dim=4
component-node name=b component=b input=a
component name=c type=TdnnComponent input-dim=4 output-dim=2 time-offsets=0,3
component-node name=c component=c input=Sum(b, Offset(b, 1))
output-node name=output input=c`,
	// Components with a memo.
	"memo": `
input-node name=input dim=3
component name=a type=AffineComponent input-dim=3 output-dim=4
component-node name=a component=a input=Offset(input, -2)
component name=b type=BatchNormComponent dim=4
component-node name=b component=b input=a
component name=c type=AffineComponent input-dim=8 output-dim=2
component-node name=c component=c input=Append(b, Offset(b, -2))
component name=d type=LogSoftmaxComponent dim=2
component-node name=d component=d input=c
output-node name=output input=d`,
	// An output of parts, and one that is a part of another.
	"parts": `
input-node name=input dim=3
component name=a type=AffineComponent input-dim=3 output-dim=4
component-node name=a component=a input=input
dim-range-node name=part input-node=a dim=2 dim-offset=1
output-node name=output input=Append(Offset(part, 1), a)
output-node name=other input=Offset(part, 1)`,
}

// TestLimitDerivTimesKinds tries all limits.
func TestLimitDerivTimesKinds(t *testing.T) {
	for name, text := range kinds {
		t.Run(name, func(t *testing.T) {
			nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, sequences := range []int{1, 3} {
				req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 7, Derivative: true, Sequences: sequences, Outputs: []string{"all"}})
				if err != nil {
					t.Fatal(err)
				}
				req.Input("input").HasDeriv = true
				c, err := compile.Compile(nn, req, compile.Options{DebugInfo: true})
				if err != nil {
					t.Fatal(err)
				}
				for low := int32(-4); low < 12; low += int32(longtest.Of(7, 1)) {
					for high := low; high < 12; high += int32(longtest.Of(9, 3)) {
						want := results(t, nn, zeroedByHand(c, low, high), req)
						times := derivTimes{Min: low, Max: high, MaxRelative: math.MaxInt32}
						for _, query := range []string{"none", "+fast_run"} {
							what := fmt.Sprintf("%s [%d, %d], %d sequences", query, low, high, sequences)
							compareResults(t, what, results(t, nn, limited(t, nn, c, query, times), req), want, 1e-4)
						}
					}
				}
			}
		})
	}
}

// TestLimitDerivTimesRelative: the relative limit counts from the last output and replaces the
// absolute one.
func TestLimitDerivTimesRelative(t *testing.T) {
	nn, req, c := compileStack(t, compile.Options{DebugInfo: true})
	const last = 5
	a := limited(t, nn, c, "+fast_run", derivTimes{Min: math.MinInt32, Max: last - 2, MaxRelative: math.MaxInt32})
	b := limited(t, nn, c, "+fast_run", derivTimes{Min: math.MinInt32, Max: 0, MaxRelative: -2})
	compareResults(t, "relative", results(t, nn, b, req), results(t, nn, a, req), 0)
	if len(a.Commands) != len(b.Commands) {
		t.Errorf("%d and %d commands", len(a.Commands), len(b.Commands))
	}
}

// TestLimitDerivTimesNeedsRows: without debug information there is an error, not a result without
// limits.
func TestLimitDerivTimesNeedsRows(t *testing.T) {
	nn, _, c := compileStack(t, compile.Options{})
	times := derivTimes{Min: 1, Max: 2, MaxRelative: math.MaxInt32}
	opt, err := passes.Default().Build(times.limit(optdb.Include("fast_run")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := passes.Optimize(context.Background(), c, nn, opt, nil); !errors.Is(err, nnet3pass.ErrNoRows) {
		t.Errorf("error %v", err)
	}
}
