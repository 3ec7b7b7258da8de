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
	g, err := s.graph()
	if err != nil {
		return err
	}
	source := ir.SourceOf(g)
	r := &optReport{Before: count(g), Query: s.opt.Query().String(), Defaults: s.defaults, fixed: f.arguments.fixDefaults}
	record, err := s.rewrite(ctx, c, g)
	if err != nil {
		return err
	}
	if f.profile {
		if err := record.WriteText(c.Stderr); err != nil {
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
	asked, most := c.InVain("", "verify") != nil, int64(maxVerified)
	if asked {
		most = 0
	}
	switch {
	case !f.verify:
	case !asked && s.weights() > maxVerified:
		r.Verified = "not verified: there is more than 1 GB of weights, all of which would be read; --verify does it"
	default:
		if r.Verified, err = s.compare(ctx, m, most); err != nil {
			return err
		}
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

var tooLong = fmt.Sprintf("not verified: to run both models takes more than about %v; --verify does it", maxWork)

// compare runs the model and another one on the same inputs, with and without the optional ones, unless that needs
// more than a number of bytes of memory, 0 for as much as any run may take. It returns what was found, or an error
// if they differ.
func (s *opened) compare(ctx context.Context, m *onnx.Model, most int64) (string, error) {
	g, err := s.graph()
	if err != nil {
		return "", err
	}
	if n := largest(g); most > 0 && n > most {
		return fmt.Sprintf("not verified: a value of %d bytes would be computed; --verify does it", n), nil
	}
	if most > 0 {
		ctx = tensor.WithWork(ctx, maxWork)
	}
	text, err := s.compareOn(ctx, g, m, most, 1)
	if err != nil || !slices.ContainsFunc(g.Inputs(), isOptional) {
		return text, err
	}
	without, err := s.compareOn(ctx, g, m, most, 2)
	if err == nil && without != text {
		text += "\nwithout optional inputs: " + without
	}
	return text, err
}

func isOptional(v *fgraph.Variable) bool {
	_, _, optional := ir.TypeOf(v).ElementOf()
	return optional
}

// compareOn is compare for the inputs that a seed draws.
func (s *opened) compareOn(ctx context.Context, g *fgraph.FunctionGraph, m *onnx.Model, most int64, seed uint64) (string, error) {
	source := ir.SourceOf(g)
	w := world{source: source, options: s.lowering(source.Dir, nil)}
	w.options.MaxBytes = most
	inputs, err := w.Random(ctx, g, seed)
	if err == nil {
		var right []any
		if right, err = w.Evaluate(ctx, g, inputs); err == nil {
			if i := undeclared(g, right); i >= 0 {
				return fmt.Sprintf("not verified: with random inputs, output %d has another shape than the model says, which rules rely on", i), nil
			}
			return s.differ(ctx, m, w, w.Judge(g, inputs, right), inputs)
		}
	}
	if no := ctx.Err(); no != nil {
		return "", no
	}
	if errors.Is(err, tensor.ErrWork) {
		return tooLong, nil
	}
	return fmt.Sprintf("not verified: the model can't be run here: %v", err), nil
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

// differ runs the optimized model, and has its outputs judged.
func (s *opened) differ(ctx context.Context, m *onnx.Model, w world, judge func(context.Context, []any) (differ, accepted string, err error), inputs []any) (string, error) {
	g, err := ir.Import(m, s.importer.Options)
	if err != nil {
		return "", fmt.Errorf("the optimized model is faulty: %w", err)
	}
	got, err := w.Evaluate(ctx, g, inputs)
	if errors.Is(err, tensor.ErrWork) {
		return tooLong, nil
	}
	if err != nil {
		return "", fmt.Errorf("the optimized model can't be run, and the model can: %w", err)
	}
	if tensor.WorkOf(ctx) != nil {
		// To tell a fault from chaos takes more runs, but only if there is one of them.
		ctx = tensor.WithWork(ctx, 4*maxWork)
	}
	text, accepted, err := judge(ctx, got)
	switch {
	case err != nil:
		return "", err
	case text != "":
		return "", fmt.Errorf("the optimized model computes something else: %s; \"bisect\" finds the rewrite to blame", text)
	case accepted != "":
		return "verified on random inputs: both models compute the same, as far as the model does itself: " + accepted, nil
	}
	return "verified on random inputs: both models compute the same", nil
}
