package profile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/profile"
)

func TestNilRecorder(t *testing.T) {
	var r *profile.Recorder
	if r.Begin("a", "b") != nil || r.Record() != nil || r.Enabled() || !r.Now().IsZero() || r.Since(time.Now()) != 0 {
		t.Error("a nil recorder records")
	}
	allocs := testing.AllocsPerRun(10, func() {
		c := r.Begin("a", "b")
		c.SetClass("a", "b")
		c.Nodes(1)
		c.Changed(1)
		c.AddValidate(1)
		c.AddCallback(1)
		c.AddToposort(1)
		c.AddLoop(1)
		c.AddPass(profile.Pass{})
		c.AddRule(profile.RuleRecord{Name: "r"})
		c.Count("n", 1, "")
		c.Set("n", 1, "")
		c.End()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestRecorderBuildsTree(t *testing.T) {
	root := profile.New("root", profile.ClassSequence)
	root.Nodes(10)
	a := root.Begin("a", "?")
	a.SetClass("", profile.ClassTopo)
	for _, n := range []int{10, 14, 12} {
		a.Nodes(n)
	}
	a.Changed(2)
	a.Changed(1)
	a.AddValidate(3)
	a.AddCallback(4)
	a.AddToposort(5)
	a.AddLoop(6)
	a.AddRule(profile.RuleRecord{Name: "r", Attempts: 2, Applied: 1, Created: 3, Time: 7})
	a.AddRule(profile.RuleRecord{Name: "s", Attempts: 1, Global: true})
	a.AddRule(profile.RuleRecord{Name: "r", Attempts: 3, Refused: 1, Time: 2})
	a.Count("bytes", 5, "bytes")
	a.Count("bytes", 6, "bytes")
	a.Count("replace_time", 1.5, "s")
	a.Set("peak", 9, "bytes")
	a.Set("peak", 8, "bytes")
	a.End()
	b := root.Begin("b", profile.ClassMerge)
	b.AddValidate(10)
	b.Begin("deep", profile.ClassMerge).AddValidate(100)
	b.End()
	root.Nodes(12)
	root.End()
	length := root.Record().Time
	root.End()
	got := root.Record()
	if got.Time != length || length <= 0 {
		t.Errorf("time %v after the first End, %v after the second", length, got.Time)
	}
	if c := got.Children; c[0].Start > c[1].Start || c[1].Start > c[1].Children[0].Start {
		t.Error("starts are not in order")
	}
	for _, r := range got.All() {
		r.Start, r.Time = 0, 0
	}
	want := &profile.Record{
		Name: "root", Class: profile.ClassSequence, Validate: 113, Callback: 4, NodesBefore: 10, NodesAfter: 12, NodesMax: 12,
		Children: []*profile.Record{
			{
				Name: "a", Class: profile.ClassTopo, Validate: 3, Callback: 4, Toposort: 5, Loop: 6,
				NodesBefore: 10, NodesAfter: 12, NodesMax: 14, Changed: 3,
				Rules: []profile.RuleRecord{
					{Name: "r", Attempts: 5, Applied: 1, Refused: 1, Created: 3, Time: 9},
					{Name: "s", Attempts: 1, Global: true},
				},
				Counters: []profile.Counter{{"bytes", 11, "bytes"}, {"replace_time", 1.5, "s"}, {"peak", 8, "bytes"}},
			},
			{
				Name: "b", Class: profile.ClassMerge, Index: 1, Validate: 110,
				Children: []*profile.Record{{Name: "deep", Class: profile.ClassMerge, Validate: 100}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAllIsPreorder(t *testing.T) {
	var got []string
	for depth, r := range sample(t).All() {
		got = append(got, fmt.Sprint(depth, r.Name))
		if r.Name == "composite_elemwise_fusion" {
			break
		}
	}
	want := []string{
		"0OPT_FAST_RUN", "1canonicalize", "1BlasOpt", "2local_dot_to_dot22", "2gemm_optimizer", "2local_dot22_to_dot22scalar",
		"2local_gemm_to_gemv", "2use_c_blas", "2use_scipy_ger", "1specialize", "1elemwise_fusion", "2local_add_mul_fusion", "2composite_elemwise_fusion",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var none *profile.Record
	for range none.All() {
		t.Error("a nil record has descendants")
	}
	if none.Find("x") != nil {
		t.Error("a nil record finds")
	}
}
