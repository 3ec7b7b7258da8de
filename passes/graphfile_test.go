package passes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/rewrite"
)

// sharedFolder is beside the repository, and may not exist.
const sharedFolder = "../../shared"

// fileTrip optimizes a computation and writes it to a graph file at every step. Each text must read
// as a graph that prints the same, and the computation emitted from the last one must be the same as
// that of the graph itself. It returns the longest text.
func fileTrip(t *testing.T, net *nnet3.Nnet, c *computation.Computation, opt *optdb.Optimizer) string {
	t.Helper()
	d := lower.Dialect{Network: net}
	chain, err := lower.LowerChain(c, net)
	if err != nil {
		t.Fatal(err)
	}
	longest, steps, last := "", 0, ""
	trip := func(p *lower.Program, at string) {
		steps++
		text, err := graphfile.Format(&graphfile.File{Graph: p.Graph}, d)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if text == last {
			return
		}
		last = text
		f, err := graphfile.Parse(at, text, d)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		again, err := graphfile.Format(f, d)
		if err != nil || again != text {
			t.Fatalf("%s: %v: %s", at, err, firstDifference(text, again))
		}
		if len(text) > len(longest) {
			longest = text
		}
	}
	for _, p := range chain.Programs {
		ctx := rewrite.WithOptions(t.Context(), rewrite.Options{BeforePass: func(pass string) bool {
			trip(p, "before "+pass)
			return true
		}})
		if err := opt.Rewrite(ctx, p.Graph, nil); err != nil {
			t.Fatal(err)
		}
		trip(p, "end")
	}
	if steps < 5 {
		t.Errorf("only %d steps", steps)
	}
	text, err := formatChain(chain, d)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := chain.Emit()
	if err != nil {
		t.Fatal(err)
	}
	sameCommands(t, net, direct, emitText(t, text, d))
	return longest
}

func formatChain(ch *lower.Chain, d graphfile.Dialect) (string, error) {
	graphs := ch.Graphs()
	return graphfile.Format(&graphfile.File{Graph: graphs[0], More: graphs[1:]}, d)
}

// emitText emits the computation of a file.
func emitText(t *testing.T, text string, d graphfile.Dialect) *computation.Computation {
	t.Helper()
	f, err := graphfile.Parse("all", text, d)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := lower.ChainOf(f.Graphs()...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ch.Emit()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sameCommands fails unless two computations are equal.
func sameCommands(t *testing.T, net *nnet3.Nnet, want, got *computation.Computation) {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return
	}
	var a, b bytes.Buffer
	if err := computation.Print(&a, want, computation.NewNetworkInfo(net, want.Derived)); err != nil {
		t.Fatal(err)
	}
	if err := computation.Print(&b, got, computation.NewNetworkInfo(net, got.Derived)); err != nil {
		t.Fatal(err)
	}
	for i := range min(len(want.PrecomputedIndexes), len(got.PrecomputedIndexes)) {
		if !reflect.DeepEqual(want.PrecomputedIndexes[i], got.PrecomputedIndexes[i]) {
			t.Errorf("precomputed indexes %d differ", i)
		}
	}
	for i := range min(len(want.Derived), len(got.Derived)) {
		if !reflect.DeepEqual(want.Derived[i], got.Derived[i]) {
			t.Errorf("derived component %d differs", i)
		}
	}
	t.Fatalf("the computation of the file differs: %s", firstDifference(a.String(), b.String()))
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %.300q and %.300q", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// TestGraphFilesOfCases: the graph of every case goes through a file at every step of fast_run.
func TestGraphFilesOfCases(t *testing.T) {
	roots := []string{"../nnet3/testdata/recipes", "../nnet3/testdata/random"}
	if _, err := os.Stat(sharedFolder); err == nil && longtest.Enabled() {
		roots = []string{filepath.Join(sharedFolder, "golden/recipes"), filepath.Join(sharedFolder, "golden/random")}
	}
	opt := passtest.Optimizer(t, "+fast_run")
	n := 0
	for _, root := range roots {
		dirs, err := refcase.Find(os.DirFS(root), ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			c, err := refcase.LoadDir(filepath.Join(root, dir))
			if err != nil {
				continue // TestCases of refcase judges those
			}
			n++
			t.Run(filepath.Base(dir), func(t *testing.T) {
				comp, err := compile.Compile(c.Net, c.Request, compile.Options{})
				if err != nil {
					t.Fatal(err)
				}
				fileTrip(t, c.Net, comp, opt)
			})
		}
	}
	t.Logf("%d cases", n)
	if n < 10 {
		t.Errorf("only %d cases", n)
	}
}

// TestGraphFilesGoOn: a graph that was read after any pass emits the same commands as the graph
// itself, if the optimizer stops there.
func TestGraphFilesGoOn(t *testing.T) {
	for _, dir := range []string{"tdnnf_infer", "lstm_fast_infer", "xvector_train", "cnn_tdnnf_train_inderiv"} {
		c, err := refcase.LoadDir(filepath.Join("../nnet3/testdata/recipes", dir))
		if err != nil {
			t.Fatal(err)
		}
		opt := passtest.Optimizer(t, "+fast_run")
		d := lower.Dialect{Network: c.Net}
		for _, pass := range slices.Compact(opt.Passes("nnet3")) {
			comp, err := compile.Compile(c.Net, c.Request, compile.Options{DebugInfo: true})
			if err != nil {
				t.Fatal(err)
			}
			chain, err := lower.LowerChain(comp, c.Net)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range chain.Programs {
				ctx := rewrite.WithOptions(context.Background(), rewrite.Options{BeforePass: func(next string) bool { return next != pass }})
				if err := opt.Rewrite(ctx, p.Graph, nil); err != nil {
					t.Fatal(err)
				}
			}
			text, err := formatChain(chain, d)
			if err != nil {
				t.Fatal(err)
			}
			direct, err := chain.Emit()
			if err != nil {
				t.Fatal(err)
			}
			sameCommands(t, c.Net, direct, emitText(t, text, d))
		}
	}
}

// TestGraphFilesFullSize: the graphs of full-size networks go through a file at every step, in
// chunks and, where the network permits, looped.
func TestGraphFilesFullSize(t *testing.T) {
	const folder = "../nnet3/testdata/models"
	text, err := os.ReadFile(filepath.Join(folder, "kaldi-fullsize.json"))
	if err != nil {
		t.Fatal(err)
	}
	var entries map[string]struct {
		Config  string
		Request json.RawMessage
	}
	if err := json.Unmarshal(text, &entries); err != nil {
		t.Fatal(err)
	}
	opt := passtest.Optimizer(t, "+fast_run")
	looped := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		if !longtest.Enabled() && name != "lstmp" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			nn, _, err := pipeline.Load(filepath.Join(folder, e.Config), 1)
			if err != nil {
				t.Fatal(err)
			}
			req, err := computation.ReadRequestJSON(bytes.NewReader(e.Request), computation.NewNetworkInfo(nn, nil))
			if err != nil {
				t.Fatal(err)
			}
			nn.SetTestMode(!req.NeedModelDerivative)
			c, err := compile.Compile(nn, req, compile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			longest := fileTrip(t, nn, c, opt)
			t.Logf("%d commands, at most %d bytes of text", len(c.Commands), len(longest))
			if most := 400 * len(c.Commands); len(longest) > most {
				t.Errorf("%d bytes for %d commands", len(longest), len(c.Commands))
			}
			if looped[e.Config] {
				return
			}
			looped[e.Config] = true
			requests, err := compile.LoopedRequests(nn, compile.LoopedConfig{FramesPerChunk: compile.ChunkSize(nn, 3, 21), FrameSubsampling: 3, LeftContext: 40, RightContext: 40})
			if err != nil {
				t.Fatal(err)
			}
			if c, err = compile.Looped(nn, requests, compile.Options{}); err != nil {
				t.Logf("not looped: %v", err)
				return
			}
			fileTrip(t, nn, c, opt)
		})
	}
}

// fileCase is a small recurrent network in training, and its computation.
type fileCase struct {
	net  *nnet3.Nnet
	req  *computation.Request
	comp *computation.Computation
}

func newFileCase(t testing.TB) *fileCase {
	t.Helper()
	nn, err := nnet3.ParseConfig(strings.NewReader(`input-node name=input dim=6
component name=tdnn type=TdnnComponent input-dim=6 output-dim=5 time-offsets=-1,0,1
component-node name=tdnn component=tdnn input=input
component name=relu type=RectifiedLinearComponent dim=5
component-node name=relu component=relu input=tdnn
component name=a type=NaturalGradientAffineComponent input-dim=9 output-dim=4
component-node name=a component=a input=Append(relu, IfDefined(Offset(r, -1)))
component name=r type=TanhComponent dim=4
component-node name=r component=r input=a
component name=out type=AffineComponent input-dim=4 output-dim=3
component-node name=out component=out input=Sum(r, Scale(0.5, Offset(r, 1)))
output-node name=output input=out
`), "config", 1)
	if err != nil {
		t.Fatal(err)
	}
	c := &fileCase{net: nn}
	if c.req, err = pipeline.NewRequest(nn, pipeline.Chunk{Frames: 6, Sequences: 2, Derivative: true}); err != nil {
		t.Fatal(err)
	}
	if c.comp, err = compile.Compile(nn, c.req, compile.Options{DebugInfo: true}); err != nil {
		t.Fatal(err)
	}
	return c
}

// texts returns the graph at some steps as text, the last one of them.
func (c *fileCase) texts(t testing.TB) []string {
	t.Helper()
	chain, err := lower.LowerChain(c.comp, c.net)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	note := func() {
		text, err := formatChain(chain, lower.Dialect{Network: c.net})
		if err != nil {
			t.Fatal(err)
		}
		if len(texts) == 0 || texts[len(texts)-1] != text {
			texts = append(texts, text)
		}
	}
	ctx := rewrite.WithOptions(context.Background(), rewrite.Options{BeforePass: func(string) bool { note(); return true }})
	if err := passtest.Optimizer(t, "+fast_run").Rewrite(ctx, chain.Programs[0].Graph, nil); err != nil {
		t.Fatal(err)
	}
	note()
	return texts
}

// TestWrongStorage: whatever is wrong with the places in a file, reading finds it, or it does not
// matter: values don't get into each other's way.
func TestWrongStorage(t *testing.T) {
	c := newFileCase(t)
	values, err := pipeline.RandomValues(c.net, c.req, 1)
	if err != nil {
		t.Fatal(err)
	}
	run := func(comp *computation.Computation) *pipeline.Results {
		r, err := pipeline.Run(t.Context(), comp, c.net, c.req, values)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	texts := c.texts(t)
	d := lower.Dialect{Network: c.net}
	rounds := 2000
	if !longtest.Enabled() {
		rounds = 300
	}
	r := rand.New(rand.NewPCG(3, 4))
	accepted := 0
	for _, text := range texts {
		at := strings.Index(text, "storage {")
		if at < 0 {
			continue
		}
		want := run(emitText(t, text, d))
		lines := strings.Split(text[at:], "\n")
		for range rounds / len(texts) {
			wrong := strings.Join(disturb(r, lines), "\n")
			f, err := graphfile.Parse("wrong", text[:at]+wrong, d)
			if err != nil || wrong == text[at:] {
				continue
			}
			chain, err := lower.ChainOf(f.Graphs()...)
			if err != nil {
				t.Fatal(err)
			}
			comp, err := chain.Emit()
			if err != nil {
				t.Fatalf("%v\n%s", err, wrong)
			}
			accepted++
			if got := run(comp); !reflect.DeepEqual(got.Outputs, want.Outputs) || !reflect.DeepEqual(got.InputDerivs, want.InputDerivs) {
				t.Fatalf("the values differ\n%s%s", text[:at], wrong)
			}
		}
	}
	t.Logf("%d accepted", accepted)
	if accepted == 0 {
		t.Error("every change is refused")
	}
}

// disturb changes the places of a storage a bit: it moves words between lines, changes numbers, or
// drops options.
func disturb(r *rand.Rand, lines []string) []string {
	lines = slices.Clone(lines)
	for range 1 + r.IntN(2) {
		i, j := 1+r.IntN(len(lines)-3), 1+r.IntN(len(lines)-3)
		words := strings.Fields(lines[i])
		switch k := r.IntN(len(words)); {
		case k == 0 || len(words) < 2:
			lines[i], lines[j] = lines[j], lines[i]
		case r.IntN(2) == 0:
			word, _, _ := strings.Cut(words[k], "@")
			words[k] = fmt.Sprintf("%s@%d,%d", word, r.IntN(6), r.IntN(3))
			lines[i] = "    " + strings.Join(words, " ")
		default:
			lines[j] += " " + words[k]
			if words = slices.Delete(words, k, k+1); len(words) > 1 || words[0] == "options" {
				lines[i] = "    " + strings.Join(words, " ")
			} else {
				lines = slices.Delete(lines, i, i+1)
			}
		}
	}
	return lines
}

// FuzzGraphFile: a file of a computation is an error, or it prints as text that reads as the same,
// and becomes commands.
func FuzzGraphFile(f *testing.F) {
	c := newFileCase(f)
	for _, text := range c.texts(f) {
		f.Add(text)
	}
	d := lower.Dialect{Network: c.net}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := graphfile.Parse("f", text, d)
		if err != nil {
			return
		}
		printed, err := graphfile.Format(file, d)
		if err != nil {
			return // such as a second computation with too many rows
		}
		again, err := graphfile.Parse("f", printed, d)
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if second, err := graphfile.Format(again, d); err != nil || second != printed {
			t.Errorf("%v\n%s\n%s", err, printed, second)
		}
		if chain, err := lower.ChainOf(again.Graphs()...); err == nil {
			_, _ = chain.Emit()
		}
	})
}
