package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/pattern"
)

// defaultQuery is the default of --query.
const defaultQuery = "+fast_run"

// optimizationPrefix begins the flags that switch off single passes.
const optimizationPrefix = "optimization."

// passFlags select passes.
type passFlags struct {
	db       *optdb.SequenceDB
	flags    *flag.FlagSet // nil if they are not declared
	query    string
	kaldi    passes.OptimizeOptions // Kaldi's switches
	excluded []string
	most     string // the setting of limitsError; empty unless given
	added    addedRules
	vocab    pattern.Vocabulary // of the rules
	built    struct {           // what build returned
		query string
		opt   *optdb.Optimizer
	}
}

// newPassFlags returns the flags of a query, without declaring them.
func newPassFlags(cfg *Config, query string) *passFlags {
	return &passFlags{db: cfg.Database(), query: query, kaldi: passes.DefaultOptimizeOptions(), vocab: cfg.networkVocabulary()}
}

// declarePasses declares --query, Kaldi's flags such as
// --optimization.propagate-in-place=false, and similar flags for other passes:
// --optimization.merge1=false leaves out the entry merge1.
func declarePasses(cfg *Config, fs *flag.FlagSet) *passFlags {
	f := declareQuery(cfg, fs)
	f.added.declare(fs)
	return f
}

// queryUsage says what --query takes.
const queryUsage = "Select passes by terms +tag, -tag, &tag, or by a mode: fast_run, fast_compile, debug (fast_run with checks), none; \"$0 passes\" lists the tags"

// declareQuery is declarePasses without flags that add rules.
func declareQuery(cfg *Config, fs *flag.FlagSet) *passFlags {
	f := newPassFlags(cfg, defaultQuery)
	f.flags = fs
	declareSelection(fs, &f.query)
	f.kaldi.Register(fs, optimizationPrefix)
	fs.StringVar(&f.most, "quantize.error", "", "With +int8 or +int16, the largest error of an output relative to its norm, measured on random inputs: the worst products get 16 bits or stay in float32; 0 for no limit (default = an estimate, for +int8)")
	for _, entry := range f.db.Names() {
		name := optimizationPrefix + strings.ReplaceAll(entry, "_", "-")
		if fs.Lookup(name) != nil {
			continue
		}
		fs.BoolFunc(name, "Run the pass "+entry, func(value string) error {
			on, err := strconv.ParseBool(value)
			if err == nil && !on {
				f.excluded = append(f.excluded, entry)
			}
			return err
		})
	}
	return f
}

// DeclarePasses declares the flags by which run and other verbs select passes, and returns a
// function that reads them once they are parsed: the query that they amount to, and its optimizer.
// It leaves out flags that add rules, because a query can't name those.
func DeclarePasses(cfg *Config, fs *flag.FlagSet) func() (query string, opt *optdb.Optimizer, err error) {
	return declareQuery(cfg, fs).build
}

// declareSelection declares --query and --pipeline, which lists passes in place of a query.
func declareSelection(fs *flag.FlagSet, query *string) {
	by := ""
	claim := func(name string) error {
		if by != "" && by != name {
			return fmt.Errorf("--%s selects passes already", by)
		}
		by = name
		return nil
	}
	fs.Func("query", queryUsage, func(text string) error {
		*query = text
		return claim("query")
	})
	fs.Lookup("query").DefValue = *query
	fs.Func("pipeline", "Run these passes in this order, in place of --query: names separated by commas, settings in braces, the entries of a database in parentheses; \"$0 passes --as-pipeline\" prints an example", func(text string) error {
		if err := claim("pipeline"); err != nil {
			return err
		}
		q, err := optdb.ParsePipeline(text)
		*query = q.String()
		return err
	})
}

// build returns the optimizer, and the query as text, without the rules of --rule.
func (f *passFlags) build() (string, *optdb.Optimizer, error) {
	if f.built.opt != nil { // the rules of the flags are in the database
		return f.built.query, f.built.opt, nil
	}
	query, opt, err := f.buildAnew()
	if err == nil {
		f.built.query, f.built.opt = query, opt
	}
	return query, opt, err
}

func (f *passFlags) buildAnew() (string, *optdb.Optimizer, error) {
	q, err := optdb.ParseQuery(f.query)
	if err != nil {
		return "", nil, &usageError{err: err}
	}
	// The query is put together in the order of precedence: what the user typed, passes that flags
	// leave out, Kaldi's switches, the limit of the error. Rules of flags join the database last,
	// because a query that is printed can't name them.
	given := q
	for _, name := range f.excluded {
		if q, err = optdb.ParseQuery(q.String() + " -" + name); err != nil { // unlike Excluding, it keeps settings, which are a mistake
			return "", nil, &usageError{err: err}
		}
	}
	asked := f.kaldi.Query(q)
	if f.most != "" {
		asked = asked.Excluding(boundsError).Including(limitsError).Set(limitsError, "error", f.most)
	}
	full, err := f.added.join(f.db, f.vocab, asked)
	if err != nil {
		return "", nil, err
	}
	opt, err := f.db.Build(full)
	if err != nil {
		return "", nil, &usageError{err: err}
	}
	// Flags that would change nothing are errors: a user who limits an error that no pass makes has
	// forgotten a tag.
	if f.most != "" && !slices.ContainsFunc(quantizers, opt.Selected) {
		return "", nil, Usagef("--quantize.error limits what quantized products change, and %s quantizes none; add +int8 or +int16 to --query", q)
	}
	if err := f.checkOn(opt); err != nil {
		return "", nil, err
	}
	// The query as typed is what reports show, if the flags have changed nothing.
	if asked.Equal(given) {
		return f.query, opt, nil
	}
	return asked.String(), opt, nil
}

// checkOn returns an error for a flag that asks for a pass which is not selected.
func (f *passFlags) checkOn(opt *optdb.Optimizer) (err error) {
	if f.flags == nil || !f.kaldi.Optimize {
		return nil
	}
	f.flags.Visit(func(g *flag.Flag) {
		name, ok := strings.CutPrefix(g.Name, optimizationPrefix)
		entry := strings.ReplaceAll(name, "-", "_")
		if ok && opt.Has(entry) && !opt.Selected(entry) && !slices.Contains(f.excluded, entry) && g.Value.String() != "false" {
			err = Usagef("--%s: %s", g.Name, opt.Explain(entry))
		}
	})
	return err
}

// limitsError is the entry that limits the error of quantized products as measured, and boundsError
// the one that limits an estimate of it unless the user gives a limit. To measure takes runs of the
// network on random inputs, to estimate a look at the parameters: so the estimate is the default, and
// who names a limit gets what holds for it.
const (
	limitsError = "limit_quantization_error"
	boundsError = "bound_quantization_error"
)

// quantizers are the entries that quantize products.
var quantizers = []string{"quantize_to_int8", "quantize_to_int16"}

// networkFlags are the flags for a network and a request.
type networkFlags struct {
	passes  *passFlags
	watch   *watchFlags                           // nil if the verb has no such flags
	observe func(context.Context) context.Context // records the run, unless it is nil
	request string
	seed    uint64
	outputs string
	chunk   pipeline.Chunk
	random  bool // --srand is also the seed of values
}

// chunkFlags are the flags that say what is computed, unless --request does.
var chunkFlags = []string{"frames-per-chunk", "frame-subsampling-factor", "extra-left-context", "extra-right-context", "num-sequences",
	"need-model-derivative", "outputs"}

// declareNetwork declares the flags for a network and a request.
func declareNetwork(cfg *Config, fs *flag.FlagSet) *networkFlags {
	f := &networkFlags{passes: declarePasses(cfg, fs)}
	f.declareRequest(fs)
	return f
}

// declareRequest declares those of a network and a request alone.
func (f *networkFlags) declareRequest(fs *flag.FlagSet) {
	fs.StringVar(&f.request, "request", "", "JSON file with the request; FILE#NAME takes member NAME of its object. The default is a request for one chunk")
	seedFlag(fs, &f.seed)
	fs.IntVar(&f.chunk.Frames, "frames-per-chunk", 150, "Frames in a chunk, before subsampling")
	fs.IntVar(&f.chunk.Subsampling, "frame-subsampling-factor", 1, "Frames per row of output; 3 for chain models")
	fs.IntVar(&f.chunk.ExtraLeft, "extra-left-context", 0, "Extra frames of left context")
	fs.IntVar(&f.chunk.ExtraRight, "extra-right-context", 0, "Extra frames of right context")
	fs.IntVar(&f.chunk.Sequences, "num-sequences", 1, "Number of chunks that are computed together")
	fs.BoolVar(&f.chunk.Derivative, "need-model-derivative", false, "Compute the gradient of the parameters")
	fs.StringVar(&f.outputs, "outputs", "", "Comma-separated names of output nodes, or \"all\"")
}

// seedFlag declares --srand.
func seedFlag(fs *flag.FlagSet, seed *uint64) {
	fs.Uint64Var(seed, "srand", 0, "Seed of random parameters, for a network from config lines")
}

// ownParameters says why a flag of random parameters is no use.
const ownParameters = "for a model, which has its parameters"

// load reads a model and the request.
func (f *networkFlags) load(c *Console, name string) (*nnet3.Nnet, *computation.Request, error) {
	if err := c.inVainIf(f.request != "", "beside --request, which says what is computed", chunkFlags...); err != nil {
		return nil, nil, err
	}
	nn, fromConfig, err := loadNetwork(c, name, f.seed)
	if err != nil {
		return nil, nil, err
	}
	if err := c.inVainIf(!fromConfig && !f.random, ownParameters, "srand"); err != nil {
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

// loadNetwork reads a model or config lines; "-" is standard input.
func loadNetwork(c *Console, name string, seed uint64) (nn *nnet3.Nnet, fromConfig bool, err error) {
	loader := nnet3.Loader{Types: c.cfg.Components}
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

// writeJSON writes a value as one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
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
