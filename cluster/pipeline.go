package cluster

import (
	"context"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

func init() {
	register.DoFn3x1[context.Context, []byte, func(string), error](&planFn{})
	register.DoFn3x1[context.Context, string, func(string), error](&scoreFn{})
	register.DoFn3x1[context.Context, int, func(*string) bool, error](&mergeFn{})
	register.Emitter1[string]()
	register.Iter1[string]()
}

// Metrics of workers, as attempts: what a runner does twice counts twice. The Summary counts
// everything once.
var (
	metricUtterances   = beam.NewCounter("nnopt", "utterances")
	metricFrames       = beam.NewCounter("nnopt", "frames")
	metricMilliseconds = beam.NewCounter("nnopt", "milliseconds") // of scoring shards
	metricFailures     = beam.NewCounter("nnopt", "failures")
	metricRepeated     = beam.NewCounter("nnopt", "repeated_reads")
	metricShards       = beam.NewCounter("nnopt", "shards")
	metricSkipped      = beam.NewCounter("nnopt", "skipped_shards")
	metricModels       = beam.NewCounter("nnopt", "models_loaded")
	metricShardFrames  = beam.NewDistribution("nnopt", "frames_per_shard")
)

// build builds the pipeline of a planned job.
func build(p *beam.Pipeline, w *work) {
	s := p.Root()
	shards := beam.ParDo(s.Scope("Plan"), &planFn{Work: *w}, beam.Impulse(s))
	// Without this, a runner would fuse planning and scoring into one stage, on one machine. The
	// second barrier is the grouping by a fixed key: merging begins when all shards are complete.
	shards = beam.Reshuffle(s.Scope("Spread"), shards)
	done := beam.ParDo(s.Scope("Score"), &scoreFn{Work: *w}, shards)
	s = s.Scope("Merge")
	beam.ParDo0(s, &mergeFn{Work: *w}, beam.GroupByKey(s, beam.AddFixedKey(s, done)))
}

// planFn yields the shards of the plan. A pipeline that held them itself could become too large for
// its runner.
type planFn struct{ Work work }

// ProcessElement emits the IDs of all shards.
func (f *planFn) ProcessElement(ctx context.Context, _ []byte, emit func(string)) error {
	_, shards, err := readPlan(ctx, &f.Work)
	if err != nil {
		return err
	}
	for _, id := range inOrderOfWork(shards) {
		emit(id)
	}
	return nil
}

// scoreFn scores shards, several at a time: a shard that consists of one long utterance keeps one
// processor busy, and must not hold up others. So the work of a bundle may end in FinishBundle.
type scoreFn struct {
	Work work

	model   *model
	release func()
	bundle  *bundle
}

// Setup takes a share in the model, which is loaded when the first shard needs it.
func (f *scoreFn) Setup() (err error) {
	f.model, f.release, err = acquire(&f.Work)
	return err
}

// Teardown gives the share back.
func (f *scoreFn) Teardown() {
	if f.release != nil {
		f.release()
	}
}

// StartBundle begins a bundle of shards.
func (f *scoreFn) StartBundle(ctx context.Context, _ func(string)) {
	f.bundle = newBundle(ctx, &f.Work, f.model)
}

// ProcessElement begins to score a shard, unless it is complete, as soon as there is a free slot.
func (f *scoreFn) ProcessElement(ctx context.Context, id string, emit func(string)) error {
	if err := f.bundle.start(id); err != nil {
		return err
	}
	return f.tell(ctx, emit)
}

// FinishBundle waits for all shards of the bundle.
func (f *scoreFn) FinishBundle(ctx context.Context, emit func(string)) error {
	if err := f.bundle.wait(); err != nil {
		return err
	}
	return f.tell(ctx, emit)
}

// tell counts and emits shards that are complete.
func (f *scoreFn) tell(ctx context.Context, emit func(string)) error {
	for _, m := range f.bundle.takeDone() {
		emit(m.Shard)
		if m.skipped {
			metricSkipped.Inc(ctx, 1)
			continue
		}
		if f.model.counted.CompareAndSwap(false, true) {
			metricModels.Inc(ctx, 1)
		}
		metricShards.Inc(ctx, 1)
		metricUtterances.Inc(ctx, int64(m.Utterances))
		metricFrames.Inc(ctx, m.Frames)
		metricMilliseconds.Inc(ctx, int64(m.Seconds*1e3))
		metricFailures.Inc(ctx, int64(len(m.Failures)))
		metricRepeated.Inc(ctx, m.RepeatedReads)
		metricShardFrames.Update(ctx, m.Frames)
		log.Infof(ctx, "shard %s: %d utterances, %d frames in %.1f s, %d failed", m.Shard, m.Utterances, m.Frames, m.Seconds, len(m.Failures))
	}
	return nil
}

// mergeFn joins the results of all shards.
type mergeFn struct{ Work work }

// ProcessElement is called once all shards are complete.
func (f *mergeFn) ProcessElement(ctx context.Context, _ int, _ func(*string) bool) error {
	_, err := merge(ctx, &f.Work)
	return err
}
