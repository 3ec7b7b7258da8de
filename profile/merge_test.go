package profile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
)

func TestMergeOfNothing(t *testing.T) {
	if profile.Merge() != nil || profile.Merge(nil, nil) != nil {
		t.Error("not nil")
	}
}

func TestMergeOfOneIsACopy(t *testing.T) {
	a := sample(t)
	got := profile.Merge(nil, a)
	if diff := cmp.Diff(a, got); diff != "" {
		t.Error(diff)
	}
	got.Children[0].Passes[0].Rules[0].Count = -1
	got.Children[0].Rules[0].Name = "changed"
	got.Children[1].Children[0].Counters[0].Value = -1
	if diff := cmp.Diff(sample(t), a); diff != "" {
		t.Errorf("the argument changed:\n%s", diff)
	}
}

func TestMergeAddsAndStaysConsistent(t *testing.T) {
	a, b := sample(t), sample(t)
	b.Children[0], b.Children[3] = b.Children[3], b.Children[0] // order is not what matches
	extra := &profile.Record{Name: "merge3", Class: profile.ClassMerge, Time: time.Millisecond}
	b.Children = append(b.Children, extra)
	b.Time += time.Millisecond
	c := b.Find("canonicalize")
	c.Passes = append(c.Passes, profile.Pass{Nodes: 7, Applied: 1, Rules: []profile.RuleCount{{"new_rule", 1}}})
	c.Rules = append(c.Rules, profile.RuleRecord{Name: "new_rule", Applied: 1})
	sum := profile.Merge(a, b)
	if err := profiletest.Check(sum); err != nil {
		t.Error(err)
	}
	got := sum.Find("canonicalize")
	if got.Time != 2*seconds("0.751816") || got.NodesBefore != 216 || len(got.Passes) != 15 || got.Passes[0].Applied != 54 || got.Passes[14].Nodes != 7 {
		t.Errorf("%+v", got)
	}
	if got.Rules[0].Applied != 30 || got.Applied() != 2*128+1 {
		t.Errorf("constant_folding fired %d times, all rules %d", got.Rules[0].Applied, got.Applied())
	}
	if v, _ := sum.Find("gemm_optimizer").Counter("nb_replacement"); v != 4 {
		t.Errorf("nb_replacement %v", v)
	}
	if got := sum.Children[len(sum.Children)-1]; got.Name != "merge3" || got == extra {
		t.Errorf("last child %+v", got)
	}
	if diff := cmp.Diff(sample(t), a); diff != "" {
		t.Errorf("the first argument changed:\n%s", diff)
	}
}

func TestMergeKeepsTwinsApart(t *testing.T) {
	run := func(first, second time.Duration) *profile.Record {
		return &profile.Record{Children: []*profile.Record{
			{Name: "merge", Class: profile.ClassMerge, Time: first}, {Name: "merge", Class: profile.ClassMerge, Time: second},
		}}
	}
	if diff := cmp.Diff(run(11, 22), profile.Merge(run(1, 2), run(10, 20))); diff != "" {
		t.Error(diff)
	}
}

func TestDiff(t *testing.T) {
	a := &profile.Record{
		Name: "fast_run", Class: profile.ClassSequence, Time: 4 * time.Second, NodesAfter: 50,
		Children: []*profile.Record{
			{
				Name: "canonicalize", Class: profile.ClassEquilibrium, Time: 2 * time.Second, NodesAfter: 81, Changed: 9,
				Rules: []profile.RuleRecord{{Name: "same", Applied: 2}, {Name: "more", Applied: 1, Time: time.Second}, {Name: "gone", Applied: 1, Created: 3}, {Name: "idle"}},
			},
			{Name: "merge2", Class: profile.ClassMerge, Time: time.Second, NodesAfter: 50},
		},
	}
	b := profile.Merge(a)
	b.Time, b.NodesAfter = time.Second, 40
	c := b.Children[0]
	c.Changed = 12
	c.Rules = []profile.RuleRecord{{Name: "more", Applied: 4, Time: time.Second}, {Name: "same", Applied: 2}, {Name: "new", Applied: 5}}
	b.Children[1].Name = "merge3"
	a.Children[0].Counters = []profile.Counter{{Name: "same", Value: 3}, {Name: "cut", Value: 7}, {Name: "clock", Value: 1, Unit: "s"}}
	c.Counters = []profile.Counter{{Name: "same", Value: 3}, {Name: "cut", Value: 9}, {Name: "clock", Value: 2, Unit: "s"}, {Name: "mass", Value: 1.5, Unit: "kg"}}
	c.Rules[1].Counters = []profile.Counter{{Name: "tries", Value: 2}}
	var text strings.Builder
	if err := profile.WriteDiff(&text, a, b); err != nil {
		t.Fatal(err)
	}
	want := `
      time a       time b      b/a   nodes a   nodes b changed a changed b  name
   4.000000s    1.000000s     0.25        50        40         0         0  fast_run
   2.000000s    2.000000s     1.00        81        81         9        12    canonicalize
                                                               7         9      # cut
                                                               -    1.5 kg      # mass (only b)
   0.000000s    0.000000s        -         0         0         2         2      . same
                                                               -         2      .   # tries (only b)
   1.000000s    1.000000s     1.00         0         0         1         4      . more
   0.000000s    0.000000s        -         3         0         1         0      . gone (only a)
   0.000000s    0.000000s        -         0         0         0         5      . new (only b)
   1.000000s    0.000000s     0.00        50         0         0         0    merge2 (only a)
   0.000000s    1.000000s        -         0        50         0         0    merge3 (only b)
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), text.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDiffOfARunWithItselfShowsNoRule(t *testing.T) {
	var text strings.Builder
	if err := profile.WriteDiff(&text, sample(t), sample(t)); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); strings.Contains(got, " . ") || strings.Contains(got, " # ") || strings.Contains(got, "(only") {
		t.Error(got)
	}
	text.Reset()
	if err := profile.WriteDiff(&text, nil, nil); err != nil || strings.Count(text.String(), "\n") != 1 {
		t.Errorf("%v, %s", err, &text)
	}
}
