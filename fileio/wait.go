package fileio

import (
	"context"
	"io"
	"os"
	"time"
)

// Grace is how long a write goes on after its context is done. A reader that is there takes what it gets at once, and so gets it whole; one that
// sleeps is not waited for.
const Grace = 250 * time.Millisecond

const (
	waitBuffer = 64 << 10
	// mostAtOnce bounds a read from a file, after which the context is looked at.
	mostAtOnce = 4 << 20
)

// Reader returns a reader of r that waits for r no longer than ctx lasts; the error then is the cause of ctx. A read that r does not end stays behind
// in a goroutine. A regular file, which makes nobody wait, is returned as it is.
func Reader(ctx context.Context, r io.Reader) io.Reader {
	if _, waits := r.(*waitingReader); waits || ctx.Done() == nil || isRegular(r) {
		return r
	}
	return &waitingReader{ctx: ctx, r: r, done: make(chan outcome, 1)}
}

// An outcome is that of a call that was waited for.
type outcome struct {
	n   int
	err error
}

type waitingReader struct {
	ctx  context.Context
	r    io.Reader
	buf  []byte // what is read into; it is not touched while somebody reads
	rest []byte // of buf: what is not handed out yet
	done chan outcome
	err  error
}

func (w *waitingReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(w.rest) == 0 && w.err == nil {
		w.fill()
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	if n == 0 {
		return 0, w.err
	}
	return n, nil
}

func (w *waitingReader) fill() {
	if w.err = context.Cause(w.ctx); w.err != nil {
		return
	}
	if w.buf == nil {
		w.buf = make([]byte, waitBuffer)
	}
	go func() {
		n, err := w.r.Read(w.buf)
		w.done <- outcome{n, err}
	}()
	select {
	case got := <-w.done:
		w.rest, w.err = w.buf[:got.n], got.err
	case <-w.ctx.Done():
		w.err = context.Cause(w.ctx)
	}
}

// Writer returns a writer to w that waits for w no longer than ctx lasts, and Grace more; the error then is the cause of ctx, of this write and of
// all that follow. A regular file is returned as it is.
func Writer(ctx context.Context, w io.Writer) io.Writer {
	if ctx.Done() == nil || isRegular(w) {
		return w
	}
	return &waitingWriter{ctx: ctx, w: w, done: make(chan outcome, 1)}
}

type waitingWriter struct {
	ctx  context.Context
	w    io.Writer
	buf  []byte
	done chan outcome
	err  error
}

func (w *waitingWriter) Write(p []byte) (n int, err error) {
	if w.buf == nil {
		w.buf = make([]byte, waitBuffer)
	}
	for first := true; w.err == nil && (len(p) > 0 || first); first = false {
		k := copy(w.buf, p)
		n += w.write(w.buf[:k])
		p = p[k:]
	}
	return n, w.err
}

func (w *waitingWriter) write(p []byte) int {
	go func() {
		n, err := w.w.Write(p)
		w.done <- outcome{n, err}
	}()
	var got outcome
	select {
	case got = <-w.done:
	case <-w.ctx.Done():
		select {
		case got = <-w.done:
		case <-time.After(Grace):
			got.err = context.Cause(w.ctx)
		}
	}
	w.err = got.err
	return got.n
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

// A File is an open file that makes nobody wait for longer than a context lasts.
type File struct {
	*handle
	r io.Reader
	w io.Writer
}

// handle hides what of a file would go around a File.
type handle struct{ f *os.File }

// Open opens a file for reading. It waits for the writer of a FIFO no longer than ctx lasts, and reading ends with ctx.
func Open(ctx context.Context, name string) (*File, error) {
	f, err := open(ctx, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	if isRegular(f) {
		return &File{handle: &handle{f}, r: &steps{ctx, f}}, nil
	}
	return &File{handle: &handle{f}, r: Reader(ctx, f)}, nil
}

// Create opens a file for writing, which is made or emptied. It waits for the reader of a FIFO no longer than ctx lasts. Writing to a regular file goes
// on when ctx is done.
func Create(ctx context.Context, name string) (*File, error) {
	f, err := open(ctx, name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	return &File{handle: &handle{f}, w: Writer(ctx, f)}, nil
}

// open is os.OpenFile that waits no longer than ctx lasts.
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

// steps reads a file in steps, before each of which it looks at the context.
type steps struct {
	ctx context.Context
	f   *os.File
}

func (s *steps) Read(p []byte) (int, error) {
	if err := context.Cause(s.ctx); err != nil {
		return 0, err
	}
	return s.f.Read(p[:min(len(p), mostAtOnce)])
}

// Read reads.
func (f *File) Read(p []byte) (int, error) { return f.r.Read(p) }

// Write writes.
func (f *File) Write(p []byte) (int, error) { return f.w.Write(p) }

// ReadAt reads at an offset of a regular file.
func (h *handle) ReadAt(p []byte, offset int64) (int, error) { return h.f.ReadAt(p, offset) }

// Seek moves to an offset.
func (h *handle) Seek(offset int64, whence int) (int64, error) { return h.f.Seek(offset, whence) }

// Stat describes the file.
func (h *handle) Stat() (os.FileInfo, error) { return h.f.Stat() }

// Truncate cuts the file.
func (h *handle) Truncate(size int64) error { return h.f.Truncate(size) }

// Close closes the file.
func (h *handle) Close() error { return h.f.Close() }
