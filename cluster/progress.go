package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// Progress says how far a job has come.
type Progress struct {
	Shards, AllShards int   // that are complete, and all
	Frames, AllFrames int64 // in them, as planned
	RunFrames         int64 // in those that were completed since the run began
	Elapsed           time.Duration
}

// FramesPerSecond returns the speed of the run.
func (p Progress) FramesPerSecond() float64 {
	return float64(p.RunFrames) / max(p.Elapsed.Seconds(), 1e-9)
}

// String returns a line for a log.
func (p Progress) String() string {
	text := fmt.Sprintf("%d of %d shards, %d of %d frames, %.0f frames/s", p.Shards, p.AllShards, p.Frames, p.AllFrames, p.FramesPerSecond())
	if speed := p.FramesPerSecond(); speed > 0 {
		left := time.Duration(float64(p.AllFrames-p.Frames) / speed * float64(time.Second))
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return text
}

// watch tells the progress of a job until stop is called. It looks for manifests in the directory
// of the job, because shards may be scored anywhere.
func watch(ctx context.Context, j *Job, w *work) (stop func()) {
	if j.Progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, shards, err := readPlan(ctx, w)
		if err != nil {
			return // the pipeline fails in the same way
		}
		frames := make(map[string]int64, len(shards))
		for _, s := range shards {
			frames[s.ID] += s.Frames
		}
		start := time.Now()
		// The speed is that of this run, and the time that is left follows from it: what was
		// complete before took no time.
		before, _ := measure(ctx, w, frames) // without it, what was complete counts as done in this run
		tick := time.NewTicker(cmp.Or(j.ProgressInterval, 10*time.Second))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now, err := measure(ctx, w, frames); err == nil && ctx.Err() == nil {
				now.RunFrames, now.Elapsed = max(now.Frames-before.Frames, 0), time.Since(start)
				j.Progress(now)
			}
		}
	}()
	return func() {
		cancel()
		<-gone
	}
}

// measure counts the shards that have manifests.
func measure(ctx context.Context, w *work, frames map[string]int64) (p Progress, err error) {
	names, err := w.store().list(ctx, w.path(shardsDir))
	if err != nil {
		return p, err
	}
	p.AllShards = len(frames)
	for _, n := range frames {
		p.AllFrames += n
	}
	for _, name := range names {
		id, isManifest := strings.CutSuffix(name, ".json")
		if n, ok := frames[id]; ok && isManifest {
			p.Shards++
			p.Frames += n
		}
	}
	return p, nil
}
