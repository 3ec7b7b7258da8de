package rewrite

import (
	"context"
	"fmt"
	"reflect"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A GraphRewriter changes a graph. It is an immutable description of the work that can be used
// for many graphs, and by several goroutines at the same time.
type GraphRewriter interface {
	// AddRequirements attaches the features that Apply needs.
	AddRequirements(*fgraph.FunctionGraph) error
	// Apply rewrites the graph. rec, which may be nil, is the record of this run; the caller
	// begins and ends it. When ctx is done, Apply soon returns an error that wraps the
	// cause, and the graph is as after the last validated replacement.
	Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error
}

// A Maker is a graph rewriter that makes its rules on first use, see [Later]. [Run] has it make them
// before anything else, so that the record of the run tells the time that this took.
type Maker interface {
	GraphRewriter
	// MakeRules makes the rules for graphs like g, unless that was done before. rec may be nil.
	MakeRules(g *fgraph.FunctionGraph, rec *profile.Recorder)
}

// A NodeRewriter proposes replacements around one apply. It does not change the graph.
type NodeRewriter interface {
	// Tracks lists the ops that the rewriter wants to see, nil for all.
	Tracks() []Track
	// Transform proposes a replacement for n.
	Transform(c *Context, n *fgraph.Apply) (Result, error)
}

// A Result is the proposal of a node rewriter. The zero value proposes nothing. At most one of
// Outputs and Pairs is set.
type Result struct {
	// Outputs has a replacement for each output of the apply. An entry may be nil if that
	// output has no client.
	Outputs []*fgraph.Variable
	// Pairs are replacements of any variables of the graph.
	Pairs []fgraph.Replacement
	// Remove lists variables that must be gone afterwards. Otherwise the replacements are
	// undone.
	Remove []*fgraph.Variable
}

// Replace proposes outputs, one for each output of the apply.
func Replace(outputs ...*fgraph.Variable) Result { return Result{Outputs: outputs} }

// Empty reports whether nothing is proposed.
func (r Result) Empty() bool { return len(r.Outputs) == 0 && len(r.Pairs) == 0 }

// A Track selects ops.
type Track struct {
	op  fgraph.Op
	typ reflect.Type
}

// TrackOp selects the ops equal to op.
func TrackOp(op fgraph.Op) Track { return Track{op: op, typ: reflect.TypeOf(op)} }

// TrackType selects the ops of Go type O.
func TrackType[O fgraph.Op]() Track { return Track{typ: reflect.TypeFor[O]()} }

// Op returns the selected op, or nil if the track selects a type.
func (t Track) Op() fgraph.Op { return t.op }

// Type returns the Go type of the selected ops.
func (t Track) Type() reflect.Type { return t.typ }

// String returns the name of the op or the type.
func (t Track) String() string {
	if t.op != nil {
		return t.op.String()
	}
	return fmt.Sprint(t.typ)
}

func (t Track) matches(op fgraph.Op) bool {
	return reflect.TypeOf(op) == t.typ && (t.op == nil || fgraph.OpsEqual(t.op, op))
}

// Wants reports whether a node rewriter wants to see an op.
func Wants(r NodeRewriter, op fgraph.Op) bool { return matches(r.Tracks(), op) }

// matches reports whether a rewriter with these tracks wants to see op.
func matches(tracks []Track, op fgraph.Op) bool {
	for _, t := range tracks {
		if t.matches(op) {
			return true
		}
	}
	return tracks == nil
}

// A Rule is a node rewriter made from a function.
type Rule struct {
	Name     string  // a verb phrase, or the established name
	Doc      string  // what the rule does, in one sentence
	On       []Track // nil: every op
	Inputs   []Need  // what Fn needs among the inputs; nil: nothing
	Depth    int     // how far Fn looks, see [Description]; 0: anywhere
	Destroys bool    // whether Fn proposes ops that destroy their inputs
	Reason   string  // why it is a function and not text; may be empty
	Fn       func(c *Context, n *fgraph.Apply) (Result, error)
}

// Tracks returns r.On.
func (r Rule) Tracks() []Track { return r.On }

// Needs returns r.Inputs.
func (r Rule) Needs(fgraph.Op) []Need { return r.Inputs }

// Transform calls r.Fn.
func (r Rule) Transform(c *Context, n *fgraph.Apply) (Result, error) { return r.Fn(c, n) }

// Describe returns the fields of the rule.
func (r Rule) Describe() Description {
	return Description{Name: r.Name, Doc: r.Doc, Depth: r.Depth, Destroys: r.Destroys, Reason: r.Reason}
}

// checkRules reports faults of node rewriters before they run: an empty but not nil list of
// tracks, or a track that selects nothing.
func checkRules(rules ...NodeRewriter) error {
	for _, r := range rules {
		if err := Check(r); err != nil {
			return err
		}
		tracks := r.Tracks()
		if tracks != nil && len(tracks) == 0 {
			return fmt.Errorf("%w: %s tracks nothing; nil tracks every op", ErrRule, Describe(r).Name)
		}
		for _, t := range tracks {
			if t.typ == nil {
				return fmt.Errorf("%w: %s has an empty track; use TrackOp or TrackType", ErrRule, Describe(r).Name)
			}
			if t.op != nil {
				if err := fgraph.CheckOp(t.op); err != nil {
					return fmt.Errorf("%w: %s: %w", ErrRule, Describe(r).Name, err)
				}
			}
		}
	}
	return nil
}

// Check returns an error that wraps [ErrRule] if a rewriter, or one in it, is nil, a nil pointer or made from a
// function that is nil. It makes no rewriter of [Later].
func Check(rewriter any) error {
	if v := reflect.ValueOf(rewriter); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("%w: nil in place of a rewriter", ErrRule)
	}
	var rules []NodeRewriter
	var members []Member
	none := false
	switch r := rewriter.(type) {
	case Rule:
		none = r.Fn == nil
	case Global:
		none = r.Fn == nil
	case *fromFunc:
		none = r.apply == nil
	case *later:
		none = r.get == nil
	case described:
		rules = append(rules, r.NodeRewriter)
	case *Group:
		rules = r.Rules
	case *Walk:
		rules = r.Rules
	case *Equilibrium:
		rules, members = r.Rules, r.members()
	case *Sequence:
		members = r.Members
	}
	if none {
		return fmt.Errorf("%w: %s has no function", ErrRule, Outline(rewriter).Name)
	}
	for _, r := range rules {
		if err := Check(r); err != nil {
			return err
		}
	}
	for _, m := range members {
		if err := Check(m.Rewriter); err != nil {
			return err
		}
	}
	return nil
}
