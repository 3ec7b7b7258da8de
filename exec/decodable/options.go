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
	// ErrDim: features or i-vectors do not have the size that the network wants.
	ErrDim = errors.New("wrong dimension")
	// ErrIvector: there is no i-vector for an utterance, or for a chunk of it.
	ErrIvector = errors.New("no i-vector")
	// ErrNotFinite: features or i-vectors are NaN or infinite, and so will be what is computed of them.
	ErrNotFinite = errors.New("not finite")
)

// Options say how utterances are scored. They have the meaning of Kaldi's options of the same names; frames are frames of
// input. The zero value is what nnet3-compute does by default, with computations that are not optimized.
type Options struct {
	// FramesPerChunk is the number of frames that the output of a chunk stands for; 0 means 50. It is rounded up to a
	// multiple of FrameSubsampling and of the network's modulus. The last chunk of an utterance may be shorter.
	FramesPerChunk int
	// FrameSubsampling is the number of frames per row of output (frame-subsampling-factor); 0 means 1.
	FrameSubsampling int
	// ExtraLeftContext and ExtraRightContext are frames of input beyond those that the network needs, which recurrent
	// networks profit from.
	ExtraLeftContext, ExtraRightContext int
	// ExtraLeftContextInitial takes the place of ExtraLeftContext in the first chunk of an utterance, and
	// ExtraRightContextFinal that of ExtraRightContext in the last one, unless they are nil.
	ExtraLeftContextInitial, ExtraRightContextFinal *int
	// OnlineIvectorPeriod is the number of frames per row of Utterance.OnlineIvectors.
	OnlineIvectorPeriod int
	// Priors are probabilities, one per column of output, whose logarithms are subtracted from the output. None means that
	// nothing is.
	Priors []float32
	// AcousticScale is what the output is multiplied by, after priors; 0 means 1.
	AcousticScale float32
	// ApplyExp asks for the exponential of the output, after everything else.
	ApplyExp bool

	// MinibatchSize is the largest number of chunks of an utterance that are computed at once. 0 means 1, or defaultMinibatch
	// for a recurrent network, whose products else have a single row.
	MinibatchSize int
	// Optimizer optimizes the computations; nil leaves them as they were compiled.
	Optimizer *optdb.Optimizer
	// CacheCapacity is the number of programs that are kept (compiler.cache-capacity); 0 means 64 and one per row of a chunk.
	CacheCapacity int
}

// largestChunk bounds the frames of a chunk, context included: 2²⁰ are almost three hours of speech.
const largestChunk = 1 << 20

// check returns everything that is wrong with the options.
func (o *Options) check() error {
	var errs *multierror.Error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = multierror.Append(errs, fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...))
		}
	}
	frames := func(name string, n *int) {
		want(n == nil || *n >= 0 && *n <= largestChunk, "%s is %d; it may be 0 to %d", name, value(n), largestChunk)
	}
	frames("frames-per-chunk", &o.FramesPerChunk)
	frames("frame-subsampling-factor", &o.FrameSubsampling)
	frames("extra-left-context", &o.ExtraLeftContext)
	frames("extra-right-context", &o.ExtraRightContext)
	frames("extra-left-context-initial", o.ExtraLeftContextInitial)
	frames("extra-right-context-final", o.ExtraRightContextFinal)
	frames("online-ivector-period", &o.OnlineIvectorPeriod)
	want(o.MinibatchSize >= 0 && o.MinibatchSize <= 1024, "minibatch-size is %d; it may be 0 to 1024", o.MinibatchSize)
	want(o.CacheCapacity >= 0, "cache-capacity is %d; it can't be negative", o.CacheCapacity)
	if errs != nil && len(errs.Errors) == 1 {
		return errs.Errors[0]
	}
	return errs.ErrorOrNil()
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// or returns n, or what it stands for if it is 0.
func or[T int | float32](n, otherwise T) T {
	if n == 0 {
		return otherwise
	}
	return n
}
