package cluster

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// ErrJob is wrapped by errors about a Job that contradicts itself or does not fit the model.
var ErrJob = errors.New("bad job")

// A Job says what to score. Tables are scripts ("scp:feats.scp"), because workers read parts of
// them.
type Job struct {
	Model    string // a Kaldi nnet3 model, raw or .mdl
	Features string // script of matrices, a row per frame
	Out      string // directory of the results; scripts name archives below it

	Ivectors       string // script of vectors, by utterance, or by speaker with Speakers
	OnlineIvectors string // script of matrices, by utterance
	Speakers       string // rspecifier of the speaker of each utterance (utt2spk)
	FrameCounts    string // rspecifier of the frames of each utterance (utt2num_frames); headers tell the others

	// Scoring has the options of nnopt run. Optimizer and Priors must be nil: Query and UsePriors
	// take their place.
	Scoring   decodable.Options
	Query     string // selects passes of the standard database
	UsePriors bool   // subtract the logarithms of the priors of a .mdl

	// FramesPerShard bounds the frames of a shard. A longer utterance has a shard of its own. 0
	// means DefaultFramesPerShard.
	FramesPerShard int64
	// Workers is the number of utterances that a process scores at once, in different shards if
	// there are enough. 0 means one per processor.
	Workers int
	// AllowPipes allows commands in place of file names.
	AllowPipes bool
	// RetryFailed scores complete shards again if utterances of them have failed.
	RetryFailed bool

	// Looped scores utterances as streams (decodable.Streamer), as nnopt run --looped does.
	Looped bool
	// MaxFrames bounds the frames of an utterance; longer ones fail. 0 means no bound.
	MaxFrames int64
	// Limit bounds the time in which an utterance is read, and that in which it is scored. If it
	// takes longer, it fails. 0 means DefaultLimit.
	Limit time.Duration
	// Progress, if not nil, is called about every ProgressInterval while shards are scored. An
	// interval of 0 means ten seconds.
	Progress         func(Progress)
	ProgressInterval time.Duration
}

// DefaultLimit is the default of Job.Limit. Ten hours of speech take a large recurrent network less
// on one processor.
const DefaultLimit = 3 * time.Hour

// DefaultFramesPerShard is the default of Job.FramesPerShard: an hour of speech, which takes a
// processor ten seconds to some minutes.
const DefaultFramesPerShard = 360_000

// check returns an error if the job contradicts itself.
func (j *Job) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrJob}, args...)...)
	}
	switch {
	case j.Model == "" || j.Model == "-":
		return bad("the model must be a file: workers also read it")
	case j.Out == "":
		return bad("a directory for the results is wanted")
	case j.Ivectors != "" && j.OnlineIvectors != "":
		return bad("i-vectors come either by utterance (ivectors) or online (online-ivectors), not both")
	case j.Speakers != "" && j.Ivectors == "":
		return bad("speakers (utt2spk) need ivectors")
	case j.OnlineIvectors != "" && j.Scoring.OnlineIvectorPeriod <= 0:
		return bad("online-ivectors need online-ivector-period")
	case j.Scoring.Optimizer != nil || j.Scoring.Priors != nil:
		return bad("an optimizer and priors can't be sent to workers: use Query and UsePriors")
	case j.MaxFrames < 0:
		return bad("max-frames is %d; it can't be negative", j.MaxFrames)
	case j.Limit < 0:
		return bad("utterance-limit is %v; it can't be negative", j.Limit)
	case j.FramesPerShard < 0:
		return bad("frames-per-shard is %d; it can't be negative", j.FramesPerShard)
	case math.IsNaN(float64(j.Scoring.AcousticScale)) || math.IsInf(float64(j.Scoring.AcousticScale), 0):
		return bad("acoustic-scale is %g; want a number", j.Scoring.AcousticScale)
	}
	if o := &j.Scoring; j.Looped && (o.ExtraLeftContext != 0 || o.ExtraRightContext != 0 || o.ExtraRightContextFinal != nil || o.MinibatchSize != 0 || o.CacheCapacity != 0) {
		return bad("with looped, contexts other than extra-left-context-initial, minibatch-size and cache-capacity have no meaning")
	}
	if strings.ContainsAny(j.Out, "*?[\\") && kaldiio.HasScheme(j.Out) {
		return bad("%s: a directory with a scheme can't have any of *?[\\ in its name, which would make it a pattern", j.Out)
	}
	return j.checkTables(bad)
}

// checkTables returns an error for tables that workers can't read in parts.
func (j *Job) checkTables(bad func(string, ...any) error) error {
	for _, table := range []string{j.Features, j.Ivectors, j.OnlineIvectors} {
		if table == "" && table != j.Features {
			continue
		}
		spec, err := kaldiio.ParseRspecifier(table)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrJob, err)
		case !spec.Script:
			flag := ""
			if table == j.Ivectors {
				flag = "--vectors "
			}
			return bad(`%s is an archive, but workers need a script; "nnopt copy %s%s ark,scp:table.ark,table.scp" writes one`, table, flag, table)
		case spec.Permissive:
			return bad("%s: option p would hide failures; they are listed in %s", table, failuresFile)
		}
	}
	return nil
}

// work is what workers must know of a job.
type work struct {
	Dir        string // of the results, absolute
	Out        string // the same as scripts name it
	Model      string // absolute, unless it is a command
	ModelSum   string // SHA-256 of the model, in hexadecimal
	Scoring    decodable.Options
	Query      string
	UsePriors  bool
	Looped     bool
	Online     bool // i-vectors are online
	AllowPipes bool

	Workers     int
	MaxFrames   int64
	Limit       time.Duration
	Shards      int // of the plan
	RetryFailed bool
	Run         string // tells runs of a job apart
}

// newWork returns the work of a job whose model has the given digest.
func newWork(j *Job, sum string) (*work, error) {
	w := &work{
		Dir: strings.TrimRight(j.Out, "/"), Model: absolute(j.Model), ModelSum: sum, Scoring: j.Scoring, Query: j.Query, Looped: j.Looped,
		UsePriors: j.UsePriors, Online: j.OnlineIvectors != "", AllowPipes: j.AllowPipes, Workers: j.Workers, RetryFailed: j.RetryFailed, Run: rand.Text(),
		MaxFrames: j.MaxFrames, Limit: cmp.Or(j.Limit, DefaultLimit),
	}
	w.Out = w.Dir
	if kaldiio.HasScheme(j.Out) {
		_, err := systemOf(j.Out)
		return w, err
	}
	w.Out = filepath.Clean(j.Out)
	var err error
	w.Dir, err = filepath.Abs(j.Out)
	return w, err
}

// absolute makes the name of a file absolute, which may have an offset. Other names, such as
// commands and those with a scheme, are returned as they are.
func absolute(rxfilename string) string {
	if kaldiio.HasScheme(rxfilename) || rxfilename == "" || rxfilename == "-" || strings.Contains(rxfilename, "|") || strings.TrimSpace(rxfilename) != rxfilename {
		return rxfilename
	}
	if abs, err := filepath.Abs(rxfilename); err == nil {
		return abs
	}
	return rxfilename
}

// format is the version of what is written into the directory. Rows of another version are not
// used.
const format = 1

// A recipe is what rows depend on beside the utterance. It is in every manifest, and its digest in
// the ID of every shard.
type recipe struct {
	Format     int               `json:"format"`
	ModelSum   string            `json:"model_sha256"`
	Query      string            `json:"query"`
	UsePriors  bool              `json:"use_priors"`
	Looped     bool              `json:"looped,omitempty"`
	Online     bool              `json:"online_ivectors"`
	AllowPipes bool              `json:"allow_pipes"`
	Scoring    decodable.Options `json:"options"`
}

func (w *work) recipe() recipe {
	r := recipe{Format: format, ModelSum: w.ModelSum, Query: w.Query, UsePriors: w.UsePriors, Looped: w.Looped, Online: w.Online, AllowPipes: w.AllowPipes, Scoring: w.Scoring}
	r.Scoring.CacheCapacity = 0 // changes no row
	return r
}

// digest returns the beginning of a SHA-256 of a value in JSON, in hexadecimal.
func digest(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:idLength], nil
}

// idLength is the number of hexadecimal digits of an ID. Among 10⁹ shards two would have the same
// with a probability of 10⁻⁶.
const idLength = 20

// Names in the directory of a job.
const (
	outFile      = "out.scp"
	failuresFile = "failures.txt"
	summaryFile  = "summary.json"
	planFile     = "plan.jsonl"
	framesFile   = "utt2num_frames"
	jobFile      = "job.json"
	lockFile     = "lock"
	shardsDir    = "shards"
)
