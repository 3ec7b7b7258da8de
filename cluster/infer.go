package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

// An Inference runs an ONNX model over records. They are cut into shards, which are computed and kept
// as those of a Job are: in the directory are records.jsonl, the records in their order, summary.json,
// and shards/ID.jsonl with a manifest shards/ID.json each.
//
// A record is a line of JSON, an object: {"id": 7, "input_ids": [101, 2023, 102]}. Fields with the names
// of inputs are nested lists of numbers or bools. Where the model leaves the first size of an input
// open, a record may be a row, without that axis. In the result outputs take the place of inputs,
// other fields stay, and a record that can't be computed has the field "error". Numbers that are not
// finite are null.
//
// Or a record is a row of a Parquet file, whose name ends in .parquet, as those of the results do then.
// All that is said of fields holds for columns, but that numbers are any.
type Inference struct {
	Model   string // an ONNX model with its weights inside
	Records string // a file of records: Parquet if the name ends in .parquet, or else lines of JSON
	Out     string // directory of the results
	Query   string // selects passes of the standard database, see model.Options

	// RecordsPerShard is the largest number of records of a shard. 0 means DefaultRecordsPerShard.
	RecordsPerShard int
	// Rows is the largest number of records that are computed together. 0 means 32.
	Rows int
}

// DefaultRecordsPerShard is the default of Inference.RecordsPerShard.
const DefaultRecordsPerShard = 10_000

// An InferenceSummary counts records, and shards that were complete before.
type InferenceSummary struct {
	Run           string `json:"run"`
	Results       string `json:"results"` // the file of the results
	Records       int64  `json:"records"`
	Failed        int64  `json:"failed"`
	Shards        int    `json:"shards"`
	SkippedShards int    `json:"skipped_shards"`
}

// inferWork is what workers must know of an Inference.
type inferWork struct {
	work
	Records string // absolute
	Rows    int
}

// A recordShard is a line of the plan: a part of the file of records.
type recordShard struct {
	ID      string `json:"shard"`
	Offset  int64  `json:"offset"` // of the first one, in units of the format
	Records int64  `json:"records"`
}

// A recordManifest says that a shard is complete.
type recordManifest struct {
	Run     string `json:"run"`
	Records int64  `json:"records"`
	Failed  int64  `json:"failed"`
}

func init() {
	register.DoFn3x1[context.Context, []byte, func(string), error](&inferPlanFn{})
	register.DoFn3x1[context.Context, string, func(string), error](&inferFn{})
	register.DoFn3x1[context.Context, int, func(*string) bool, error](&inferMergeFn{})
}

// Infer runs a model over records, on the conditions of Score. Records that fail are counted and are no
// error.
func Infer(ctx context.Context, j Inference) (*InferenceSummary, error) {
	if !beam.Initialized() {
		return nil, errors.New("beam.Init was not called")
	}
	if j.Model == "" || j.Records == "" || j.Out == "" || j.RecordsPerShard < 0 || j.Rows < 0 {
		return nil, fmt.Errorf("%w: a model, a file of records and a directory are wanted, and no negative number", ErrJob)
	}
	w, err := newWork(&Job{Model: j.Model, Out: j.Out, Query: j.Query}, "")
	if err != nil {
		return nil, err
	}
	iw := &inferWork{work: *w, Records: absolute(j.Records), Rows: j.Rows}
	if iw.Records == iw.results() {
		return nil, fmt.Errorf("%w: %s is an input and would be overwritten", ErrJob, j.Records)
	}
	m, release, err := acquireONNX(ctx, iw)
	if err != nil {
		return nil, err
	}
	defer release()
	iw.ModelSum = m.sum
	leave, err := claim(ctx, &iw.work)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := planRecords(ctx, iw, m, cmp.Or(j.RecordsPerShard, DefaultRecordsPerShard)); err != nil {
		return nil, err
	}
	p := beam.NewPipeline()
	s := p.Root()
	shards := beam.Reshuffle(s, beam.ParDo(s.Scope("Plan"), &inferPlanFn{Work: *iw}, beam.Impulse(s)))
	done := beam.ParDo(s.Scope("Infer"), &inferFn{Work: *iw}, shards)
	beam.ParDo0(s.Scope("Merge"), &inferMergeFn{Work: *iw}, beam.GroupByKey(s, beam.AddFixedKey(s, done)))
	if _, err := run(ctx, p); err != nil {
		return nil, err
	}
	if *jobopts.Async {
		return nil, ErrSubmitted
	}
	sum := new(InferenceSummary)
	if err := decodeSummary(ctx, &iw.work, sum, &sum.Run); err != nil {
		return nil, err
	}
	return sum, nil
}

// planRecords cuts the file of records into shards and writes the plan. The ID of a shard depends on
// its records, the model and the query alone, so that it is found complete wherever it lies.
func planRecords(ctx context.Context, w *inferWork, m *onnxModel, most int) error {
	r, err := w.format().open(ctx, w, m, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	base, err := digest([]any{w.recipe(), r.kind()})
	if err != nil {
		return err
	}
	// No record makes a shard, too, which has the columns of a table.
	var shards []recordShard
	open, sum := recordShard{}, sha256.New()
	for end := false; !end; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		at := r.offset()
		_, err := r.next(sum)
		if end = err == io.EOF; err != nil && !end {
			return fmt.Errorf("%s: record %d: %w", w.Records, int64(len(shards))*int64(most)+open.Records+1, err)
		}
		if !end {
			if open.Records == 0 {
				open.Offset = at
			}
			open.Records++
		}
		if open.Records == int64(most) || end && (open.Records > 0 || len(shards) == 0) {
			if open.ID, err = digest([]string{base, hex.EncodeToString(sum.Sum(nil))}); err != nil {
				return err
			}
			shards = append(shards, open)
			open, sum = recordShard{}, sha256.New()
		}
	}
	return writeLines(ctx, &w.work, planFile, planHead{Format: format, Run: w.Run, Features: w.Records}, shards)
}

// inferPlanFn yields the shards of the plan, as JSON.
type inferPlanFn struct{ Work inferWork }

// ProcessElement emits the shards, each once.
func (f *inferPlanFn) ProcessElement(ctx context.Context, _ []byte, emit func(string)) error {
	_, shards, err := readPlanOf[recordShard](ctx, &f.Work.work)
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, s := range shards {
		if seen[s.ID] {
			continue
		}
		seen[s.ID] = true
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		emit(string(text))
	}
	return nil
}

// inferFn computes shards.
type inferFn struct {
	Work inferWork

	model   *onnxModel
	release func()
}

// Setup takes a share in the model.
func (f *inferFn) Setup(ctx context.Context) (err error) {
	f.model, f.release, err = acquireONNX(ctx, &f.Work)
	return err
}

// Teardown gives the share back.
func (f *inferFn) Teardown() {
	if f.release != nil {
		f.release()
	}
}

// ProcessElement computes a shard, unless it is complete.
func (f *inferFn) ProcessElement(ctx context.Context, text string, emit func(string)) error {
	var s recordShard
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	if f.model.sum != f.Work.ModelSum {
		return fmt.Errorf("%s has changed since the job was planned: start the job again", f.Work.Model)
	}
	if _, err := readRecordManifest(ctx, &f.Work, s.ID); err != nil {
		// One is read and written while another is computed. Of more there would be only more in memory.
		release, err := take(ctx, 2)
		if err != nil {
			return err
		}
		defer release()
		// The rows come first, then the manifest: a crash in between leaves a shard that is computed again.
		m := recordManifest{Run: f.Work.Run, Records: s.Records}
		err = f.Work.store().write(ctx, f.Work.part(s.ID), func(to io.Writer) (err error) {
			m.Failed, err = f.model.inferShard(ctx, &f.Work, s, to)
			return err
		})
		if err != nil {
			return fmt.Errorf("shard %s: %w", s.ID, err)
		}
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if err := f.Work.writeFile(ctx, line, shardsDir, s.ID+".json"); err != nil {
			return err
		}
	}
	emit(s.ID)
	return nil
}

// readRecordManifest reads the manifest of a shard that is complete.
func readRecordManifest(ctx context.Context, w *inferWork, id string) (m recordManifest, err error) {
	text, err := w.readFile(ctx, shardsDir, id+".json")
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	return m, err
}

// inferMergeFn joins the shards.
type inferMergeFn struct{ Work inferWork }

// ProcessElement is called once all shards are complete.
func (f *inferMergeFn) ProcessElement(ctx context.Context, _ int, _ func(*string) bool) error {
	w := &f.Work
	_, shards, err := readPlanOf[recordShard](ctx, &w.work)
	if err != nil {
		return err
	}
	sum := InferenceSummary{Run: w.Run, Results: w.results(), Shards: len(shards)}
	for _, s := range shards {
		m, err := readRecordManifest(ctx, w, s.ID)
		if err != nil {
			return err
		}
		sum.Records += m.Records
		sum.Failed += m.Failed
		if m.Run != w.Run {
			sum.SkippedShards++
		}
	}
	err = w.store().write(ctx, w.results(), func(to io.Writer) error { return w.format().join(ctx, w, shards, to) })
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(sum, "", "  ")
	if err != nil {
		return err
	}
	return w.writeFile(ctx, text, summaryFile)
}
