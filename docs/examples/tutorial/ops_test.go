package tutorial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
)

// Cube is x³, element by element, of a vector of float64.
type Cube struct{ Inplace bool }

// String returns the name that graphs print.
func (op Cube) String() string {
	if op.Inplace {
		return "Cube{inplace}"
	}
	return "Cube"
}

// Infer returns the type of the output.
func (op Cube) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 || in[0].Type() != tensor.VectorType(array.Float64) {
		return nil, errors.New("Cube takes a vector of float64")
	}
	return []fgraph.Type{in[0].Type()}, nil
}

// Compile returns the code that computes the output.
func (op Cube) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if op.Inplace {
			*out[0] = *in[0]
		} else if err := ws.New(out[0], array.Float64, in[0].Dim(0)); err != nil {
			return err
		} else {
			array.CopyTo(out[0], in[0])
		}
		y := array.Slice[float64](out[0])
		for i, x := range y {
			y[i] = x * x * x
		}
		return nil
	}, nil
}

// Grad returns the gradient with respect to the input: 3x² times that of the
// output.
func (op Cube) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x := a.Inputs()[0]
	return []*fgraph.Variable{tensor.Mul(out[0], tensor.Float(3), x, x)}
}

// DestroyMap says that the in-place op puts its output where its input was.
func (op Cube) DestroyMap() []fgraph.Alias {
	if !op.Inplace {
		return nil
	}
	return []fgraph.Alias{{Output: 0, Input: 0}}
}

func Example_op() {
	x := tensor.Vector("x")
	y := tensor.MustApply(Cube{}, tensor.Add(x, tensor.Float(1)))
	slope, err := tensor.Grad(tensor.Sum(y), x)
	check(err)
	optimizer, err := passes.Default().Build(optdb.Include("fast_run").Excluding("inplace", "fusion"))
	check(err)
	f, err := exec.NewFunction(context.Background(), []*fgraph.Variable{x}, []*fgraph.Variable{y, slope[0]}, exec.FunctionOptions{Optimizer: optimizer})
	check(err)
	fmt.Println(f)
	values, err := f.Call(context.Background(), array.Of([]float64{0, 1, 2}, 3))
	check(err)
	fmt.Println(values)
	// Output:
	// [Cube(*1 -> add(1.0, x)), mul(3.0, *1, *1)]
	// [[1.0, 8.0, 27.0] [3.0, 12.0, 27.0]]
}

// cubeInplace lets a cube overwrite its input.
func cubeInplace() rewrite.Rule {
	return rewrite.Rule{
		Name: "cube_inplace", Doc: "a cube overwrites its input: Cube → Cube{inplace}",
		On: []rewrite.Track{rewrite.TrackOp(Cube{})}, Depth: 1,
		Fn: func(_ *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(tensor.MustApply(Cube{Inplace: true}, a.Inputs()...)), nil
		},
	}
}

func Example_inplace() {
	pass := rewrite.In2Out("cube_inplace", cubeInplace())
	db := passes.Default()
	check(db.Register("cube_inplace", pass, 76, "fast_run", "inplace"))
	optimizer, err := db.Build(optdb.Include("fast_run"))
	check(err)

	x := tensor.Vector("x")
	twice := tensor.MustApply(Cube{}, tensor.MustApply(Cube{}, x))
	shared := tensor.MustApply(Cube{}, x)
	for _, outputs := range [][]*fgraph.Variable{{twice}, {tensor.Add(shared, tensor.MustApply(Cube{}, shared))}} {
		e, err := tensor.NewGraph([]*fgraph.Variable{x}, outputs)
		check(err)
		check(optimizer.Rewrite(context.Background(), e, nil))
		fmt.Println(e)
	}

	early := passes.Default()
	check(early.Register("cube_inplace", pass, 40, "fast_run"))
	optimizer, err = early.Build(optdb.Include("fast_run"))
	check(err)
	e, err := tensor.NewGraph([]*fgraph.Variable{x}, []*fgraph.Variable{twice})
	check(err)
	fmt.Println(optimizer.Rewrite(context.Background(), e, nil))
	// Output:
	// [Cube{inplace}(Cube(x))]
	// [add{inplace=0}(*1 -> Cube(x), Cube(*1))]
	// cube_inplace: rule cube_inplace: at Cube(x): cube_inplace: no op may overwrite an input before a DestroyHandler is attached, which a database does right before position 50: Cube{inplace} overwrites its input 0
}

// A census counts the applies of a graph by op, and objects to a second
// negation.
type census map[string]int

// OnAttach counts what the graph has already.
func (c *census) OnAttach(g *fgraph.FunctionGraph) error {
	*c = census{}
	fgraph.Bookkeep(g, c)
	return nil
}

// OnImport counts an apply that joins the graph.
func (c *census) OnImport(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	(*c)[a.Op().String()]++
}

// OnPrune discounts an apply that leaves the graph.
func (c *census) OnPrune(_ *fgraph.FunctionGraph, a *fgraph.Apply, _ fgraph.Reason) {
	(*c)[a.Op().String()]--
}

// Validate objects to a second negation.
func (c *census) Validate(*fgraph.FunctionGraph) error {
	if n := (*c)["neg"]; n > 1 {
		return fmt.Errorf("%w: %d negations", fgraph.ErrInconsistent, n)
	}
	return nil
}

func Example_feature() {
	subToAdd := pattern.Must(tensorpass.Vocabulary(), "(sub x y)", "(add x (neg y))", pattern.Named("sub_to_add"))
	e := graph("(x - y)*(y - z)")
	c := new(census)
	check(e.Attach(c))
	run(rewrite.In2Out("sub_to_add", subToAdd), e)
	fmt.Println(e)
	for _, op := range slices.Sorted(maps.Keys(*c)) {
		fmt.Println(op, (*c)[op])
	}
	// Output:
	// [mul(add(x, neg(y)), sub(y, z))]
	// add 1
	// mul 1
	// neg 1
	// sub 1
}

func TestValues(t *testing.T) {
	square := pattern.Must(tensorpass.Vocabulary(), "(mul x x)", "(sqr x)", pattern.Named("mul_to_sqr"))
	eval := func(g *fgraph.FunctionGraph) ([]any, error) {
		f, err := exec.CompileGraph(g)
		if err != nil {
			return nil, err
		}
		args, err := f.RandomArguments(t.Context(), 1)
		if err != nil {
			return nil, err
		}
		values, err := f.Call(t.Context(), args...)
		if err != nil {
			return nil, err
		}
		return []any{values[0].Float(0)}, nil
	}
	rewritetest.KeepsValues(t, rewrite.In2Out("mul_to_sqr", square), graph("exp(x)*exp(x) + y*y"), eval, cmpopts.EquateApprox(1e-15, 0))
}

func TestNetwork(t *testing.T) {
	nn, _, err := pipeline.LoadFrom(strings.NewReader(`
input-node name=input dim=4
component name=affine type=AffineComponent input-dim=4 output-dim=8
component name=relu type=RectifiedLinearComponent dim=8
component-node name=affine component=affine input=input
component-node name=relu1 component=relu input=affine
component-node name=relu2 component=relu input=relu1
output-node name=output input=relu2`), "config", 1)
	check(err)
	req, err := pipeline.NewRequest(nn, pipeline.Chunk{Frames: 10})
	check(err)
	in, err := pipeline.RandomValues(nn, req, 1)
	check(err)

	reluOfRelu := rewrite.Rule{
		Name: "relu_of_relu", Doc: "relu(relu(x)) → relu(x)", On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()},
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			outer := a.Op().(lower.Propagate)
			inner, ok := lower.Propagate{}, false
			if x := a.Inputs()[0]; x.Owner() != nil {
				inner, ok = x.Owner().Op().(lower.Propagate)
			}
			if !ok || outer.C.Type() != "RectifiedLinearComponent" || inner.C.Type() != outer.C.Type() || outer.StoreStats {
				return c.Miss("it is not a ReLU of a ReLU"), nil
			}
			return rewrite.Replace(a.Inputs()[0]), nil
		},
	}
	db := passes.Default()
	check(db.Register("relu_of_relu", rewrite.In2Out("relu_of_relu", reluOfRelu), 1.2, "fast_run"))
	opt, err := db.Build(optdb.Include("relu_of_relu").Including("plan_storage"))
	check(err)
	plan, err := pipeline.Build(t.Context(), nn, req, pipeline.Options{Optimizer: opt, Record: true})
	check(err)
	if n := plan.Profile.Find("relu_of_relu").Applied(); n != 1 {
		t.Errorf("it fires %d times, want once", n)
	}
	want, err := pipeline.Run(t.Context(), plan.Compiled, nn, req, in)
	check(err)
	got, err := pipeline.Run(t.Context(), plan.Optimized, nn, req, in)
	check(err)
	for i := range want.Outputs[0].Matrix.Rows {
		if a, b := kernel.Row(want.Outputs[0].Matrix, i), kernel.Row(got.Outputs[0].Matrix, i); !slices.Equal(a, b) {
			t.Errorf("row %d is %v, want %v", i, b, a)
		}
	}
}

func Example_failure() {
	broken := rewrite.Rule{
		Name: "broken", Doc: "x - y → x, with a mistake", On: []rewrite.Track{rewrite.TrackOp(tensor.OpFor(array.Sub))},
		Fn: func(_ *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(a.Inputs()[2]), nil
		},
	}
	ctx := rewrite.WithOptions(context.Background(), rewrite.Options{Reproduce: func(f rewrite.Failure) {
		fmt.Printf("pass %s, rule %s, at %s\n%v\n%v\n", f.Pass, f.Rule, f.Node, f.Graph.Inputs(), f.Graph)
	}})
	err := rewrite.Run(ctx, rewrite.In2Out("walk", broken), graph("(x - y)*z"), nil)
	var failed *rewrite.PanicError
	fmt.Println(errors.As(err, &failed), failed.Value)
	// Output:
	// pass walk, rule broken, at sub(x, y)
	// [x y z]
	// [mul(sub(x, y), z)]
	// true runtime error: index out of range [2] with length 2
}

func Example_bisect() {
	rules := []rewrite.NodeRewriter{
		pattern.Must(tensorpass.Vocabulary(), "(sub x y)", "(add x (neg y))", pattern.Named("sub_to_add")),
		pattern.Must(tensorpass.Vocabulary(), "(neg (neg x))", "x", pattern.Named("neg_of_neg")),
		pattern.Must(tensorpass.Vocabulary(), "(abs (mul x y))", "(mul x y)", pattern.Named("wrong")),
	}
	s := expr.NewScope()
	output := s.MustParse("abs(x*y) - (-z)")
	value := func(ctx context.Context, rules ...rewrite.NodeRewriter) float64 {
		e, err := tensor.NewGraph(s.Inputs(), []*fgraph.Variable{output})
		check(err)
		check(rewrite.Run(ctx, rewrite.In2Out("walk", rules...), e, nil))
		f, err := exec.CompileGraph(e)
		check(err)
		values, err := f.Call(ctx, array.Of([]float64{-1}), array.Of([]float64{2}), array.Of([]float64{3}))
		check(err)
		return values[0].Float(0)
	}
	want := value(context.Background())
	culprit, found := rewrite.Bisect(context.Background(), func(ctx context.Context) bool { return value(ctx, rules...) == want })
	fmt.Println(found, culprit)
	// Output:
	// true walk/wrong: abs(mul(x, y)) -> mul(x, y)
}

func Example_reduce() {
	db := passes.Default()
	canonicalize, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
	check(err)
	wrong := pattern.Must(tensorpass.Vocabulary(), "(tanh x)", "(sin x)", pattern.Named("wrong"))
	check(canonicalize.Register("wrong", wrong, "fast_run"))

	c := &repro.Case{World: tensors.World(expr.Default().Dialect()), Build: db.Build, Graph: graph("exp(x*y) + tanh(z*2)/y"), Query: optdb.Include("fast_run")}
	c.Failure, err = repro.Check(context.Background(), c)
	check(err)
	small, err := repro.Reduce(context.Background(), c, repro.ReduceOptions{})
	check(err)
	fmt.Println(c.Failure, "becomes", small.Query, small.Graph)
	// Output:
	// values in canonicalize/wrong becomes +wrong [tanh(v6)]
}
