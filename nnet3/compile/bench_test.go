package compile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// fullSize is a network of the size used in recipes.
type fullSize struct {
	name string
	nn   *nnet3.Nnet
	info *computation.NetworkInfo
	req  *computation.Request
	want computation.Counts
}

// fullSizes reads full-size networks, those of some names or all: config files, and requests in kaldi-fullsize.json.
func fullSizes(t testing.TB, names ...string) []*fullSize {
	t.Helper()
	const dir = "../testdata/models"
	text, err := os.ReadFile(filepath.Join(dir, "kaldi-fullsize.json"))
	if err != nil {
		t.Fatal(err)
	}
	var entries map[string]struct {
		Config  string
		Request json.RawMessage
		Kaldi   struct{ Unoptimized computation.Counts }
	}
	if err := json.Unmarshal(text, &entries); err != nil {
		t.Fatal(err)
	}
	nets := map[string]*nnet3.Nnet{}
	var list []*fullSize
	for name, e := range entries {
		if names != nil && !slices.Contains(names, name) {
			continue
		}
		nn := nets[e.Config]
		if nn == nil {
			config, err := os.ReadFile(filepath.Join(dir, e.Config))
			if err != nil {
				t.Fatal(err)
			}
			if nn, err = nnet3.ParseConfig(bytes.NewReader(config), e.Config, 1); err != nil {
				t.Logf("%s: %v", e.Config, err)
				continue
			}
			nets[e.Config] = nn
		}
		f := &fullSize{name: name, nn: nn, info: computation.NewNetworkInfo(nn, nil), want: e.Kaldi.Unoptimized}
		if f.req, err = computation.ReadRequestJSON(bytes.NewReader(e.Request), f.info); err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

// TestFullSize compiles the full-size networks; see TestGolden.
func TestFullSize(t *testing.T) {
	names := []string{"tdnnf_1k", "lstmp"}
	if longtest.Enabled() {
		names = nil
	}
	for _, f := range fullSizes(t, names...) {
		t.Run(f.name, func(t *testing.T) {
			got, err := Compile(f.nn, f.req, Options{DebugInfo: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := computation.Check(got, f.info, computation.CheckOptions{Rewrite: true}); err != nil {
				t.Error(err)
			}
			compareCounts(t, got.Counts(), f.want)
		})
	}
}

// compareCounts checks that there are as many commands, matrices and sub-matrices as in Kaldi, and
// not more bytes. Kaldi has more if its components pad their rows.
func compareCounts(t *testing.T, got, want computation.Counts) {
	t.Helper()
	if got.Commands != want.Commands || got.Matrices != want.Matrices || got.Submatrices != want.Submatrices || got.MaxMemoryBytes > want.MaxMemoryBytes {
		t.Errorf("ours:  %+v\nKaldi: %+v", got, want)
	}
	for _, name := range []string{"kPropagate", "kBackprop", "kAcceptInput", "kProvideOutput", "kNoOperationMarker", "kNoOperationPermanent"} {
		if got.ByType[name] != want.ByType[name] {
			t.Errorf("%d %s, Kaldi has %d", got.ByType[name], name, want.ByType[name])
		}
	}
}

func BenchmarkFullSize(b *testing.B) {
	for _, f := range fullSizes(b) {
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compile(f.nn, f.req, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRows shows that the time grows in proportion to the number of rows: a network with
// context, recurrence and a choice, over an input of 10² to 10⁵ frames.
func BenchmarkRows(b *testing.B) {
	nn := parse(b,
		"input-node name=input dim=2",
		"component name=a type=NoOpComponent dim=6",
		"component-node name=a component=a input=Append(Offset(input, -1), input, Offset(input, 1))",
		"component name=b type=NoOpComponent dim=6",
		"component-node name=b component=b input=Failover(Offset(a, 3), a)",
		"component name=c type=NoOpComponent dim=6",
		"component-node name=c component=c input=Sum(b, IfDefined(Offset(c, -5000)))",
		"output-node name=output input=c")
	for _, rows := range []int32{100, 1000, 10000, 100000} {
		req := ask(rowsOf{"input": at(1, -1, rows+1)}, rowsOf{"output": at(1, 0, rows)})
		b.Run(strconv.Itoa(int(rows)), func(b *testing.B) {
			for b.Loop() {
				if _, err := Compile(nn, req, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
		})
	}
}

// BenchmarkNodes shows that the time grows in proportion to the number of nodes: one after the
// other, side by side, and as columns of one.
func BenchmarkNodes(b *testing.B) {
	for _, nodes := range []int{100, 1000, 10000, 50000} {
		start := []string{"input-node name=input dim=2", "component name=c type=NoOpComponent dim=2", "component-node name=n0 component=c input=input"}
		chain, outputs, columns := slices.Clone(start), slices.Clone(start), slices.Clone(start)
		one, all := ask(rowsOf{"input": at(1, 0, 2)}, rowsOf{"output": at(1, 0, 2)}), ask(rowsOf{"input": at(1, 0, 2)}, nil)
		var names []string
		for i := 1; i < nodes; i++ {
			chain = append(chain, fmt.Sprintf("component-node name=n%d component=c input=n%d", i, i-1))
			outputs = append(outputs, fmt.Sprintf("output-node name=n%d input=n0", i))
			columns = append(columns, fmt.Sprintf("dim-range-node name=n%d input-node=n0 dim=1 dim-offset=1", i))
			names = append(names, fmt.Sprint("n", i))
			all.Outputs = append(all.Outputs, computation.IoSpecification{Name: names[i-1], Indexes: at(1, 0, 2)})
		}
		chain = append(chain, "output-node name=output input="+names[nodes-2])
		columns = append(columns, "output-node name=output input=Append("+strings.Join(names, ",")+")")
		for _, shape := range []struct {
			name  string
			lines []string
			req   *computation.Request
		}{{"chain", chain, one}, {"outputs", outputs, all}, {"columns", columns, one}} {
			nn := parse(b, shape.lines...)
			b.Run(fmt.Sprintf("%s/%d", shape.name, nodes), func(b *testing.B) {
				for b.Loop() {
					if _, err := Compile(nn, shape.req, Options{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
			})
		}
	}
}

// BenchmarkSequences shows the cost of more sequences.
func BenchmarkSequences(b *testing.B) {
	nn := parse(b, spliced...)
	for _, sequences := range []int32{1, 10, 100, 1000} {
		req := ask(rowsOf{"input": at(sequences, -1, 100)}, rowsOf{"output": at(sequences, 0, 100)})
		b.Run(strconv.Itoa(int(sequences)), func(b *testing.B) {
			for b.Loop() {
				if _, err := Compile(nn, req, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
