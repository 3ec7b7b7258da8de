package standard_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/standard"
)

// Exit statuses.
const (
	statusOK    = 0
	statusFault = 1
	statusUsage = 2
	statusOther = 3
)

// recipes are the reference cases that are part of the project.
const recipes = "../../nnet3/testdata/recipes"

// result is what a call of the program leaves behind.
type result struct {
	status         int
	stdout, stderr string
}

// nnopt calls the program.
func nnopt(t *testing.T, args ...string) result {
	t.Helper()
	return nnoptWith(t, "", args...)
}

// nnoptWith calls the program with something on standard input.
func nnoptWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	program := standard.Program{}
	if !addsRules(args) {
		program.Database = database
	}
	status := program.Run(context.Background(), args, strings.NewReader(stdin), &stdout, &stderr)
	return result{status, stdout.String(), stderr.String()}
}

// database is the database of all calls that add no rules to it, whose rules are made once.
var database = sync.OnceValues(tool.Always(passes.Default))

// addsRules reports whether a call may add rules to its database.
func addsRules(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "--rule") || slices.Contains([]string{"rule", "reproduce", "bisect", "reduce", "view"}, a)
	})
}

// ok fails the test unless the program succeeded.
func (r result) ok(t *testing.T) result {
	t.Helper()
	if r.status != statusOK {
		t.Fatalf("status %d\nstderr: %s", r.status, r.stderr)
	}
	return r
}

// fails fails the test unless the program ended with the status, printed no data, and said
// everything that is wanted.
func (r result) fails(t *testing.T, status int, wanted ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("status %d, want %d\nstderr: %s", r.status, status, r.stderr)
	}
	if r.stdout != "" {
		t.Errorf("data in spite of the error: %.200q", r.stdout)
	}
	for _, w := range wanted {
		if !strings.Contains(r.stderr, w) {
			t.Errorf("the error does not say %q: %s", w, r.stderr)
		}
	}
	if strings.Contains(r.stderr, "goroutine ") || strings.Contains(r.stderr, "panic") {
		t.Errorf("panic: %s", r.stderr)
	}
}

// contains fails the test unless all of the texts are in s.
func contains(t *testing.T, s string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(s, w) {
			t.Errorf("%q is missing in:\n%.2000s", w, s)
		}
	}
}

// file writes a file for a test and returns its name.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		wanted []string
	}{
		{"no verb", nil, []string{"usage: nnopt VERB", "  reproduce ", "nnopt help VERB"}},
		{"unknown verb", []string{"verfy"}, []string{`"verfy"`, `did you mean "verify"?`}},
		{"unknown verb in help", []string{"help", "pases"}, []string{`did you mean "passes"?`}},
		{"unknown flag", []string{"verify", "--quary=x", "dir"}, []string{"--quary", `did you mean "--query"?`, "nnopt help verify"}},
		{"flag without value", []string{"verify", "dir", "--query"}, []string{"--query needs a value"}},
		{"wrong value", []string{"compile", "--frames-per-chunk=many", "x"}, []string{"--frames-per-chunk=many"}},
		{"wrong boolean", []string{"verify", "--json=perhaps", "x"}, []string{"--json=perhaps"}},
		{"wrong switch", []string{"verify", "--optimization.merge1=perhaps", "x"}, []string{"--optimization.merge1=perhaps"}},
		{"missing argument", []string{"compile"}, []string{"MODEL expected"}},
		{"one argument too many", []string{"info", "a", "b"}, []string{`unexpected argument "b"`}},
		{"no cases", []string{"verify"}, []string{"DIR... expected"}},
		{"no cases to leave passes out", []string{"passes", "--ablation"}, []string{"DIR... expected"}},
		{"argument of a verb without any", []string{"version", "x"}, []string{`unexpected argument "x"`}},
		{"rule that does not parse", []string{"rule", "check", "(exp x) =>"}, []string{"argument:1: bad pattern", "column 11"}},
		{"unknown benchmark", []string{"bench", "gemm"}, []string{`"gemm"`}},
		{"benchmark without a model", []string{"bench", "nnet3"}, []string{"--model expected"}},
		{"format of a profile", []string{"profile", "--format=pdf", "x"}, []string{"--format=pdf", "pprof"}},
		{"tag that no pass has", []string{"passes", "--query", "+fast_rum"}, []string{"fast_rum", "fast_run"}},
		{"query that does not parse", []string{"verify", "--query", "+fast_run inplace", "x"}, []string{"inplace", "column 11"}},
		{"pass that there is not", []string{"passes", "--explain", "propagate_in_plac"}, []string{"propagate_in_place"}},
	} {
		t.Run(c.name, func(t *testing.T) { nnopt(t, c.args...).fails(t, statusUsage, c.wanted...) })
	}
}

// TestWrongFile: an error names the file that there is not, or that is of another kind.
func TestWrongFile(t *testing.T) {
	text := file(t, "text.txt", "hello\n")
	for _, c := range []struct {
		args   []string
		status int
		wanted []string
	}{
		{[]string{"verify", "nowhere"}, statusFault, []string{"nowhere: no such file"}},
		{[]string{"verify", text}, statusFault, []string{text + " is a file"}},
		{[]string{"graph", "nowhere.raw"}, statusFault, []string{"nowhere.raw: no such file"}},
		{[]string{"view", "nowhere/profile.json"}, statusFault, []string{"nowhere/profile.json: no such file"}},
		{[]string{"expr", "--rules=" + text, "x"}, statusUsage, []string{text + ":1:"}},
		{[]string{"copy", "scp:../../nnet3/testdata/compute/feats.ark", "ark:-"}, statusFault, []string{"feats.ark: line 1", "is this an archive"}},
		{[]string{"copy", "scp:../../nnet3/testdata/compute/feats.txt", "ark:-"}, statusFault, []string{"feats.txt: line 1", "is this an archive"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) { nnopt(t, c.args...).fails(t, c.status, c.wanted...) })
	}
}

// TestHelp: every verb explains itself.
func TestHelp(t *testing.T) {
	t.Parallel()
	all := nnopt(t, "help").ok(t).stdout
	for _, v := range (standard.Program{}).Config().AllVerbs() {
		contains(t, all, v.Name, v.Synopsis)
		if text := nnopt(t, "help", v.Name).ok(t).stdout; text != nnopt(t, v.Name, "--help").ok(t).stdout {
			t.Errorf("help %s and %s --help differ", v.Name, v.Name)
		} else {
			contains(t, text, "usage: nnopt "+v.Name, v.Synopsis)
		}
	}
	contains(t, nnopt(t, "help", "compile").ok(t).stdout, "--frames-per-chunk", "(default = 150)", "--optimization.propagate-in-place=false")
}

func TestVersion(t *testing.T) {
	contains(t, nnopt(t, "version").ok(t).stdout, "nnopt ", runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
	nnopt(t, "version", "please").fails(t, statusUsage, `unexpected argument "please"`)
}

// TestFlags: flags may be anywhere, in Kaldi's spelling or in Go's.
func TestFlags(t *testing.T) {
	config := file(t, "net.config", smallConfig)
	want := nnopt(t, "compile", "--frames-per-chunk=6", "--json", "--query=none", config).ok(t).stdout
	for _, args := range [][]string{
		{"compile", config, "--frames-per-chunk=6", "--json", "--query=none"},
		{"compile", "--frames_per_chunk=6", "-json=true", config, "--query", "none"},
		{"compile", "-frames-per-chunk", "6", "--json", "--query", "none", "--", config},
	} {
		if got := nnopt(t, args...).ok(t).stdout; withoutTimes(t, got) != withoutTimes(t, want) {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	if status := (standard.Program{}).Run(ctx, []string{"verify", recipes}, nil, &stdout, &stderr); status != statusFault || !strings.Contains(stderr.String(), "canceled") {
		t.Errorf("status %d, stderr %s", status, stderr.String())
	}
}

// TestCompileInterrupted: also the compiler heeds an interrupt, which here comes before it can be
// done.
func TestCompileInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, errors.New("enough is enough"))
	defer cancel()
	var stdout, stderr bytes.Buffer
	args := []string{"compile", "--query=none", "--frames-per-chunk=100000", file(t, "net.config", smallConfig)}
	if status := (standard.Program{}).Run(ctx, args, nil, &stdout, &stderr); status != statusFault || !strings.Contains(stderr.String(), "nnopt compile: compiling: enough is enough") {
		t.Errorf("status %d, stderr %s", status, stderr.String())
	}
}

// TestHarmless: the contents of a file don't steer the terminal, and what people write stays as it
// is.
func TestHarmless(t *testing.T) {
	name := file(t, "escape", "input-node name=\x1b[31mred dim=10\n")
	nnopt(t, "info", name).fails(t, statusFault, `\x1b[31mred`)
	archive := file(t, "noise", "\x1f\x8c\x08\x08 \x00B")
	nnopt(t, "copy", "ark:"+archive, "ark:-").fails(t, statusFault, `\x1f`)
}
