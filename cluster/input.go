package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"

	"github.com/nnopt/nnopt/nnet3/kaldiio"
)

// newOpener returns an Opener that also opens what has a scheme.
func newOpener(ctx context.Context, commands bool) *kaldiio.Opener {
	return &kaldiio.Opener{Commands: commands, Context: ctx, Remote: openObject}
}

// newPatientOpener returns an Opener for those who do not repeat what fails: files with a scheme do
// so themselves.
func newPatientOpener(ctx context.Context, commands bool) *kaldiio.Opener {
	o := newOpener(ctx, commands)
	o.Remote = func(ctx context.Context, name string) (f io.ReadSeekCloser, err error) {
		retry := newRetrier()
		err = retry.do(ctx, name, func() error {
			f, err = openObject(ctx, name)
			return err
		})
		if err == nil {
			f.(*remoteFile).retry = retry
		}
		return f, err
	}
	return o
}

// A ranger is a file system that reads an object from an offset on. Others are read from the
// beginning, and what comes before is dropped, unless what they open is an io.Seeker.
type ranger interface {
	OpenRange(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
}

// A remoteFile is a file of a file system of Beam's, open for reading. It opens the file when
// something is read from it.
type remoteFile struct {
	ctx    context.Context
	system filesystem.Interface
	name   string
	size   int64
	pos    int64 // of the next byte
	in     io.ReadCloser
	at     int64    // of the next byte of in
	retry  *retrier // repeats reads that fail; nil for none
}

// openObject opens a file for kaldiio.Opener.
func openObject(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	s, err := systemOf(name)
	if err != nil {
		return nil, err
	}
	size, err := s.Size(ctx, name)
	if err != nil {
		return nil, named(name, absent(name, err))
	}
	return &remoteFile{ctx: ctx, system: s, name: name, size: size}, nil
}

// named puts a name before an error that lacks it.
func named(name string, err error) error {
	if err == nil || strings.Contains(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Len returns the number of bytes that follow.
func (o *remoteFile) Len() int { return int(max(o.size-o.pos, 0)) }

// Seek sets the position of the next byte.
func (o *remoteFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.pos
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return o.pos, fmt.Errorf("%s: offset %d is negative", o.name, offset)
	}
	o.pos = offset
	return offset, nil
}

// Read reads at the position.
func (o *remoteFile) Read(p []byte) (n int, err error) {
	if o.pos >= o.size {
		return 0, io.EOF
	}
	if o.retry == nil {
		return o.read(p)
	}
	err = o.retry.do(o.ctx, o.name, func() (err error) {
		if n, err = o.read(p); n > 0 || err == io.EOF {
			return nil // what follows will fail again
		}
		if err != nil {
			o.Close()
		}
		return err
	})
	if n == 0 && err == nil {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (o *remoteFile) read(p []byte) (n int, err error) {
	if err := o.move(); err != nil {
		return 0, named(o.name, absent(o.name, err))
	}
	n, err = o.in.Read(p)
	o.at += int64(n)
	o.pos = o.at
	if err != io.EOF {
		err = named(o.name, err)
	}
	return n, err
}

// farAhead is how many bytes are passed over rather than asking for those that follow them.
const farAhead = 1 << 20

// move has the file continue at the position.
func (o *remoteFile) move() (err error) {
	r, ranges := o.system.(ranger)
	if o.in != nil && (o.at > o.pos || ranges && o.pos-o.at > farAhead) {
		if s, ok := o.in.(io.Seeker); ok {
			return o.seek(s)
		}
		o.Close()
	}
	switch {
	case o.in != nil:
	case ranges:
		if o.in, err = r.OpenRange(o.ctx, o.name, o.pos); err == nil {
			o.at = o.pos
		}
	default:
		o.at = 0
		o.in, err = o.system.OpenRead(o.ctx, o.name)
	}
	if err != nil || o.at == o.pos {
		return err
	}
	if s, ok := o.in.(io.Seeker); ok {
		return o.seek(s)
	}
	n, err := io.CopyN(io.Discard, o.in, o.pos-o.at)
	o.at += n
	return err
}

func (o *remoteFile) seek(s io.Seeker) (err error) {
	o.at, err = s.Seek(o.pos, io.SeekStart)
	return err
}

// Close closes the file.
func (o *remoteFile) Close() error {
	if o.in == nil {
		return nil
	}
	err := o.in.Close()
	o.in = nil
	return err
}
