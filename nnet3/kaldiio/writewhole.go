package kaldiio

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
)

// WriteArchive writes an archive, in binary, and the script that points into it. The function fill
// calls put for each object, and write writes an object, like (*Writer).Matrix. The archive is
// written beside its place and renamed, and the script after it, so where the script is, the
// archive is whole. On an error both files are left as they were, or the script is missing.
func WriteArchive[T any](o *Opener, archive, script string, write func(*Writer, T), fill func(put func(key string, v T) error) error) error {
	for _, name := range []string{archive, script} {
		if name == "" || name == "-" || name[0] == '|' || archive == script {
			return badName(name, "an archive and its script are two files")
		}
		if err := checkOutputFile(name); err != nil {
			return err
		}
	}
	var lines strings.Builder
	err := fileio.Write(o.context(), archive, func(f io.Writer) error {
		w := NewWriter(f, true)
		err := fill(func(key string, v T) error {
			if err := checkKey(key); err != nil {
				return err
			}
			w.Token(key)
			fmt.Fprintf(&lines, "%s %s:%d\n", key, archive, w.n)
			w.Header()
			write(w, v)
			return w.Err()
		})
		if err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
		// An older script does not fit the new archive.
		// From here until the new script is in place there is none. That is safe; an old script
		// with the new archive would give wrong objects without any error.
		if err := os.Remove(script); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	return fileio.Write(o.context(), script, func(f io.Writer) error {
		_, err := io.WriteString(f, lines.String())
		return err
	})
}
