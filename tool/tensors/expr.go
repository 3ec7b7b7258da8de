package tensors

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/repro"
)

func (o Options) exprVerb() tool.Verb {
	return tool.Verb{
		Name:     "expr",
		Before:   "graph",
		Args:     "EXPR",
		Minus:    true,
		Synopsis: "optimize a tensor expression, print its graph, evaluate it",
		Detail: `
EXPR is written as in Python or as a graph prints: (y + z)*x/(y + z), X.T, x[1:3], sum(X, axis=0), or
true_div(mul(add(y, z), x), add(y, z)). A list means several outputs. The optimized graph is printed on one line; a value that
is used several times is printed once, with a number. An argument such as -x is an expression unless it is the name of a flag; after
-- everything is.

--vars declares variables, such as "x y: vector; X: matrix; s: scalar; t: tensor3; f: float32 matrix; i: int64[3, ?]". Undeclared
names are float64 scalars. Types of elements are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32 and float64; they
combine as in NumPy 2.

--rule adds a rewrite to canonicalize, such as "(true_div (mul x y) y) => x"; the first one is named rule1. --eval evaluates the
expression for values such as "x=[1, 2]; y=3", or for random ones, and compares the result with that of the unoptimized expression.`,
		Examples: `
$0 expr --trace '(y + z)*x/(y + z)'
$0 expr --vars='x: vector' --grad=x --eval='x=[1, 2]' 'sum(tanh(x))'
$0 expr --query=debug --rule='(tanh x) => (sin x)' 'tanh(x) + exp(y)*x'`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			f := o.declareExpr(cfg, fs)
			return tool.Taking(1, 1, "EXPR", func(ctx context.Context, c *tool.Console, args []string) error {
				if err := f.check(c); err != nil {
					return err
				}
				return f.run(ctx, c, args[0])
			})
		},
	}
}

// exprFlags are the flags of expr.
type exprFlags struct {
	Options
	vars, grad, eval, format string
	passes                   *tool.Selection
	profile, asJSON          bool
	seed                     uint64
	draws                    *repro.Draws
	threads                  *tool.Threads
	watch                    *tool.Watch
}

func (o Options) declareExpr(cfg *tool.Config, fs *flag.FlagSet) *exprFlags {
	f := &exprFlags{Options: o, passes: tool.DeclareSelection(cfg, fs)}
	f.declareInput(fs, "Variables")
	fs.StringVar(&f.eval, "eval", "", "Evaluate the expression: \"x=[1, 2]; y=3\", or \"random\"")
	fs.StringVar(&f.format, "format", "graph", "Format of the graph: graph, tree, dot or html")
	fs.BoolVar(&f.asJSON, "json", false, "Print a JSON object")
	fs.BoolVar(&f.profile, "profile", false, "Print what the optimizer did and what it cost")
	fs.Uint64Var(&f.seed, "srand", 0, "Seed of the values of --eval=random, and of the first that --query=debug compares")
	f.draws = tool.DeclareDraws(fs)
	f.threads = tool.DeclareThreads(fs)
	f.watch = tool.DeclareWatch(fs)
	return f
}

// declareInput declares the flags for an expression. variables are what --vars declares, in help.
func (f *exprFlags) declareInput(fs *flag.FlagSet, variables string) {
	fs.StringVar(&f.vars, "vars", "", variables+" and their types, such as \"x y: vector; n: int64 scalar\"; others are float64 scalars")
	fs.StringVar(&f.grad, "grad", "", "Replace the expression, a scalar, by its gradients with respect to these variables (comma-separated)")
}

// check returns an error for flags that contradict each other, or change nothing.
func (f *exprFlags) check(c *tool.Console) error {
	if !slices.Contains([]string{"graph", "tree", "dot", "html"}, f.format) {
		return tool.Usagef("--format=%s: want graph, tree, dot or html", fileio.Excerpt(f.format, 0))
	}
	return cmp.Or(
		c.InVainIf(f.asJSON, "beside --json", "format"),
		c.InVainIf(f.format == "html", "beside --format=html, a page without values", "eval", "profile"),
		c.InVainIf(f.eval == "", "without --eval", "threads"),
	)
}

// exprReport is the output of expr --json.
type exprReport struct {
	Graph      string            `json:"graph"`
	Applies    int               `json:"applies"`
	Before     string            `json:"graph_before"`
	WasApplies int               `json:"applies_before"`
	Value      any               `json:"value,omitempty"`
	MaxRelDiff *float64          `json:"max_rel_diff,omitempty"`
	Differs    bool              `json:"differs,omitempty"` // in NaN, infinity or shapes; there is no MaxRelDiff
	Profile    *profile.Function `json:"profile,omitempty"`
	ByApply    []exec.ApplyCost  `json:"by_apply,omitempty"`
}

// run runs the verb.
func (f *exprFlags) run(ctx context.Context, c *tool.Console, text string) error {
	inputs, outputs, err := f.parse(text)
	if err != nil {
		return err
	}
	_, opt, err := f.passes.BuildFor(f.vocabulary())
	if err != nil {
		return err
	}
	debugged := opt.Debugging() && f.drawn()
	if err := cmp.Or(
		c.InVainIf(f.eval != "random" && !debugged, "without --eval=random", "srand"),
		c.InVainIf(!debugged, "without --query=debug and random values", "draws"),
	); err != nil {
		return err
	}
	ctx, told := f.watch.Start(ctx, c, opt)
	// The expression as typed is compiled first. Its function copies the graph, so the optimizer
	// can't change what its result is compared with.
	plain, err := exec.NewFunction(ctx, inputs, outputs, exec.FunctionOptions{Check: opt.Debugging()})
	if err != nil {
		return err
	}
	fn, err := exec.NewFunction(ctx, inputs, outputs, exec.FunctionOptions{Optimizer: opt, Profile: f.profile, Threads: f.threads.Of(1)})
	if err != nil {
		return f.failed(ctx, c, err, inputs, outputs)
	}
	if err := told(); err != nil {
		return err
	}
	// In debug mode values decide as well as structure. A rewrite that makes them wrong is looked
	// for before anything is printed, as the output would be wrong.
	if opt.Debugging() {
		if err := fileio.UnlessCanceled(ctx, func() error { return f.blame(ctx, c, plain, inputs, outputs) }); err != nil {
			return err
		}
	}
	report := &exprReport{Graph: fn.String(), Applies: fn.Graph().NumApplies(), Before: plain.String(), WasApplies: plain.Graph().NumApplies()}
	runner := fn.NewRunner()
	var values []*array.Array
	if f.eval != "" {
		if err := fileio.UnlessCanceled(ctx, func() (err error) {
			values, err = f.evaluate(ctx, report, plain, runner, inputs)
			return err
		}); err != nil {
			return err
		}
	}
	if f.profile {
		report.Profile = runner.Profile()
		report.Profile.Message = text
		if len(values) > 0 {
			report.ByApply = runner.ByApply()
		}
	}
	if f.asJSON {
		return tool.WriteJSON(c.Stdout, report)
	}
	return f.print(ctx, c, text, opt, report, fn, values)
}

// parse returns the outputs, the expression or its gradients, and the inputs that they need.
func (f *exprFlags) parse(text string) (inputs, outputs []*fgraph.Variable, err error) {
	// Each call makes variables of its own, so an expression that is recorded several times is
	// parsed as often: an optimizer owns its graph.
	scope := f.Language.NewScope()
	if err := scope.Declare(f.vars); err != nil {
		return nil, nil, tool.Usagef("--vars: %v", err)
	}
	outputs, err = scope.Parse(text)
	if err != nil {
		return nil, nil, tool.Usagef("%s: %w%s", fileio.Excerpt(text, 0), err, pointer(text, err))
	}
	if f.grad == "" {
		return usedInputs(scope, outputs), outputs, nil
	}
	var wrt []*fgraph.Variable
	for _, name := range strings.FieldsFunc(f.grad, func(r rune) bool { return r == ',' || r == ' ' }) {
		v := scope.Lookup(name)
		if v == nil {
			return nil, nil, tool.Usagef("--grad: there is no variable %s%s", fileio.Excerpt(name, 0), spell.Hint(name, declared(scope)))
		}
		wrt = append(wrt, v)
	}
	if len(outputs) != 1 {
		return nil, nil, tool.Usagef("--grad: there are %d expressions", len(outputs))
	}
	grads, err := tensor.GradOptions{Zeros: true}.Grad(outputs[0], wrt...)
	if err != nil {
		return nil, nil, tool.Usagef("--grad: %v", err)
	}
	return usedInputs(scope, grads), grads, nil
}

// declared returns the names of the inputs.
func declared(scope *expr.Scope) []string { return lists.Map(scope.Inputs(), (*fgraph.Variable).Name) }

// pointer returns the text with a mark below the place of a syntax error.
func pointer(text string, err error) string {
	var at *expr.SyntaxError
	if !errors.As(err, &at) || at.Column < 1 || at.Column > len(text)+1 || strings.ContainsAny(text, "\n\t") {
		return ""
	}
	from, to := max(0, at.Column-1-excerptSide), min(len(text), at.Column-1+excerptSide)
	before, after := strings.ToValidUTF8(text[from:at.Column-1], ""), strings.ToValidUTF8(text[at.Column-1:to], "")
	if from > 0 {
		before = "…" + before
	}
	if to < len(text) {
		after += "…"
	}
	return fmt.Sprintf("\n  %s%s\n  %s^", before, after, strings.Repeat(" ", utf8.RuneCountInString(before)))
}

// excerptSide is the number of bytes shown on each side of a place.
const excerptSide = 60

// graph returns a graph of the expression.
func (f *exprFlags) graph(text string) (*fgraph.FunctionGraph, error) {
	inputs, outputs, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	return tensor.NewGraph(inputs, outputs)
}

// usedInputs returns the variables that the outputs depend on, in the order of their
// declaration.
func usedInputs(scope *expr.Scope, outputs []*fgraph.Variable) []*fgraph.Variable {
	used := make(map[*fgraph.Variable]bool)
	for _, v := range tensor.InputsOf(outputs...) {
		used[v] = true
	}
	var list []*fgraph.Variable
	for _, v := range scope.Inputs() {
		if used[v] {
			list = append(list, v)
		}
	}
	return list
}

// drawn reports whether values are random where they are needed.
func (f *exprFlags) drawn() bool { return f.eval == "" || f.eval == "random" }

// arguments returns the values of the inputs, random unless --eval gives them.
func (f *exprFlags) arguments(ctx context.Context, plain *exec.Function, inputs []*fgraph.Variable) ([]*array.Array, error) {
	if f.drawn() {
		return plain.RandomArguments(ctx, f.seed)
	}
	args, err := exec.ParseArguments(ctx, inputs, f.eval)
	if errors.Is(err, exec.ErrArgument) || errors.Is(err, expr.ErrSyntax) {
		err = tool.Usagef("--eval: %v", err)
	}
	return args, err
}

// evaluate evaluates the optimized and the typed expression, and compares them.
func (f *exprFlags) evaluate(ctx context.Context, report *exprReport, plain *exec.Function, runner *exec.Runner, inputs []*fgraph.Variable) ([]*array.Array, error) {
	args, err := f.arguments(ctx, plain, inputs)
	if err != nil {
		return nil, err
	}
	want, err := plain.Call(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("evaluating the typed expression: %w", err)
	}
	got, err := runner.Run(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("evaluating the optimized expression: %w", err)
	}
	// The optimized expression runs on the same arguments as the typed one, which has left them as
	// they were. Both run before anything is printed, because either may fail.
	diff := 0.0
	for i, a := range got {
		diff = max(diff, array.MaxRelDiff(a, want[i]))
	}
	if report.Differs = math.IsInf(diff, 1); !report.Differs { // JSON has no infinity
		report.MaxRelDiff = &diff
	}
	report.Value = got
	if len(got) == 1 {
		report.Value = got[0]
	}
	return got, nil
}

// print prints the report as text.
func (f *exprFlags) print(ctx context.Context, c *tool.Console, text string, opt *optdb.Optimizer, report *exprReport, fn *exec.Function, values []*array.Array) error {
	switch f.format {
	case "graph":
		c.Print("%s\n", report.Graph)
	case "tree":
		if err := fn.Graph().WriteTree(c.Stdout); err != nil {
			return err
		}
	case "dot":
		c.Print("%s\n", fn.Graph().DOT("expr"))
	case "html":
		if err := f.page(ctx, c, text, opt); err != nil {
			return err
		}
	}
	for _, v := range values {
		c.Print("%s\n", v)
	}
	switch {
	case report.MaxRelDiff != nil:
		c.Say("largest relative difference from what was typed: %.2g", *report.MaxRelDiff)
	case report.Differs:
		c.Say("the values differ from those of the typed expression: NaN, infinity or shapes are not the same")
	}
	c.Say("%d ops, %d as typed", report.Applies, report.WasApplies)
	if report.Profile != nil {
		if err := report.Profile.WriteText(c.Stdout); err != nil {
			return err
		}
	}
	if len(report.ByApply) > 0 {
		c.Print("\nApply\n-----\n  <time> <bytes> <apply>\n")
		for _, a := range report.ByApply {
			c.Print("  %.3es %10d  %s\n", a.Time.Seconds(), a.Bytes, a.Apply)
		}
	}
	return nil
}
