package pipeline_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/rewrite"
)

var (
	randomCases   = flag.Int("random", 40, "how many random networks most tests take; TestComputations and TestUnrewritten take ten times as many, unless -short")
	firstSeed     = flag.Uint64("seed", 0, "the first of them")
	randomQueries = flag.Int("queries", 3, "how many random queries TestOptimize and TestComputations try on each")
)

// cases is how many networks most tests take. Without -long it is one of each family, unless -random says more.
func cases() int {
	if !longtest.Enabled() && *randomCases == 40 {
		return len(families)
	}
	return *randomCases
}

// manyCases is how many networks the fast tests take.
func manyCases() uint64 {
	if !longtest.Enabled() {
		return uint64(*randomCases)
	}
	return uint64(10 * *randomCases)
}

const (
	// tolerance bounds the norm of a difference, relative to that of the values.
	tolerance = 1e-4
	// absoluteTolerance is added for each element, as squares, because a rounded zero is no large
	// difference.
	absoluteTolerance = 1e-6
)

// TestOptimize runs random networks as compiled, under +fast_run and under random queries, and
// expects the same outputs, input derivatives, gradients and statistics. Memory is NaN until it is
// written. The name of a failing test has the seed, its report the database entry at fault.
func TestOptimize(t *testing.T) {
	db := passes.Default()
	// The networks are small; otherwise no affine would be divided.
	if err := db.Register("split_small_affine", nnet3pass.SplitRecurrentAffine(0), 1.91, "fast_run", "nnet3", "fusion"); err != nil {
		t.Fatal(err)
	}
	fast := build(t, db, fastRun)
	entries := names(fast)
	outputs, same := 0, 0
	// In the first, 0 times a derivative that isn't finite is added.
	seeds := []uint64{91005958}
	for i := range uint64(cases()) {
		seeds = append(seeds, *firstSeed+i)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := newRun(t, db, seed)
			want, err := r.results(t.Context(), nil)
			if err != nil {
				t.Fatalf("as compiled: %v\n%s", err, r.Config)
			}
			got := r.check(t, fast, want)
			if got != nil {
				outputs += len(want.matrices["output"])
				same += equalBits(want.matrices["output"], got.matrices["output"])
			}
			q := rand.New(rand.NewPCG(seed, 1))
			for range *randomQueries {
				r.check(t, build(t, db, randomQuery(q, entries)), want)
			}
		})
	}
	t.Logf("%d of %d outputs are the same to the bit", same, outputs)
}

// TestUnrewritten turns random networks into graphs and back, and wants the same bits: sums keep the
// order in which they were compiled. There is one exception: sums of rows, which the compiler adds to
// other terms row by row, are values of the graph, and so are computed before. The first networks have
// such sums; in 1,000 others there are two.
func TestUnrewritten(t *testing.T) {
	db := passes.Default()
	opt := build(t, db, optdb.Include("plan_storage"))
	seeds := []uint64{938, 1018, 1278, 1822}
	for i := range manyCases() {
		seeds = append(seeds, *firstSeed+i)
	}
	apart := 0
	for _, seed := range seeds {
		r := newRun(t, db, seed)
		compiled, err := r.results(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.results(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if len(compiled.differing(got)) == 0 {
			continue
		}
		apart++
		want, err := r.rowSumsApart(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range want.differing(got) {
			t.Errorf("seed %d (%s): %s has other bits\n%s", r.Seed, r.Family, name, r.Config)
		}
	}
	t.Logf("%d of %d networks add sums of rows to other terms", apart, len(seeds))
	if apart < 4 {
		t.Error("the first four networks have the bits of the compiled computation: are sums of rows computed in place now?")
	}
}

// differing returns the names of the values that have other bits in got.
func (r *results) differing(got *results) (names []string) {
	for _, name := range r.order {
		if a := r.matrices[name]; equalBits(a, got.matrices[name]) != len(a) {
			names = append(names, name)
		}
	}
	return names
}

// rowSumsApart runs the compiled computation with every sum of rows in a matrix of its own, which is
// then added.
func (r *run) rowSumsApart(ctx context.Context) (*results, error) {
	plan, err := pipeline.Build(ctx, r.Net, r.Request, pipeline.Options{})
	if err != nil {
		return nil, err
	}
	c := plan.Compiled
	commands := c.Commands
	c.Commands = nil
	do := func(typ computation.CommandType, alpha float32, args ...int32) {
		c.Commands = append(c.Commands, computation.NewScaledCommand(typ, alpha, args...))
	}
	for _, cmd := range commands {
		if cmd.Type != computation.AddRowRanges {
			c.Commands = append(c.Commands, cmd)
			continue
		}
		to := c.Submatrices[cmd.Args[0]]
		sum := c.NewMatrix(int(to.NumRows), int(to.NumCols), false)
		do(computation.AllocMatrix, 1, sum)
		do(computation.SetConst, 0, sum)
		do(computation.AddRowRanges, 1, sum, cmd.Args[1], cmd.Args[2])
		do(computation.MatrixAdd, cmd.Alpha, cmd.Args[0], sum)
		do(computation.DeallocMatrix, 1, sum)
	}
	return r.compute(ctx, plan, c, computation.CheckOptions{AllowUnused: true})
}

var fastRun = optdb.Include("fast_run").Lenient()

// randomQuery draws a query without up to three entries and, in every second case, a tag.
func randomQuery(r *rand.Rand, entries []string) optdb.Query {
	var out []string
	for range r.IntN(4) {
		out = append(out, entries[r.IntN(len(entries))])
	}
	if tags := [...]string{"inplace", "fusion", "reassoc", "storage", "merge"}; len(out) == 0 || r.IntN(2) == 0 {
		out = append(out, tags[r.IntN(len(tags))])
	}
	return fastRun.Excluding(out...)
}

func build(t *testing.T, db *optdb.SequenceDB, q optdb.Query) *optdb.Optimizer {
	t.Helper()
	opt, err := db.Build(q)
	if err != nil {
		t.Fatal(err)
	}
	return opt
}

// names lists the entries for networks.
func names(opt *optdb.Optimizer) []string {
	var list []string
	for _, e := range opt.Entries() {
		if !e.Database && (slices.Contains(e.Tags, "nnet3") || slices.Contains(e.Tags, "merge") || e.Name == "add_destroy_handler") {
			list = append(list, e.Name)
		}
	}
	return list
}

// A run is a case with input values.
type run struct {
	*Case
	db *optdb.SequenceDB
	in pipeline.Values
}

func newRun(t *testing.T, db *optdb.SequenceDB, seed uint64) *run {
	c, err := New(seed)
	if err != nil {
		t.Fatal(err)
	}
	if c.TestMode {
		if err := pipeline.Calibrate(t.Context(), c.Net, c.Request, seed); err != nil {
			t.Fatalf("calibration: %v\n%s", err, c.Config)
		}
	}
	in, err := pipeline.RandomValues(c.Net, c.Request, seed)
	if err != nil {
		t.Fatal(err)
	}
	return &run{c, db, in}
}

// results is what a run computes.
type results struct {
	matrices map[string][]float32
	order    []string
}

func (r *results) add(name string, values []float32) {
	if _, ok := r.matrices[name]; !ok {
		r.order = append(r.order, name)
	}
	r.matrices[name] = append(r.matrices[name], values...)
}

// results computes everything that the request asks for, as compiled if opt is nil.
func (r *run) results(ctx context.Context, opt *optdb.Optimizer) (*results, error) {
	plan, err := pipeline.Build(ctx, r.Net, r.Request, pipeline.Options{Optimizer: opt})
	if err != nil {
		return nil, err
	}
	return r.compute(ctx, plan, plan.Optimized, computation.CheckOptions{AllowUnused: true, Rewrite: opt == nil})
}

// compute checks and executes a computation of a plan.
func (r *run) compute(ctx context.Context, plan *pipeline.Plan, c *computation.Computation, check computation.CheckOptions) (*results, error) {
	if err := computation.Check(c, plan.Info(c), check); err != nil {
		return nil, err
	}
	opts := exec.ComputerOptions{Poison: true}
	if r.Request.NeedModelDerivative {
		opts.ToUpdate = pipeline.NewGradient(r.Net)
	}
	if r.Request.StoreComponentStats {
		opts.Stats = r.Net.Copy()
		for _, c := range opts.Stats.Components {
			if z, ok := c.(component.StatsZeroer); ok {
				z.ZeroStats()
			}
		}
	}
	program, err := exec.NewProgram(c, r.Net)
	if err != nil {
		return nil, err
	}
	computer, err := program.NewComputer(opts)
	if err != nil {
		return nil, err
	}
	res := &results{matrices: map[string][]float32{}}
	take := func(what, name string) error {
		m, err := computer.Output(name)
		for i := range m.Rows {
			res.add(what, kernel.Row(m, i))
		}
		return err
	}
	var errs *multierror.Error
	errs = multierror.Append(errs, pass(ctx, computer, r.in.Inputs))
	for i := range r.Request.Outputs {
		errs = multierror.Append(errs, take("output", r.Request.Outputs[i].Name))
	}
	if r.Request.NeedDerivatives() {
		errs = multierror.Append(errs, pass(ctx, computer, r.in.OutputDerivs))
	}
	for i := range r.Request.Inputs {
		if spec := &r.Request.Inputs[i]; spec.HasDeriv {
			errs = multierror.Append(errs, take("derivative of "+spec.Name, spec.Name))
		}
	}
	addParameters(res, opts.ToUpdate)
	addStatistics(res, opts.Stats)
	return res, errs.ErrorOrNil()
}

func pass(ctx context.Context, computer *exec.Computer, in []pipeline.Named) error {
	for _, m := range in {
		if err := computer.AcceptInput(m.Name, m.Matrix); err != nil {
			return err
		}
	}
	return computer.Run(ctx)
}

func addParameters(res *results, nn *nnet3.Nnet) {
	if nn == nil {
		return
	}
	for i, c := range nn.Components {
		if u, ok := c.(component.UpdatableComponent); ok {
			res.add("gradient of "+nn.ComponentNames[i], component.Vectorize(u, nil))
		}
	}
}

// addStatistics adds all numbers that components write to files, which include their statistics.
func addStatistics(res *results, nn *nnet3.Nnet) {
	if nn == nil {
		return
	}
	for i, c := range nn.Components {
		var text bytes.Buffer
		w := kaldiio.NewWriter(&text, false)
		if c.Properties()&component.StoresStats == 0 || component.Write(c, w) != nil || w.Flush() != nil {
			continue
		}
		for _, word := range strings.Fields(text.String()) {
			var v float32
			if _, err := fmt.Sscan(word, &v); err == nil {
				res.add("statistics of "+nn.ComponentNames[i], []float32{v})
			}
		}
	}
}

// compare reports differences.
func compare(want, got *results) error {
	var errs *multierror.Error
	for _, name := range want.order {
		a, b := want.matrices[name], got.matrices[name]
		if len(a) != len(b) {
			errs = multierror.Append(errs, fmt.Errorf("%s: %d numbers, want %d", name, len(b), len(a)))
			continue
		}
		d, norm := distance(a, b)
		allowed := tolerance*norm + absoluteTolerance*math.Sqrt(float64(len(a)))
		if !(d <= allowed) {
			errs = multierror.Append(errs, fmt.Errorf("%s differs by %.3g of its norm %.3g", name, d/norm, norm))
		}
	}
	return errs.ErrorOrNil()
}

// distance returns the norms of b-a and of a.
func distance(a, b []float32) (difference, norm float64) {
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		if !(x == y || x != x && y != y) {
			difference += (x - y) * (x - y)
		}
		if x == x && !math.IsInf(x, 0) {
			norm += x * x
		}
	}
	return math.Sqrt(difference), math.Sqrt(norm)
}

func equalBits(a, b []float32) int {
	n := 0
	for i := range min(len(a), len(b)) {
		if math.Float32bits(a[i]) == math.Float32bits(b[i]) {
			n++
		}
	}
	return n
}

// check optimizes, runs and compares. It traces a failure to an entry.
func (r *run) check(t *testing.T, opt *optdb.Optimizer, want *results) *results {
	t.Helper()
	got, err := r.results(t.Context(), opt)
	if err == nil {
		err = compare(want, got)
	}
	if err != nil {
		t.Errorf("%s, %s: %v\n%s\n%s", r.Family, opt.Query(), err, r.blame(t, opt, want), r.Config)
	}
	return got
}

// blame finds the entry without which the numbers are right, and the rewrite after which they are
// wrong.
func (r *run) blame(t *testing.T, opt *optdb.Optimizer, want *results) string {
	wrong := func(ctx context.Context, opt *optdb.Optimizer) bool {
		got, err := r.results(ctx, opt)
		return err != nil || compare(want, got) != nil
	}
	var guilty []string
	for _, name := range names(opt) {
		if !wrong(t.Context(), build(t, r.db, opt.Query().Excluding(name))) {
			guilty = append(guilty, name)
		}
	}
	report := fmt.Sprintf("it is right without any one of %q", guilty)
	// Rules ask before each rewrite; as many are allowed as keep the numbers right.
	budget := func(n int) context.Context {
		return rewrite.WithOptions(t.Context(), rewrite.Options{Allow: rewrite.Budget(n)})
	}
	low, high := 0, 1<<14
	if wrong(budget(low), opt) {
		return report + "; it is wrong without any rewrite of a rule"
	}
	for high-low > 1 {
		if middle := (low + high) / 2; wrong(budget(middle), opt) {
			high = middle
		} else {
			low = middle
		}
	}
	var last rewrite.Event
	ctx := rewrite.WithOptions(t.Context(), rewrite.Options{Allow: rewrite.Budget(high), Trace: func(e rewrite.Event) {
		if e.Err == nil {
			last = e
		}
	}})
	wrong(ctx, opt)
	return fmt.Sprintf("%s; it is wrong from rewrite %d on: %s %s of\n  %s\nto\n  %s", report, high, last.Pass, last.Rule, last.Before, last.After)
}

// TestBlame checks that TestOptimize can fail and blames the right rule: here one that takes a
// nonlinearity for a copy of its input.
func TestBlame(t *testing.T) {
	db := passes.Default()
	err := db.Register("wrong", rewrite.In2Out("wrong", rewrite.Rule{
		Name: "local_wrong", Doc: "a sigmoid is its input", On: []rewrite.Track{rewrite.TrackType[lower.Propagate]()},
		Fn: func(c *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			if op := a.Op().(lower.Propagate); op.C.Type() != "SigmoidComponent" || op.StoreStats {
				return c.Miss("%s is no sigmoid", op.Name), nil
			}
			return rewrite.Replace(a.Inputs()[0]), nil
		},
	}), 1.5, "fast_run", "nnet3")
	if err != nil {
		t.Fatal(err)
	}
	opt := build(t, db, fastRun)
	for seed := range uint64(len(Families())) {
		r := newRun(t, db, seed)
		want, err := r.results(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.results(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if compare(want, got) == nil {
			continue
		}
		report := r.blame(t, opt, want)
		if !strings.Contains(report, `without any one of ["wrong"]`) || !strings.Contains(report, "local_wrong") {
			t.Errorf("seed %d: %s", seed, report)
		}
		return
	}
	t.Error("a wrong rule goes unnoticed")
}
