package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// ErrBusy is wrapped by the error of a job whose directory another one is using.
var ErrBusy = errors.New("another job is at work there")

// claim makes the directory of a job and takes it for the job until release is called. The error
// wraps ErrBusy if another process has it, and ErrJob if it has results of another model or other
// options. A directory with a scheme is not locked: of two jobs there, the one that was started
// first ends with an error.
func claim(ctx context.Context, w *work) (release func(), err error) {
	release = func() {}
	if !kaldiio.HasScheme(w.Dir) {
		if err := os.MkdirAll(w.path(shardsDir), 0o777); err != nil {
			return nil, err
		}
		// The lock belongs to the process, so a job that was killed leaves none. The file stays,
		// because to remove it would let two processes lock two files of one name.
		lock := flock.New(w.path(lockFile))
		locked, err := lock.TryLock()
		if err == nil && !locked {
			return nil, fmt.Errorf("%s: %w", w.Dir, ErrBusy)
		}
		if err == nil { // some file systems have no locks
			release = func() { lock.Close() }
		}
	}
	if err := own(ctx, w); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// own notes what the directory is for, or compares it with what an earlier run has noted.
func own(ctx context.Context, w *work) error {
	recipe, err := json.MarshalIndent(w.recipe(), "", "  ")
	if err != nil {
		return err
	}
	// Shards of another recipe have other IDs, so they can't be mixed up. But out.scp and the
	// summary would be overwritten, and the files that the other job has left would never be
	// removed. So a directory belongs to its first recipe.
	there, err := w.readFile(ctx, jobFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.writeFile(ctx, append(recipe, '\n'), jobFile)
	case err != nil:
		return err
	}
	differences, err := compare(there, recipe)
	if err != nil {
		return fmt.Errorf("%s: %w", w.path(jobFile), err)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%w: %s has the results of another job (%s): name another directory", ErrJob, w.Dir, strings.Join(differences, "; "))
	}
	return nil
}

// compare tells in which fields two JSON objects differ.
func compare(there, here []byte) (differences []string, err error) {
	var a, b map[string]any
	if err := json.Unmarshal(there, &a); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(here, &b); err != nil {
		return nil, err
	}
	x, y := make(map[string]string), make(map[string]string)
	flatten("", a, x)
	flatten("", b, y)
	all := maps.Clone(x)
	maps.Copy(all, y)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if was, is := x[key], y[key]; was != is {
			differences = append(differences, fmt.Sprintf("%s is %s, and was %s", key, value(is), value(was)))
		}
	}
	return differences, nil
}

// flatten collects the elements of a JSON object, with dots between the names of nested ones.
func flatten(prefix string, object map[string]any, to map[string]string) {
	for key, v := range object {
		if nested, ok := v.(map[string]any); ok {
			flatten(prefix+key+".", nested, to)
			continue
		}
		text, _ := json.Marshal(v) // of what was JSON before
		to[prefix+key] = string(text)
	}
}

// value returns an element of a JSON object, short enough for a message.
func value(text string) string {
	const most = 60
	switch {
	case text == "":
		return "not set"
	case len(text) > most:
		return text[:most] + "…"
	}
	return text
}
