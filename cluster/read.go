package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// A reader reads the utterances of a shard. It is for one goroutine.
type reader struct {
	work  *work
	ctx   context.Context
	files *openFiles
	retry *retrier
	late  map[string]bool // files of features for which the time was up
}

// openFiles are the files that a reader has open. They are left alone if reading never ends.
type openFiles struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	matrices *kaldiio.Objects[kaldiio.Matrix]
	vectors  *kaldiio.Objects[[]float32]
	retry    *retrier
}

func newReader(ctx context.Context, w *work) *reader {
	r := &reader{work: w, ctx: ctx, retry: newRetrier(), late: make(map[string]bool)}
	r.renew()
	return r
}

// renew gives the reader other files than those that are open.
func (r *reader) renew() {
	f := &openFiles{retry: r.retry}
	f.ctx, f.cancel = context.WithCancelCause(r.ctx)
	o := newOpener(f.ctx, r.work.AllowPipes)
	f.matrices = kaldiio.NewObjects(o, kaldiio.MatrixHolder())
	f.vectors = kaldiio.NewObjects(o, kaldiio.VectorHolder())
	r.files = f
}

func (f *openFiles) close() {
	f.matrices.Close()
	f.vectors.Close()
	f.cancel(nil)
}

// utterances yields the utterances of a list in its order, each with its key, also where it has an
// error.
func (r *reader) utterances(list []entry) iter.Seq2[decodable.Utterance, error] {
	return func(yield func(decodable.Utterance, error) bool) {
		defer func() { r.files.close() }()
		for _, e := range list {
			u, err := r.utterance(e)
			u.Key = e.Key
			if !yield(u, err) {
				return
			}
		}
	}
}

// leaveAfter is how long reading may take to notice that its time is up.
const leaveAfter = time.Second

// utterance reads an utterance within the limit of time. A read that does not end even after that
// is left behind with its files, as on a disk of another machine that is gone.
func (r *reader) utterance(e entry) (u decodable.Utterance, err error) {
	if e.Error != "" {
		return u, errors.New(e.Error)
	}
	line, _ := kaldiio.ParseScriptLine(e.Key + " " + e.Features)
	if r.late[line.File()] {
		return u, fmt.Errorf("%w: the time was up for an earlier utterance of %s", decodable.ErrLate, line.File())
	}
	type result struct {
		u   decodable.Utterance
		err error
	}
	// A read from a disk that is gone can't be interrupted. So it happens in a goroutine with files
	// of its own, which can be left behind: the reader continues with others, and remembers the file
	// so as not to wait for it once more. Archives hold many utterances, and each would take the
	// whole limit.
	f, done := r.files, make(chan result, 1)
	go func() {
		u, err := f.utterance(e, r.work.Online)
		done <- result{u, err}
	}()
	limit := time.NewTimer(r.work.Limit)
	defer limit.Stop()
	select {
	case got := <-done:
		return r.checked(got.u, got.err)
	case <-limit.C:
	case <-r.ctx.Done():
	}
	late := fmt.Errorf("%w: to read the utterance takes longer than %v", decodable.ErrLate, r.work.Limit)
	f.cancel(late)
	leave := time.NewTimer(leaveAfter)
	defer leave.Stop()
	select {
	case <-done:
		f.close()
	case <-leave.C:
		r.retry = newRetrier() // the goroutine still has the other one
	}
	r.renew()
	r.late[line.File()] = true
	if r.ctx.Err() != nil {
		return u, context.Cause(r.ctx)
	}
	return u, late
}

// checked returns an utterance unless it is too long.
func (r *reader) checked(u decodable.Utterance, err error) (decodable.Utterance, error) {
	if most := r.work.MaxFrames; err == nil && most > 0 && int64(u.Features.Rows) > most {
		return decodable.Utterance{}, tooLong(int64(u.Features.Rows), most)
	}
	return u, err
}

// utterance reads an utterance.
func (f *openFiles) utterance(e entry, online bool) (u decodable.Utterance, err error) {
	if u.Features, err = f.matrix(e.Key, e.Features); err != nil || e.Ivector == "" {
		return u, err
	}
	if online {
		u.OnlineIvectors, err = f.matrix(e.Key, e.Ivector)
		if err == nil && u.OnlineIvectors.Rows == 0 {
			err = fmt.Errorf("%w in %s", decodable.ErrIvector, e.Ivector)
		}
		return u, err
	}
	u.Ivector, err = repeat(f.ctx, f.retry, f.vectors, e.Key, e.Ivector)
	if err == nil && len(u.Ivector) == 0 {
		err = fmt.Errorf("%w in %s", decodable.ErrIvector, e.Ivector)
	}
	return u, err
}

func (f *openFiles) matrix(key, object string) (kernel.Matrix, error) {
	m, err := repeat(f.ctx, f.retry, f.matrices, key, object)
	return kernel.Matrix(m), err
}

// repeat reads an object until that succeeds or is hopeless.
func repeat[T any](ctx context.Context, retry *retrier, objects *kaldiio.Objects[T], key, object string) (v T, err error) {
	line, err := kaldiio.ParseScriptLine(key + " " + object)
	if err != nil {
		return v, err
	}
	err = retry.do(ctx, line.File(), func() (err error) {
		if v, err = objects.Of(line); err != nil {
			objects.Close() // the next try opens the file anew
		}
		return err
	})
	return v, err
}

const (
	maxTries = 6 // of a read, with 1.5 s between the first and the last
	// maxWasted bounds the time that a retrier waits for reads that fail in the end. Afterwards it
	// tries twice, so that a disk that is gone does not take a second per utterance.
	maxWasted = 15 * time.Second
)

// firstDelay is the time between the first two tries. Tests shorten it.
var firstDelay = 50 * time.Millisecond

// A retrier repeats reads that fail, because disks of other machines do so at times. It is for one
// goroutine.
type retrier struct {
	repeated int64           // reads that were repeated
	lost     map[string]bool // files of which a read failed in all tries; others are tried once
	wasted   time.Duration
	sleep    func(context.Context, time.Duration) error
}

func newRetrier() *retrier { return &retrier{lost: make(map[string]bool), sleep: sleep} }

// do reads from a file, again and again until that succeeds or is hopeless.
func (r *retrier) do(ctx context.Context, file string, read func() error) error {
	tries := maxTries
	// A file whose reads failed six times will likely fail again, and a disk that is gone fails for
	// all of its files. Without these two bounds a shard of ten thousand utterances would wait for
	// hours.
	switch {
	case r.lost[file]:
		tries = 1
	case r.wasted >= maxWasted:
		tries = 2
	}
	var waited time.Duration
	for try := 1; ; try++ {
		err := read()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if hopeless(err) {
			return err
		}
		if try == tries {
			r.lost[file] = true
			r.wasted += waited
			return err
		}
		delay := firstDelay << (try - 1)
		delay += time.Duration(rand.Int64N(int64(delay) / 4)) // so that workers don't come back all at once
		if err := r.sleep(ctx, delay); err != nil {
			return err
		}
		waited += delay
		r.repeated++
	}
}

// hopeless reports whether a read fails in the same way whenever it is repeated. Files that are
// missing or too short may be on their way to this machine.
func hopeless(err error) bool {
	all := []error{kaldiio.ErrSpecifier, kaldiio.ErrCommand, kaldiio.ErrRange, kaldiio.ErrCorrupt, errAbsent, fileio.ErrLimit, fs.ErrPermission}
	return slices.ContainsFunc(all, func(target error) bool { return errors.Is(err, target) })
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
