package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// ErrSubmitted is the error of a job that was handed to a runner and not waited for (Beam's flag
// async). The summary will be in the directory of the job.
var ErrSubmitted = errors.New("the job is submitted, and continues without this program")

// Score scores a job. The program must have called beam.Init after parsing its flags, which makes
// it a worker where a runner starts it as one. Utterances that fail are counted in the Summary and
// are no error. After another error or when ctx is done, the same call continues with the shards that
// are not complete.
//
// Notes, if it is not nil, is called with remarks on the options. The error wraps ErrJob or
// decodable.ErrOptions if the job must be changed.
func Score(ctx context.Context, j Job, notes func(string)) (*Summary, error) {
	if !beam.Initialized() {
		return nil, errors.New("beam.Init was not called")
	}
	if err := j.check(); err != nil {
		return nil, err
	}
	w, release, err := prepare(&j, notes)
	if err != nil {
		return nil, err
	}
	defer release()
	leave, err := claim(ctx, w)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := makePlan(ctx, &j, w); err != nil {
		return nil, err
	}
	p := beam.NewPipeline()
	build(p, w)
	stop := watch(ctx, &j, w)
	result, err := run(ctx, p)
	stop()
	if err != nil {
		return nil, err
	}
	if *jobopts.Async {
		return nil, ErrSubmitted
	}
	sum, err := readSummary(ctx, w)
	if err == nil && result != nil {
		sum.Metrics = make(map[string]int64)
		for _, c := range result.Metrics().AllMetrics().Counters() {
			sum.Metrics[c.Name()] += c.Result()
		}
	}
	return sum, err
}

// prepare loads the model, as a worker does, and checks that the tables fit it.
func prepare(j *Job, notes func(string)) (w *work, release func(), err error) {
	if w, err = newWork(j, ""); err != nil {
		return nil, nil, err
	}
	if err := keepInputs(j, w); err != nil {
		return nil, nil, err
	}
	m, release, err := acquire(w)
	if err != nil {
		return nil, nil, err
	}
	scorer, err := m.load(w)
	if err != nil {
		release()
		return nil, nil, err
	}
	w.ModelSum = m.sum
	if notes == nil {
		notes = func(string) {}
	}
	for _, n := range m.notes {
		notes(n)
	}
	if err := checkIvectors(j, scorer, notes); err != nil {
		release()
		return nil, nil, err
	}
	return w, release, nil
}

// keepInputs returns an error if the job would overwrite one of its inputs.
func keepInputs(j *Job, w *work) error {
	inputs := []string{j.Model}
	for _, table := range []string{j.Features, j.Ivectors, j.OnlineIvectors, j.Speakers, j.FrameCounts} {
		if spec, err := kaldiio.ParseRspecifier(table); err == nil {
			inputs = append(inputs, spec.Name)
		}
	}
	for _, in := range inputs {
		a, inErr := os.Stat(in)
		for _, out := range []string{outFile, failuresFile, summaryFile, planFile, framesFile, jobFile, lockFile} {
			b, err := os.Stat(w.path(out))
			if in == w.path(out) || inErr == nil && err == nil && os.SameFile(a, b) {
				return fmt.Errorf("%w: %s is an input and would be overwritten", ErrJob, in)
			}
		}
	}
	return nil
}

// checkIvectors returns an error if the network needs i-vectors and there are none. It drops
// i-vectors that the network does not take.
func checkIvectors(j *Job, scorer scorer, notes func(string)) error {
	given := j.Ivectors != "" || j.OnlineIvectors != ""
	switch dim := scorer.IvectorDim(); {
	case dim > 0 && !given:
		return fmt.Errorf("%w: the network needs i-vectors of %d elements: ivectors or online-ivectors expected", ErrJob, dim)
	case dim == 0 && given:
		notes("the network takes no i-vectors; ignoring them")
		j.Ivectors, j.OnlineIvectors, j.Speakers = "", "", ""
	}
	return nil
}

// patience is how long shards in work may take to remove their temporary files after the end of the
// context.
const patience = 300 * time.Millisecond

// run runs a pipeline by the runner that Beam's flags select. Once ctx is done it waits for the
// pipeline only shortly.
func run(ctx context.Context, p *beam.Pipeline) (beam.PipelineResult, error) {
	type outcome struct {
		result beam.PipelineResult
		err    error
	}
	ended := make(chan outcome, 1)
	go func() {
		result, err := beamx.RunWithMetrics(ctx, p)
		ended <- outcome{result, err}
	}()
	select {
	case o := <-ended:
		if ctx.Err() == nil {
			return o.result, ofWorker(o.err)
		}
	case <-ctx.Done():
	}
	// Beam may take long to notice that its context has ended. Shards in work need a moment to
	// remove their temporary files; nothing else is worth waiting for.
	patient, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	await(patient, func() bool { return busy.count == 0 }, 0)
	return nil, context.Cause(ctx)
}

// ofWorker returns the error of a DoFn without the plan around it that Beam prints.
func ofWorker(err error) error {
	if err == nil {
		return nil
	}
	const last = "] failed:\n"
	text := err.Error()
	if i := strings.LastIndex(text, last); i >= 0 {
		return fmt.Errorf("%s (the same job continues with the shards that are not complete)", strings.TrimSpace(text[i+len(last):]))
	}
	return err
}

// firstFailures is the number of failures that a Summary tells.
const firstFailures = 10

// decodeSummary reads the summary of this run. run is where it says of which one it is.
func decodeSummary(ctx context.Context, w *work, sum any, run *string) error {
	text, err := w.readFile(ctx, summaryFile)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, sum); err != nil {
		return fmt.Errorf("%s: %w", w.path(summaryFile), err)
	}
	if *run != w.Run {
		return fmt.Errorf("%s belongs to another run of the job: the runner ended without an error before the job was complete", w.path(summaryFile))
	}
	return nil
}

// readSummary reads the summary of this run.
func readSummary(ctx context.Context, w *work) (*Summary, error) {
	s := new(Summary)
	if err := decodeSummary(ctx, w, s, &s.Run); err != nil {
		return nil, err
	}
	if s.Failed == 0 {
		return s, nil
	}
	table, err := w.store().open(ctx, w.path(failuresFile))
	if err != nil {
		return nil, err
	}
	defer table.Close()
	lines := bufio.NewScanner(table)
	lines.Buffer(nil, maxLine)
	for len(s.FirstFailures) < firstFailures && lines.Scan() {
		s.FirstFailures = append(s.FirstFailures, lines.Text())
	}
	return s, lines.Err()
}
