package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/kernel"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// scoreShard scores a shard and commits it. It may run for one shard several times and at the same
// time.
func scoreShard(ctx context.Context, w *work, scorer scorer, id string) (*manifest, error) {
	start := time.Now()
	list, err := readListAgain(ctx, w, id)
	if err != nil {
		return nil, err
	}
	a, err := newArchive(w, id)
	if err != nil {
		return nil, err
	}
	defer a.drop()
	m := &manifest{Shard: id, Run: w.Run, Recipe: w.recipe()}
	r := newReader(ctx, w)
	done := 0 // utterances that were written or failed, in the order of the list
	add := func(notes *[]note, index int, key string, err error) {
		*notes = append(*notes, note{Index: index, Utterance: key, Reason: reason(err)})
	}
	sum, err := scorer.Run(ctx, r.utterances(list), func(u decodable.Utterance, out kernel.Matrix) error {
		// The scorer reports utterances in the order of the list, each once: as rows here or as a
		// failure below. So the count is the index of the one that is reported.
		done++
		return a.put(u.Key, out)
	}, decodable.RunOptions{
		Workers: w.workersPerShard(),
		Limit:   w.Limit,
		Failed:  func(key string, err error) { add(&m.Failures, done, key, err); done++ },
		Warned:  func(key string, err error) { add(&m.NotFinite, done-1, key, err) },
	})
	if err == nil && done != len(list) {
		err = fmt.Errorf("%d of %d utterances were handled; please report this", done, len(list))
	}
	if err != nil {
		return nil, fmt.Errorf("shard %s: %w", id, err)
	}
	m.Utterances, m.Frames, m.Rows, m.RepeatedReads = sum.Utterances, sum.Frames, sum.Rows, r.retry.repeated
	m.ComputeSeconds = sum.Busy.Seconds()
	// From here on the order of writes is what makes a shard complete or absent: the archive, then
	// the script that points into it, then the manifest that names both. A crash in between leaves
	// files that no manifest names, which merge removes.
	if err := a.finish(ctx, m); err != nil {
		return nil, fmt.Errorf("shard %s: %w", id, err)
	}
	m.Seconds = time.Since(start).Seconds()
	// Two executions of a shard may differ, if a read failed for one of them. Whole manifests
	// compete, and the one with fewer failures wins. Between this look and the write, the other
	// execution may still write a better one, which is then lost; both are complete and consistent,
	// and the rows that are lost are counted as failures.
	if other := readManifest(ctx, w, id); other != nil && len(other.Failures) < len(m.Failures) {
		return other, nil // scored by another execution, or before, with more success
	}
	if err := m.write(ctx, w); err != nil {
		return nil, fmt.Errorf("shard %s: %w", id, err)
	}
	return m, nil
}

// readListAgain reads the list of a shard until that succeeds.
func readListAgain(ctx context.Context, w *work, id string) (list []entry, err error) {
	err = newRetrier().do(ctx, id, func() (err error) {
		list, err = readList(ctx, w, id)
		return err
	})
	return list, err
}

// maxReason bounds the bytes of a reason. Only panics have longer ones.
const maxReason = 1000

// reason returns an error as one line.
func reason(err error) string {
	text := fileio.PlainName(err.Error())
	if errors.Is(err, kaldiio.ErrCommand) {
		text += " (allow-pipes allows it)"
	}
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}
