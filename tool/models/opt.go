package models

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool"
)

// optVerb is opt for models.
func (o Options) optVerb() tool.Verb {
	return tool.Verb{
		Name:     "opt",
		Args:     "MODEL.onnx",
		Synopsis: "or an ONNX model, and write it",
		Of:       aModel,
		Claims:   isModel,
		Detail: `
An ONNX model is optimized as a graph of its nodes. --output writes the result as a model again, with the names of its inputs, outputs
and whatever is left, and reports what was done: how many nodes there are of each operator before and after, and which rules made the
difference, and the query with what it avoids, ~unsafe_nan and ~overflow: passes that change results where something overflows, is infinite
or NaN are left out unless the query names them or their tag; --changes lists every replacement, with the names of the values. --shape and --set fix sizes and values of inputs, which
stay inputs. Initializers that are also inputs are their defaults; --fix-defaults makes constants of them. Unless --verify=false, both models are run on random inputs, and a difference is an error: nothing is written then.
Without --output, the graph is printed.`,
		Examples: `
$0 opt --output small.onnx model.onnx
$0 opt --shape x=2x3 --query=+simplify_nodes model.onnx`,
		Setup: func(cfg *tool.Config, fs *flag.FlagSet) tool.Action {
			f := &optFlags{modelFlags: &modelFlags{Options: o, arguments: declareGiven(fs), passes: declarePasses(cfg, fs), watch: tool.DeclareWatch(fs)}}
			fs.StringVar(&f.output, "output", "", "Write the optimized model to this file")
			fs.BoolVar(&f.verify, "verify", true, "Run the model and the optimized one on random inputs, and compare; without the flag, only up to 1 GB of weights, and of memory, and 4 s of work")
			fs.Int64Var(&f.opset, "opset", 0, "Raise the version of ONNX's operators up to this one, for operators that do what several did")
			fs.Lookup("opset").DefValue = "17"
			fs.BoolVar(&f.changes, "changes", false, "List all replacements")
			fs.BoolVar(&f.json, "json", false, "Print the report as a JSON object")
			fs.BoolVar(&f.profile, "profile", false, "Print what the optimizer did and what it cost, to standard error")
			return tool.Taking(1, 1, "MODEL.onnx", f.run)
		},
	}
}

type optFlags struct {
	*modelFlags
	output                         string
	verify, changes, json, profile bool
}

func (f *optFlags) run(ctx context.Context, c *tool.Console, args []string) error {
	s, err := f.open(args[0])
	if err != nil {
		return err
	}
	tellDoubts(c, s.model, args[0])
	g, err := s.graph()
	if err != nil {
		return err
	}
	source := ir.SourceOf(g)
	r := &optReport{Before: count(g), Query: s.opt.Query().String(), Defaults: s.defaults, fixed: f.arguments.fixDefaults}
	check, checking := check{opened: s}, ctx
	if c.InVain("", "verify") == nil {
		checking = tensor.WithWork(ctx, maxWork) // nobody asked for it
	}
	if f.output != "" && f.verify {
		if err := check.run(checking, g); err != nil {
			return err
		}
	}
	var rec *profile.Recorder // to read the clock twice for each rule takes time
	if f.profile {
		rec = s.recorder()
	}
	if err := s.rewrite(ctx, c, g, rec); err != nil {
		return err
	}
	if f.profile {
		if err := rec.Record().WriteText(c.Stderr); err != nil {
			return err
		}
	}
	if f.output == "" {
		return f.print(c, s, g)
	}
	m, err := ir.Export(g)
	if err != nil {
		return err
	}
	r.After, r.Changes = count(g), source.Changes()
	if slices.ContainsFunc(r.Changes, func(ch ir.Change) bool { return ch.Reason.Pass == coding }) {
		check.most = settingOf(s.opt, coding)
	}
	if r.Verified, err = check.of(checking, m); err != nil {
		return err
	}
	if err := m.WriteFile(ctx, f.output); err != nil {
		return err
	}
	return r.print(c, f)
}

// maxVerified bounds the bytes of weights that are read, and of memory that a run needs, although nobody asked for it.
const maxVerified = 1e9

// weights returns the bytes of the initializers.
func (s *opened) weights() (n int64) {
	for _, t := range s.model.Graph.Initializers {
		_, bytes, _ := t.Size() // faults are found elsewhere
		n += bytes
	}
	return n
}

// print prints the graph.
func (f *optFlags) print(c *tool.Console, s *opened, g *fgraph.FunctionGraph) error {
	file := &graphfile.File{Graph: g, Head: s.notes()}
	text, err := graphfile.Format(file, s.text(ir.SourceOf(g)))
	c.Print("%s", text)
	return err
}

// An optReport says what became of a model.
type optReport struct {
	Query    string         `json:"query"`  // with what it avoids
	Before   map[string]int `json:"before"` // nodes by operator, without constants
	After    map[string]int `json:"after"`
	Changes  []ir.Change    `json:"changes,omitempty"`
	Verified string         `json:"verified,omitempty"`
	// Defaults counts the inputs that are initializers. They stay inputs unless they are fixed.
	Defaults int `json:"defaults,omitempty"`
	fixed    bool
}

// count counts the nodes of each operator.
func count(g *fgraph.FunctionGraph) map[string]int {
	ops := make(map[string]int)
	for a := range g.Applies() {
		ops[a.Op().(*ir.Op).Name()]++
	}
	return ops
}

func total(ops map[string]int) (n int) {
	for _, k := range ops {
		n += k
	}
	return n
}

// print prints the report.
func (r *optReport) print(c *tool.Console, f *optFlags) error {
	if f.json {
		return tool.WriteJSON(c.Stdout, r)
	}
	c.Print("nodes, without constants: %d, before %d\n", total(r.After), total(r.Before))
	all := maps.Clone(r.Before)
	maps.Copy(all, r.After)
	for _, op := range slices.Sorted(maps.Keys(all)) {
		if r.Before[op] != r.After[op] {
			c.Print("  %-28s %5d, before %5d\n", fileio.Excerpt(op, 0), r.After[op], r.Before[op])
		}
	}
	byRule := make(map[string]int)
	for _, ch := range r.Changes {
		byRule[ch.Reason.String()]++
	}
	for _, rule := range slices.SortedFunc(maps.Keys(byRule), func(a, b string) int { return cmp.Or(byRule[b]-byRule[a], cmp.Compare(a, b)) }) {
		c.Print("  %5d by %s\n", byRule[rule], rule)
	}
	c.Print("passes: %s\n", r.Query)
	if f.changes {
		for _, ch := range r.Changes {
			c.Print("%v: %s (%s) -> %s (%s)\n", ch.Reason, fileio.Excerpt(ch.Old, 0), ch.Op, fileio.Excerpt(ch.New, 0), ch.By)
		}
	}
	switch {
	case r.Defaults == 0:
	case r.fixed:
		c.Print("defaults: %d inputs that are initializers have become constants\n", r.Defaults)
	default:
		c.Print("defaults: %d inputs are initializers, too, which whoever runs the model may replace; --fix-defaults makes constants of them, which more rules can use\n", r.Defaults)
	}
	if r.Verified != "" {
		c.Print("%s\n", r.Verified)
	}
	return nil
}

// maxWork bounds what the check runs although nobody asked for it, and maxFolded the loops of constants that passes
// compute, in what tensor.Cost expects: several times as long as both runs of any published model that was tried.
const maxWork, maxFolded = 4 * time.Second, time.Second

// toMake is what a node costs before the first run, to be lowered and compiled, in what tensor.Cost returns: most of
// the check for very many small ones (chains of 100,000 Adds, of Ifs and of constants: 9 to 15 µs on a busy machine, 30 November 2026).
const toMake = 16e6

var tooLong = fmt.Sprintf("not verified: to run both models takes more than about %v; --verify does it", maxWork)

// A check runs the model, before passes change its graph, and an optimized one on the same inputs: with the optional
// ones, and without them.
type check struct {
	*opened
	no     string // why there are no trials
	trials []trial
	most   float64 // by which outputs may differ since weights have become codes, as part of their norm
}

// A trial is what a model computes for inputs, or why there are none.
type trial struct {
	world
	inputs, right []any
	no            string
}

// run runs the model. If the context bounds the work, that may not need more than maxVerified.
func (c *check) run(ctx context.Context, g *fgraph.FunctionGraph) error {
	most := int64(0)
	if work := tensor.WorkOf(ctx); work != nil {
		if work.Spend(2*toMake*float64(nodes(g))) != nil {
			c.no = tooLong
			return nil
		}
		if most = maxVerified; c.weights() > most {
			c.no = "not verified: there is more than 1 GB of weights, all of which would be read; --verify does it"
			return nil
		}
		if n := largest(g); n > most {
			c.no = fmt.Sprintf("not verified: a value of %d bytes would be computed; --verify does it", n)
			return nil
		}
	}
	seeds := []uint64{1}
	if slices.ContainsFunc(g.Inputs(), isOptional) {
		seeds = append(seeds, 2)
	}
	for _, seed := range seeds {
		t, err := c.trial(ctx, g, most, seed)
		if err != nil {
			return err
		}
		c.trials = append(c.trials, t)
	}
	return nil
}

func isOptional(v *fgraph.Variable) bool {
	_, _, optional := ir.TypeOf(v).ElementOf()
	return optional
}

// trial runs the model for the inputs that a seed draws.
func (c *check) trial(ctx context.Context, g *fgraph.FunctionGraph, most int64, seed uint64) (trial, error) {
	t := trial{world: world{options: c.lowering(c.importer.Dir, nil)}} // which keeps nothing of the graph
	t.options.MaxBytes = most
	var err error
	if t.inputs, t.right, err = t.sample(ctx, g, seed); err == nil && t.right == nil {
		t.right, err = t.Evaluate(ctx, g, t.inputs)
	}
	switch {
	case err == nil:
		if i := undeclared(g, t.right); i >= 0 {
			t.no = fmt.Sprintf("not verified: with random inputs, output %d has another shape than the model says, which rules rely on", i)
		}
	case ctx.Err() != nil:
		return t, ctx.Err()
	case errors.Is(err, tensor.ErrWork):
		t.no = tooLong
	default:
		t.no = fmt.Sprintf("not verified: the model can't be run here: %v", err)
	}
	return t, nil
}

// of runs the optimized model, and returns what was found, or an error if it computes something else.
func (c *check) of(ctx context.Context, m *onnx.Model) (string, error) {
	if len(c.trials) == 0 {
		return c.no, nil
	}
	if m == c.model {
		return cmp.Or(c.trials[0].no, "verified: nothing has changed"), nil
	}
	g, err := ir.Import(m, c.importer.Options)
	if err != nil {
		return "", fmt.Errorf("the optimized model is faulty: %w", err)
	}
	text := ""
	for i, t := range c.trials {
		found, err := c.differ(ctx, g, t)
		switch {
		case err != nil:
			return "", err
		case i == 0:
			text = found
		case found != text:
			text += "\nwithout optional inputs: " + found
		}
	}
	return text, nil
}

// nodes counts the nodes of a graph, with those of bodies in it. A sum of many values is as many nodes as it takes for two each.
func nodes(g *fgraph.FunctionGraph) (n int) {
	for a := range g.Applies() {
		op := a.Op().(*ir.Op)
		if n++; op.Domain == "" && (op.Type == "Sum" || op.Type == "Mean" || op.Type == "Max" || op.Type == "Min") {
			n += max(len(a.Inputs())-2, 0)
		}
		for _, b := range op.Bodies {
			n += nodes(b.Graph)
		}
	}
	return n
}

// largest returns the bytes of the largest value whose size is known.
func largest(g *fgraph.FunctionGraph) (most int64) {
	for v := range g.Variables() {
		t := ir.TypeOf(v)
		dims, _ := t.Numbers()
		n := int64(t.Elem().Bits())
		for _, d := range dims {
			if d > 0 && n > math.MaxInt64/d {
				return math.MaxInt64 / 8
			}
			n *= d
		}
		most = max(most, n/8)
	}
	return most
}

// undeclared returns the first output whose value has other sizes than its type, or -1: random values for sizes
// and places are often not what a model is for.
func undeclared(g *fgraph.FunctionGraph, values []any) int {
	for i, v := range g.Outputs() {
		dims, ranked := ir.TypeOf(v).Shape()
		a, ok := values[i].(*array.Array)
		if !ranked || !ok {
			continue
		}
		if len(dims) != a.NDim() {
			return i
		}
		for k, d := range dims {
			if n, known := d.Number(); known && int(n) != a.Dim(k) {
				return i
			}
		}
	}
	return -1
}

// differ runs the graph of the optimized model for a trial.
func (c *check) differ(ctx context.Context, g *fgraph.FunctionGraph, t trial) (string, error) {
	const same = "verified on random inputs: both models compute the same"
	if t.no != "" {
		return t.no, nil
	}
	got, err := t.Evaluate(ctx, g, t.inputs)
	if errors.Is(err, tensor.ErrWork) {
		return tooLong, nil
	}
	if err != nil {
		return "", fmt.Errorf("the optimized model can't be run, and the model can: %w", err)
	}
	if t.Differ(got, t.right) == "" {
		return same, nil
	}
	if c.most > 0 {
		return c.coded(got, t.right)
	}
	if tensor.WorkOf(ctx) != nil {
		// To tell a fault from chaos takes more runs, but only if there is one of them.
		ctx = tensor.WithWork(ctx, 4*maxWork)
	}
	original, err := c.graph()
	if err != nil {
		return "", err
	}
	text, accepted, err := t.Judge(original, t.inputs, t.right)(ctx, got)
	switch {
	case err != nil:
		return "", err
	case text != "":
		return "", fmt.Errorf("the optimized model computes something else: %s; \"bisect\" finds the rewrite to blame", text)
	}
	return same + ", as far as the model does itself: " + accepted, nil
}

// coded compares outputs of a model whose weights are codes with those of the model.
func (c *check) coded(got, right []any) (string, error) {
	var d difference
	for i, v := range right {
		d = d.or(differenceOf(got[i], v))
	}
	if !(d.norm <= c.most) {
		return "", fmt.Errorf("weights that are codes of few bits change outputs by up to %.2g %% of their norm; %s{error=…} allows more than %.2g %%", 100*d.norm, coding, 100*c.most)
	}
	return fmt.Sprintf("verified on random inputs: outputs are off by up to %.2g %% of their norm, since weights are codes of few bits", 100*d.norm), nil
}
