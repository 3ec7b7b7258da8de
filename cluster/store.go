package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nnopt/nnopt/internal/fileio"
	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// A store keeps the files of a job. A file in it is there as a whole or not at all, even after a
// failure.
type store interface {
	// open opens a file for reading. The error wraps fs.ErrNotExist if there is none.
	open(ctx context.Context, name string) (io.ReadCloser, error)
	size(ctx context.Context, name string) (int64, error)
	// scratch makes a file of this machine for something that will be committed into a directory.
	scratch(dir, id string) (*os.File, error)
	// commit puts a scratch file into the store under a name. It closes the file; who made it
	// removes what is left of it.
	commit(ctx context.Context, f *os.File, name string) error
	// write commits what fill writes.
	write(ctx context.Context, name string, fill func(io.Writer) error) error
	// list returns the names of the files of a directory, without the directory. Files that are new
	// may be missing.
	list(ctx context.Context, dir string) ([]string, error)
	// remove removes a file, if it is there and the store can do so.
	remove(ctx context.Context, name string) error
}

// store returns the store of the directory of the job.
func (w *work) store() store {
	if kaldiio.HasScheme(w.Dir) {
		return objects{}
	}
	return disk{}
}

// path returns the name of a file in the directory of the job.
func (w *work) path(name ...string) string { return join(append([]string{w.Dir}, name...)...) }

// join joins the parts of a name, of which the first may have a scheme.
func join(parts ...string) string {
	if kaldiio.HasScheme(parts[0]) {
		return strings.Join(parts, "/")
	}
	return filepath.Join(parts...)
}

// disk is the store of directories that this machine sees. Files are renamed into place.
type disk struct{}

func (disk) open(_ context.Context, name string) (io.ReadCloser, error) { return os.Open(name) }

func (disk) size(_ context.Context, name string) (int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// scratch makes the file beside its later place, because renaming does not cross file systems.
func (disk) scratch(dir, id string) (*os.File, error) {
	return os.CreateTemp(dir, "."+id+".*.tmp")
}

func (disk) commit(ctx context.Context, f *os.File, name string) error {
	err := f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return os.Rename(f.Name(), name)
}

func (disk) write(ctx context.Context, name string, fill func(io.Writer) error) error {
	return fileio.Write(ctx, name, fill)
}

func (disk) list(_ context.Context, dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

func (disk) remove(_ context.Context, name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readFile reads a file of a job.
func (w *work) readFile(ctx context.Context, name ...string) ([]byte, error) {
	f, err := w.store().open(ctx, w.path(name...))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := fileio.ReadAll(f, w.path(name...), fileio.MaxText)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.path(name...), err)
	}
	return text, nil
}

// writeFile writes a file of a job.
func (w *work) writeFile(ctx context.Context, text []byte, name ...string) error {
	return w.store().write(ctx, w.path(name...), func(f io.Writer) error {
		_, err := f.Write(text)
		return err
	})
}
