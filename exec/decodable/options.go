package decodable

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-multierror"

	"github.com/nnopt/nnopt/optdb"
)

// Errors that the errors of this package wrap.
var (
	// ErrOptions: the options contradict themselves or do not fit the network.
	ErrOptions = errors.New("bad options")
	// ErrEmpty: an utterance has no frames.
	ErrEmpty = errors.New("the utterance has no frames")
	// ErrDim: features or i-vectors don't have the dimension that the network expects.
	ErrDim = errors.New("wrong dimension")
	// ErrIvector: an utterance, or a chunk of it, has no i-vector.
	ErrIvector = errors.New("no i-vector")
	// ErrNotFinite: features or i-vectors are NaN or infinite, and so will be the output.
	ErrNotFinite = errors.New("not finite")
)

// Options are options of New and NewStreamer. They have the meaning of Kaldi's options of the same
// names. Frames are frames of input. The zero value is the default of nnet3-compute, or of looped
// decoding, without optimization. A Streamer has no use for ExtraLeftContext, ExtraRightContext,
// ExtraRightContextFinal, MinibatchSize and CacheCapacity.
type Options struct {
	// FramesPerChunk is the number of frames of the output of a chunk. 0 means 50, or 24 in a
	// Streamer. It is rounded up to a multiple of FrameSubsampling and of the network's modulus. The
	// last chunk of an utterance may be shorter.
	FramesPerChunk int
	// FrameSubsampling is the number of frames per row of output (frame-subsampling-factor). 0
	// means 1.
	FrameSubsampling int
	// ExtraLeftContext and ExtraRightContext are frames of input beyond those that the network
	// needs. They help recurrent networks.
	ExtraLeftContext, ExtraRightContext int
	// ExtraLeftContextInitial replaces ExtraLeftContext in the first chunk of an utterance, and
	// ExtraRightContextFinal replaces ExtraRightContext in the last one, unless they are nil.
	ExtraLeftContextInitial, ExtraRightContextFinal *int
	// OnlineIvectorPeriod is the number of frames per row of Utterance.OnlineIvectors. A Streamer
	// needs it for Run alone.
	OnlineIvectorPeriod int
	// Priors are probabilities, one per column of output. Their logarithms are subtracted from the
	// output.
	Priors []float32
	// AcousticScale multiplies the output, after priors. 0 means 1.
	AcousticScale float32
	// ApplyExp asks for the exponential of the output, after everything else.
	ApplyExp bool

	// MinibatchSize is the largest number of chunks of an utterance that are computed at once. 0
	// means 1, or 8 for a recurrent network, whose products would otherwise have a single row.
	MinibatchSize int
	// Optimizer optimizes the computations, unless it is nil.
	Optimizer *optdb.Optimizer
	// Threads is the number of threads of each computation; 0 means 1. Several workers use a
	// machine better than several threads.
	Threads int
	// CacheCapacity is the number of programs that are kept (compiler.cache-capacity). 0 means 64
	// plus one per row of a chunk.
	CacheCapacity int
}

// maxChunk bounds the frames of a chunk with its context. 2²⁰ frames are almost three hours of
// speech.
const maxChunk = 1 << 20

// maxThreads bounds the threads of a computation.
const maxThreads = 1024

// check returns an error that lists everything that is wrong with the options.
func (o *Options) check() error {
	var errs *multierror.Error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = multierror.Append(errs, fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...))
		}
	}
	for _, f := range []struct {
		name   string
		frames *int
	}{
		{"frames-per-chunk", &o.FramesPerChunk},
		{"frame-subsampling-factor", &o.FrameSubsampling},
		{"extra-left-context", &o.ExtraLeftContext},
		{"extra-right-context", &o.ExtraRightContext},
		{"extra-left-context-initial", o.ExtraLeftContextInitial},
		{"extra-right-context-final", o.ExtraRightContextFinal},
		{"online-ivector-period", &o.OnlineIvectorPeriod},
	} {
		if n := f.frames; n != nil {
			want(*n >= 0 && *n <= maxChunk, "%s is %d; it may be 0 to %d", f.name, *n, maxChunk)
		}
	}
	want(o.MinibatchSize >= 0 && o.MinibatchSize <= 1024, "minibatch-size is %d; it may be 0 to 1024", o.MinibatchSize)
	want(o.Threads >= 0 && o.Threads <= maxThreads, "threads is %d; it may be 0 to %d", o.Threads, maxThreads)
	want(o.CacheCapacity >= 0, "cache-capacity is %d; it can't be negative", o.CacheCapacity)
	if errs != nil && len(errs.Errors) == 1 {
		return errs.Errors[0]
	}
	return errs.ErrorOrNil()
}
