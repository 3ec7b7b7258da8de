package fileio

import (
	"context"
	"io"
	"os"
	"time"
)

// Grace is how long a write continues after its context is done. An active reader takes the data
// at once and thus gets all of it. A stalled one is not waited for.
const Grace = 250 * time.Millisecond

const (
	waitBuffer = 64 << 10
	// maxAtOnce bounds a read from a file between two checks of the context.
	maxAtOnce = 4 << 20
)

// Reader returns a reader of r that waits for r only until ctx is done, and then returns the
// cause of ctx. A read that r never finishes leaves a goroutine behind. A regular file, which
// does not block, is returned as it is.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	if _, waits := r.(*waitingReader); waits || ctx.Done() == nil || isRegular(r) {
		return r
	}
	return &waitingReader{waiter: newWaiter(ctx, func(p []byte) (int, error) { return r.Read(p) }, 0)}
}

// Writer returns a writer to w that waits for w only until ctx is done and Grace has passed.
// This write and all later ones then return the cause of ctx. A regular file is returned as it
// is.
func Writer(ctx context.Context, w io.Writer) io.Writer {
	if ctx.Done() == nil || isRegular(w) {
		return w
	}
	return &waitingWriter{newWaiter(ctx, func(p []byte) (int, error) { return w.Write(p) }, Grace)}
}

// A waiter runs calls that may block on another goroutine.
type waiter struct {
	ctx   context.Context
	call  func([]byte) (int, error)
	grace time.Duration // how long a call may continue after ctx is done
	buf   []byte        // not accessed while a call is running
	done  chan outcome
	err   error // of the last call
}

type outcome struct {
	n   int
	err error
}

func newWaiter(ctx context.Context, call func([]byte) (int, error), grace time.Duration) waiter {
	return waiter{ctx: ctx, call: call, grace: grace, done: make(chan outcome, 1)}
}

// buffer returns buf, which it allocates the first time.
func (w *waiter) buffer() []byte {
	if w.buf == nil {
		w.buf = make([]byte, waitBuffer)
	}
	return w.buf
}

// wait calls the function with a part of buf. It returns the number of bytes and sets err.
func (w *waiter) wait(p []byte) int {
	go func() {
		n, err := w.call(p)
		w.done <- outcome{n, err}
	}()
	var got outcome
	select {
	case got = <-w.done:
	case <-w.ctx.Done():
		select {
		case got = <-w.done:
		case <-time.After(w.grace):
			got.err = context.Cause(w.ctx)
		}
	}
	w.err = got.err
	return got.n
}

type waitingReader struct {
	waiter
	rest []byte // the unread part of buf
}

func (w *waitingReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(w.rest) == 0 && w.err == nil {
		if w.err = context.Cause(w.ctx); w.err == nil {
			w.rest = w.buffer()[:w.wait(w.buffer())]
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	if n == 0 {
		return 0, w.err
	}
	return n, nil
}

type waitingWriter struct{ waiter }

func (w *waitingWriter) Write(p []byte) (n int, err error) {
	for first := true; w.err == nil && (len(p) > 0 || first); first = false {
		k := copy(w.buffer(), p)
		n += w.wait(w.buf[:k])
		p = p[k:]
	}
	return n, w.err
}

// isRegular reports whether f is a regular file.
func isRegular(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

// A File is an open file that blocks only until a context is done.
type File struct {
	*handle
	r io.Reader
	w io.Writer
}

// handle hides the methods of a file that would bypass File.
type handle struct{ f *os.File }

// Sync is that of os.File, see the function Sync.
func (h *handle) Sync() error { return h.f.Sync() }

// Open opens a file for reading. It waits for the writer of a FIFO only until ctx is done, and
// reads fail after that.
func Open(ctx context.Context, name string) (*File, error) {
	f, err := open(ctx, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	if isRegular(f) {
		return &File{handle: &handle{f}, r: &heeding{ctx, f}}, nil
	}
	return &File{handle: &handle{f}, r: Reader(ctx, f)}, nil
}

// Create opens a file for writing, and creates or truncates it. It waits for the reader of a
// FIFO only until ctx is done. Writes to a regular file do not depend on ctx.
func Create(ctx context.Context, name string) (*File, error) {
	f, err := open(ctx, name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	return &File{handle: &handle{f}, w: Writer(ctx, f)}, nil
}

// open is os.OpenFile that waits only until ctx is done.
func open(ctx context.Context, name string, flag int) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil || info.Mode().IsRegular() || ctx.Done() == nil {
		return os.OpenFile(name, flag, 0o666)
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened)
	go func() {
		f, err := os.OpenFile(name, flag, 0o666)
		select {
		case done <- opened{f, err}:
		case <-ctx.Done():
			if err == nil {
				f.Close()
			}
		}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// heeding checks a context before every read from a file and write to it.
type heeding struct {
	ctx context.Context
	f   *os.File
}

func (h *heeding) Read(p []byte) (int, error) {
	if err := context.Cause(h.ctx); err != nil {
		return 0, err
	}
	return h.f.Read(p[:min(len(p), maxAtOnce)])
}

func (h *heeding) Write(p []byte) (int, error) {
	if err := context.Cause(h.ctx); err != nil {
		return 0, err
	}
	return h.f.Write(p)
}

// Read reads from a file opened by Open.
func (f *File) Read(p []byte) (int, error) { return f.r.Read(p) }

// Write writes to a file opened by Create.
func (f *File) Write(p []byte) (int, error) { return f.w.Write(p) }

// ReadAt reads at an offset of a regular file.
func (h *handle) ReadAt(p []byte, offset int64) (int, error) { return h.f.ReadAt(p, offset) }

// Seek sets the offset of the next read or write.
func (h *handle) Seek(offset int64, whence int) (int64, error) { return h.f.Seek(offset, whence) }

// Stat describes the file.
func (h *handle) Stat() (os.FileInfo, error) { return h.f.Stat() }

// Truncate changes the size of the file.
func (h *handle) Truncate(size int64) error { return h.f.Truncate(size) }

// Close closes the file.
func (h *handle) Close() error { return h.f.Close() }
