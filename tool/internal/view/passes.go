package view

import (
	"sort"
	"strings"

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
		r.addPasses(f.Optimizer)
	}
	var text strings.Builder
	err := f.WriteText(&text)
	r.Report = text.String()
	return err
}

// NewProfile returns a recording of times alone.
func NewProfile(f *profile.Function) (*Recording, error) {
	r := &Recording{Format: Format, Version: Version, Kind: KindProfile, Passes: []passEntry{}}
	err := r.AddProfile(f)
	if r.Title == "" {
		r.Title = "Optimizer profile"
	}
	return r, err
}

// addPasses adds a record with everything below it. It returns the numbers of the passes.
func (r *Recording) addPasses(root *profile.Record) map[*profile.Record]int {
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
		r.Passes = append(r.Passes, newPass(rec, parent))
	}
	return numbers
}

// placeSteps gives passes the steps that they and the passes below them made. Where a pass that made
// none ran is a matter of the clock alone.
func (r *Recording) placeSteps() {
	made := make([]bool, len(r.Passes))
	for k, s := range r.Steps {
		for n := s.Pass; n >= 0; n = r.Passes[n].Parent {
			p := &r.Passes[n]
			if !made[n] {
				made[n], p.Steps[0] = true, k
			}
			p.Steps[1] = k + 1
		}
	}
	// A clock may be so coarse that a whole run is one tick of it, as those of browsers are. So its
	// answer is kept between the passes that ran before and the end of the pass around.
	before := make([]int, len(r.Passes)) // by pass: the steps before the next pass in it
	for n := range r.Passes {
		p := &r.Passes[n]
		from, to := 0, len(r.Steps)
		if p.Parent >= 0 {
			from, to = before[p.Parent], r.Passes[p.Parent].Steps[1]
		}
		if !made[n] {
			at := sort.Search(len(r.Steps), func(k int) bool { return r.Steps[k].Time >= p.Start })
			at = max(from, min(to, at))
			p.Steps = [2]int{at, at}
		}
		before[n] = p.Steps[0]
		if p.Parent >= 0 {
			before[p.Parent] = p.Steps[1]
		}
	}
}

// newPass returns a pass without its steps.
func newPass(rec *profile.Record, parent int) passEntry {
	p := passEntry{Name: rec.Name, Class: rec.Class, Parent: parent, Start: rec.Start, Time: rec.Time, Validate: rec.Validate,
		NodesBefore: rec.NodesBefore, NodesAfter: rec.NodesAfter, Changed: rec.Changed, Saturation: rec.Saturation}
	for _, u := range rec.Rules {
		p.Rules = append(p.Rules, ruleCost{u.Name, u.Applied, u.Attempts, u.Refused, u.Created, u.Time, u.Global})
	}
	for _, l := range rec.Passes {
		p.Laps = append(p.Laps, lap{l.Nodes, l.Applied, l.Time})
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
