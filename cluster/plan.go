package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// An entry is an utterance of a shard: a line of its list.
type entry struct {
	Key      string `json:"utterance"`
	Features string `json:"features,omitempty"` // as in a script, with a range
	Ivector  string `json:"ivector,omitempty"`  // of the utterance or its speaker, or online i-vectors
	Error    string `json:"error,omitempty"`    // why it can't be scored
}

// A planned shard is a line of the plan.
type planned struct {
	ID         string   `json:"shard"`
	Frames     int64    `json:"frames"`
	Utterances int      `json:"utterances"`
	Lines      [][2]int `json:"lines"` // ranges of lines of the features: the first one, and how many
}

// A planHead is the first line of a plan.
type planHead struct {
	Format      int    `json:"format"`
	Run         string `json:"run"`
	Features    string `json:"features"`        // the script
	FeaturesSum string `json:"features_sha256"` // of its text
	Lines       int    `json:"lines"`
}

// makePlan cuts the features of a job into shards, and writes their lists and the plan.
func makePlan(ctx context.Context, j *Job, w *work) error {
	o := newPatientOpener(ctx, j.AllowPipes)
	entries, sum, err := readEntries(o, j)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("no utterances in %s", j.Features)
	}
	// Frames decide which utterances share a shard, and so the IDs. They have to be the same when
	// the job is run again, or nothing would be found complete: see countFrames.
	frames, err := countFrames(ctx, o, j, w, entries, sum)
	if err != nil {
		return err
	}
	refuseLong(j, entries, frames)
	shards := cut(frames, cmp.Or(j.FramesPerShard, DefaultFramesPerShard))
	w.Shards = len(shards)
	// The recipe is digested once and not with every list. An ID depends on all that rows depend
	// on, and on nothing else: neither on the place of a shard in the plan nor on this run.
	base, err := digest(w.recipe())
	if err != nil {
		return err
	}
	for i := range shards {
		if err := writeList(ctx, w, base, &shards[i], entries); err != nil {
			return err
		}
	}
	head := planHead{Format: format, Run: w.Run, Features: j.Features, FeaturesSum: sum, Lines: len(entries)}
	return writeLines(ctx, w, planFile, head, shards)
}

// readEntries reads the script of features and looks up i-vectors. It returns the digest of the
// script.
func readEntries(o *kaldiio.Opener, j *Job) (entries []entry, sum string, err error) {
	speakers, err := readTable(o, j.Speakers, asWord)
	if err != nil {
		return nil, "", err
	}
	ivectors := make(map[string]string)
	table := cmp.Or(j.Ivectors, j.OnlineIvectors)
	if table != "" {
		_, err := readLines(o, table, func(line kaldiio.ScriptLine, bad *lineError) error {
			if bad != nil {
				return bad.err
			}
			ivectors[line.Key] = object(line)
			return nil
		})
		if err != nil {
			return nil, "", err
		}
	}
	sum, err = readLines(o, j.Features, func(line kaldiio.ScriptLine, bad *lineError) error {
		e := entry{Key: line.Key, Features: object(line)}
		speaker, known := line.Key, true
		if j.Speakers != "" {
			speaker, known = speakers[line.Key]
		}
		switch {
		case bad != nil:
			e = entry{Key: bad.key, Error: bad.err.Error()}
		case !known:
			e.Error = fmt.Sprintf("no i-vector: %s has no speaker for the utterance", j.Speakers)
		case table != "":
			if e.Ivector = ivectors[speaker]; e.Ivector == "" {
				e.Error = fmt.Sprintf("no i-vector for %s in %s", speaker, table)
			}
		}
		entries = append(entries, e)
		return nil
	})
	return entries, sum, err
}

// refuseLong refuses utterances that are known to be too long, so that no worker reads them.
func refuseLong(j *Job, entries []entry, frames []int64) {
	for i := range entries {
		if e := &entries[i]; e.Error == "" && j.MaxFrames > 0 && frames[i] > j.MaxFrames && frames[i] != unknownFrames {
			e.Error, frames[i] = tooLong(frames[i], j.MaxFrames).Error(), 0
		}
	}
}

// tooLong is the error of an utterance of too many frames.
func tooLong(frames, most int64) error {
	return fmt.Errorf("the utterance has %d frames; max-frames allows %d", frames, most)
}

// maxUtterances bounds the utterances of a shard, which may all be tiny or missing, so that lists
// and manifests are small.
const maxUtterances = 10_000

// cut puts utterances into shards of at most most frames, in their order. A longer utterance has a
// shard of its own, and those around it share theirs. An utterance counts as one frame at least.
func cut(frames []int64, most int64) (shards []planned) {
	var open planned
	flush := func() {
		if open.Utterances > 0 {
			shards = append(shards, open)
		}
		open = planned{}
	}
	for i, n := range frames {
		n = max(n, 1)
		// The open shard stays open: a long utterance between two short ones must not divide them,
		// or a corpus with one in ten would have shards of nine utterances.
		if n > most {
			shards = append(shards, planned{Frames: n, Utterances: 1, Lines: [][2]int{{i, 1}}})
			continue
		}
		if open.Frames+n > most || open.Utterances == maxUtterances {
			flush()
		}
		open.Frames += n
		open.Utterances++
		if last := len(open.Lines) - 1; last >= 0 && open.Lines[last][0]+open.Lines[last][1] == i {
			open.Lines[last][1]++
		} else {
			open.Lines = append(open.Lines, [2]int{i, 1})
		}
	}
	flush()
	return shards
}

// writeList gives a shard its ID and writes its list, unless it is there.
func writeList(ctx context.Context, w *work, base string, s *planned, entries []entry) (err error) {
	list := make([]entry, 0, s.Utterances)
	for _, r := range s.Lines {
		list = append(list, entries[r[0]:r[0]+r[1]]...)
	}
	if s.ID, err = digest([]any{base, list}); err != nil {
		return err
	}
	name := join(shardsDir, s.ID+".list")
	// The ID is a digest of the list, so one that is there has the same contents.
	if _, err := w.store().size(ctx, w.path(name)); err == nil {
		return nil
	}
	return writeLines(ctx, w, name, nil, list)
}

// writeLines writes a file of JSON objects, a line each. The head, unless nil, comes first.
func writeLines[T any](ctx context.Context, w *work, name string, head any, list []T) error {
	return w.store().write(ctx, w.path(name), func(f io.Writer) error {
		b := bufio.NewWriter(f)
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		if head != nil {
			if err := e.Encode(head); err != nil {
				return err
			}
		}
		for _, v := range list {
			if err := e.Encode(v); err != nil {
				return err
			}
		}
		return b.Flush()
	})
}

// readList reads the list of a shard.
func readList(ctx context.Context, w *work, id string) (list []entry, err error) {
	return decodeLines[entry](ctx, w, join(shardsDir, id+".list"), nil)
}

// readPlan reads the plan of this run.
func readPlan(ctx context.Context, w *work) (head planHead, shards []planned, err error) {
	return readPlanOf[planned](ctx, w)
}

// readPlanOf is readPlan for shards of any kind.
func readPlanOf[T any](ctx context.Context, w *work) (head planHead, shards []T, err error) {
	shards, err = decodeLines[T](ctx, w, planFile, &head)
	if err == nil && head.Run != w.Run {
		err = fmt.Errorf("%s belongs to another run of the job, which has begun after this one: only one may run at a time in a directory", w.path(planFile))
	}
	return head, shards, err
}

// readHead reads the first line of the plan, which may be that of another run.
func readHead(ctx context.Context, w *work) (head planHead, err error) {
	f, err := w.store().open(ctx, w.path(planFile))
	if err != nil {
		return head, err
	}
	defer f.Close()
	return head, json.NewDecoder(f).Decode(&head)
}

// decodeLines reads what writeLines wrote. A head, unless it is nil, is set to the first line.
func decodeLines[T any](ctx context.Context, w *work, name string, head any) (list []T, err error) {
	f, err := w.store().open(ctx, w.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	if head != nil {
		err = d.Decode(head)
	}
	for err == nil {
		var v T
		if err = d.Decode(&v); err == nil {
			list = append(list, v)
		}
	}
	if err != io.EOF {
		return nil, fmt.Errorf("%s: %w", w.path(name), err)
	}
	return list, nil
}

// inOrderOfWork returns the IDs of shards, each once, the longest first: what takes long must not
// begin last.
func inOrderOfWork(shards []planned) []string {
	sorted := slices.Clone(shards)
	slices.SortStableFunc(sorted, func(a, b planned) int { return cmp.Compare(b.Frames, a.Frames) })
	ids, seen := make([]string, 0, len(sorted)), make(map[string]bool, len(sorted))
	for _, s := range sorted {
		if !seen[s.ID] {
			seen[s.ID] = true
			ids = append(ids, s.ID)
		}
	}
	return ids
}
