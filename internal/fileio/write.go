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

// Write writes the named file by calling write. A regular file is either replaced completely or,
// on an error or when ctx is done, left as it was: Write creates a new file in the same
// directory, with the permissions of the old one, and renames it. A symbolic link is preserved
// and leads to the new file. Anything else, such as a device, a FIFO or /dev/stdout, is written
// directly, and so is a file in a directory without write permission.
func Write(ctx context.Context, name string, write func(io.Writer) error) error {
	return replace(ctx, name, write, writeThere)
}

// ErrReplace means that a file can't be replaced.
var ErrReplace = errors.New("it can't be replaced")

// Replace is like Write, but never writes to a file that is there: what can't be replaced is an
// ErrReplace. This is for files that may be mapped, since their content must not change.
func Replace(ctx context.Context, name string, write func(io.Writer) error) error {
	return replace(ctx, name, write, func(context.Context, string, func(io.Writer) error) error { return ErrReplace })
}

// replace replaces a file, and calls instead for one that it can't replace.
func replace(ctx context.Context, name string, write func(io.Writer) error, instead func(context.Context, string, func(io.Writer) error) error) error {
	target, info, err := resolve(name)
	if err != nil {
		return err
	}
	if info != nil && !info.Mode().IsRegular() || isOpenFile(target) {
		return writing(name, instead(ctx, name, write))
	}
	if info != nil { // replacing a file requires the permission to write to it
		old, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		old.Close()
	}
	f, err := beside(target)
	if info != nil && errors.Is(err, fs.ErrPermission) {
		return writing(name, instead(ctx, name, write))
	}
	if err != nil {
		return named(name, err)
	}
	defer context.AfterFunc(ctx, func() { os.Remove(f.Name()) })()
	err = writeBeside(ctx, f, info, write)
	if err == nil {
		if err = os.Rename(f.Name(), target); err != nil {
			os.Remove(f.Name())
		}
	}
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	return writing(name, err)
}

// writing adds the name of the file to an error.
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

// named returns an error about a temporary file as one about the named file.
func named(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: name, Err: at.Err}
	}
	return err
}

// maxLinks bounds a chain of symbolic links.
const maxLinks = 40

// resolve follows symbolic links, also to a file that does not exist, whose info is
// nil.
func resolve(name string) (target string, info fs.FileInfo, err error) {
	target = name
	for range maxLinks {
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

// isOpenFile reports whether a name denotes an open file of this process, such as standard
// output.
func isOpenFile(name string) bool {
	return strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/dev/fd/")
}

// writeThere writes to a file directly.
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

// beside creates a file with a new name in the directory of target.
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

// writeBeside writes and closes f, with the permissions of the file that it will replace. On an
// error it removes f.
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
	if err := Sync(f); err != nil { // a full disk may show only here
		return err
	}
	whole = true
	return nil
}

// Sync waits until what was written to a file would survive a loss of power. It does nothing for a
// file that can't be synced: a pipe, or one on a file system that does not support it.
func Sync(f interface{ Sync() error }) error {
	err := f.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}
