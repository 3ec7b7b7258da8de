package nnet3pass_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/computation/computationtest"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/profile"
)

// An entryCase is a line of testdata/nnet3.txt: an entry of the database and a computation on which
// it fires or rests.
type entryCase struct {
	line  int
	entry string
	fires bool
	net   string // config lines, or commands
	opts  map[string]string
}

// readEntryCases reads testdata/nnet3.txt.
func readEntryCases(t *testing.T) (cases []entryCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/nnet3.txt")
	if err != nil {
		t.Fatal(err)
	}
	nets, net := map[string]string{}, ""
	for i, line := range strings.Split(string(text), "\n") {
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
			net = ""
		case net != "":
			nets[net] += line + "\n"
		case f[0] == "#":
		case f[0] == "net" && len(f) == 2 && nets[f[1]] == "":
			net = f[1]
		case f[0] == "case" && len(f) >= 4 && nets[f[3]] != "" && (f[2] == "fires" || f[2] == "rests"):
			c := entryCase{line: i + 1, entry: f[1], fires: f[2] == "fires", net: nets[f[3]], opts: map[string]string{}}
			for _, o := range f[4:] {
				k, v, _ := strings.Cut(o, "=")
				c.opts[k] = v
			}
			cases = append(cases, c)
		default:
			t.Fatalf("line %d is neither a net, nor a case: %q", i+1, line)
		}
	}
	return cases
}

// number returns the numeric option of that name, or n if there is none.
func (c *entryCase) number(t *testing.T, name string, n int) int {
	t.Helper()
	if text, ok := c.opts[name]; ok {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatalf("%s=%s: %v", name, text, err)
		}
	}
	return n
}

// query returns the query of the case.
func (c *entryCase) query(t *testing.T) optdb.Query {
	t.Helper()
	text := "+fast_run"
	if q, ok := c.opts["query"]; ok {
		text = strings.ReplaceAll(q, ",", " ")
	}
	q, err := optdb.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.opts["min"]; ok {
		o := passes.DefaultOptimizeOptions()
		o.MinDerivTime = c.number(t, "min", math.MinInt32)
		q = o.Query(q)
	}
	return q
}

// An entryRun is a computation optimized under a query.
type entryRun struct {
	c   *computation.Computation
	rec *profile.Record
}

// standard returns the standard database, whose rules are made once.
var standard = sync.OnceValue(passes.Default)

func runEntry(t *testing.T, c *computation.Computation, net lower.Network, q optdb.Query) entryRun {
	t.Helper()
	opt, err := standard().Build(q)
	if err != nil {
		t.Fatal(err)
	}
	rec := profile.New(opt.Name(), opt.Class())
	got, err := passes.Optimize(context.Background(), c, net, opt, rec)
	if err != nil {
		t.Fatal(err)
	}
	rec.End()
	return entryRun{got, rec.Record()}
}

// changed reports whether a record says that an entry changed something.
func changed(r *profile.Record, entry string) bool {
	if r.Name == entry && r.Changed > 0 {
		return true
	}
	return slices.ContainsFunc(r.Rules, func(rule profile.RuleRecord) bool { return rule.Name == entry && rule.Applied > 0 }) ||
		slices.ContainsFunc(r.Children, func(child *profile.Record) bool { return changed(child, entry) })
}

// plansStorage reports whether an entry decides about storage. What such an entry changed shows
// only in the commands.
func plansStorage(entry string) bool {
	for _, e := range standard().Entries() {
		if e.Name == entry {
			return slices.Contains(e.Tags, "storage")
		}
	}
	return false
}

// compare optimizes with the entry, and compares the results. Where that shows only in the commands, it also optimizes
// without the entry.
func (c *entryCase) compare(t *testing.T) (with, without entryRun) {
	t.Helper()
	q := c.query(t)
	run := func(compiled *computation.Computation, net lower.Network) {
		with = runEntry(t, compiled, net, q)
		if plansStorage(c.entry) {
			without = runEntry(t, compiled, net, q.Excluding(c.entry))
		}
	}
	if !strings.Contains(c.net, "-node ") {
		compiled, net := computationtest.MustParse(t, c.net)
		run(compiled, net)
		check(t, with.c, net.Info())
		computationtest.Compare(t, net, compiled, with.c)
		return with, without
	}
	nn, err := nnet3.ParseConfig(strings.NewReader(c.net), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.opts["test"]; ok {
		nn.SetTestMode(true)
	}
	_, train := c.opts["train"]
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: c.number(t, "frames", 6), Sequences: c.number(t, "sequences", 1), Derivative: train})
	if err != nil {
		t.Fatal(err)
	}
	_, limited := c.opts["min"]
	compiled, err := compile.Compile(nn, req, compile.Options{DebugInfo: limited})
	if err != nil {
		t.Fatal(err)
	}
	run(compiled, nn)
	check(t, with.c, computation.NewNetworkInfo(nn, with.c.Derived))
	if !limited { // which changes the results
		within := 1e-4
		if text, ok := c.opts["within"]; ok {
			if _, err := fmt.Sscan(text, &within); err != nil {
				t.Fatalf("within=%s: %v", text, err)
			}
		}
		compareResults(t, "with the entry", results(t, nn, with.c, req), results(t, nn, compiled, req), within)
	}
	return with, without
}

// check fails the test if a computation is not valid.
func check(t *testing.T, c *computation.Computation, info *computation.NetworkInfo) {
	t.Helper()
	if err := computation.Check(c, info, computation.CheckOptions{AllowUnused: true}); err != nil {
		t.Fatal(err)
	}
}

// TestEntries runs the cases of testdata/nnet3.txt. Every entry for nnet3 needs a case where it
// fires and one where it rests.
func TestEntries(t *testing.T) {
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, c := range readEntryCases(t) {
		t.Run(fmt.Sprintf("%s/%d", c.entry, c.line), func(t *testing.T) {
			with, without := c.compare(t)
			fired := changed(with.rec, c.entry)
			if plansStorage(c.entry) {
				text := func(c *computation.Computation) string { return fmt.Sprint(c.Commands, c.Matrices, c.Submatrices) }
				fired = text(with.c) != text(without.c)
			}
			if fired != c.fires {
				t.Errorf("fires: %t, want %t", fired, c.fires)
			}
			if c.fires {
				fires[c.entry] = true
			} else {
				rests[c.entry] = true
			}
		})
	}
	for _, e := range passes.Default().Entries() {
		if slices.Contains(e.Tags, "nnet3") && !(fires[e.Name] && rests[e.Name]) {
			t.Errorf("testdata/nnet3.txt has no case where %s fires, or none where it rests", e.Name)
		}
	}
}
