package standard_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool"
)

// TestWatch: what the optimizer does can be followed, cut short and asked about.
func TestWatch(t *testing.T) {
	longtest.Only(t)
	t.Parallel()
	config := file(t, "net.config", smallConfig)
	all := nnopt(t, "compile", "--trace=all", config).ok(t)
	rewrites := regexp.MustCompile(`(?m)^rewriting: (\S+)/(\S+): `).FindAllStringSubmatch(all.stderr, -1)
	if len(rewrites) < 4 {
		t.Fatalf("%d rewrites are traced:\n%s", len(rewrites), all.stderr)
	}
	plain := nnopt(t, "compile", config).ok(t)
	if all.stdout != plain.stdout || strings.Contains(plain.stderr, "rewriting:") {
		t.Error("tracing changes what is computed, or goes on by itself")
	}
	pass, rule := rewrites[0][1], rewrites[0][2]
	for _, name := range []string{pass, rule, "add_destroy_handler," + rule} {
		got := nnopt(t, "profile", "--trace="+name, config).ok(t)
		for _, m := range regexp.MustCompile(`(?m)^rewriting: (\S+)/(\S+): `).FindAllStringSubmatch(got.stderr, -1) {
			if m[1] != name && m[2] != name && m[2] != rule {
				t.Errorf("--trace %s tells of %s", name, m[0])
			}
		}
		contains(t, got.stderr, "rewriting: ")
	}

	// A budget of n makes the first n of the rewrites, and no more.
	for _, n := range []string{"0", "1", "3"} {
		got := nnopt(t, "compile", "--trace=all", "--max-rewrites", n, config).ok(t)
		if made := strings.Count(got.stderr, "\nrewriting: ") + strings.Count(got.stderr[:min(11, len(got.stderr))], "rewriting: "); made > 3 || n == "0" && made > 0 {
			t.Errorf("--max-rewrites %s: %d are made\n%s", n, made, got.stderr)
		}
	}

	fired := nnopt(t, "compile", "--why-not", rule, config).ok(t)
	contains(t, fired.stderr, rule+" fired ")
	why := nnopt(t, "profile", "--why-not", "propagate_in_place", "--query", "+fast_run -inplace", config).ok(t)
	contains(t, why.stderr, "why not: propagate_in_place: not selected: ")
	for _, args := range [][]string{{"compile", config}, {"profile", config}, {"graph", config}, {"view", config}, {"expr", "x*y/y"}, {"graph", "x*y/y"}, {"view", "x*y/y"}} {
		for _, flag := range []string{"--why-not=propagate_in_plac", "--why-not=propagate_in_plac@x", "--trace=canonicalize,propagate_in_plac"} {
			nnopt(t, args[0], flag, args[1]).fails(t, statusUsage, `there is no pass or rule "propagate_in_plac"; did you mean propagate_in_place?`)
		}
	}
	nnopt(t, "expr", "--trace=canonicaliz/local_neg_neg", "x").fails(t, statusUsage, "there is no pass or rule")
	for names, want := range map[string]bool{"all": false, rule: false, "add_destroy_handler": true} {
		got := nnopt(t, "compile", "--trace="+names, config).ok(t).stderr
		if strings.Contains(got, "trace: no rewrite by "+names+"\n") != want || strings.Contains(got, "unknown") {
			t.Errorf("--trace %s: %s", names, got)
		}
	}
}

// A rule that a feature hinders, and one that says why it does not fire, are told of with the
// nodes, those that print alike once.
func TestWhyNot(t *testing.T) {
	db := failingDB(t)
	for flags, want := range map[string]string{
		"hindered":      "why not: walk/hindered: at f(x): refused: walk/hindered: inconsistent graph: the feature says no\n",
		"picky":         "why not: walk/picky: at f(x): it is f\nwhy not: walk/picky: at g(f(x)): it is g (2 times)\n",
		"picky@g(":      "why not: walk/picky: at g(f(x)): it is g (2 times)\n",
		"silent":        "why not: silent: no reason: there is no node with an op that it tracks, or it gives no reasons\n",
		"walk/picky@g(": "why not: walk/picky: at g(f(x)): it is g (2 times)\n",
		"walk/none":     "",
	} {
		opt, err := db.Build(optdb.Include("fast_run").Excluding("broken"))
		if err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		c := &tool.Console{Stdout: bufio.NewWriter(io.Discard), Stderr: &stderr}
		ctx, done := (&tool.Watch{WhyNot: flags, Most: -1}).Start(context.Background(), c, opt)
		if err := opt.Rewrite(ctx, failingGraph(t), nil); err != nil {
			t.Fatal(err)
		}
		if err := done(); (err != nil) != (flags == "walk/none") {
			t.Errorf("--why-not %s: %v", flags, err)
		}
		if !strings.HasPrefix(stderr.String(), want) {
			t.Errorf("--why-not %s:\n%swant\n%s", flags, stderr.String(), want)
		}
	}
}

type anyOp string

func (o anyOp) String() string { return string(o) }

type anyType struct{}

func (anyType) String() string           { return "any" }
func (anyType) Accepts(fgraph.Type) bool { return true }

func failingGraph(t *testing.T) *fgraph.FunctionGraph {
	t.Helper()
	apply := func(o anyOp, v *fgraph.Variable) *fgraph.Variable {
		return fgraph.NewApply(o, []*fgraph.Variable{v}, anyType{}).Out()
	}
	x := fgraph.NewInput(anyType{}, "x")
	f := apply("f", x)
	g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{apply("g", f), apply("g", f)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// refusal objects to ops named "refused".
type refusal struct{}

func (refusal) OnAttach(*fgraph.FunctionGraph) error { return nil }

func (refusal) Validate(g *fgraph.FunctionGraph) error {
	for a := range g.Applies() {
		if a.Op() == anyOp("refused") {
			return fmt.Errorf("%w: the feature says no", fgraph.ErrInconsistent)
		}
	}
	return nil
}

// failingDB has a walk with rules that do not fire, and a pass that panics.
func failingDB(t *testing.T) *optdb.SequenceDB {
	t.Helper()
	rule := func(name string, on []rewrite.Track, fn func(c *rewrite.Context, n *fgraph.Apply) rewrite.Result) optdb.Entry {
		return optdb.Entry{Name: name, Doc: "Does not fire.", Tags: []string{"fast_run"}, Rewriter: rewrite.Rule{Name: name, On: on,
			Fn: func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) { return fn(c, n), nil }}}
	}
	walk, db := optdb.NewTopoDB("walk"), optdb.NewSequenceDB("optdb")
	broken := rule("broken", nil, nil)
	broken.Position = 2
	broken.Rewriter = rewrite.In2Out("", rewrite.Rule{Name: "local_broken", On: []rewrite.Track{rewrite.TrackOp(anyOp("g"))},
		Fn: func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error) { panic("broken") }})
	err := errors.Join(
		db.Add(optdb.Entry{Name: "refuse", Doc: "Attaches a feature.", Position: 0, Tags: []string{"fast_run"},
			Rewriter: rewrite.FromFunc("", "", func(g *fgraph.FunctionGraph) error { return g.Attach(refusal{}) },
				func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil })}),
		db.Register("walk", walk, 1, "fast_run"), db.Add(broken),
		walk.Add(
			rule("picky", nil, func(c *rewrite.Context, n *fgraph.Apply) rewrite.Result { return c.Miss("it is %v", n.Op()) }),
			rule("silent", []rewrite.Track{rewrite.TrackOp(anyOp("h"))}, func(c *rewrite.Context, n *fgraph.Apply) rewrite.Result { return rewrite.Result{} }),
			rule("hindered", []rewrite.Track{rewrite.TrackOp(anyOp("f"))}, func(c *rewrite.Context, n *fgraph.Apply) rewrite.Result {
				return rewrite.Replace(fgraph.NewApply(anyOp("refused"), n.Inputs(), anyType{}).Out())
			})))
	if err != nil {
		t.Fatal(err)
	}
	return db
}
