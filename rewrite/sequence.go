package rewrite

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Member is a graph rewriter with the name under which it runs.
type Member struct {
	Name     string
	Rewriter GraphRewriter
}

// A Situated rewriter depends on its place in a sequence, as one does that judges its result by what
// later members make of it. Situate returns the rewriter for a place: earlier ran before it, and their
// requirements still hold; later runs what follows.
type Situated interface {
	GraphRewriter
	Situate(earlier []GraphRewriter, later GraphRewriter) GraphRewriter
}

// A Sequence runs graph rewriters one after another. It adds the requirements of each right
// before it runs.
type Sequence struct {
	Name    string
	Members []Member
}

// NewSequence returns a sequence of rewriters under their own names.
func NewSequence(name string, rewriters ...GraphRewriter) *Sequence {
	s := &Sequence{Name: name}
	for _, r := range rewriters {
		s.Members = append(s.Members, Member{Describe(r).Name, r})
	}
	return s
}

// Describe returns the name and the class of the sequence.
func (s *Sequence) Describe() Description {
	return Description{Name: s.Name, Class: profile.ClassSequence}
}

// AddRequirements does nothing: each member adds its own when it runs.
func (s *Sequence) AddRequirements(*fgraph.FunctionGraph) error { return nil }

// Apply runs the members.
func (s *Sequence) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", profile.ClassSequence)
	rec.Nodes(g.NumApplies())
	opts := optionsFrom(ctx)
	if opts.BeforePass != nil {
		inner := *opts
		inner.BeforePass = nil
		ctx = WithOptions(ctx, inner)
	}
	start := g.Commits()
	for _, m := range s.Members {
		if opts.BeforePass != nil && !opts.BeforePass(m.Name) {
			break
		}
		ctx := withSnapshot(withoutSnapshot(ctx), g) // for the check as well
		if err := runMember(ctx, m, g, rec); err != nil {
			return err
		}
		rec.Nodes(g.NumApplies())
		if opts.Check {
			err := g.Check()
			if err == nil {
				err = g.Validate()
			}
			if err != nil {
				e := &Error{Pass: m.Name, Err: err}
				reproduce(ctx, e)
				return e
			}
		}
	}
	rec.Changed(g.Commits() - start)
	return nil
}

// Rewrite adds the requirements and applies the sequence, see [Run].
func (s *Sequence) Rewrite(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	return Run(ctx, s, g, rec)
}
