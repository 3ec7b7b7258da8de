package cluster

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

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
