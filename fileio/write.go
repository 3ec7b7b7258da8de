package fileio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Write has write write the file of a name. A regular file is there as a whole in the end or, if there is an error or ctx is done, as it was before: it
// is written beside the old one, whose permissions it gets and whose place it takes. A symbolic link stays one, to the new file. What is no regular
// file, such as a device, a FIFO or /dev/stdout, is written to as it is; so is a file in a folder where no other can be made.
func Write(ctx context.Context, name string, write func(io.Writer) error) error {
	target, info, err := resolve(name)
	if err != nil {
		return err
	}
	if info != nil && !info.Mode().IsRegular() || isOpenFile(target) {
		return writing(name, writeThere(ctx, name, write))
	}
	if info != nil { // who may not write to the file may not replace it
		old, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		old.Close()
	}
	f, err := beside(target)
	if info != nil && errors.Is(err, fs.ErrPermission) {
		return writing(name, writeThere(ctx, name, write))
	}
	if err != nil {
		return named(name, err)
	}
	defer context.AfterFunc(ctx, func() { os.Remove(f.Name()) })()
	err = writeBeside(ctx, f, info, write)
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	return writing(name, err)
}

// writing says of an error what was being written.
func writing(name string, err error) error {
	if err == nil {
		return nil
	}
	var at *fs.PathError
	if errors.As(err, &at) && at.Path == name {
		return err
	}
	return fmt.Errorf("writing %s: %w", name, err)
}

// named returns an error about a file that stands for the one of the given name.
func named(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: name, Err: at.Err}
	}
	return err
}

// mostLinks is how many symbolic links may follow each other.
const mostLinks = 40

// resolve follows symbolic links, also to what does not exist. The info is nil for a file that is to be made.
func resolve(name string) (target string, info fs.FileInfo, err error) {
	target = name
	for range mostLinks {
		if isOpenFile(target) {
			break
		}
		to, err := os.Readlink(target)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(target), to)
		}
		target = to
	}
	info, err = os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return target, nil, nil
	}
	return target, info, err
}

// isOpenFile reports whether a name is of a file that this process has open, such as that of standard output.
func isOpenFile(name string) bool {
	return strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/dev/fd/")
}

// writeThere writes to a file as it is.
func writeThere(ctx context.Context, name string, write func(io.Writer) error) error {
	f, err := Create(ctx, name)
	if err != nil {
		return err
	}
	err = write(f)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// beside makes a file of a new name in the folder of target.
func beside(target string) (f *os.File, err error) {
	dir, base := filepath.Split(target)
	for range 100 {
		f, err = os.OpenFile(fmt.Sprintf("%s.%.100s.%08x", dir, base, rand.Uint32()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}

// writeBeside writes and closes f, which gets the permissions of the file that it is to replace. Where it fails f is gone.
func writeBeside(ctx context.Context, f *os.File, replaced fs.FileInfo, write func(io.Writer) error) (err error) {
	whole := false
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if !whole || err != nil { // also after a panic
			os.Remove(f.Name())
		}
	}()
	if replaced != nil {
		if err := f.Chmod(replaced.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := write(&heeding{ctx, f}); err != nil {
		return err
	}
	// What a disk has no room for may show only here. Some file systems know no such call.
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	whole = true
	return nil
}

// heeding writes to a file as long as a context lasts.
type heeding struct {
	ctx context.Context
	w   io.Writer
}

func (h *heeding) Write(p []byte) (int, error) {
	if err := context.Cause(h.ctx); err != nil {
		return 0, err
	}
	return h.w.Write(p)
}
