package networks

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tool"
)

// limitsError is the entry that limits the error of quantized products as measured, and boundsError
// the one that limits an estimate of it unless the user gives a limit. To measure takes runs of the
// network on random inputs, to estimate a look at the parameters: so the estimate is the default, and
// who names a limit gets what holds for it.
const (
	limitsError  = "limit_quantization_error"
	boundsError  = "bound_quantization_error"
	limitsTensor = "limit_integer_error" // of graphs of tensors
)

// switches are Kaldi's, and the limit of the error of quantized products.
type switches struct {
	kaldi passes.OptimizeOptions
	most  string // the setting of limitsError; empty unless given
}

// declareSwitches declares Kaldi's flags, such as --optimization.propagate-in-place=false.
func declareSwitches(fs *flag.FlagSet, prefix string) tool.Switches {
	s := &switches{kaldi: passes.DefaultOptimizeOptions()}
	s.kaldi.Register(fs, prefix)
	fs.StringVar(&s.most, "quantize.error", "", "With +int8 or +int16, the largest error of an output relative to its norm, measured on random inputs: the worst products get 16 bits or stay in float32; 0 for no limit (default = 0.08; for networks with +int8 an estimate of it)")
	return s
}

// Query leaves out passes that are switched off. The limit of the error comes last.
func (s *switches) Query(q optdb.Query) optdb.Query {
	q = s.kaldi.Query(q)
	if s.most != "" {
		q = q.Excluding(boundsError).Including(limitsError, limitsTensor).Set(limitsError, "error", s.most).Set(limitsTensor, "error", s.most)
	}
	return q
}

// Check returns an error for a limit of an error that no pass makes: who gives it has forgotten a
// tag.
func (s *switches) Check(q optdb.Query, opt *optdb.Optimizer) error {
	if s.most == "" || slices.ContainsFunc(quantizers, opt.Selected) {
		return nil
	}
	return tool.Usagef("--quantize.error limits what quantized products change, and %s quantizes none; add +int8 or +int16 to --query", q)
}

// Off reports whether Kaldi's --optimization.optimize is false.
func (s *switches) Off() bool { return !s.kaldi.Optimize }

// quantizers are the entries that quantize products.
var quantizers = []string{"quantize_to_int8", "quantize_to_int16", "products_to_int8", "products_to_int16"}

// networkFlags are the flags for a network and a request.
type networkFlags struct {
	*Options
	passes  *tool.Selection
	watch   *tool.Watch                           // nil if the verb has no such flags
	observe func(context.Context) context.Context // records the run, unless it is nil
	request string
	seed    uint64
	outputs string
	chunk   pipeline.Chunk
	random  bool // --srand is also the seed of values

	fromConfig bool // what was loaded has random parameters
}

// chunkFlags are the flags that say what is computed, unless --request does.
var chunkFlags = []string{"frames-per-chunk", "frame-subsampling-factor", "extra-left-context", "extra-right-context", "num-sequences",
	"need-model-derivative", "outputs"}

// declareNetwork declares the flags for a network and a request.
func (o *Options) declareNetwork(cfg *tool.Config, fs *flag.FlagSet) *networkFlags {
	f := &networkFlags{Options: o, passes: tool.DeclareSelection(cfg, fs)}
	f.declareRequest(fs)
	return f
}

// declareRequest declares those of a network and a request alone.
func (f *networkFlags) declareRequest(fs *flag.FlagSet) {
	f.declareChunk(fs)
	fs.IntVar(&f.chunk.Sequences, "num-sequences", 1, "Number of chunks that are computed together")
	fs.BoolVar(&f.chunk.Derivative, "need-model-derivative", false, "Compute the gradient of the parameters")
}

// declareChunk declares those of a chunk of one sequence.
func (f *networkFlags) declareChunk(fs *flag.FlagSet) {
	fs.StringVar(&f.request, "request", "", "JSON file with the request; FILE#NAME takes member NAME of its object. The default is a request for one chunk")
	seedFlag(fs, &f.seed)
	fs.IntVar(&f.chunk.Frames, "frames-per-chunk", 150, "Frames in a chunk, before subsampling")
	fs.IntVar(&f.chunk.Subsampling, "frame-subsampling-factor", 1, "Frames per row of output; 3 for chain models")
	fs.IntVar(&f.chunk.ExtraLeft, "extra-left-context", 0, "Extra frames of left context")
	fs.IntVar(&f.chunk.ExtraRight, "extra-right-context", 0, "Extra frames of right context")
	fs.StringVar(&f.outputs, "outputs", "", "Comma-separated names of output nodes, or \"all\"")
}

// seedFlag declares --srand.
func seedFlag(fs *flag.FlagSet, seed *uint64) {
	fs.Uint64Var(seed, "srand", 0, "Seed of random parameters, for a network from config lines")
}

// ownParameters says why a flag of random parameters is no use.
const ownParameters = "for a model, which has its parameters"

// load reads a model and the request.
func (f *networkFlags) load(c *tool.Console, name string) (*nnet3.Nnet, *computation.Request, error) {
	if err := c.InVainIf(f.request != "", "beside --request, which says what is computed", chunkFlags...); err != nil {
		return nil, nil, err
	}
	nn, fromConfig, err := f.network(c, name, f.seed)
	if err != nil {
		return nil, nil, err
	}
	if err := c.InVainIf(!fromConfig && !f.random, ownParameters, "srand"); err != nil {
		return nil, nil, err
	}
	f.fromConfig = fromConfig
	var req *computation.Request
	if f.request != "" {
		req, err = readRequest(f.request, nn)
	} else {
		if f.outputs != "" {
			f.chunk.Outputs = strings.Split(f.outputs, ",")
		}
		req, err = pipeline.NewRequest(nn, f.chunk)
	}
	if err != nil {
		return nil, nil, err
	}
	prepare(nn, req)
	return nn, req, nil
}

// prepare sets test mode, except for batch normalization in a request with a gradient. It returns
// the mode.
func prepare(nn *nnet3.Nnet, req *computation.Request) (mode string) {
	mode = modeAll
	if req.NeedModelDerivative {
		mode = modeNotBatch
	}
	_ = setMode(nn, mode) // it is one of those that there are
	return mode
}

// network reads a model or config lines; "-" is standard input.
func (o *Options) network(c *tool.Console, name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	loader := nnet3.Loader{Types: o.Components}
	if name == "-" {
		return loader.LoadFrom(c.Stdin, "standard input", seed)
	}
	return loader.Load(name, seed)
}

// readRequest reads a request from FILE or FILE#NAME.
func readRequest(file string, nn *nnet3.Nnet) (*computation.Request, error) {
	name, member, hasMember := strings.Cut(file, "#")
	text, err := fileio.ReadFile(name, fileio.MaxText)
	if err != nil {
		return nil, fmt.Errorf("can't read request: %w", err)
	}
	if hasMember {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var ok bool
		if text, ok = object[member]; !ok {
			return nil, fmt.Errorf("%s has no member %q", name, fileio.Excerpt(member, 0))
		}
	}
	req, err := computation.ReadRequestJSON(bytes.NewReader(text), computation.NewNetworkInfo(nn, nil))
	if err != nil {
		var members map[string]struct {
			Request json.RawMessage `json:"request"`
		}
		if json.Unmarshal(text, &members) == nil && !hasMember && len(members) > 0 {
			return nil, fmt.Errorf("%s: %w; %s#NAME takes the request of one of its members: %s", file, err, file, fileio.Excerpt(strings.Join(slices.Sorted(maps.Keys(members)), ", "), 0))
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return req, nil
}

// counts are the figures of a computation, under the names that all verbs use.
type counts struct {
	Commands       int   `json:"commands"`
	Matrices       int   `json:"matrices"`
	MaxMemoryBytes int64 `json:"max_memory_bytes"`
}

func countsOf(c *computation.Computation) counts {
	n := c.Counts()
	return counts{Commands: n.Commands, Matrices: n.Matrices, MaxMemoryBytes: n.MaxMemoryBytes}
}

// maxFrames bounds flags that count frames or sequences. The libraries check narrower
// bounds.
const maxFrames = 1 << 24

// ranges gives the bounds of integer flags.
var ranges = map[string][2]int{
	"compiler.cache-capacity":               {0, 1 << 20},
	"compression-method":                    {1, 7},
	"extra-left-context":                    {0, maxFrames},
	"extra-left-context-initial":            {-1, maxFrames},
	"extra-right-context":                   {0, maxFrames},
	"extra-right-context-final":             {-1, maxFrames},
	"frame-subsampling-factor":              {1, maxFrames},
	"frames-per-chunk":                      {1, maxFrames},
	"max-streams":                           {0, 64},
	"minibatch-size":                        {0, 1024},
	"num-sequences":                         {1, maxFrames},
	"online-ivector-period":                 {0, maxFrames},
	"packet":                                {1, maxFrames},
	"streams":                               {1, 1 << 16},
	"width":                                 {0, 2 * widestSide},
	"workers":                               {0, 4096}, // each has a workspace of its own
	"optimization.min-deriv-time":           {math.MinInt32, math.MaxInt32},
	"optimization.max-deriv-time":           {math.MinInt32, math.MaxInt32},
	"optimization.max-deriv-time-relative":  {math.MinInt32, math.MaxInt32},
	"optimization.memory-compression-level": {0, 2},
}

// real is the value of a flag for a number between least and most.
type real struct {
	v           *float64
	least, most float64
}

// String returns the number.
func (r real) String() string {
	if r.v == nil {
		return ""
	}
	return strconv.FormatFloat(*r.v, 'g', -1, 64)
}

// Set sets the number if it is in range.
func (r real) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= r.least && x <= r.most) {
		return fmt.Errorf("not a number between %g and %g", r.least, r.most)
	}
	*r.v = x
	return nil
}
