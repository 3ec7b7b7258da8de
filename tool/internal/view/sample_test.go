package view_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tool/internal/view"
)

var samples = flag.String("samples", "", "write sample recordings to this folder")

// TestSamples writes recordings to work on the page with.
func TestSamples(t *testing.T) {
	if *samples == "" {
		t.Skip("-samples is not set")
	}
	write := func(name string, s *view.Subject) {
		if s.Run != nil {
			if err := s.AddMisses(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.Recording.Title = name
		text, err := json.Marshal(s.Recording)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*samples, name+".json"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		var page bytes.Buffer
		if err := view.WritePage(&page, s.Recording); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*samples, name+".html"), page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes, page %d, %d nodes, %d steps, %d misses", name, len(text), page.Len(), len(s.Recording.Nodes), len(s.Recording.Steps), len(s.Recording.Misses))
	}
	write("small", record(t, "+fast_run", "", "(y + z)*x/(y + z)"))
	write("softmax", record(t, "+fast_run", "X: matrix; W: matrix; b: vector", "sum(log(softmax(dot(X, W) + b)) * X[1:3].T[0] + 0*1)"))
	write("wide", record(t, "+fast_run", "x: vector; y: vector", wide(5000)))
	write("deep", record(t, "+fast_run", "x: vector; y: vector", deep(160)))
	demo, plan := network(t, "../../networks/demo/tdnnf.config", demoChunk, "+fast_run")
	write("demo", demo)
	full, _ := network(t, "../../../nnet3/testdata/models/tdnnf_1k.config", demoChunk, "+fast_run")
	write("tdnnf_1k", full)
	p, err := view.NewProfile(&profile.Function{Message: "a profile", CompileTime: plan.CompileTime, Optimizer: plan.Profile})
	if err != nil {
		t.Fatal(err)
	}
	write("profile", &view.Subject{Recording: p})
}

// wide is a sum of n products, which have much in common.
func wide(n int) string {
	terms := make([]string, n)
	for i := range terms {
		terms[i] = fmt.Sprintf("exp(x*%d + y)", i+2)
	}
	return "[" + strings.Join(terms, ", ") + "]"
}

// deep is twenty chains of n operations.
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
