package decodable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nnopt/nnopt/kernel"
)

// ErrLate is the error of an utterance that takes longer than RunOptions.Limit.
var ErrLate = errors.New("out of time")

// abandonAfter is how long a computation may take to notice that its time is up, or that the run
// has ended. A command of a computation takes milliseconds.
const abandonAfter = 2 * time.Second

// deadline returns when the utterance must be scored. The time runs from the first call.
func (j *job) deadline(limit time.Duration) time.Time {
	j.began.CompareAndSwap(0, time.Now().UnixNano())
	return time.Unix(0, j.began.Load()).Add(limit)
}

// limited returns a context that ends at the deadline of the utterance.
func (j *job) limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	late := fmt.Errorf("%w: the utterance takes longer than %v", ErrLate, limit)
	return context.WithDeadlineCause(ctx, j.deadline(limit), late)
}

// scoreWithin is score with a limit for the time of the utterance. It returns false if the
// computation does not end even so. Then it goes on in the background with the memory of w, which
// may not be used by another.
func (t *task) scoreWithin(ctx context.Context, w staff, s scoring, limit time.Duration) (ended bool) {
	ctx, cancel := t.job.limited(ctx, limit)
	defer cancel()
	// The computation gets a task of its own. If it is abandoned, it may still write to it, while t
	// is already written and used for another utterance. Only after done are the results copied, so
	// there is no race.
	own := &task{job: t.job, piece: t.piece, first: t.first, out: t.out}
	done := make(chan struct{})
	go func() {
		defer close(done)
		own.score(ctx, w, s)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		// A computation looks at ctx between commands, so usually it ends within milliseconds and
		// the worker stays usable. What does not end by then hangs in a single command.
		patience := time.NewTimer(abandonAfter)
		defer patience.Stop()
		select {
		case <-done:
		case <-patience.C:
			t.out, t.err = kernel.Matrix{}, context.Cause(ctx)
			return false
		}
	}
	t.out, t.err = own.out, own.err
	return true
}
