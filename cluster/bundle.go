package cluster

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/nnopt/nnopt/exec"
)

// workers is the number of utterances that this process scores at once.
func (w *work) workers() int {
	if w.Workers > 0 {
		return w.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// workersPerShard is the number of utterances of a shard that are scored at once: one, unless there
// are fewer shards than workers. The longest shards may be a single utterance each.
func (w *work) workersPerShard() int {
	n := w.workers()
	shards := min(n, max(w.Shards, 1))
	return (n + shards - 1) / shards
}

// busy counts the shards in work in this process, in all bundles.
var busy = struct {
	changed *sync.Cond // guards count
	count   int
}{changed: sync.NewCond(new(sync.Mutex))}

// take waits until fewer than most shards are in work, or until ctx is done, and adds one. The
// function done ends its work.
func take(ctx context.Context, most int) (done func(), err error) {
	if !await(ctx, func() bool { return busy.count < most }, 1) {
		return nil, context.Cause(ctx)
	}
	return func() { await(context.Background(), func() bool { return true }, -1) }, nil
}

// await waits until a condition on busy.count holds, and then adds to it. It returns false if ctx
// is done before.
func await(ctx context.Context, condition func() bool, add int) bool {
	// A condition variable knows no context, so its end wakes all that wait; each then looks at its
	// own context.
	defer context.AfterFunc(ctx, func() {
		busy.changed.L.Lock()
		defer busy.changed.L.Unlock()
		busy.changed.Broadcast()
	})()
	busy.changed.L.Lock()
	defer busy.changed.L.Unlock()
	for ctx.Err() == nil {
		if condition() {
			busy.count += add
			busy.changed.Broadcast()
			return true
		}
		busy.changed.Wait()
	}
	return false
}

// A bundle is a set of shards that are scored by one instance of scoreFn.
type bundle struct {
	work   *work
	model  *model
	ctx    context.Context
	cancel context.CancelCauseFunc // with the first error
	group  sync.WaitGroup

	mu   sync.Mutex
	done []*manifest // since the last takeDone
}

func newBundle(ctx context.Context, w *work, m *model) *bundle {
	b := &bundle{work: w, model: m}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	return b
}

// start scores a shard in the background. It waits for a free slot. After an error, of any
// shard, it waits for all shards and returns the error.
func (b *bundle) start(id string) error {
	// ProcessElement returns while its shard is being scored, which makes a runner send the next
	// one. The wait for a slot is what slows it down, in all bundles of this process together.
	release, err := take(b.ctx, b.work.workers())
	if err != nil {
		return b.wait()
	}
	b.group.Go(func() {
		defer release()
		m, err := b.score(id)
		if err != nil {
			b.cancel(err)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.done = append(b.done, m)
	})
	return nil
}

// score scores a shard unless it is complete. It turns a panic into an error: Beam does so for its
// own goroutines only.
func (b *bundle) score(id string) (m *manifest, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("shard %s: %w: %v\n%s", id, exec.ErrPanic, p, debug.Stack())
		}
	}()
	if m := readManifest(b.ctx, b.work, id); m.complete(b.work) {
		m.skipped = true
		return m, nil
	}
	scorer, err := b.model.load(b.work)
	if err != nil {
		return nil, err
	}
	return scoreShard(b.ctx, b.work, scorer, id)
}

// wait waits for all shards, and returns the first error.
func (b *bundle) wait() error {
	b.group.Wait()
	err := context.Cause(b.ctx)
	b.cancel(nil)
	return err
}

// takeDone returns shards that are complete, each once.
func (b *bundle) takeDone() []*manifest {
	b.mu.Lock()
	defer b.mu.Unlock()
	done := b.done
	b.done = nil
	return done
}
