package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// A scorer is a decodable.Scorer or a decodable.Streamer.
type scorer interface {
	FramesPerChunk() int
	IvectorDim() int
	Run(context.Context, iter.Seq2[decodable.Utterance, error], func(decodable.Utterance, kernel.Matrix) error, decodable.RunOptions) (decodable.Summary, error)
}

// newScorer returns the scorer of a network.
func newScorer(nn *nnet3.Nnet, opts decodable.Options, looped bool) (scorer, error) {
	if looped {
		return decodable.NewStreamer(context.Background(), nn, opts)
	}
	return decodable.New(nn, opts)
}

// A model is a model with its options, prepared for scoring. All users in a process share it.
type model struct {
	once    sync.Once
	scorer  scorer
	sum     string // SHA-256 of the file, in hexadecimal
	notes   []string
	err     error
	counted atomic.Bool // as loaded, in the metrics
}

// models has the models of this process.
var models pool[*model]

// modelKey is what a model and its preparation depend on.
func (w *work) modelKey() (string, error) {
	// Two jobs in one process share a model only if it is prepared in the same way. The digest is
	// not known before the model is read, so it is compared afterwards.
	r := w.recipe()
	r.Scoring.CacheCapacity, r.ModelSum = w.Scoring.CacheCapacity, "" // load compares the digest
	text, err := json.Marshal(r)
	return w.Model + "\x00" + string(text), err
}

// acquire returns the model of a work, which may not be loaded yet.
func acquire(w *work) (m *model, release func(), err error) {
	key, err := w.modelKey()
	if err != nil {
		return nil, nil, err
	}
	return models.acquire(key, func() (*model, error) { return new(model), nil }, func(*model) {})
}

// load reads and prepares the model, once.
func (m *model) load(w *work) (scorer, error) {
	m.once.Do(func() { m.err = m.read(w) })
	if m.err == nil && w.ModelSum != "" && m.sum != w.ModelSum {
		return nil, fmt.Errorf("%s has changed since the job was planned: start the job again", w.Model)
	}
	return m.scorer, m.err
}

// read reads the model without the context of a single user, because others wait for it as well.
func (m *model) read(w *work) error {
	query, err := optdb.ParseQuery(w.Query)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJob, err)
	}
	opts := w.Scoring
	if opts.Optimizer, err = passes.Default().Build(query); err != nil {
		return fmt.Errorf("%w: %w", ErrJob, err)
	}
	var am *nnet3.AmNnetSimple
	o := newOpener(context.Background(), w.AllowPipes)
	err = newRetrier().do(context.Background(), w.Model, func() (err error) {
		am, m.sum, err = readModel(o, w.Model)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case !w.UsePriors:
	case am.Raw:
		return fmt.Errorf("%w: %s is a network without priors; use a .mdl or leave out use-priors", ErrJob, w.Model)
	case len(am.Priors) == 0:
		m.notes = append(m.notes, fmt.Sprintf("%s has no priors, so none are subtracted", w.Model))
	default:
		opts.Priors = am.Priors
	}
	nn, err := am.Nnet.For("output")
	if err != nil {
		return fmt.Errorf("%s: %w", w.Model, err)
	}
	if m.scorer, err = newScorer(nn, opts, w.Looped); err != nil {
		return fmt.Errorf("%s: %w", w.Model, err)
	}
	if err := nn.CheckStats(); err != nil {
		m.notes = append(m.notes, fmt.Sprintf("%s: warning: %v", w.Model, err))
	}
	if w.Looped {
		if err := compile.CheckFuture(nn, opts.FrameSubsampling); err != nil {
			m.notes = append(m.notes, fmt.Sprintf("%s: warning: %v", w.Model, err))
		}
	}
	if n := m.scorer.FramesPerChunk(); opts.FramesPerChunk != 0 && n != opts.FramesPerChunk {
		m.notes = append(m.notes, fmt.Sprintf("a chunk has %d frames instead of %d, a multiple of frame-subsampling-factor and of the network's modulus", n, opts.FramesPerChunk))
	}
	return nil
}

// readModel reads a model and its digest.
func readModel(o *kaldiio.Opener, name string) (*nnet3.AmNnetSimple, string, error) {
	f, err := o.OpenInput(name)
	if err != nil {
		return nil, "", err
	}
	am, sum, err := readModelFrom(f, name)
	if closeErr := f.Close(); err == nil {
		err = closeErr // the model was complete, but the command failed
	}
	return am, sum, err
}

func readModelFrom(f io.Reader, name string) (*nnet3.AmNnetSimple, string, error) {
	hash := sha256.New()
	am, err := nnet3.Loader{}.ReadModelFrom(io.TeeReader(f, hash), name)
	if err != nil {
		return nil, "", err
	}
	_, err = io.Copy(hash, f)
	return am, hex.EncodeToString(hash.Sum(nil)), err
}
