package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// unknownFrames is the number of frames of utterances whose features can't be read, or don't come
// from a regular file: ten seconds.
const unknownFrames = 1000

// countFrames returns the frames of each line. It takes them from the table of the job, from the
// file that an earlier run has left for the same script, or from the headers of the matrices.
//
// What an earlier run has found counts even if files have changed, so that shards stay the same.
func countFrames(ctx context.Context, o *kaldiio.Opener, j *Job, w *work, entries []entry, sum string) ([]int64, error) {
	table, err := readTable(o, j.FrameCounts, asFrames)
	if err != nil {
		return nil, err
	}
	// The table of the job comes last, so that counts that it has override those of an earlier run
	// without it.
	frames := earlierFrames(ctx, w, sum, entries)
	if frames == nil {
		if frames, err = readHeaders(ctx, o, entries, table); err != nil {
			return nil, err
		}
		if err := saveFrames(ctx, w, entries, frames); err != nil {
			return nil, err
		}
	}
	for i, e := range entries {
		if n, ok := table[e.Key]; ok {
			frames[i] = n
		}
	}
	return frames, nil
}

// earlierFrames reads what saveFrames has written for a script, nil if the last plan was for
// another one.
func earlierFrames(ctx context.Context, w *work, sum string, entries []entry) []int64 {
	if head, err := readHead(ctx, w); err != nil || head.FeaturesSum != sum {
		return nil
	}
	f, err := w.store().open(ctx, w.path(framesFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, maxLine)
	frames := make([]int64, 0, len(entries))
	for scan.Scan() {
		text := scan.Text()
		at := strings.LastIndexByte(text, ' ')
		n, err := strconv.ParseInt(text[at+1:], 10, 64)
		if err != nil || len(frames) == len(entries) || text[:at] != entries[len(frames)].Key {
			return nil
		}
		frames = append(frames, n)
	}
	if scan.Err() != nil || len(frames) != len(entries) {
		return nil
	}
	return frames
}

// saveFrames writes the frames of each line, as Kaldi's utt2num_frames.
func saveFrames(ctx context.Context, w *work, entries []entry, frames []int64) error {
	return w.store().write(ctx, w.path(framesFile), func(f io.Writer) error {
		b := bufio.NewWriter(f)
		for i, e := range entries {
			fmt.Fprintf(b, "%s %d\n", e.Key, frames[i])
		}
		return b.Flush()
	})
}

const (
	headerReaders = 8   // goroutines; reading a header is mostly waiting
	headerBlock   = 256 // lines that one of them takes at a time; neighbours tend to be in one file
)

// readHeaders reads the frames of all lines that are not in the table.
func readHeaders(ctx context.Context, o *kaldiio.Opener, entries []entry, table map[string]int64) ([]int64, error) {
	frames := make([]int64, len(entries))
	var next atomic.Int64
	var group sync.WaitGroup
	for range headerReaders {
		group.Go(func() {
			shapes, retry := kaldiio.NewShapes(o), newRetrier()
			defer shapes.Close()
			for ctx.Err() == nil {
				end := int(next.Add(headerBlock))
				first := end - headerBlock
				if first >= len(entries) {
					return
				}
				for i := first; i < min(end, len(entries)) && ctx.Err() == nil; i++ {
					n, ok := table[entries[i].Key]
					if !ok {
						n = readHeader(ctx, shapes, retry, entries[i])
					}
					frames[i] = n
				}
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return frames, nil
}

// readHeader returns the frames of an entry. Why they can't be read will be found when it is
// scored.
func readHeader(ctx context.Context, shapes *kaldiio.Shapes, retry *retrier, e entry) int64 {
	line, err := kaldiio.ParseScriptLine(e.Key + " " + e.Features)
	switch {
	case e.Error != "":
		return 0
	case err != nil || strings.Contains(line.Name, "|"):
		return unknownFrames
	}
	if info, err := os.Stat(line.File()); err == nil && !info.Mode().IsRegular() {
		return unknownFrames // it can perhaps be read only once
	}
	rows := 0
	err = retry.do(ctx, line.File(), func() (err error) {
		if rows, _, err = shapes.Of(line); err != nil {
			shapes.Close()
		}
		return err
	})
	if err != nil {
		return unknownFrames
	}
	return int64(rows)
}
