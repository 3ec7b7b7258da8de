package pprof_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/internal/longtest"

	"github.com/google/go-cmp/cmp"
	pp "github.com/google/pprof/profile"

	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/pprof"
)

func TestWrite(t *testing.T) {
	r := &profile.Record{
		Name: "seq", Class: profile.ClassSequence, Time: 100,
		Children: []*profile.Record{
			{
				Name: "eq", Class: profile.ClassEquilibrium, Time: 70, Passes: []profile.Pass{{Time: 60, Toposort: 5}},
				Rules: []profile.RuleRecord{
					{Name: "r", Attempts: 4, Applied: 2, Created: 1, Time: 30},
					{Name: "merge", Attempts: 1, Global: true, Time: 10},
					{Name: "untried"},
				},
				Children: []*profile.Record{{Name: "merge", Class: profile.ClassMerge, Time: 10}},
			},
			{Name: "merge", Class: profile.ClassMerge, Time: 20, Toposort: 20},
			{Name: "torn", Class: profile.ClassTopo, Time: 10, Rules: []profile.RuleRecord{{Name: "r", Time: 10}}},
		},
	}
	var b bytes.Buffer
	if err := pprof.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	p, err := pp.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	if p.DefaultSampleType != "time" || p.DurationNanos != 100 {
		t.Errorf("%s, %d ns", p.DefaultSampleType, p.DurationNanos)
	}
	var got []string
	var sum int64
	for _, s := range p.Sample {
		var frames []string
		for _, l := range s.Location {
			frames = append(frames, l.Line[0].Function.Name)
		}
		got = append(got, fmt.Sprint(strings.Join(frames, "<"), s.Value))
		sum += s.Value[0]
	}
	want := []string{
		"r<eq<seq[30 4 2 1]", "merge<eq<seq[0 1 0 0]", "toposort<eq<seq[5 0 0 0]", "eq<seq[25 0 0 0]",
		"merge<eq<seq[10 0 0 0]", "toposort<merge<seq[20 0 0 0]", "r<torn<seq[10 0 0 0]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if sum != 100 {
		t.Errorf("samples add up to %d ns of 100", sum)
	}
}

func TestEmpty(t *testing.T) {
	for _, r := range []*profile.Record{nil, {}} {
		if err := pprof.New(r).CheckValid(); err != nil {
			t.Error(err)
		}
	}
}

// go tool pprof reads it, and its sums are those of the record.
func TestGoToolPprof(t *testing.T) {
	longtest.Only(t)
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no go command")
	}
	const ms = 1_000_000
	r := &profile.Record{Name: "seq", Class: profile.ClassSequence, Time: 100 * ms, Children: []*profile.Record{{
		Name: "canonicalize", Class: profile.ClassEquilibrium, Time: 70 * ms, Passes: []profile.Pass{{Time: 60 * ms}},
		Rules: []profile.RuleRecord{{Name: "local_mul_canonizer", Attempts: 4, Applied: 2, Time: 40 * ms}},
	}}}
	file := filepath.Join(t.TempDir(), "profile.pb.gz")
	var b bytes.Buffer
	if err := pprof.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, tool, "tool", "pprof", "-top", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// flat, flat%, sum%, cum, cum%, name
	for _, want := range []string{
		`40ms 40\.00% .* 40ms 40\.00%\s+local_mul_canonizer`, `30ms 30\.00% .* 70ms 70\.00%\s+canonicalize`, `30ms 30\.00% .* 100ms\s+100%\s+seq`,
	} {
		if !regexp.MustCompile(strings.ReplaceAll(want, " ", `\s+`)).Match(out) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}
