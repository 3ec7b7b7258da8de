package profile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
)

func TestCheckAcceptsTheanosSample(t *testing.T) {
	if err := profiletest.Check(sample(t)); err != nil {
		t.Error(err)
	}
	var none *profile.Record
	if err := profiletest.Check(none); err != nil {
		t.Error(err)
	}
}

func TestCheckFinds(t *testing.T) {
	tests := []struct {
		name   string
		change func(root, canonicalize *profile.Record)
		want   string
	}{
		{"pass count", func(_, c *profile.Record) { c.Passes[3].Applied++ }, "/OPT_FAST_RUN/canonicalize: pass 3: 12 applied, but its rules count 11"},
		{"rule count", func(_, c *profile.Record) { c.Rules[0].Applied++ }, "rule constant_folding: 16 applied, but the passes count 15"},
		{"unlisted rule", func(_, c *profile.Record) { c.Rules = c.Rules[1:] }, "rule constant_folding: counted by passes, but not among the rules"},
		{"children", func(r, _ *profile.Record) { r.Time = time.Second }, "in children of 1s in all"},
		{"passes", func(_, c *profile.Record) { c.Time = 700 * time.Millisecond }, "751ms in passes of 700ms in all"},
		{"validation", func(_, c *profile.Record) { c.Validate = time.Second }, "1s in validation of 751.816ms in all"},
		{"negative time", func(_, c *profile.Record) { c.Toposort = -1 }, "-1ns in sorting"},
		{"negative count", func(_, c *profile.Record) { c.Changed = -1 }, "negative figure"},
		{"negative rule", func(_, c *profile.Record) { c.Rules[1].Created = -1 }, "rule local_greedy_distributor: negative figure"},
		{"nodes", func(_, c *profile.Record) { c.NodesMax = 100 }, "at most 100 nodes, but 108 before and 81 after"},
		{"nodes of a pass", func(_, c *profile.Record) { c.Passes[1].Nodes = 118 }, "pass 1: 118 nodes, but at most 117"},
		{"part of a pass", func(_, c *profile.Record) { c.Passes[1].Global = time.Second }, "pass 1: 1s in graph rewriters"},
		{"attempts", func(_, c *profile.Record) { c.Rules[0].Attempts, c.Rules[0].Refused = 16, 2 }, "rule constant_folding: 15 applied and 2 refused of 16 attempts"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := sample(t)
			test.change(root, root.Children[0])
			err := profiletest.Check(root)
			if !errors.Is(err, profiletest.ErrInconsistent) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v\nwant %q", err, test.want)
			}
		})
	}
}

func TestCheckReportsEverything(t *testing.T) {
	root := sample(t)
	for _, r := range root.All() {
		r.Changed = -1
	}
	n := strings.Count(profiletest.Check(root).Error(), "negative figure")
	if n != 14 {
		t.Errorf("%d faults of 14", n)
	}
}
