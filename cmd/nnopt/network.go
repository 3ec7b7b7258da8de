package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/fileio"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// defaultQuery is what runs unless somebody asks for something else.
const defaultQuery = "+fast_run"

// optimizationPrefix begins the flags of Kaldi's optimizations, and those that switch other single passes off.
const optimizationPrefix = "optimization."

// passFlags say which passes run.
type passFlags struct {
	query    string
	kaldi    passes.OptimizeOptions // Kaldi's switches
	excluded []string
}

// declarePasses declares --query, Kaldi's flags such as --optimization.propagate-in-place=false, and flags of that kind for the
// passes that Kaldi doesn't have: --optimization.merge1=false leaves out the entry merge1.
func declarePasses(fs *flag.FlagSet) *passFlags {
	f := &passFlags{kaldi: passes.DefaultOptimizeOptions()}
	fs.StringVar(&f.query, "query", defaultQuery, "Which passes run: terms +tag, -tag, &tag, or a mode: fast_run, fast_compile, debug (fast_run, with checks), none. \"nnopt passes\" lists the tags")
	f.kaldi.Register(fs, optimizationPrefix)
	for _, e := range passes.Default().Entries() {
		name := optimizationPrefix + strings.ReplaceAll(e.Name, "_", "-")
		if fs.Lookup(name) != nil {
			continue
		}
		fs.BoolFunc(name, e.Doc, func(value string) error {
			on, err := strconv.ParseBool(value)
			if err == nil && !on {
				f.excluded = append(f.excluded, e.Name)
			}
			return err
		})
	}
	return f
}

// build selects the passes. It returns the query as text, for reports.
func (f *passFlags) build() (string, *optdb.Optimizer, error) {
	q, err := optdb.ParseQuery(f.query)
	if err != nil {
		return "", nil, &usageError{err: err}
	}
	asked := f.kaldi.Query(q.Excluding(f.excluded...))
	opt, err := passes.Default().Build(asked)
	if err != nil {
		return "", nil, &usageError{err: err}
	}
	if asked.Equal(q) {
		return f.query, opt, nil
	}
	return asked.String(), opt, nil
}

// A networkFlags holds the flags by which verbs take a network and a request to it.
type networkFlags struct {
	passes  *passFlags
	watch   *watchFlags // nil: the verb has no such flags
	request string
	seed    uint64
	outputs string
	chunk   pipeline.Chunk
}

// declareNetwork declares the flags of a verb that compiles a request.
func declareNetwork(fs *flag.FlagSet) *networkFlags {
	f := &networkFlags{passes: declarePasses(fs)}
	fs.StringVar(&f.request, "request", "", "JSON file with the request; FILE#NAME takes member NAME of the object in it. Without, the request is for a chunk")
	seedFlag(fs, &f.seed)
	fs.IntVar(&f.chunk.Frames, "frames-per-chunk", 150, "Number of frames that the output of a chunk stands for")
	fs.IntVar(&f.chunk.Subsampling, "frame-subsampling-factor", 1, "Frames per row of output; 3 for chain models")
	fs.IntVar(&f.chunk.ExtraLeft, "extra-left-context", 0, "Frames of input before those that the network needs")
	fs.IntVar(&f.chunk.ExtraRight, "extra-right-context", 0, "Frames of input after those that the network needs")
	fs.IntVar(&f.chunk.Sequences, "num-sequences", 1, "How many chunks are computed at once")
	fs.BoolVar(&f.chunk.Derivative, "need-model-derivative", false, "Ask for the gradient of the parameters too")
	fs.StringVar(&f.outputs, "outputs", "", "Comma-separated names of the output-nodes that are wanted, or \"all\"")
	return f
}

// seedFlag declares --srand for a verb that reads networks.
func seedFlag(fs *flag.FlagSet, seed *uint64) {
	fs.Uint64Var(seed, "srand", 0, "Seed of the random parameters of a network from config lines")
}

// load reads a model and makes the request to it.
func (f *networkFlags) load(c *console, name string) (*nnet3.Nnet, *computation.Request, error) {
	nn, _, err := loadNetwork(c, name, f.seed)
	if err != nil {
		return nil, nil, err
	}
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

// prepare puts a network into the state in which the request needs it: in test mode, but batch normalization in training mode
// where the gradient is wanted.
func prepare(nn *nnet3.Nnet, req *computation.Request) {
	nn.SetTestMode(true)
	if !req.NeedModelDerivative {
		return
	}
	for _, c := range nn.Components {
		if bn, ok := c.(*component.BatchNorm); ok {
			bn.SetTestMode(false)
		}
	}
}

// loadNetwork reads a model or config lines; "-" stands for standard input.
func loadNetwork(c *console, name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	if name == "-" {
		return pipeline.LoadFrom(c.stdin, "standard input", seed)
	}
	return pipeline.Load(name, seed)
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
			return nil, fmt.Errorf("%s has no member %q", name, member)
		}
	}
	req, err := computation.ReadRequestJSON(bytes.NewReader(text), computation.NewNetworkInfo(nn, nil))
	if err != nil {
		var members map[string]struct {
			Request json.RawMessage `json:"request"`
		}
		if json.Unmarshal(text, &members) == nil && !hasMember && len(members) > 0 {
			return nil, fmt.Errorf("%s: %w; %s#NAME takes the request of a member: %s", file, err, file, strings.Join(slices.Sorted(maps.Keys(members)), ", "))
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return req, nil
}

// writeJSON writes a value as a line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// counts are the figures of a computation in JSON, under the names that all verbs use.
type counts struct {
	Commands       int   `json:"commands"`
	Matrices       int   `json:"matrices"`
	MaxMemoryBytes int64 `json:"max_memory_bytes"`
}

func countsOf(c *computation.Computation) counts {
	n := c.Counts()
	return counts{Commands: n.Commands, Matrices: n.Matrices, MaxMemoryBytes: n.MaxMemoryBytes}
}
