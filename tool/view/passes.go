package view

import (
	"sort"
	"strings"
	"time"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
)

// AddProfile adds the times of a profile: what it cost to compile and to run, and the passes of
// the optimizer, unless the recording has them.
func (r *Recording) AddProfile(f *profile.Function) error {
	r.Compile, r.Link, r.Calls, r.CallTime = f.CompileTime, f.LinkTime, f.Calls, f.CallTime
	r.Phases, r.Execution = f.Phases, f.Execution
	if r.Title == "" {
		r.Title = f.Message
	}
	if len(r.Passes) == 0 && f.Optimizer != nil {
		r.addPasses(f.Optimizer, nil)
	}
	var text strings.Builder
	err := f.WriteText(&text)
	r.Report = text.String()
	return err
}

// NewProfile returns a recording of times alone.
func NewProfile(f *profile.Function) (*Recording, error) {
	r := &Recording{Format: Format, Version: Version, Kind: KindProfile, Passes: []Pass{}}
	err := r.AddProfile(f)
	if r.Title == "" {
		r.Title = "Optimizer profile"
	}
	return r, err
}

// addPasses adds a record with everything below it. times are those of the steps, ascending. It
// returns the numbers of the passes.
func (r *Recording) addPasses(root *profile.Record, times []time.Duration) map[*profile.Record]int {
	numbers := make(map[*profile.Record]int)
	var path []int // the passes around the present one
	for depth, rec := range root.All() {
		parent := -1
		if path = path[:min(depth, len(path))]; depth > 0 {
			parent = path[depth-1]
		}
		n := len(r.Passes)
		numbers[rec] = n
		path = append(path, n)
		p := newPass(rec, parent)
		// Steps have times and not passes, because a pass may contain others: its steps are those
		// between its beginning and its end on the same clock.
		for i, at := range [2]time.Duration{rec.Start, rec.Start + rec.Time} {
			p.Steps[i] = sort.Search(len(times), func(k int) bool { return times[k] >= at })
		}
		r.Passes = append(r.Passes, p)
	}
	return numbers
}

// newPass returns a pass without its steps.
func newPass(rec *profile.Record, parent int) Pass {
	p := Pass{Name: rec.Name, Class: rec.Class, Parent: parent, Start: rec.Start, Time: rec.Time, Validate: rec.Validate,
		NodesBefore: rec.NodesBefore, NodesAfter: rec.NodesAfter, Changed: rec.Changed, Saturation: rec.Saturation}
	for _, u := range rec.Rules {
		p.Rules = append(p.Rules, RuleCost{u.Name, u.Applied, u.Attempts, u.Refused, u.Created, u.Time, u.Global})
	}
	for _, l := range rec.Passes {
		p.Laps = append(p.Laps, Lap{l.Nodes, l.Applied, l.Time})
	}
	for _, c := range rec.Counters {
		p.Counters = append(p.Counters, [2]string{c.Name, c.Text()})
	}
	return p
}

// addDocs adds what the passes and rules say about themselves.
func (r *Recording) addDocs(entries []optdb.Listing) {
	r.Docs = make(map[string]Doc)
	for _, l := range entries {
		if _, known := r.Docs[l.Name]; !known || l.Doc != "" && r.Docs[l.Name].Doc == "" {
			r.Docs[l.Name] = Doc{Path: l.Path, Doc: l.Doc, Tags: l.Tags, Cases: l.Cases, Reason: l.Reason}
		}
	}
}
