package nnet3pass_test

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
)

// testingT is the common part of tests and properties.
type testingT interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// optimize optimizes a computation by a query. With the query "" it only lowers and emits.
func optimize(t testingT, nn *nnet3.Nnet, c *computation.Computation, query string) *computation.Computation {
	t.Helper()
	var got *computation.Computation
	if query == "" {
		chain, err := lower.LowerChain(c, nn)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range chain.Programs {
			if err := p.Graph.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err = chain.Emit(); err != nil {
			t.Fatal(err)
		}
	} else {
		q, err := optdb.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		opt, err := passes.Default().Build(q)
		if err != nil {
			t.Fatal(err)
		}
		rec := profile.New(opt.Name(), opt.Class())
		if got, err = passes.Optimize(context.Background(), c, nn, opt, rec); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		rec.End()
		if err := profiletest.Check(rec.Record()); err != nil {
			t.Fatalf("%s: profile: %v", query, err)
		}
	}
	// Matrices that were extended for others to share them may have unused corners.
	if err := computation.Check(got, computation.NewNetworkInfo(nn, got.Derived), computation.CheckOptions{AllowUnused: true}); err != nil {
		t.Fatalf("%q: %v", query, err)
	}
	return got
}

// queries are the queries that looped computations are tested with.
var queries = []string{"", "+fast_run", "+fast_compile", "+storage", "+fast_run -inplace -fusion", "+fast_run -allocate_from_other"}

// looped is a network that is run over an endless input.
type looped struct {
	nn       *nnet3.Nnet
	requests [3]*computation.Request
	c        *computation.Computation
}

// newLooped compiles a network for chunks of at least the given number of frames.
func newLooped(nn *nnet3.Nnet, frames, subsampling, sequences int) (*looped, error) {
	left, right, err := compile.Context(nn)
	if err != nil {
		return nil, err
	}
	cfg := compile.LoopedConfig{LeftContext: left, RightContext: right, Sequences: sequences, FrameSubsampling: subsampling}
	cfg.FramesPerChunk = compile.ChunkSize(nn, subsampling, frames)
	l := new(looped)
	if l.nn, err = compile.WithIvectorPeriod(nn, cfg.FramesPerChunk); err != nil {
		return nil, err
	}
	if l.requests, err = compile.LoopedRequests(l.nn, cfg); err != nil {
		return nil, err
	}
	l.c, err = compile.Looped(l.nn, l.requests, compile.Options{})
	return l, err
}

// run runs the first chunks, and returns the outputs.
func (l *looped) run(t testingT, c *computation.Computation, chunks int) []float32 {
	t.Helper()
	requests := l.requests[:]
	for len(requests) < chunks {
		requests = append(requests, l.requests[2])
	}
	return runSegments(t, l.nn, c, requests[:chunks])
}

// runSegments runs one request after the other on random inputs, and returns the outputs.
func runSegments(t testingT, nn *nnet3.Nnet, c *computation.Computation, requests []*computation.Request) []float32 {
	t.Helper()
	p, err := exec.NewProgram(c, nn)
	if err != nil {
		t.Fatal(err)
	}
	comp, err := p.NewComputer(exec.ComputerOptions{Poison: true})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var out []float32
	for i, req := range requests {
		for _, in := range req.Inputs {
			m := kernel.New(len(in.Indexes), nn.OutputDim(nn.NodeIndex(in.Name)))
			for k := range m.Data {
				m.Data[k] = float32(r.NormFloat64())
			}
			if err := comp.AcceptInput(in.Name, m); err != nil {
				t.Fatal(err)
			}
		}
		if err := comp.Run(context.Background()); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		for _, spec := range req.Outputs {
			m, err := comp.Output(spec.Name)
			if err != nil {
				t.Fatal(err)
			}
			for i := range m.Rows {
				out = append(out, kernel.Row(m, i)...)
			}
		}
	}
	return out
}

// agree compares numbers by the norm of their difference.
func agree(t testingT, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	var diff, norm float64
	for i := range want {
		d := float64(got[i]) - float64(want[i])
		diff, norm = diff+d*d, norm+float64(want[i])*float64(want[i])
	}
	if !(math.Sqrt(diff) <= tolerance*math.Sqrt(norm)+1e-6) { // false for NaN
		t.Fatalf("%s: norm of the difference %g, of what it should be %g", what, math.Sqrt(diff), math.Sqrt(norm))
	}
}

// TestLooped optimizes the simple networks of the reference cases for endless input, and runs them
// over many chunks.
func TestLooped(t *testing.T) {
	for i, dir := range caseDirs(t) {
		if i%longtest.Of(2, 1) != 0 {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			nn, _, err := pipeline.Load(filepath.Join(dir, "model.raw"), 1)
			if err != nil {
				t.Fatal(err)
			}
			nn.SetTestMode(true)
			if err := compile.CheckSimple(nn); err != nil {
				t.Skip(err)
			}
			l, err := newLooped(nn, 20, 3, 2)
			if err != nil {
				t.Skip(err)
			}
			want := l.run(t, l.c, 12)
			for _, query := range queries[:longtest.Of(2, len(queries))] {
				got := optimize(t, l.nn, l.c, query)
				agree(t, fmt.Sprintf("%q", query), l.run(t, got, 12), want, 1e-4)
				n, was := got.Counts(), l.c.Counts()
				t.Logf("%-33q %5d commands and %7d bytes, as compiled %5d and %7d", query, n.Commands, n.MaxMemoryBytes, was.Commands, was.MaxMemoryBytes)
			}
		})
	}
}

// caseDirs returns the folders of the reference cases that come with the project, and of those in
// the folder that the environment variable NNOPT_GOLDEN names, if it is set.
func caseDirs(t *testing.T) []string {
	t.Helper()
	roots := []string{"../../nnet3/testdata"}
	if all := os.Getenv("NNOPT_GOLDEN"); all != "" {
		roots = append(roots, all)
	}
	var dirs []string
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "case.json" {
				dirs = append(dirs, filepath.Dir(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(dirs) == 0 {
		t.Fatal("no reference cases, not even in testdata")
	}
	return dirs
}

// drawNetwork draws the config lines of a network for endless input: layers that look around, some
// of them recurrent.
func drawNetwork(t *rapid.T) string {
	number := func(low, high int) int { return rapid.IntRange(low, high).Draw(t, "n") }
	const dim = 4
	lines := []string{fmt.Sprintf("input-node name=input dim=%d", dim)}
	names := []string{"input"}
	node := func() string { return rapid.SampledFrom(names).Draw(t, "node") }
	for i := range number(1, 4) {
		name := fmt.Sprintf("l%d", i)
		var parts []string
		for range number(1, 3) {
			switch number(0, 4) {
			case 0:
				parts = append(parts, node())
			case 1:
				parts = append(parts, fmt.Sprintf("Sum(Offset(%s, %d), Scale(0.5, %s))", node(), number(-3, 2), node()))
			case 2:
				parts = append(parts, fmt.Sprintf("Round(%s, %d)", node(), number(2, 3)))
			default:
				parts = append(parts, fmt.Sprintf("Offset(%s, %d)", node(), number(-4, 3)))
			}
		}
		if number(0, 2) == 0 {
			parts = append(parts, fmt.Sprintf("IfDefined(Offset(%s.out, -%d))", name, number(1, 3)))
		}
		typ := rapid.SampledFrom([]string{"RectifiedLinear", "Sigmoid", "Tanh", "NoOp"}).Draw(t, "type")
		lines = append(lines,
			fmt.Sprintf("component name=%s.a type=AffineComponent input-dim=%d output-dim=%d param-stddev=0.3", name, dim*len(parts), 2*dim),
			fmt.Sprintf("component-node name=%s.a component=%s.a input=Append(%s)", name, name, strings.Join(parts, ", ")),
			fmt.Sprintf("component name=%s type=%sComponent dim=%d", name, typ, 2*dim),
			fmt.Sprintf("component-node name=%s component=%s input=%s.a", name, name, name),
			fmt.Sprintf("dim-range-node name=%s.out input-node=%s dim=%d dim-offset=%d", name, name, dim, number(0, dim)))
		names = append(names, name+".out")
	}
	text := strings.Join(append(lines, "output-node name=output input="+node()), "\n")
	t.Log(text)
	return text
}

// TestLoopedProperty does the same with random networks.
func TestLoopedProperty(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := drawNetwork(t)
		nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		l, err := newLooped(nn, rapid.IntRange(1, 9).Draw(t, "frames"), rapid.IntRange(1, 3).Draw(t, "subsampling"), rapid.IntRange(1, 2).Draw(t, "sequences"))
		if err != nil {
			t.Skip(err)
		}
		want := l.run(t, l.c, 10)
		query := rapid.SampledFrom(queries).Draw(t, "query")
		agree(t, query+"\n"+text+"\n", l.run(t, optimize(t, l.nn, l.c, query), 10), want, 1e-4)
	})
}

// TestSegments optimizes computations of several requests, which may use what was computed for the
// earlier ones.
func TestSegments(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		text := drawNetwork(t)
		nn, err := nnet3.ParseConfig(strings.NewReader(text), "config", 1)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		at := func(first, last int) (list []index.Index) {
			for i := first; i < last; i++ {
				list = append(list, index.Index{T: int32(i)})
			}
			return list
		}
		var requests []*computation.Request
		in, out := -60, 0
		for range rapid.IntRange(2, 4).Draw(t, "segments") {
			next := out + rapid.IntRange(1, 8).Draw(t, "frames")
			requests = append(requests, &computation.Request{
				Inputs:  []computation.IoSpecification{{Name: "input", Indexes: at(in, next+40)}},
				Outputs: []computation.IoSpecification{{Name: "output", Indexes: at(out, next)}},
			})
			in, out = next+40, next
		}
		c, err := compile.Segments(nn, requests, compile.Options{})
		if err != nil {
			t.Skip(err)
		}
		want := runSegments(t, nn, c, requests)
		query := rapid.SampledFrom(queries).Draw(t, "query")
		agree(t, query+"\n"+text+"\n", runSegments(t, nn, optimize(t, nn, c, query), requests), want, 1e-4)
	})
}
