package kaldiio

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/nnopt/nnopt/internal/fileio"
)

const (
	bufferSize   = 64 << 10
	maxTokenSize = 4096 // of a token or a number; Kaldi's own stay below 100
)

// Reader reads Kaldi's encodings from a stream. A method returns an *Error if the stream holds
// something else; the position is then undefined, except after Peek methods, which never move it.
type Reader struct {
	src  io.Reader
	name string

	buf      []byte
	pos, end int   // buf[pos:end] was read from src but not consumed
	base     int64 // offset of buf[0] in the stream
	srcErr   error // the last error of src; io.EOF at its end
	size     int64 // of the whole stream, -1 if unknown
	claimed  int64 // see Claim
	limit    int64 // see Limit

	spare   []float32 // see Spare
	scratch []byte    // see temporary
	binary  bool
	line    int // of buf[pos], from 1; counted in text only
	last    [48]byte
	lastLen int
}

// NewReader returns a reader of r, for use in errors called name. Input that starts with a zero
// byte and a 'B' is binary; NewReader consumes these two bytes. If r is a regular file or has a Len
// method, its size is known and large matrices are allocated once.
func NewReader(r io.Reader, name string) (*Reader, error) {
	k := newReader(r, name)
	if err := k.detectBinary(); err != nil {
		return nil, err
	}
	return k, nil
}

// newReader returns a reader in text mode, without reading from r.
func newReader(r io.Reader, name string) *Reader {
	return reuseBuffer(make([]byte, bufferSize), r, name)
}

// reuseBuffer is newReader with the buffer of a reader that is no longer used.
func reuseBuffer(buf []byte, r io.Reader, name string) *Reader {
	return &Reader{src: r, name: name, buf: buf, size: sizeOf(r), line: 1, limit: math.MaxInt64}
}

// Limit bounds the bytes that are read from here on. Beyond it, reading fails with an error that
// wraps fileio.ErrLimit. It is for structures that are kept in memory as a whole.
func (r *Reader) Limit(bytes int64) { r.limit = r.Offset() + bytes }

// read reads from the source.
func (r *Reader) read(p []byte) (int, error) {
	if r.base+int64(r.end) >= r.limit {
		return 0, r.overLimit()
	}
	return r.src.Read(p)
}

func (r *Reader) overLimit() error {
	return fmt.Errorf("more than %d bytes, %w", r.limit, fileio.ErrLimit)
}

// sizeOf returns the number of bytes left in r, or -1.
func sizeOf(r io.Reader) int64 {
	switch s := r.(type) {
	case interface{ Len() int }:
		return int64(s.Len())
	case interface {
		Stat() (fs.FileInfo, error)
		io.Seeker
	}:
		info, err := s.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return -1
		}
		at, err := s.Seek(0, io.SeekCurrent)
		if err != nil || at > info.Size() {
			return -1
		}
		return info.Size() - at
	}
	return -1
}

// detectBinary consumes the binary header if there is one, and sets the mode.
func (r *Reader) detectBinary() error {
	if err := r.refuseOther(); err != nil {
		return err
	}
	r.binary = false
	if r.end-r.pos >= 1 && r.buf[r.pos] == 0 {
		if r.end-r.pos < 2 {
			return r.truncated("the binary header")
		}
		if r.buf[r.pos+1] != 'B' {
			return r.Errorf("binary header is %q, want %q", r.buf[r.pos:r.pos+2], "\x00B")
		}
		r.binary = true
		r.pos += 2
	}
	return nil
}

// IsGzip reports whether a file with this head is compressed with gzip. No text begins like that,
// nor does any file of Kaldi's.
func IsGzip(head []byte) bool { return bytes.HasPrefix(head, []byte("\x1f\x8b")) }

// refuseOther returns an error for compressed input and for what Git LFS did not fetch, which would look like garbage
// later.
func (r *Reader) refuseOther() error {
	r.fill(2)
	if r.Offset() > 0 {
		return nil
	}
	if IsGzip(r.buf[r.pos:r.end]) {
		return r.Errorf("compressed with gzip: unpack it, or read the output of a command, \"gunzip -c FILE |\"")
	}
	if bytes.HasPrefix(r.buf[r.pos:r.end], []byte("ve")) { // or a stream would wait for bytes that may not come
		r.fill(lfsHead)
	}
	return r.refuseLFS(r.buf[r.pos:r.end])
}

const (
	lfsHead = 64   // bytes by which a pointer of Git LFS is known
	maxLFS  = 1024 // bytes of a pointer
)

// refuseLFS returns an error if the input begins like a pointer of Git LFS.
func (r *Reader) refuseLFS(head []byte) error {
	if err := fileio.CheckLFS(head); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return nil
}

// Binary reports whether the input is binary.
func (r *Reader) Binary() bool { return r.binary }

// Name returns the name of the stream, as used in errors.
func (r *Reader) Name() string { return r.name }

// Offset returns the number of bytes consumed.
func (r *Reader) Offset() int64 { return r.base + int64(r.pos) }

// freeClaims is how many bytes may be claimed however little was read.
const freeClaims = 32 << 20

// Claim accounts for memory that the input asks for beyond its own size: a table, or a small block
// repeated. It returns an error if all claims exceed eight times the bytes read plus 32 MiB. Honest
// files stay far below that.
func (r *Reader) Claim(bytes int64) error {
	if bytes > freeClaims+8*r.Offset()-r.claimed {
		return r.Errorf("%d bytes of memory asked for, after %d before: too much for input of this size", bytes, r.claimed)
	}
	r.claimed += bytes
	return nil
}

// Errorf returns an *Error at the current position that wraps ErrCorrupt. Packages that read their
// structures through a Reader report faults with it.
func (r *Reader) Errorf(format string, args ...any) error {
	return r.errorAt(r.Offset(), ErrCorrupt, fmt.Sprintf(format, args...))
}

func (r *Reader) errorAt(offset int64, cause error, what string) *Error {
	e := &Error{name: r.name, offset: offset, line: r.line, token: string(r.last[:r.lastLen]), what: what, err: cause}
	if r.binary {
		e.line = 0
	}
	return e
}

// truncated returns the error for input that ends in the middle of what.
func (r *Reader) truncated(what string) *Error {
	cause := r.srcErr
	if cause == nil || cause == io.EOF || cause == io.ErrUnexpectedEOF {
		cause = ErrTruncated
	}
	return r.errorAt(r.base+int64(r.end), cause, "reading "+what)
}

// fill tries to make n bytes available, at most the size of the buffer, and reports whether it did.
func (r *Reader) fill(n int) bool {
	if r.end-r.pos >= n {
		return true
	}
	if r.pos > 0 {
		copy(r.buf, r.buf[r.pos:r.end])
		r.base += int64(r.pos)
		r.end -= r.pos
		r.pos = 0
	}
	for idle := 0; r.end < n && r.srcErr == nil; {
		k, err := r.read(r.buf[r.end:])
		r.end += k
		r.srcErr = err
		if k > 0 {
			idle = 0
		} else if idle++; idle > 100 && err == nil {
			r.srcErr = io.ErrNoProgress
		}
	}
	return r.end >= n
}

// readFull fills p, bypassing the buffer if p is large.
func (r *Reader) readFull(p []byte, what string) error {
	k := copy(p, r.buf[r.pos:r.end])
	r.pos += k
	p = p[k:]
	if len(p) == 0 {
		return nil
	}
	if len(p) < len(r.buf) {
		if !r.fill(len(p)) {
			return r.truncated(what)
		}
		r.pos += copy(p, r.buf[r.pos:r.end])
		return nil
	}
	if r.srcErr != nil {
		return r.truncated(what)
	}
	r.base += int64(r.end)
	r.pos, r.end = 0, 0
	if r.base+int64(len(p)) > r.limit {
		r.srcErr = r.overLimit()
		return r.truncated(what)
	}
	k, err := io.ReadFull(r.src, p)
	r.base += int64(k)
	if err != nil {
		r.srcErr = err
		return r.truncated(what)
	}
	return nil
}

// remaining returns how many bytes are left, or -1 if unknown.
func (r *Reader) remaining() int64 {
	if r.srcErr == io.EOF {
		return int64(r.end - r.pos)
	}
	if r.size < 0 {
		return -1
	}
	return max(r.size-r.Offset(), 0)
}

// Capacity returns for how many of n elements to make room at once, if each takes at least wire
// bytes of the source: as many as the source can hold, or a few thousand if its length is unknown.
func (r *Reader) Capacity(n uint64, wire int) int {
	most := int64(firstChunk / 16)
	if left := r.remaining(); left >= 0 {
		most = left / int64(wire)
	}
	return int(min(n, uint64(most)))
}

// Byte reads one byte.
func (r *Reader) Byte() (byte, error) {
	if !r.fill(1) {
		return 0, r.truncated("a byte")
	}
	r.advance()
	return r.buf[r.pos-1], nil
}

// PeekByte returns the next byte without consuming it.
func (r *Reader) PeekByte() (byte, error) {
	if !r.fill(1) {
		return 0, r.truncated("a byte")
	}
	return r.buf[r.pos], nil
}

// atEOF reports whether all input is consumed.
func (r *Reader) atEOF() bool { return !r.fill(1) && r.srcErr == io.EOF }

// advance consumes one byte of the buffer.
func (r *Reader) advance() {
	if r.buf[r.pos] == '\n' {
		r.line++
	}
	r.pos++
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// skipSpace consumes white space and reports whether something follows.
func (r *Reader) skipSpace() bool {
	for r.pos < r.end || r.fill(1) {
		if !isSpace(r.buf[r.pos]) {
			return true
		}
		r.advance()
	}
	return false
}

// PeekNonSpace consumes white space and returns the byte after it without consuming that.
func (r *Reader) PeekNonSpace() (byte, error) {
	if !r.skipSpace() {
		return 0, r.truncated("a byte")
	}
	return r.buf[r.pos], nil
}

// maxLine bounds a line. The longest lines append thousands of time offsets.
const maxLine = 1 << 24

// Line reads a line and returns it without its newline.
func (r *Reader) Line() (string, error) {
	at := r.Offset()
	line, err := r.lineOf(maxLine)
	if err == nil && len(line) > maxLine {
		return "", r.errorAt(at, ErrCorrupt, fmt.Sprintf("a line of more than %d bytes, the limit", maxLine))
	}
	return line, err
}

// lineOf is Line for lines of a bounded length. Of a longer line it returns more, but not all.
func (r *Reader) lineOf(most int) (string, error) {
	var long []byte
	for {
		if len(long) > most {
			return string(long), nil
		}
		if !r.fill(1) {
			if r.srcErr == io.EOF && len(long) > 0 {
				return string(long), nil
			}
			return "", r.truncated("a line")
		}
		if i := bytes.IndexByte(r.buf[r.pos:r.end], '\n'); i >= 0 {
			part := r.buf[r.pos : r.pos+i]
			r.pos += i + 1
			r.line++
			if long == nil {
				return string(part), nil
			}
			return string(append(long, part...)), nil
		}
		long = append(long, r.buf[r.pos:r.end]...)
		r.pos = r.end
	}
}
