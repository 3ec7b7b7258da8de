package profile_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
)

// saturation returns the record of a saturation, as a child of a sequence.
func saturation() *profile.Record {
	ms := time.Millisecond
	return &profile.Record{
		Name: "fast_run", Class: profile.ClassSequence, Time: 40 * ms, NodesBefore: 9, NodesAfter: 7, NodesMax: 9,
		Children: []*profile.Record{{
			Name: "saturate", Class: profile.ClassSaturation, Time: 30 * ms, NodesBefore: 9, NodesAfter: 7, NodesMax: 9, Changed: 1,
			Rules: []profile.RuleRecord{
				{Name: "commute", Attempts: 50, Applied: 3, Counters: []profile.Counter{{Name: "bans", Value: 1}}},
				{Name: "factor", Attempts: 4, Applied: 4},
			},
			Counters: []profile.Counter{{Name: "other_types", Value: 2}},
			Saturation: &profile.Saturation{
				Ended: []profile.RuleCount{{Name: "nodes", Count: 1}}, Nodes: 120, Classes: 60, GaveUp: 1, CostBefore: 2.5e6, CostAfter: 1000,
				Match: 4 * ms, Apply: 3 * ms, Rebuild: 2 * ms, Extract: ms,
				Laps: []profile.SaturationLap{
					{Nodes: 30, Classes: 20, Matches: 6, Applied: 5, Match: ms, Apply: ms, Rebuild: ms},
					{Nodes: 120, Classes: 60, Matches: 48, Applied: 2, Match: 3 * ms, Apply: 2 * ms, Rebuild: ms, Banned: []profile.RuleCount{{Name: "commute", Count: 1}}},
				},
			},
		}},
	}
}

func TestSaturationText(t *testing.T) {
	var b strings.Builder
	if err := saturation().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(b.String(), "index) - validate time\n")
	want := `   0.030000s - ('saturate', 'Saturation', 0) - 0.000000s
     Saturation saturate
       time 0.030000s for 2 laps, ended by: nodes
       nb nodes (start, end) 9 7
       time matching 0.004000s, applying 0.003000s, rebuilding 0.002000s, extraction 0.001000s
       120 e-nodes, 60 classes
       cost (before, after) 2.5e+06 1000
       1 nodes had too many ways to match
       other_types 2
        0 - 0.003000s 5 applied of 6 matches - 30 e-nodes, 20 classes
        1 - 0.006000s 2 applied of 48 matches - 120 e-nodes, 60 classes - banned commute
       times applied - matches - name:
       4 - 4 - factor
       3 - 50 - commute
         bans 1
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSaturationMerge(t *testing.T) {
	a, b := saturation(), saturation()
	b.Children[0].Saturation.Ended[0].Name = "saturated"
	sum := profile.Merge(a, b)
	s := sum.Children[0].Saturation
	if s.Nodes != 240 || s.Laps[1].Matches != 96 || s.Laps[1].Banned[0].Count != 2 || len(s.Ended) != 2 || s.Extract != 2*time.Millisecond || s.CostAfter != 2000 {
		t.Errorf("%+v", s)
	}
	if err := profiletest.Check(sum); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(saturation(), a); diff != "" {
		t.Errorf("Merge changes its argument:\n%s", diff)
	}
	if got := profile.Merge(a, &profile.Record{Name: "fast_run", Class: profile.ClassSequence}); got.Children[0].Saturation.Nodes != 120 {
		t.Error("a run without saturation changes the sum")
	}
}

func TestSaturationCheck(t *testing.T) {
	if err := profiletest.Check(saturation()); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*profile.Saturation){
		"time":    func(s *profile.Saturation) { s.Match = time.Hour },
		"nodes":   func(s *profile.Saturation) { s.Nodes = -1 },
		"cost":    func(s *profile.Saturation) { s.CostAfter = 1e9 },
		"matches": func(s *profile.Saturation) { s.Laps[0].Matches = 60 },
		"applied": func(s *profile.Saturation) { s.Laps[0].Applied = 60 },
	} {
		r := saturation()
		spoil(r.Children[0].Saturation)
		if err := profiletest.Check(r); !errors.Is(err, profiletest.ErrInconsistent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSaturationJSON(t *testing.T) {
	f := &profile.Function{Optimizer: saturation()}
	f.Optimizer.Children[0].Saturation.Laps[1].Banned[0].Name = "a\nb"
	var b bytes.Buffer
	if err := f.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	back, err := profile.ReadJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	f.Optimizer.Children[0].Saturation.Laps[1].Banned[0].Name = `a\nb`
	if diff := cmp.Diff(f, back); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}
