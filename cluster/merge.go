package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nnopt/nnopt/fileio"
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

// merge joins the scripts and failures of all shards, in the order of the features, and removes what
// executions have left that did not come to their end.
func merge(ctx context.Context, w *work) (*Summary, error) {
	head, shards, err := readPlan(w)
	if err != nil {
		return nil, err
	}
	sum := &Summary{Shards: len(shards), Run: w.Run}
	of := make([]int32, head.Lines) // the shard of each line
	parts := make([]*part, len(shards))
	keep := make(map[string]*manifest, len(shards))
	for i, s := range shards {
		m := keep[s.ID]
		first := m == nil
		if first {
			if m = readManifest(w, s.ID); m == nil {
				return nil, fmt.Errorf("shard %s has no manifest or lacks a file, though it was scored: was %s changed? Start the job again", s.ID, w.path(shardsDir))
			}
			keep[s.ID] = m
		}
		parts[i] = &part{w: w, m: m, left: s.Utterances}
		sum.add(m, w, first)
		for _, r := range s.Lines {
			for line := r[0]; line < r[0]+r[1]; line++ {
				of[line] = int32(i)
			}
		}
	}
	err = fileio.Write(ctx, w.path(outFile), func(out io.Writer) error {
		return fileio.Write(ctx, w.path(failuresFile), func(failures io.Writer) error {
			return join(of, parts, bufio.NewWriter(out), bufio.NewWriter(failures))
		})
	})
	if err != nil {
		return nil, err
	}
	if err := clean(w, keep); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(sum, "", "  ")
	if err != nil {
		return nil, err
	}
	return sum, fileio.Write(ctx, w.path(summaryFile), func(f io.Writer) error {
		_, err := f.Write(append(text, '\n'))
		return err
	})
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

// join writes the line of each utterance, to the script or to the table of failures.
func join(of []int32, parts []*part, out, failures *bufio.Writer) error {
	for _, i := range of {
		p := parts[i]
		line, failed, err := p.next()
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
	file     *os.File
	script   *bufio.Scanner
	index    int // of the next utterance
	left     int
	failures int // that were met
}

// next returns the line of the next utterance, of the script or of the table of failures.
func (p *part) next() (line string, failed bool, err error) {
	if p.file == nil {
		if p.file, err = os.Open(p.w.path(shardsDir, p.m.Script)); err != nil {
			return "", false, err
		}
		p.script = bufio.NewScanner(p.file)
	}
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
		return "", false, fmt.Errorf("%s: %w: remove %s.json and start the job again", p.file.Name(), err, p.m.Shard)
	}
	// The directory may have had another name when the shard was scored.
	text := p.script.Text()
	key, _, _ := strings.Cut(text, " ")
	offset := text[strings.LastIndexByte(text, ':')+1:]
	return fmt.Sprintf("%s %s:%s\n", key, filepath.Join(p.w.Out, shardsDir, p.m.Archive), offset), false, nil
}

// clean removes the files of shards that no manifest names, and temporary files of runs that were
// killed.
func clean(w *work, keep map[string]*manifest) error {
	err := remove(w.Dir, func(name string) bool {
		for _, file := range []string{outFile, failuresFile, summaryFile, planFile, framesFile} {
			if strings.HasPrefix(name, "."+file+".") {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	return remove(w.path(shardsDir), func(name string) bool {
		id, rest, _ := strings.Cut(strings.TrimPrefix(name, "."), ".")
		m := keep[id]
		return m != nil && rest != "list" && rest != "json" && name != m.Archive && name != m.Script
	})
}

// remove removes the files of a directory that want picks.
func remove(dir string, want func(name string) bool) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(1000)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if !want(name) {
				continue
			}
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
	}
}
