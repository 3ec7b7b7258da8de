package tutorial

import (
	"context"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/rewrite/rewritetest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

func Example_graph() {
	x, y, z := tensor.Scalar("x"), tensor.Scalar("y"), tensor.Scalar("z")
	a := tensor.Add(z, tensor.Mul(tensor.TrueDiv(tensor.Mul(y, x), y), tensor.TrueDiv(z, x)))
	e, err := tensor.NewGraph([]*fgraph.Variable{x, y, z}, []*fgraph.Variable{a})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e)
	fmt.Println(e.NumApplies(), "applies, computed from", e.Inputs())
	// Output:
	// [add(z, mul(true_div(mul(y, x), y), true_div(z, x)))]
	// 5 applies, computed from [x y z]
}

// graph returns the graph of an expression that is written as text.
func graph(text string) *fgraph.FunctionGraph {
	s := expr.NewScope()
	outputs := []*fgraph.Variable{s.MustParse(text)}
	e, err := tensor.NewGraph(s.Inputs(), outputs)
	check(err)
	return e
}

// run applies a pass to a graph.
func run(r rewrite.GraphRewriter, e *fgraph.FunctionGraph) {
	check(rewrite.Run(context.Background(), r, e, nil))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example_global() {
	mul, trueDiv := tensor.OpFor(array.Mul), tensor.OpFor(array.TrueDiv)
	simplify := rewrite.Global{Name: "simplify", Doc: "x*y/y → x", Fn: func(_ context.Context, h *rewrite.Handle) error {
		for _, n := range slices.Collect(h.Graph().Ordered()) {
			if !h.Graph().Contains(n) || n.Op() != trueDiv || tensor.OpOf(n.Inputs()[0]) != mul {
				continue
			}
			factors, y := n.Inputs()[0].Owner().Inputs(), n.Inputs()[1]
			if i := slices.Index(factors, y); i >= 0 && len(factors) == 2 {
				if _, err := h.Replace("", n, fgraph.Replacement{Old: n.Out(), New: factors[1-i]}); err != nil {
					return err
				}
			}
		}
		return nil
	}}

	check(passes.Default().Register("simplify", simplify, 0.5, "fast_run"))
	e := graph("z + (y*x/y)*(z/x)")
	fmt.Println(e)
	run(simplify, e)
	fmt.Println(e)

	e = graph("(y + z)*x/(y + z)")
	run(simplify, e)
	fmt.Println(e)
	run(new(rewrite.Merge), e)
	fmt.Println(e)
	run(simplify, e)
	fmt.Println(e)
	// Output:
	// [add(z, mul(true_div(mul(y, x), y), true_div(z, x)))]
	// [add(z, mul(x, true_div(z, x)))]
	// [true_div(mul(add(y, z), x), add(y, z))]
	// [true_div(mul(*1 -> add(y, z), x), *1)]
	// [x]
}

func Example_local() {
	mul, trueDiv := tensor.OpFor(array.Mul), tensor.OpFor(array.TrueDiv)
	localSimplify := rewrite.Rule{
		Name: "local_simplify", Doc: "a product divided by one of its factors is the other one: x*y/y → x",
		On: []rewrite.Track{rewrite.TrackOp(trueDiv)}, Depth: 2,
		Fn: func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
			product, y := n.Inputs()[0].Owner(), n.Inputs()[1]
			if product == nil || product.Op() != mul || len(product.Inputs()) != 2 {
				return c.Miss("%v is no product of two", n.Inputs()[0]), nil
			}
			if i := slices.Index(product.Inputs(), y); i >= 0 {
				return rewrite.Replace(product.Inputs()[1-i]), nil
			}
			return c.Miss("%v is no factor of %v", y, n.Inputs()[0]), nil
		},
	}
	simplify := rewrite.In2Out("simplify", localSimplify)

	e := graph("z + (y*x/y)*(z/x)")
	run(simplify, e)
	fmt.Println(e)

	e = graph("(y + z)*x/(y + z)")
	run(rewrite.NewSequence("both", new(rewrite.Merge), simplify), e)
	fmt.Println(e)
	// Output:
	// [add(z, mul(x, true_div(z, x)))]
	// [x]
}

func Example_patternSub() {
	localSimplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Named("local_simplify"))
	simplify := rewrite.In2Out("simplify", localSimplify)

	e := graph("z + (y*x/y)*(z/x)")
	run(simplify, e)
	fmt.Println(e)

	e = graph("(y + z)*x/(y + z)")
	run(rewrite.NewSequence("both", new(rewrite.Merge), simplify), e)
	fmt.Println(e)
	// Output:
	// [add(z, mul(x, true_div(z, x)))]
	// [x]
}

func Example_patterns() {
	isPositive := func(args pattern.Args) bool {
		c := tensor.ConstantOf(args.Vars[0])
		return c != nil && c.Len() == 1 && c.Float(0) > 0
	}
	for _, c := range []struct{ rule, expression string }{
		{"(mul x 1) => x", "1*x + y"},
		{"(add x x) => (mul 2 x)", "y + (x + x)"},
		{"(sqrt (mul a (sqr x))) && isPositive(a) => (mul (sqrt a) (abs x))", "sqrt(sqr(x - y)*4)"},
		{"(or (neg (sub x y)) (sub 0 (sub x y))) => (sub y x)", "-(x - y)*(0 - (y - z))"},
	} {
		rule, err := pattern.Compile(tensorpass.Vocabulary(), c.rule, pattern.WithGuard("isPositive", isPositive))
		check(err)
		e := graph(c.expression)
		run(rewrite.In2Out("walk", rule), e)
		fmt.Println(e)
	}
	_, err := pattern.Compile(tensorpass.Vocabulary(), "(true_dvi (mul x y) y) => z")
	fmt.Println(err)
	// Output:
	// [add(x, y)]
	// [add(y, mul(2.0, x))]
	// [mul(sqrt(4.0), abs(sub(x, y)))]
	// [mul(sub(y, x), sub(z, y))]
	// 2 faults:
	// 	pattern "(true_dvi (mul x y) y) => z": column 1: unknown op: true_dvi; did you mean true_div?
	// 	pattern "(true_dvi (mul x y) y) => z": unbound name: z in the replacement
}

func Example_shortcuts() {
	add, mul, identity := tensor.OpFor(array.Add), tensor.OpFor(array.Mul), tensor.OpFor(array.Identity)
	addToMul := pattern.OpSub(add, mul) // it is correct, but it computes something else
	removeIdentity := pattern.OpRemove(identity)

	e := graph("identity(x + y) + identity(z)")
	run(rewrite.In2Out("shortcuts", addToMul, removeIdentity), e)
	fmt.Println(e)
	// Output:
	// [mul(mul(x, y), z)]
}

func Example_register() {
	localSimplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Named("local_simplify"))

	db := passes.Default()
	check(db.Register("simplify", rewrite.In2Out("simplify", localSimplify), 0.5, "fast_run"))
	optimizer, err := db.Build(optdb.Include("fast_run").Excluding("inplace"))
	check(err)

	e := graph("(y + z)*x/(y + z)")
	check(optimizer.Rewrite(context.Background(), e, nil))
	fmt.Println(e)
	fmt.Println(optimizer.Explain("simplify"))
	fmt.Println(optimizer.Explain("inplace_elemwise_optimizer"))
	// Output:
	// [x]
	// simplify: selected by +fast_run
	// inplace_elemwise_optimizer: not selected: excluded by -inplace
}

func Example_registerLocal() {
	localSimplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Named("local_simplify"))

	db := passes.Default()
	canonicalize, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
	check(err)
	check(canonicalize.Register("local_simplify", localSimplify, "fast_run", "fast_compile"))
	optimizer, err := db.Build(optdb.Include("fast_compile"))
	check(err)
	fmt.Println(optimizer.Explain("local_simplify"))
	// Output:
	// canonicalize/local_simplify: selected by +fast_compile
}

func Example_ownDatabase() {
	localSimplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Named("local_simplify"))
	removeIdentity := pattern.OpRemove(tensor.OpFor(array.Identity), pattern.Named("remove_identity"))

	canonicalize := optdb.NewEquilibriumDB("canonicalize")
	check(canonicalize.Register("local_simplify", localSimplify, "fast_run"))
	check(canonicalize.Register("remove_identity", removeIdentity, "fast_run", "useless"))
	db := optdb.NewSequenceDB("mine")
	check(db.Add(
		optdb.Entry{Name: "merge1", Rewriter: new(rewrite.Merge), Position: 0, Tags: []string{"fast_run"}, Doc: "unites what is the same"},
		optdb.Entry{Name: "canonicalize", DB: canonicalize, Position: 1, Tags: []string{"fast_run"}, Doc: "simplifies"},
	))

	for _, query := range []string{"+fast_run", "+fast_run -useless", "+fast_run <1", "+remove_identity", "+useless", "+fast_run -uselss"} {
		q, err := optdb.ParseQuery(query)
		check(err)
		if optimizer, err := db.Build(q); err != nil {
			fmt.Println(err)
		} else {
			fmt.Print(optimizer)
		}
	}
	// Output:
	// mine SeqOptimizer +fast_run
	//     0 merge1 MergeOptimizer
	//     1 canonicalize EquilibriumOptimizer
	//         local_simplify rule
	//         remove_identity rule
	// mine SeqOptimizer +fast_run -useless
	//     0 merge1 MergeOptimizer
	//     1 canonicalize EquilibriumOptimizer
	//         local_simplify rule
	// mine SeqOptimizer +fast_run <1
	//     0 merge1 MergeOptimizer
	// mine SeqOptimizer +remove_identity
	//     1 canonicalize EquilibriumOptimizer
	//         remove_identity rule
	// mine SeqOptimizer +useless
	// optdb: query +fast_run -uselss: unknown tag -uselss, did you mean useless?
}

func Example_replace() {
	db := passes.Default()
	fmt.Println(db.Remove("local_mul_canonizer"))

	canonicalize, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
	check(err)
	localSimplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Doc("a product divided by one of its factors is the other one"))
	check(canonicalize.Replace(optdb.Entry{Name: "local_mul_canonizer", Rewriter: localSimplify}))
	check(canonicalize.Remove("local_fill_sink"))
	check(db.Remove("merge1"))

	optimizer, err := db.Build(optdb.Include("fast_run"))
	check(err)
	fmt.Println(optimizer.Explain("local_mul_canonizer"))
	for _, name := range []string{"local_mul_canonizer", "local_fill_sink", "merge1", "merge2"} {
		fmt.Println(name, optimizer.Selected(name))
	}
	// Output:
	// optdb: default/local_mul_canonizer: unknown entry: nothing to remove here: it is in canonicalize, see DatabaseOf
	// canonicalize/local_mul_canonizer: selected by +fast_run
	// local_mul_canonizer true
	// local_fill_sink false
	// merge1 false
	// merge2 true
}

func Example_profile() {
	localSimplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Named("local_simplify"))
	simplify := &rewrite.Equilibrium{Name: "simplify", Rules: []rewrite.NodeRewriter{localSimplify}}

	rec := profile.New("simplify", rewrite.Describe(simplify).Class)
	check(rewrite.Run(context.Background(), simplify, graph("z + (y*x/y)*(z/x)"), rec))
	rec.End()

	var report strings.Builder
	check(rec.Record().WriteText(&report))
	times := regexp.MustCompile(`\d\.\d+(e-\d+)?`)
	fmt.Print(times.ReplaceAllString(report.String(), "…"))
	// Output:
	// Optimizer Profile
	// -----------------
	//  EquilibriumOptimizer  simplify
	//    time …s for 2 passes
	//    nb nodes (start, end,  max) 5 3 5
	//    time io_toposort …s
	//    time in local optimizers …s
	//    time in global optimizers …s
	//     0 - …s 1 (…s in global opts, …s io_toposort) - 5 nodes - ('local_simplify', 1)
	//     1 - …s 0 (…s in global opts, …s io_toposort) - 3 nodes -
	//    times - times applied - nb node created - name:
	//    …s - 1 - 0 - local_simplify
}

func Example_trace() {
	localSimplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Named("local_simplify"))
	early, now := rewrite.In2Out("too_early", localSimplify), rewrite.In2Out("now", localSimplify)
	sequence := rewrite.NewSequence("sequence", early, new(rewrite.Merge), now)

	ctx := rewrite.WithOptions(context.Background(), rewrite.Options{Trace: rewrite.TraceTo(os.Stdout)})
	check(sequence.Rewrite(ctx, graph("(y + z)*x/(y + z)"), nil))

	only := rewrite.Options{Trace: rewrite.TraceTo(os.Stdout), TraceOnly: []string{"now"}, Allow: rewrite.Budget(1)}
	e := graph("(y + z)*x/(y + z)")
	check(sequence.Rewrite(rewrite.WithOptions(context.Background(), only), e, nil))
	fmt.Println("with a budget of one rewrite:", e)
	// Output:
	// rewriting: MergeOptimizer/merge: add(y, z) -> add(y, z)
	// rewriting: now/local_simplify: true_div(mul(*1 -> add(y, z), x), *1) -> x
	// with a budget of one rewrite: [true_div(mul(*1 -> add(y, z), x), *1)]
}

func Example_whyNot() {
	localSimplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Named("local_simplify"))
	for _, text := range []string{"(y + z)*x/(y + z)", "x*y/z", "(x + y)/y", "x*y", "x*y/y"} {
		e := graph(text)
		fmt.Println(rewrite.WhyNot(context.Background(), localSimplify, e, e.Outputs()[0].Owner()))
	}
	// Output:
	// add(y, z) is not what y matches elsewhere
	// z is not what y matches elsewhere
	// add(x, y) is not (mul x y)
	// it does not track mul, but true_div
	// it fires: true_div(mul(x, y), y) -> x
}

func Example_rules() {
	rules, err := pattern.ParseRules("my.rules", `
# A multiple can be taken out of a sum.
sum_of_multiple: canonicalize; fast_run
    (sum{a} (mul c x)) && finite(c) && scalar(c) && wide(x) => (mul {c} (sum{a} x))

# The exponents of a power of a power are multiplied.
pow_of_pow: canonicalize specialize; fast_run unsafe_nan
    (sqr (pow x a))    && number(a)                       => (pow x {2*a})
    (pow (pow x a) b)  && number(a, b) && nonnegative(x)  => (pow x {a*b})
`)
	check(err)
	db := passes.Default()
	check(optdb.AddRules(db, tensorpass.Vocabulary(), rules))
	for _, query := range []string{"+sum_of_multiple", "+pow_of_pow", "+sum_of_multiple +pow_of_pow", "+fast_run -fusion -inplace"} {
		q, err := optdb.ParseQuery(query)
		check(err)
		optimizer, err := db.Build(q)
		check(err)
		s := expr.NewScope()
		check(s.Declare("X: matrix"))
		outputs := []*fgraph.Variable{s.MustParse("sum(sqr(X**1.5)*2, axis=0)")}
		e, err := tensor.NewGraph(s.Inputs(), outputs)
		check(err)
		check(optimizer.Rewrite(context.Background(), e, nil))
		fmt.Println(e)
	}
	// Output:
	// [mul(2.0, sum{axis=0}(sqr(pow(X, 1.5))))]
	// [sum{axis=0}(mul(pow(X, 3.0), 2.0))]
	// [mul(2.0, sum{axis=0}(pow(X, 3.0)))]
	// [mul(2.0, sum{axis=0}(pow(X, 3.0)))]
}

func Example_undo() {
	split := pattern.Must(tensorpass.Vocabulary(), "(sub x y)", "(add x (neg y))", pattern.Named("sub_to_add"))
	join := pattern.Must(tensorpass.Vocabulary(), "(add x (neg y))", "(sub x y)", pattern.Named("add_to_sub"))
	quarrel := &rewrite.Equilibrium{Name: "quarrel", Rules: []rewrite.NodeRewriter{split, join}}

	fmt.Println(rewrite.Run(context.Background(), quarrel, graph("x - y"), nil))
	// Output:
	// quarrel: rules do not terminate: sub_to_add fired 9 times, more than MaxUse 8 allows for 1 applies; these 2 undo each other:
	// 	add_to_sub: add(x, neg(y)) -> sub(x, y)
	// 	sub_to_add: sub(x, y) -> add(x, neg(y))
}

func Example_compute() {
	s := expr.NewScope()
	check(s.Declare("x y z: vector"))
	y := s.MustParse("z + (y*x/y)*(z/x)")
	optimizer, err := passes.Default().Build(optdb.Include("fast_run").Excluding("inplace"))
	check(err)
	f, err := exec.NewFunction(context.Background(), s.Inputs(), []*fgraph.Variable{y}, exec.FunctionOptions{Optimizer: optimizer})
	check(err)
	args, err := exec.ParseArguments(context.Background(), s.Inputs(), "x=[1, 2]; y=[3, 4]; z=[5, 6]")
	check(err)
	values, err := f.Call(context.Background(), args...)
	check(err)
	fmt.Println(f, "=", values[0])
	// Output:
	// [mul(2.0, z)] = [10.0, 12.0]
}

func TestSimplify(t *testing.T) {
	localSimplify := pattern.Must(tensorpass.Vocabulary(), "(true_div (mul x y) y)", "x", pattern.Named("local_simplify"))
	rewritetest.Fires(t, localSimplify, graph("z + (y*x/y)*(z/x)"), "[add(z, mul(x, true_div(z, x)))]")
	rewritetest.DoesNotFire(t, localSimplify, graph("x*y/z"))
	rewritetest.Reaches(t, rewrite.In2Out("simplify", localSimplify), graph("y*(x*y/y)/y"), "[x]")
}
