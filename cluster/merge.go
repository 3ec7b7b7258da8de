package cluster

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// A Summary says what a job has done.
type Summary struct {
	Utterances    int   `json:"utterances"` // scored, in this run or before
	Failed        int   `json:"failed"`
	NotFinite     int   `json:"not_finite"` // scored, with features or i-vectors that are NaN or infinite
	Shards        int   `json:"shards"`
	SkippedShards int   `json:"skipped_shards"` // complete before this run
	Frames        int64 `json:"frames"`
	Rows          int64 `json:"rows"`

	RunUtterances  int     `json:"run_utterances"` // scored in this run
	RunFrames      int64   `json:"run_frames"`
	RepeatedReads  int64   `json:"repeated_reads"`  // in this run
	ShardSeconds   float64 `json:"shard_seconds"`   // of this run, summed over shards
	ComputeSeconds float64 `json:"compute_seconds"` // of this run, summed over utterances
	Run            string  `json:"run"`

	// Metrics are the counters of Beam, as attempts: what the runner did twice counts twice.
	Metrics map[string]int64 `json:"metrics,omitempty"`
	// FirstFailures are the first ones of failures.txt.
	FirstFailures []string `json:"-"`
}

// merge joins the scripts and failures of all shards, in the order of the features, and removes
// what executions have left that did not finish. The summary comes last.
func merge(ctx context.Context, w *work) (*Summary, error) {
	head, shards, err := readPlan(ctx, w)
	if err != nil {
		return nil, err
	}
	keep, err := readManifests(ctx, w, shards)
	if err != nil {
		return nil, err
	}
	sum := &Summary{Shards: len(shards), Run: w.Run}
	// An utterance longer than a shard has one of its own, in the middle of the lines of another
	// shard, so the lines of a shard are ranges. Two shards with equal lists have one ID and one
	// set of files, but each counts with its own lines; what they cost counts once.
	of := make([]int32, head.Lines) // the shard of each line
	parts := make([]*part, len(shards))
	met := make(map[string]bool, len(shards))
	for i, s := range shards {
		m := keep[s.ID]
		parts[i] = &part{w: w, m: m, left: s.Utterances}
		sum.add(m, w, !met[s.ID])
		met[s.ID] = true
		for _, r := range s.Lines {
			for line := r[0]; line < r[0]+r[1]; line++ {
				of[line] = int32(i)
			}
		}
	}
	err = w.store().write(ctx, w.path(outFile), func(out io.Writer) error {
		return w.store().write(ctx, w.path(failuresFile), func(failures io.Writer) error {
			return joinParts(ctx, of, parts, bufio.NewWriter(out), bufio.NewWriter(failures))
		})
	})
	if err != nil {
		return nil, err
	}
	// The scripts no longer need what is removed here. Before they were written, an earlier out.scp
	// may still have pointed to it.
	if err := clean(ctx, w, keep); err != nil {
		return nil, err
	}
	// Object stores have no locks. A job that was started there later has written its own plan over
	// this one, and may have removed or replaced files since. The first job notices here, before it
	// writes a summary that would vouch for them.
	if head, err := readHead(ctx, w); err != nil || head.Run != w.Run {
		return nil, fmt.Errorf("another job was started in %s before this one had ended: what is there may be of either: %w", w.Dir, cmp.Or(err, ErrBusy))
	}
	text, err := json.MarshalIndent(sum, "", "  ")
	if err != nil {
		return nil, err
	}
	return sum, w.writeFile(ctx, append(text, '\n'), summaryFile)
}

// mergeReaders is the number of manifests that are read at a time. An object store takes a while
// for each.
const mergeReaders = 16

// readManifests returns the manifests of shards by their IDs.
func readManifests(ctx context.Context, w *work, shards []planned) (map[string]*manifest, error) {
	ids := inOrderOfWork(shards)
	found := make([]*manifest, len(ids))
	var next atomic.Int64
	var group sync.WaitGroup
	for range mergeReaders {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(ids) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				found[i] = readManifest(ctx, w, ids[i])
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	all := make(map[string]*manifest, len(ids))
	for i, id := range ids {
		if found[i] == nil {
			return nil, fmt.Errorf("shard %s has no manifest or lacks a file, though it was scored: was %s changed? Start the job again", id, w.path(shardsDir))
		}
		all[id] = found[i]
	}
	return all, nil
}

// add adds a shard. What it took counts the first time it is met.
func (s *Summary) add(m *manifest, w *work, first bool) {
	s.Utterances += m.Utterances
	s.Failed += len(m.Failures)
	s.NotFinite += len(m.NotFinite)
	s.Frames += m.Frames
	s.Rows += m.Rows
	if m.Run != w.Run {
		s.SkippedShards++
		return
	}
	if first {
		s.RunUtterances += m.Utterances
		s.RunFrames += m.Frames
		s.RepeatedReads += m.RepeatedReads
		s.ShardSeconds += m.Seconds
		s.ComputeSeconds += m.ComputeSeconds
	}
}

// joinParts writes the line of each utterance, to the script or to the table of failures.
func joinParts(ctx context.Context, of []int32, parts []*part, out, failures *bufio.Writer) error {
	for _, i := range of {
		p := parts[i]
		line, failed, err := p.next(ctx)
		if err != nil {
			return err
		}
		to := out
		if failed {
			to = failures
		}
		if _, err := to.WriteString(line); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return failures.Flush()
}

// A part is a shard that is being joined. Its script is open from the first to the last line.
type part struct {
	w        *work
	m        *manifest
	file     io.ReadCloser
	script   *bufio.Scanner
	index    int // of the next utterance
	left     int
	failures int // that were met
}

// next returns the line of the next utterance, of the script or of the table of failures.
func (p *part) next(ctx context.Context) (line string, failed bool, err error) {
	if p.file == nil {
		if p.file, err = p.w.store().open(ctx, p.w.path(shardsDir, p.m.Script)); err != nil {
			return "", false, err
		}
		p.script = bufio.NewScanner(p.file)
	}
	// Scripts stay open from the first to the last line of their shard. Shards are joined in the
	// order of the features, so few are open at a time: those around long utterances.
	defer func() {
		p.index++
		if p.left--; p.left == 0 || err != nil {
			p.file.Close()
		}
	}()
	if f := p.m.Failures; p.failures < len(f) && f[p.failures].Index == p.index {
		f := f[p.failures]
		p.failures++
		key := f.Utterance
		if key == "" {
			key = "-"
		}
		return fmt.Sprintf("%s %s %s\n", key, p.m.Shard, f.Reason), true, nil
	}
	if !p.script.Scan() {
		err := p.script.Err()
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return "", false, fmt.Errorf("%s: %w: remove %s.json and start the job again", p.w.path(shardsDir, p.m.Script), err, p.m.Shard)
	}
	// The directory may have had another name when the shard was scored.
	text := p.script.Text()
	key, _, _ := strings.Cut(text, " ")
	offset := text[strings.LastIndexByte(text, ':')+1:]
	return fmt.Sprintf("%s %s:%s\n", key, join(p.w.Out, shardsDir, p.m.Archive), offset), false, nil
}

// clean removes the files of shards that no manifest names, and temporary files of runs that were
// killed.
func clean(ctx context.Context, w *work, keep map[string]*manifest) error {
	err := remove(ctx, w, w.Dir, func(name string) bool {
		for _, file := range []string{outFile, failuresFile, summaryFile, planFile, framesFile, jobFile} {
			if strings.HasPrefix(name, "."+file+".") {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	return remove(ctx, w, w.path(shardsDir), func(name string) bool {
		id, rest, _ := strings.Cut(strings.TrimPrefix(name, "."), ".")
		m := keep[id]
		return m != nil && rest != "list" && rest != "json" && name != m.Archive && name != m.Script
	})
}

// remove removes the files of a directory that want picks.
func remove(ctx context.Context, w *work, dir string, want func(name string) bool) error {
	names, err := w.store().list(ctx, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !want(name) {
			continue
		}
		if err := w.store().remove(ctx, join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
