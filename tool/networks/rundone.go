package networks

import (
	"fmt"
	"path/filepath"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
	"github.com/nnopt/nnopt/tool"
)

// continues reports whether --skip-done names the script that goes with the output.
func (f *runFlags) continues() bool {
	w, err := kaldiio.ParseWspecifier(f.out)
	if err != nil || !w.HasArchive || !w.HasScript || f.skipDone == "" {
		return false
	}
	return filepath.Clean(w.Script) == filepath.Clean(f.skipDone) || tool.SameFile(w.Script, f.skipDone)
}

// output opens the output, and has tables leave out what is done.
func (f *runFlags) output(o *kaldiio.Opener, tables *decodable.Tables) (*kaldiio.TableWriter[*decodable.Rows], error) {
	write := func(w *kaldiio.Writer, r *decodable.Rows) { r.Write(w) }
	if f.skipDone == "" {
		return kaldiio.NewTableWriter(o, f.out, write)
	}
	var out *kaldiio.TableWriter[*decodable.Rows]
	var keys []string
	var err error
	if f.continues() {
		out, keys, err = kaldiio.ContinueTable(o, f.out, write, func(r *kaldiio.Reader) error {
			_, err := r.Matrix()
			return err
		})
	} else if keys, err = doneKeys(o, f.skipDone); err == nil {
		out, err = kaldiio.NewTableWriter(o, f.out, write)
	}
	if err != nil {
		return nil, fmt.Errorf("--skip-done: %w", err)
	}
	// The keys of a table that is continued are those of whole objects, since ContinueTable cuts
	// off what a killed run left torn. Another script only lists keys, so doneKeys leaves out those
	// whose matrices can't be read.
	done := make(map[string]bool, len(keys))
	for _, key := range keys {
		done[key] = true
	}
	tables.Except(func(key string) bool {
		if done[key] {
			f.skipped.Add(1)
		}
		return done[key]
	})
	return out, nil
}

// doneKeys returns the keys of a script whose matrices are whole.
func doneKeys(o *kaldiio.Opener, script string) (keys []string, err error) {
	lines, err := kaldiio.ReadScript(o, script)
	if err != nil {
		return nil, err
	}
	shapes := kaldiio.NewShapes(o)
	for _, line := range lines {
		if _, _, err := shapes.Of(line); err == nil {
			keys = append(keys, line.Key)
		}
	}
	return keys, shapes.Close()
}
