// Package pprof converts a [profile.Record] to the format of "go tool pprof", so
// that its flame graph and top list show the time of passes and rules. It does not
// read profiles.
//
// A stack is the path from the root of the optimizer to a rewriter, with a rule or
// the topological sorts of the rewriter as the leaf. A stack without such a leaf has
// the remaining time of the rewriter. The sample types are time, attempts, applied
// and created (nodes); time is the default.
//
// The functions may be called by several goroutines at once.
package pprof

import (
	"io"
	"slices"
	"time"

	pp "github.com/google/pprof/profile"

	"github.com/nnopt/nnopt/profile"
)

// Write writes the record as a gzipped profile.
func Write(w io.Writer, r *profile.Record) error {
	return New(r).Write(w)
}

// New returns the profile of the record, which is empty for a nil record.
func New(r *profile.Record) *pp.Profile {
	b := builder{
		p: &pp.Profile{
			SampleType: []*pp.ValueType{
				{Type: "time", Unit: "nanoseconds"},
				{Type: "attempts", Unit: "count"},
				{Type: "applied", Unit: "count"},
				{Type: "created", Unit: "count"},
			},
			DefaultSampleType: "time",
			PeriodType:        &pp.ValueType{Type: "time", Unit: "nanoseconds"},
			Period:            1,
		},
		at: make(map[string]*pp.Location),
	}
	if r == nil {
		return b.p
	}
	b.p.DurationNanos = int64(r.Time)
	var path []*pp.Location // root first
	for depth, c := range r.All() {
		path = append(path[:depth], b.location(c.Name, c.Class))
		b.record(path, c)
	}
	return b.p
}

type builder struct {
	p  *pp.Profile
	at map[string]*pp.Location
}

// record adds the samples of a rewriter: its rules, its sorting, and the time that
// remains without these and its children.
func (b *builder) record(path []*pp.Location, r *profile.Record) {
	rest := r.Time
	child := make(map[string]bool, len(r.Children))
	for _, c := range r.Children {
		rest -= c.Time
		child[c.Name] = true
	}
	for i := range r.Rules {
		u := &r.Rules[i]
		if u.Time == 0 && u.Attempts == 0 && u.Applied == 0 {
			continue
		}
		spent := u.Time
		if u.Global && child[u.Name] {
			spent = 0 // its own record has it
		}
		rest -= spent
		b.sample(path, b.location(u.Name, "rule"), spent, u.Attempts, u.Applied, u.Created)
	}
	sorting := r.Toposort
	if sorting == 0 {
		for i := range r.Passes {
			sorting += r.Passes[i].Toposort
		}
	}
	if sorting > 0 {
		rest -= sorting
		b.sample(path, b.location("toposort", "phase"), sorting, 0, 0, 0)
	}
	if rest > 0 {
		b.sample(path, nil, rest, 0, 0, 0)
	}
}

func (b *builder) sample(path []*pp.Location, leaf *pp.Location, d time.Duration, attempts, applied, created int) {
	stack := make([]*pp.Location, 0, len(path)+1) // leaf first, as the format has it
	if leaf != nil {
		stack = append(stack, leaf)
	}
	for _, l := range slices.Backward(path) {
		stack = append(stack, l)
	}
	b.p.Sample = append(b.p.Sample, &pp.Sample{
		Location: stack,
		Value:    []int64{int64(d), int64(attempts), int64(applied), int64(created)},
	})
}

// location returns the frame of a name; the class takes the place of its file.
func (b *builder) location(name, class string) *pp.Location {
	if name == "" {
		name = class
	}
	key := class + "\x00" + name
	if l := b.at[key]; l != nil {
		return l
	}
	id := uint64(len(b.p.Location) + 1)
	f := &pp.Function{ID: id, Name: name, SystemName: name, Filename: class}
	l := &pp.Location{ID: id, Line: []pp.Line{{Function: f}}}
	b.p.Function = append(b.p.Function, f)
	b.p.Location = append(b.p.Location, l)
	b.at[key] = l
	return l
}
