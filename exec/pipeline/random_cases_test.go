package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// The files random_*_test.go test the optimizer on random networks and requests.
//
// A case is made from a seed alone. The networks are of the families that Kaldi tests its optimizer
// with, and of some that its recipes consist of: factored layers with bypass, fast LSTMs, GRUs,
// dropout. The last family, "mixed", stacks layers of all kinds on random descriptors of those
// below. Widths, offsets, depth, numbers of sequences and frames are random, and so is whether
// derivatives are wanted. All are small: a case takes milliseconds.
//
// The tests compare networks, and computations without a network (package computationtest), as
// compiled and as optimized, under +fast_run and under queries that leave out up to three entries
// and a tag at random. For a long run, say how many cases and the first seed:
//
//	go test ./exec/pipeline -timeout 0 -run 'Optimize|Computations' -random 10000 -queries 8 -seed 1000000
//
// TestQuantized, TestQuantizedBits and TestQuantizedStreams compute wider networks in integers, with
// -random and -seed as above: alone and in company, with every set of kernels, with frames that are not
// finite, and as live streams.

// A Case is a network and a request for it.
type Case struct {
	Seed   uint64
	Family string
	// Config is the config lines of the network.
	Config  string
	Net     *nnet3.Nnet
	Request *computation.Request
	// TestMode means that the network runs in test mode. Batch normalization then needs statistics.
	TestMode bool
}

// New makes a case from a seed. Consecutive seeds cycle through the families. An error is a bug in
// this package.
func New(seed uint64) (*Case, error) { return NewWide(seed, 1) }

// NewWide is New with layers that are a number of times wider.
func NewWide(seed uint64, times int) (*Case, error) {
	f := families[seed%uint64(len(families))]
	n := &network{r: rand.New(rand.NewPCG(seed, 0x6e6e6f7074)), dim: make(map[string]int), frames: 12, times: times}
	n.testMode = n.chance(2)
	f.build(n)
	if len(n.outputs) == 0 {
		n.output("output", n.last)
	}
	c := &Case{Seed: seed, Family: f.name, Config: strings.Join(n.lines, "\n") + "\n", TestMode: n.testMode}
	var err error
	if c.Net, err = nnet3.ParseConfig(strings.NewReader(c.Config), "config", seed); err != nil {
		return nil, fmt.Errorf("seed %d (%s): %w\n%s", seed, c.Family, err, c.Config)
	}
	c.Net.SetTestMode(n.testMode)
	if c.Request, err = n.request(c.Net); err != nil {
		return nil, fmt.Errorf("seed %d (%s): %w\n%s", seed, c.Family, err, c.Config)
	}
	return c, nil
}

// ordersByRows reports whether the network may have sums whose terms depend on the time. The
// compiler adds them in an order that depends on all rows, so a row has other bits alone than in
// company.
func (c *Case) ordersByRows() bool { return c.Family == "descriptors" || c.Family == "mixed" }

// Families returns the names of the families: seed s makes a network of family s modulo their
// number.
func Families() []string {
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.name
	}
	return names
}

var families = [...]struct {
	name  string
	build func(*network)
}{
	{"simplest", (*network).simplest},
	{"context", (*network).context},
	{"simple", (*network).simple},
	{"rnn", (*network).rnn},
	{"clockwork", (*network).clockwork},
	{"lstm", (*network).lstm},
	{"cnn", (*network).cnn},
	{"distribute", (*network).distribute},
	{"composite", (*network).composite},
	{"statistics", (*network).statistics},
	{"lstm_truncation", (*network).lstmTruncation},
	{"time_height_convolution", (*network).timeHeight},
	{"attention", (*network).attention},
	{"tdnnf", (*network).tdnnf},
	{"fast_lstm", (*network).fastLstm},
	{"gru", (*network).gru},
	{"dropout", (*network).dropout},
	{"row_wise", (*network).rowWise},
	{"descriptors", (*network).descriptors},
	{"mixed", (*network).mixed},
}
