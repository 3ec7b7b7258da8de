package tensorpass

import (
	"context"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
)

// ShapeOpt attaches the feature that infers shapes.
func ShapeOpt() rewrite.GraphRewriter {
	return rewrite.FromFunc("ShapeOpt", "attaches what infers shapes", func(g *fgraph.FunctionGraph) error { return g.Attach(tensor.NewShapes()) },
		func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil })
}

// shapeToShapeI is local_shape_to_shape_i.
func shapeToShapeI() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_shape_to_shape_i", Doc: "a shape is a vector of sizes, computed from the shapes of inputs: dot(X, Y).shape → MakeVector(Shape_i{0}(X), Shape_i{1}(Y))",
		On: []rewrite.Track{rewrite.TrackOp(tensor.ShapeOp{})},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			return replace(c, n, tensor.MakeVector(tensor.ShapesOf(c.Graph()).Shape(n.Inputs()[0])...))
		},
	}
}

// trackShapeI is local_track_shape_i.
func trackShapeI() rewrite.Rule {
	return rewrite.Rule{
		Name: "local_track_shape_i", Doc: "a size of something computed is computed from the sizes of inputs: Shape_i{0}(exp(x)) → Shape_i{0}(x)",
		On: []rewrite.Track{rewrite.TrackType[tensor.ShapeIOp]()},
		Fn: func(c *rewrite.Context, n *apply) (result, error) {
			x, op := n.Inputs()[0], n.Op().(tensor.ShapeIOp)
			if x.Owner() == nil && typ(x).Dim(int(op.D)) == tensor.Unknown && !x.IsConstant() {
				return c.Miss("%v is an input", x), nil
			}
			size := tensor.ShapesOf(c.Graph()).Dim(x, int(op.D))
			if a, o, ok := owner[tensor.ShapeIOp](size); ok && o == op && a.Inputs()[0] == x {
				return c.Miss("nothing else is known of the size"), nil
			}
			return replace(c, n, size)
		},
	}
}
