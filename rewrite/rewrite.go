package rewrite

import (
	"context"
	"fmt"
	"reflect"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A GraphRewriter changes a graph. It is a description of the work: a value that
// may be used for many graphs, and by several goroutines at a time.
type GraphRewriter interface {
	// AddRequirements attaches the features that Apply needs.
	AddRequirements(*fgraph.FunctionGraph) error
	// Apply does the work. rec, which may be nil, is the record of this very
	// run: the caller begins and ends it. When ctx is done Apply returns soon,
	// with an error that wraps the cause; the graph is then at the last
	// replacement that was validated.
	Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error
}

// A NodeRewriter proposes replacements around one apply. It does not change the
// graph.
type NodeRewriter interface {
	// Tracks lists the ops that the rewriter wants to see, nil for all.
	Tracks() []Track
	// Transform proposes what to put in the place of n.
	Transform(c *Context, n *fgraph.Apply) (Result, error)
}

// A Result is what a node rewriter proposes. The zero value proposes nothing.
// Either Outputs or Pairs is set.
type Result struct {
	// Outputs has a replacement for each output of the apply. An entry may be
	// nil if that output has no client.
	Outputs []*fgraph.Variable
	// Pairs are replacements of any variables of the graph.
	Pairs []fgraph.Replacement
	// Remove lists variables that have to be gone afterwards; otherwise the
	// replacements are undone.
	Remove []*fgraph.Variable
}

// Replace proposes outputs, one for each output of the apply.
func Replace(outputs ...*fgraph.Variable) Result { return Result{Outputs: outputs} }

// Empty reports whether nothing is proposed.
func (r Result) Empty() bool { return len(r.Outputs) == 0 && len(r.Pairs) == 0 }

// Optional interfaces of rewriters.
type (
	// Named gives the name under which a rewriter appears where nobody else
	// names it.
	Named interface{ RewriterName() string }
	// Documented says in a sentence what a rewriter does.
	Documented interface{ RewriterDoc() string }
	// Inplacer tells that a rewriter inserts ops which destroy their inputs.
	Inplacer interface{ Inplace() bool }
	// Classed gives the class of a graph rewriter in a profile.
	Classed interface{ Class() string }
	// Reacher bounds how far from the apply it is shown a node rewriter looks:
	// 1 for its inputs, 2 for what these are computed from, and so on. A
	// driver need not show an apply again when something further away
	// changed. What does not say so may look anywhere.
	Reacher interface{ Reach() int }
)

// A Track selects ops.
type Track struct {
	op  fgraph.Op
	typ reflect.Type
}

// TrackOp selects the ops equal to op.
func TrackOp(op fgraph.Op) Track { return Track{op: op, typ: reflect.TypeOf(op)} }

// TrackType selects the ops of the Go type O.
func TrackType[O fgraph.Op]() Track { return Track{typ: reflect.TypeFor[O]()} }

// TrackTypeOf selects the ops of the Go type of op.
func TrackTypeOf(op fgraph.Op) Track { return Track{typ: reflect.TypeOf(op)} }

// Op returns the op that is selected, nil if a whole type is.
func (t Track) Op() fgraph.Op { return t.op }

// Matches reports whether op is selected.
func (t Track) Matches(op fgraph.Op) bool {
	return reflect.TypeOf(op) == t.typ && (t.op == nil || fgraph.OpsEqual(t.op, op))
}

func (t Track) String() string {
	if t.op != nil {
		return t.op.String()
	}
	return fmt.Sprint(t.typ)
}

// A Rule is a node rewriter made of a function.
type Rule struct {
	Name  string  // a verb phrase, or the name that the field knows it under
	Doc   string  // what it does, in a sentence
	On    []Track // nil: every op
	Depth int     // how far Fn looks, see [Reacher]; 0: anywhere
	// Destroys tells that Fn proposes ops that destroy their inputs. What runs
	// the rule sees to it that a [fgraph.DestroyHandler] is attached.
	Destroys bool
	Fn       func(c *Context, n *fgraph.Apply) (Result, error)
}

// Tracks returns r.On.
func (r Rule) Tracks() []Track { return r.On }

// TransformFunc is [NodeRewriter.Transform] as a function.
type TransformFunc = func(c *Context, n *fgraph.Apply) (Result, error)

// TransformFunc returns r.Fn.
func (r Rule) TransformFunc() TransformFunc { return r.Fn }

// FuncOf returns what a rewriter does as a function: that of a rule, or of anything that has a method TransformFunc, is called
// without a detour. Drivers ask a rule about very many applies.
func FuncOf(r NodeRewriter) TransformFunc {
	if f, ok := r.(interface{ TransformFunc() TransformFunc }); ok {
		return f.TransformFunc()
	}
	return r.Transform
}

// Transform calls r.Fn.
func (r Rule) Transform(c *Context, n *fgraph.Apply) (Result, error) { return r.Fn(c, n) }

// RewriterName returns r.Name.
func (r Rule) RewriterName() string { return r.Name }

// RewriterDoc returns r.Doc.
func (r Rule) RewriterDoc() string { return r.Doc }

// Inplace returns r.Destroys.
func (r Rule) Inplace() bool { return r.Destroys }

// Reach returns r.Depth.
func (r Rule) Reach() int { return r.Depth }

// NameOf returns the name that a rewriter gives itself, or else its Go type.
func NameOf(rewriter any) string {
	if n, ok := rewriter.(Named); ok && n.RewriterName() != "" {
		return n.RewriterName()
	}
	t := reflect.TypeOf(rewriter)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "nil"
	}
	return t.Name()
}

// ClassOf returns the class that a graph rewriter has in a profile.
func ClassOf(r GraphRewriter) string {
	if c, ok := r.(Classed); ok {
		return c.Class()
	}
	return profile.ClassFromFunction
}

// ReachOf returns how far a node rewriter looks, 0 if it does not say.
func ReachOf(r NodeRewriter) int {
	if d, ok := r.(Reacher); ok {
		return max(d.Reach(), 0)
	}
	return 0
}

// CheckRules reports what is wrong with node rewriters before they run: an empty
// but not nil list of tracks, or a track that selects nothing.
func CheckRules(rules ...NodeRewriter) error {
	for _, r := range rules {
		if r == nil {
			return fmt.Errorf("%w: nil node rewriter", ErrRule)
		}
		if rule, ok := r.(Rule); ok && rule.Fn == nil {
			return fmt.Errorf("%w: rule %s has no function", ErrRule, rule.Name)
		}
		tracks := r.Tracks()
		if tracks != nil && len(tracks) == 0 {
			return fmt.Errorf("%w: %s tracks nothing; nil tracks every op", ErrRule, NameOf(r))
		}
		for _, t := range tracks {
			if t.typ == nil {
				return fmt.Errorf("%w: %s has an empty track; use TrackOp or TrackType", ErrRule, NameOf(r))
			}
			if t.op != nil {
				if err := fgraph.CheckOp(t.op); err != nil {
					return fmt.Errorf("%w: %s: %w", ErrRule, NameOf(r), err)
				}
			}
		}
	}
	return nil
}
