package onnxpass

import (
	"context"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// optimizeBodies is the pass that runs all selected passes on the bodies of nodes. A body is a graph of its
// own and does not change, so a node whose body can be improved is replaced by one with a copy.
//
// Bodies are optimized in front of the graph that they are in, because what their results are says more
// about the results of the node, and behind it, for what has become known around them.
type optimizeBodies struct{ name string }

// maxBodies bounds the bodies that a run of the pass optimizes, those in bodies included. A run of all passes takes 0.4 ms
// for a body of two nodes (1,024 of them, on a busy machine, 30 November 2026), and the pass runs twice in each, so d loops,
// each in the one before, are 2^d runs.
const maxBodies = 1 << 10

// maxRecorded bounds the bodies with records of their own, each of which took 40 kB (2,048 loops, 30 November 2026).
const maxRecorded = 1 << 6

// bodiesLeft is the key of how many of them are left, which graphs in graphs have in common.
type bodiesLeft struct{}

// OptimizeBodies returns the pass of a name.
func OptimizeBodies(name string) rewrite.GraphRewriter { return optimizeBodies{name} }

// Describe describes the pass.
func (p optimizeBodies) Describe() rewrite.Description {
	return rewrite.Description{Name: p.name, Doc: "runs the selected passes on the graphs in loops"}
}

// AddRequirements needs nothing.
func (optimizeBodies) AddRequirements(*fgraph.FunctionGraph) error { return nil }

// Apply optimizes bodies.
func (p optimizeBodies) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	optimizer := optdb.Running(ctx)
	if optimizer == nil || !slices.ContainsFunc(slices.Collect(g.Applies()), hasBodies) {
		return nil
	}
	left, ok := ctx.Value(bodiesLeft{}).(*int)
	if !ok {
		left = new(maxBodies)
		ctx = context.WithValue(ctx, bodiesLeft{}, left)
	}
	return rewrite.Global{Name: p.name, Fn: func(ctx context.Context, h *rewrite.Handle) error {
		order, err := h.Graph().Toposort()
		if err != nil {
			return err
		}
		for _, a := range order {
			switch {
			case !hasBodies(a):
			case *left <= 0:
				h.Recorder().Count("nodes whose bodies stay as they are", 1, "")
			default:
				if err := improve(ctx, h, a, optimizer, left, rec); err != nil {
					return err
				}
			}
		}
		return nil
	}}.Apply(ctx, g, rec)
}

func hasBodies(a *fgraph.Apply) bool {
	op, ok := a.Op().(*ir.Op)
	return ok && len(op.Bodies) > 0
}

// improve replaces an apply by one with better bodies, if there are such.
func improve(ctx context.Context, h *rewrite.Handle, a *fgraph.Apply, optimizer *optdb.Optimizer, left *int, rec *profile.Recorder) error {
	op, source := a.Op().(*ir.Op), ir.SourceOf(h.Graph())
	inputs, captured := op.Split(a.Inputs())
	bodies, better := make([]*ir.Body, len(op.Bodies)), false
	*left -= len(op.Bodies)
	for i, b := range op.Bodies {
		g, _, err := b.Copy()
		if err != nil {
			return err
		}
		ir.SourceOf(g).GrowsWith(source)
		// Before the constants go in: a body that got nothing but those is a better one, too.
		before := g.Commits()
		now := slices.Clone(captured[:b.Captures()])
		captured = captured[b.Captures():]
		if err := inform(g, b.Params, now); err != nil {
			return err
		}
		var child *profile.Recorder
		if maxBodies-*left <= maxRecorded {
			child = rec.Begin(fmt.Sprintf("%s of %s", b.Name, source.Where(a)), optimizer.Class())
		}
		if err := optimizer.Rewrite(ctx, g, child); err != nil {
			return err
		}
		child.End()
		if now, err = ir.DropUnread(g, b.Params, now, reason); err != nil {
			return err
		}
		bodies[i], inputs = b, append(inputs, now...)
		if g.Commits() != before {
			bodies[i], better = b.With(g), true
			source.Note(ir.SourceOf(g).Changes()...)
		}
	}
	if !better {
		return nil
	}
	b, err := source.Operators.Apply(op.WithBodies(bodies...), inputs...)
	if err != nil {
		return err
	}
	// What is known of the results stays known: the body may say less of them than passes found.
	types, _ := refined(a, lists.Map(b.Outputs(), ir.TypeOf))
	return replaceAll(h, a, retyped(b, a, types))
}

// reason is that of what changes in a copy of a body besides what the passes do.
var reason = fgraph.Reason{Pass: "optimize_bodies"}

// inform makes constants of inputs of a body that are small constants around it, such as axes.
func inform(g *fgraph.FunctionGraph, params int, captured []*fgraph.Variable) error {
	for i, v := range captured {
		in := g.Inputs()[params+i]
		if x := ir.ValueOf(v); x == nil || !x.Small() || len(in.Clients()) == 0 {
			continue
		}
		if err := g.Replace(in, fgraph.NewConstant(v.Type(), v.Data(), v.Name()), reason); err != nil {
			return err
		}
	}
	return nil
}
