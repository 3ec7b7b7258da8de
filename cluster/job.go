package cluster

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

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
	// stand for them.
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
}

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
		return bad("the model must be a file: workers read it, too")
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
	case j.FramesPerShard < 0:
		return bad("frames-per-shard is %d; it can't be negative", j.FramesPerShard)
	case math.IsNaN(float64(j.Scoring.AcousticScale)) || math.IsInf(float64(j.Scoring.AcousticScale), 0):
		return bad("acoustic-scale is %g; want a number", j.Scoring.AcousticScale)
	}
	for _, table := range []string{j.Features, j.Ivectors, j.OnlineIvectors} {
		if table == "" && table != j.Features {
			continue
		}
		spec, err := kaldiio.ParseRspecifier(table)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrJob, err)
		case !spec.Script:
			return bad("%s is an archive, but workers need a script: Kaldi's copy-feats and copy-vector write one (ark,scp:table.ark,table.scp)", table)
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
	Online     bool // i-vectors are online
	AllowPipes bool

	Workers     int
	Shards      int // of the plan
	RetryFailed bool
	Run         string // tells runs of a job apart
}

// newWork returns the work of a job whose model has the given digest.
func newWork(j *Job, sum string) (*work, error) {
	dir, err := filepath.Abs(j.Out)
	if err != nil {
		return nil, err
	}
	w := &work{
		Dir: dir, Out: filepath.Clean(j.Out), Model: absolute(j.Model), ModelSum: sum, Scoring: j.Scoring, Query: j.Query,
		UsePriors: j.UsePriors, Online: j.OnlineIvectors != "", AllowPipes: j.AllowPipes, Workers: j.Workers, RetryFailed: j.RetryFailed, Run: rand.Text(),
	}
	return w, nil
}

// absolute makes the name of a file absolute, which may have an offset. Other names, such as
// commands, are returned as they are.
func absolute(rxfilename string) string {
	if rxfilename == "" || rxfilename == "-" || strings.Contains(rxfilename, "|") || strings.TrimSpace(rxfilename) != rxfilename {
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
	Online     bool              `json:"online_ivectors"`
	AllowPipes bool              `json:"allow_pipes"`
	Scoring    decodable.Options `json:"options"`
}

func (w *work) recipe() recipe {
	r := recipe{Format: format, ModelSum: w.ModelSum, Query: w.Query, UsePriors: w.UsePriors, Online: w.Online, AllowPipes: w.AllowPipes, Scoring: w.Scoring}
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

// path returns the name of a file in the directory of the job.
func (w *work) path(name ...string) string { return filepath.Join(append([]string{w.Dir}, name...)...) }

// Names in the directory of a job.
const (
	outFile      = "out.scp"
	failuresFile = "failures.txt"
	summaryFile  = "summary.json"
	planFile     = "plan.jsonl"
	framesFile   = "utt2num_frames"
	shardsDir    = "shards"
)
